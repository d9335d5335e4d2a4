"""What is rare among draws that are counted to learn from: kept whole, in bounded memory.

When there is no room left, the sieve is narrowed: what came up most often of all that is kept is
let go, and counts as usual from then on. What stays is all that the narrower sieve lets through of
the same draws, so that shares of draws stay right.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from dpaudit.draws import SelectionDraws, pool
from dpaudit.levels.level_map import IntArray
from dpaudit.levels.sieve import OFTEN, Sieve
from dpaudit.sampling.chunks import Rare
from dpaudit.tally import by_arm
from dpaudit.wording import counted

# Draws that are kept, at most.
MOST_KEPT = 16_384
# How often an output must have come up to be let go is tried in steps of so much.
_MORE_OFTEN = 1.2


class RareStore:
    """Rare draws, and the sieve that lets them through.

    arms: (2,), the draws that they are all of, by input.
    """

    def __init__(self, sieve: Sieve, selection: SelectionDraws) -> None:
        """selection: draws to begin with."""
        self.sieve = sieve
        rows = np.flatnonzero(sieve.strange(selection.outcomes))
        self.arms: IntArray = by_arm(np.zeros(selection.size, np.intp), 1, selection.is_d1)[0]
        self._parts = [selection.take(rows)]
        # One of every value, label and key that was let go; those, and those without room.
        self._seen: list[SelectionDraws] = []
        self._let_go, self._lost = 0, 0
        self._is_full = False

    @property
    def kept(self) -> SelectionDraws:
        """The rare draws."""
        self._parts = [pool(self._parts)]
        return self._parts[0]

    @property
    def seen(self) -> list[SelectionDraws]:
        """The rare draws, and others that show what else there was."""
        return [one for one in (self.kept, *self._seen) if one.size]

    @property
    def size(self) -> int:
        return sum(one.size for one in self._parts)

    def add(self, rare: Rare) -> None:
        """Add what the sieve let through of further draws: all of it or, where that is too much,
        and from then on, nothing, for a part of them would not say how rare they are."""
        self._is_full = self._is_full or self.size + rare.kept.size > MOST_KEPT
        if self._is_full:
            self._lost += rare.kept.size + rare.lost
            return
        self._parts.append(rare.kept)
        self.arms = self.arms + np.array(rare.arms, dtype=np.int64)
        self._lost += rare.lost

    def has_room(self, draws: int) -> bool:
        """Return whether there is room for what is to be expected of so many draws."""
        return not self._is_full and self._is_enough(self.size, draws)

    def make_room(self, draws: int, spared: frozenset[str]) -> None:
        """Let go of what came up most often, but in columns that are spared, and of hardly more
        than it takes to have room for so many draws. Where nothing comes again, all stays."""
        kept = self.kept

        def rest(often: int) -> int:
            sieve, _ = self.sieve.narrowed(kept.outcomes, often, spared)
            return int(np.count_nonzero(sieve.strange(kept.outcomes)))

        usual = [OFTEN]
        while usual[-1] < MOST_KEPT // 2:
            usual.append(math.ceil(_MORE_OFTEN * usual[-1]))
        place = bisect_left(usual, True, key=lambda often: not self._is_enough(rest(often), draws))
        often = usual[max(0, place - 1)]
        if place > 0 or 2 * rest(often) <= kept.size:
            self._narrow(often, spared)
        self._is_full = self._is_full and not self._is_enough(self.size, draws)

    def _narrow(self, often: int, spared: frozenset[str]) -> None:
        kept = self.kept
        self.sieve, firsts = self.sieve.narrowed(kept.outcomes, often, spared)
        is_rare = self.sieve.strange(kept.outcomes)
        self._parts = [kept.take(np.flatnonzero(is_rare))]
        self._seen.append(kept.take(firsts))
        self._let_go += kept.size - self.size
        self._is_full = False

    def _is_enough(self, size: int, draws: int) -> bool:
        expected = size * draws / max(1, int(self.arms.sum()))
        return size + expected <= MOST_KEPT

    def dropped(self) -> list[str]:
        """Return in words what is kept no more, and what there was no room for."""
        found = []
        if self._let_go:
            found.append(
                f"{counted(self._let_go, 'rare output')} that came up more often than others"
            )
        if self._lost:
            found.append(f"{counted(self._lost, 'rare output')} for which there was no room")
        return found
