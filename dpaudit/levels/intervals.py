"""Intervals of a number or a score, finer than the levels that they are joined into.

A cut-off need not be where two levels meet. The chosen candidate is divided again into as many
levels, which are narrow near the cut-offs of its best rule and wide elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, by_group
from dpaudit.levels.piecewise_logit import LEVELS
from dpaudit.levels.shrinkage import ExpectedDraws

# Intervals on either side of a cut-off that become levels of their own.
_NEAR = 6


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Neighbouring intervals, in order from d2 to d1, with the learning draws in each.

    each: map from an outcome to its interval; the last one is for unseen outcomes.
    counts: (intervals + 1, 2), learning draws by interval and input.
    level: (intervals,), rising, the level that each interval belongs to.
    position: (intervals,), mean number or score of each interval, NaN for a label; None: unknown.
    joined: makes the map to levels from the level of every interval.
    order: (intervals,), the intervals by level, where further draws have moved a label; None where
        intervals are in order as they are.
    place_labels: puts labels in order again after further draws; None without labels.
    expected: (intervals, 2), expected draws, if more is known than the counts.
    """

    each: LevelMap
    counts: IntArray
    level: IntArray
    position: FloatArray | None
    joined: Callable[[IntArray], LevelMap]
    order: IntArray | None = None
    place_labels: Callable[[Intervals], Intervals] | None = None
    expected: FloatArray | None = None

    def add(self, counts: IntArray) -> Intervals:
        """Return the intervals after further draws, counted by `each`."""
        later = replace(self, counts=self.counts + counts)
        return later if self.place_labels is None else self.place_labels(later)

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> Intervals:
        """Return the intervals for other outcomes. of: makes their level map from one of these."""

        def joined(level: IntArray) -> LevelMap:
            return of(self.joined(level))

        return replace(self, each=of(self.each), joined=joined)

    def level_map(self) -> LevelMap:
        """Return the map from an outcome to its level."""
        return self.joined(self._levels())

    def held_out(self) -> IntArray:
        """Return the draws by level and input, the last level for unseen: (levels + 1, 2)."""
        levels = int(self.level[-1]) + 1
        return by_group(self.counts, np.append(self._levels(), levels), levels + 1).astype(np.int64)

    def expected_draws(self) -> ExpectedDraws | None:
        """Return expected draws by level; None if nothing is known but the counts."""
        if self.expected is None:
            return None
        levels = int(self.level[-1]) + 1
        return ExpectedDraws(by_group(self.expected, self._levels(), levels), np.zeros(levels))

    def positions(self) -> FloatArray | None:
        """Return the mean number or score of every level: (levels,). A level of labels alone lies
        between its neighbours or, at an end, beyond the last one."""
        if self.position is None:
            return None
        there = ~np.isnan(self.position)
        draws = np.maximum(self.counts[:-1].sum(axis=1), 1e-9) * there
        both = np.stack([draws * np.where(there, self.position, 0.0), draws], axis=1)
        total = by_group(both, self._levels())
        with np.errstate(invalid="ignore"):
            return filled(total[:, 0] / total[:, 1])

    def places(self) -> FloatArray:
        """Return the coordinate in which log-ratios are piecewise linear, by level: (levels,). This
        is the number or the score or, where that does not rise, the share of the draws."""
        position = self.positions()
        if position is not None and np.all(np.diff(position) > 0):
            return position
        masses = by_group(self.counts[:-1], self._levels()).sum(axis=1)
        masses += 1e-6 * max(1.0, masses.mean())  # so that levels without draws have a place, too
        return np.asarray(np.cumsum(masses) - masses / 2)

    def near(self, low: int, high: int) -> Intervals:
        """Return the intervals joined into other levels, no more in all: narrow ones near the
        starts of the levels `low` and `high`."""
        starts = np.diff(self.level, prepend=self.level[0]) > 0
        fine = np.zeros(len(starts), dtype=bool)
        for place in np.searchsorted(self.level, [low, high]):
            if 0 < place < len(starts):
                fine[max(1, place - _NEAR) : place + _NEAR + 1] = True
        others = np.flatnonzero(starts & ~fine)
        room = LEVELS - 2 - int(fine.sum())
        if len(others) > room:
            others = others[np.linspace(0, len(others) - 1, max(0, room)).round().astype(np.intp)]
        begins = fine
        begins[others] = True
        return replace(self, level=np.cumsum(begins))

    def _levels(self) -> IntArray:
        if self.order is None:
            return self.level
        levels = np.empty_like(self.level)
        levels[self.order] = self.level
        return levels


def filled(position: FloatArray) -> FloatArray:
    """Return positions of levels in order, with NaN replaced: between two known positions by
    interpolation, at an end by steps as large as the last known one."""
    known, every = np.flatnonzero(~np.isnan(position)), np.arange(len(position))
    if len(known) < 2:
        return np.zeros(len(position))
    means = position[known]
    (low, next_low), (next_high, high) = means[:2], means[-2:]
    below = np.minimum(0, every - known[0]) * abs(next_low - low)
    above = np.maximum(0, every - known[-1]) * abs(high - next_high)
    return np.asarray(np.interp(every, known, means) + below + above)
