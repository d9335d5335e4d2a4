"""One table of levels for several rules: the levels of the main rule, and additional ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import LevelArray
from dpaudit.levels.level_map import IntArray, LevelMap
from dpaudit.outcomes import Outcomes


@dataclass(frozen=True, slots=True, eq=False)
class JointLevels(LevelMap):
    """The level of the main rule where all side rules abstain; otherwise an additional level for
    each combination of guesses. The guess of every rule follows from the level.

    main, main_guesses: the levels of the main rule, and its guess at each, (main levels,).
    sides: the levels and guesses of each side rule.
    extra: (extra levels, rules), the guesses at the additional levels, the main rule first.
    place: the additional level of each combination of guesses, by the combination as a number in
        base 3 (see `_number`).
    """

    main: LevelMap
    main_guesses: IntArray
    sides: tuple[tuple[LevelMap, IntArray], ...]
    extra: IntArray
    place: IntArray

    @classmethod
    def of(
        cls, main: LevelMap, guesses: IntArray, sides: Sequence[tuple[LevelMap, IntArray]]
    ) -> JointLevels:
        """Return the joint levels. guesses: of the main rule.  sides: as of the class."""
        every = [np.unique(one).tolist() for one in (guesses, *(own for _, own in sides))]
        combined = [one for one in product(*every) if any(one[1:])]
        extra = np.array(combined, dtype=np.int64).reshape(len(combined), len(every))
        place = np.zeros(3 ** len(every), dtype=np.int64)
        place[_number(extra.T)] = np.arange(len(extra))
        return cls(main, guesses, tuple(sides), extra, place)

    @property
    def levels(self) -> int:
        return self.main.levels + len(self.extra)

    def guesses(self) -> IntArray:
        """Return the guesses of every rule: (rules, levels)."""
        usual = np.zeros((1 + len(self.sides), self.main.levels), dtype=np.int64)
        usual[0] = self.main_guesses
        return np.concatenate([usual, self.extra.T], axis=1)

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        level = self.main(outcomes)
        guessed = [own[side(outcomes)] for side, own in self.sides]
        rows = np.flatnonzero(np.any([one != 0 for one in guessed], axis=0))
        if rows.size:
            level = level.copy()
            each = [self.main_guesses[level[rows]], *(one[rows] for one in guessed)]
            level[rows] = self.main.levels + self.place[_number(np.stack(each))]
        return level

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.main.words(chosen[: self.main.levels])


def _number(guesses: IntArray) -> IntArray:
    """Return combinations of guesses, (rules, combinations), as numbers in base 3; a guess of d2 is
    the digit 2."""
    digits = guesses % 3
    weights = 3 ** np.arange(len(digits))[::-1]
    return np.asarray(weights @ digits)
