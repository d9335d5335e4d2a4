"""An order of intervals that is cut finer than its levels, so that cut-offs are where they pay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, by_group
from dpaudit.levels.piecewise_logit import LEVELS
from dpaudit.levels.shrinkage import ShrunkLevels

# Intervals to either side of a cut-off that are levels of their own.
_NEAR = 6


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Neighbouring intervals of a number or a score, in order from d2 to d1.

    each: the map to the interval of an outcome, the last one for unseen. counts: (intervals + 1,
    2), the selection draws in each. level: (intervals,), rising, the level that each belongs to.
    position: (intervals,), the mean number or score of each, NaN for a label. joined: makes the map
    to levels, from the level of every interval. order: (intervals,), the intervals by level, where
    some are labels that more draws have moved; None where they are in order as they are. anew: puts
    them in order again after more draws. expected: (intervals, 2), what to expect of as many draws,
    if more is known than their counts.
    """

    each: LevelMap
    counts: IntArray
    level: IntArray
    position: FloatArray | None
    joined: Callable[[IntArray], LevelMap]
    order: IntArray | None = None
    anew: Callable[[Intervals], Intervals] | None = None
    expected: FloatArray | None = None

    def with_more(self, counts: IntArray) -> Intervals:
        """Return them after more draws, counted by `each`."""
        more = replace(self, counts=self.counts + counts)
        return more if self.anew is None else self.anew(more)

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> Intervals:
        """Return them for other outcomes. of: makes their levels of those here."""

        def joined(level: IntArray) -> LevelMap:
            return of(self.joined(level))

        return replace(self, each=of(self.each), joined=joined)

    def by_level(self) -> LevelMap:
        """Return the map to the level of an outcome."""
        return self.joined(self._levels())

    def held_out(self) -> IntArray:
        """Return the selection draws by level, the last one for unseen: (levels + 1, 2)."""
        levels = int(self.level[-1]) + 1
        return by_group(self.counts, np.append(self._levels(), levels), levels + 1).astype(np.int64)

    def shrunk(self) -> ShrunkLevels | None:
        """Return what to expect by level, if more is known than counts: (levels, 2)."""
        if self.expected is None:
            return None
        levels = int(self.level[-1]) + 1
        return ShrunkLevels(by_group(self.expected, self._levels(), levels), np.zeros(levels))

    def positions(self) -> FloatArray | None:
        """Return the mean number or score of every level: (levels,). That of labels alone lies
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
        """Return what log-ratios can be expected to change evenly along, by level: (levels,). It is
        the number or the score or, where that does not rise, the share of the draws."""
        position = self.positions()
        if position is not None and np.all(np.diff(position) > 0):
            return position
        masses = by_group(self.counts[:-1], self._levels()).sum(axis=1)
        masses += 1e-6 * max(1.0, masses.mean())  # so that levels without draws have a place, too
        return np.asarray(np.cumsum(masses) - masses / 2)

    def _levels(self) -> IntArray:
        """Return the level of every interval: (intervals,)."""
        if self.order is None:
            return self.level
        found = np.empty_like(self.level)
        found[self.order] = self.level
        return found

    def near(self, low: int, high: int) -> Intervals:
        """Return them with other levels: finer near where level `low` and level `high` begin, and
        no more in all."""
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


def filled(position: FloatArray) -> FloatArray:
    """Return positions of levels in order, those that are NaN between their neighbours or, at an
    end, as far from the last one as that is from the one before."""
    known, every = np.flatnonzero(~np.isnan(position)), np.arange(len(position))
    if len(known) < 2:
        return np.zeros(len(position))
    means = position[known]
    (low, next_low), (next_high, high) = means[:2], means[-2:]
    below = np.minimum(0, every - known[0]) * abs(next_low - low)
    above = np.maximum(0, every - known[-1]) * abs(high - next_high)
    return np.asarray(np.interp(every, known, means) + below + above)
