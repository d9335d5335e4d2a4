"""Intervals of a number or a score that are finer than the levels made from them.

A level is a group of neighbouring intervals. The best cut-off of a rule may lie inside a level. So
the intervals of the chosen candidate are joined again, into as many levels: narrow levels near the
cut-offs of its best rule, wide levels elsewhere (`Intervals.near`). Candidates use intervals to
count further draws, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, by_group
from dpaudit.levels.piecewise_logit import LEVELS
from dpaudit.levels.shrinkage import ExpectedDraws

# Number of intervals on either side of a cut-off that become levels of their own.
_NEAR = 6


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Neighbouring intervals in order from d2 to d1, with the learning draws in each.

    each: map from an outcome to its interval; the last number is for unseen outcomes.
    counts: (intervals + 1, 2), learning draws by interval and input.
    level: (intervals,), rising, the level of each interval.
    position: (intervals,), mean number or score in each interval, NaN for a label; None: unknown.
    joined: called with the level of every interval; returns the map from outcomes to levels.
    order: (intervals,), the intervals in their present order, if further draws have moved a label;
        None: the original order.
    place_labels: called with intervals after further draws; returns them with labels put in order
        again. None without labels.
    expected: (intervals, 2), expected draws by interval and input, if known better than by the
        counts.
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
        """Return the intervals after further draws.

        counts: (intervals + 1, 2), draws counted by `each`.
        """
        later = replace(self, counts=self.counts + counts)
        return later if self.place_labels is None else self.place_labels(later)

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> Intervals:
        """Return the intervals for outcomes of another form.

        of: turns a level map of these intervals into a level map of the other outcomes.
        """

        def joined(level: IntArray) -> LevelMap:
            return of(self.joined(level))

        return replace(self, each=of(self.each), joined=joined)

    def level_map(self) -> LevelMap:
        """Return the map from an outcome to its level."""
        return self.joined(self._levels())

    def held_out(self) -> IntArray:
        """Return draws by level and input, (levels + 1, 2). The last level is for unseen
        outcomes."""
        levels = int(self.level[-1]) + 1
        return by_group(self.counts, np.append(self._levels(), levels), levels + 1).astype(np.int64)

    def expected_draws(self) -> ExpectedDraws | None:
        """Return the expected draws by level and input; None if only the counts are known."""
        if self.expected is None:
            return None
        levels = int(self.level[-1]) + 1
        return ExpectedDraws(by_group(self.expected, self._levels(), levels), np.zeros(levels))

    def positions(self) -> FloatArray | None:
        """Return the mean number or score of every level, (levels,); None if unknown. A level that
        has only labels gets a position between its neighbours or, at an end, beyond the last known
        position."""
        if self.position is None:
            return None
        there = ~np.isnan(self.position)
        draws = np.maximum(self.counts[:-1].sum(axis=1), 1e-9) * there
        both = np.stack([draws * np.where(there, self.position, 0.0), draws], axis=1)
        total = by_group(both, self._levels())
        with np.errstate(invalid="ignore"):
            return filled(total[:, 0] / total[:, 1])

    def places(self) -> FloatArray:
        """Return the coordinate of every level in which log-odds are piecewise linear: (levels,),
        rising. It is the mean number or score or, if these do not rise, half of the draws of the
        level plus all draws below it."""
        position = self.positions()
        if position is not None and np.all(np.diff(position) > 0):
            return position
        masses = by_group(self.counts[:-1], self._levels()).sum(axis=1)
        # Levels without draws need different places, too.
        masses += 1e-6 * max(1.0, masses.mean())
        return np.asarray(np.cumsum(masses) - masses / 2)

    def near(self, low: int, high: int) -> Intervals:
        """Return the intervals joined into other levels: each of the six intervals on either side
        of the start of level `low`, and of level `high`, is a level of its own. There are at most
        63 levels."""
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
    """Return the positions of levels in order with NaN replaced: by interpolation between known
    positions, and beyond the ends by steps as large as the last step between known positions.

    position: (levels,).
    """
    known, every = np.flatnonzero(~np.isnan(position)), np.arange(len(position))
    if len(known) < 2:
        return np.zeros(len(position))
    means = position[known]
    (low, next_low), (next_high, high) = means[:2], means[-2:]
    below = np.minimum(0, every - known[0]) * abs(next_low - low)
    above = np.maximum(0, every - known[-1]) * abs(high - next_high)
    return np.asarray(np.interp(every, known, means) + below + above)
