"""An order of intervals that is cut finer than its levels, so that cut-offs are where they pay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, by_group
from dpaudit.levels.ramps import LEVELS

# Intervals to either side of a cut-off that are levels of their own.
_NEAR = 6


@dataclass(frozen=True, slots=True, eq=False)
class Intervals:
    """Neighbouring intervals of a number or a score, in order from d2 to d1.

    each: the map to the interval of an outcome, the last one for unseen. counts: (intervals + 1,
    2), the selection draws in each. level: (intervals,), rising, the level that each belongs to.
    position: (intervals,), the mean number or score of each. joined: makes the map to levels, from
    the level of every interval.
    """

    each: LevelMap
    counts: IntArray
    level: IntArray
    position: FloatArray | None
    joined: Callable[[IntArray], LevelMap]

    def with_more(self, counts: IntArray) -> Intervals:
        """Return them after more draws, counted by `each`."""
        return replace(self, counts=self.counts + counts)

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> Intervals:
        """Return them for other outcomes. of: makes their levels of those here."""

        def joined(level: IntArray) -> LevelMap:
            return of(self.joined(level))

        return replace(self, each=of(self.each), joined=joined)

    def held_out(self) -> IntArray:
        """Return the selection draws by level, the last one for unseen: (levels + 1, 2)."""
        levels = int(self.level[-1]) + 1
        return by_group(self.counts, np.append(self.level, levels), levels + 1).astype(np.int64)

    def positions(self) -> FloatArray | None:
        """Return the mean number or score of every level: (levels,)."""
        if self.position is None:
            return None
        draws = np.maximum(self.counts[:-1].sum(axis=1), 1e-9)
        both = by_group(np.stack([draws * self.position, draws], axis=1), self.level)
        return np.asarray(both[:, 0] / np.maximum(both[:, 1], 1e-9))

    def places(self) -> FloatArray:
        """Return what log-ratios can be expected to change evenly along, by level: (levels,). It is
        the number or the score or, where that does not rise, the share of the draws."""
        position = self.positions()
        if position is not None and np.all(np.diff(position) > 0):
            return position
        masses = by_group(self.counts[:-1], self.level).sum(axis=1)
        masses += 1e-6 * max(1.0, masses.mean())  # so that levels without draws have a place, too
        return np.asarray(np.cumsum(masses) - masses / 2)

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
