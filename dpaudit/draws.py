"""Draws of both inputs, in two types: fresh draws, which may certify, and draws to learn from.

A draw that enters a bound or a bet must not have been seen when the event was fixed. So fresh draws
can only be tallied by a function that was frozen before; to learn from them, they must be released,
and cannot certify any more. Certification keeps only tallies of its draws: integers by level and
arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes import Outcomes, concatenate

if TYPE_CHECKING:
    from dpaudit.stats.game import Game

LevelArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class SelectionDraws:
    """Draws to learn from: their outcomes, and whether each was made on d1, (size,) of bool."""

    outcomes: Outcomes
    is_d1: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return self.outcomes.size

    def take(self, rows: NDArray[np.integer] | slice) -> SelectionDraws:
        return SelectionDraws(self.outcomes.take(rows), self.is_d1[rows])


def pool(parts: Sequence[SelectionDraws]) -> SelectionDraws:
    """Return several blocks of draws as one block."""
    if len(parts) == 1:
        return parts[0]
    outcomes = concatenate([part.outcomes for part in parts])
    return SelectionDraws(outcomes, np.concatenate([part.is_d1 for part in parts]))


@dataclass(frozen=True, slots=True, eq=False)
class FreshDraws:
    """Draws that were not used yet; an independent fair coin picked the input of each."""

    _outcomes: Outcomes = field(repr=False)
    _is_d1: NDArray[np.bool_] = field(repr=False)

    @property
    def size(self) -> int:
        return self._outcomes.size

    def looks(
        self, level: Callable[[Outcomes], LevelArray], levels: int, stride: int
    ) -> tuple[Tally, ...]:
        """Return a tally of each `stride` consecutive draws. level: frozen before these draws."""
        looks = -(-self.size // stride)
        place = np.arange(self.size) // stride * levels + level(self._outcomes)
        counts = by_arm(place, looks * levels, self._is_d1)
        return tuple(map(Tally, counts.reshape(looks, levels, 2)))

    def release(self, size: int | None = None) -> SelectionDraws:
        """Return the first `size` draws (default: all), which then must not certify, to learn
        from."""
        every = SelectionDraws(self._outcomes, self._is_d1)
        return every if size is None or size >= self.size else every.take(slice(size))


IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """Counts of draws by level and arm, (levels, 2), d1 first. Tallies of one shape add up.

    Raises ValueError for another shape, or numbers that are not integers.
    """

    counts: IntArray

    def __post_init__(self) -> None:
        _check(self.counts)

    @classmethod
    def empty(cls, levels: int) -> Tally:
        return cls(np.zeros((levels, 2), dtype=np.int64))

    def __add__(self, other: Tally) -> Tally:
        return Tally(_sum(self.counts, other.counts))

    @property
    def draws(self) -> int:
        return int(self.counts.sum())

    @property
    def arms(self) -> tuple[int, int]:
        """Numbers of draws of d1 and of d2."""
        return int(self.counts[:, 0].sum()), int(self.counts[:, 1].sum())

    def event(self, levels: NDArray[np.bool_]) -> tuple[int, int]:
        """Return the numbers of draws of d1 and of d2 at the given levels, a mask."""
        return int(self.counts[levels, 0].sum()), int(self.counts[levels, 1].sum())

    def game(self, guesses: NDArray[np.int64]) -> Game:
        """Return the distinguishing game of a rule: (levels,) of 1, -1 or 0 (abstain)."""
        # Imported here: workers do not need SciPy, which takes as long to import as everything
        # else.
        from dpaudit.stats.game import Game

        first, second = guesses > 0, guesses < 0
        right_1, wrong_1 = self.event(first)
        wrong_2, right_2 = self.event(second)
        return Game(
            correct=right_1 + right_2,
            wrong=wrong_1 + wrong_2,
            draws=self.draws,
            two_guesses=bool(first.any()) and bool(second.any()),
            abstains=bool((guesses == 0).any()),
        )


@dataclass(frozen=True, slots=True, eq=False)
class AtomTally:
    """Counts of single outputs by arm, (atoms, 2). arms: numbers of all draws of d1 and of d2.

    Raises ValueError for another shape, or numbers that are not integers.
    """

    counts: IntArray
    arms: tuple[int, int]

    def __post_init__(self) -> None:
        _check(self.counts)

    def __add__(self, other: AtomTally) -> AtomTally:
        arms = (self.arms[0] + other.arms[0], self.arms[1] + other.arms[1])
        return AtomTally(_sum(self.counts, other.counts), arms)


@dataclass(frozen=True, slots=True, eq=False)
class RangeTally:
    """Counts of the declared outputs of a finite range, by arm.

    undeclared: the first output outside of the range, in words; None if there is none.
    """

    atoms: AtomTally
    undeclared: str | None = None

    def __add__(self, other: RangeTally) -> RangeTally:
        return RangeTally(self.atoms + other.atoms, self.undeclared or other.undeclared)


def by_arm(place: NDArray[np.integer], places: int, is_d1: NDArray[np.bool_]) -> IntArray:
    """Return the numbers of draws of d1 and of d2 at each place, (places, 2).

    place: (draws,), from 0 to places - 1; is_d1: (draws,), whether the input was d1.
    """
    cell = place.astype(np.intp, copy=False) * 2 + ~is_d1
    return np.bincount(cell, minlength=2 * places).reshape(-1, 2)


def _check(counts: IntArray) -> None:
    if counts.ndim != 2 or counts.shape[1] != 2 or counts.dtype.kind not in "iu":
        raise ValueError(
            f"counts of shape {counts.shape} and type {counts.dtype}; "
            "a tally is a (levels, 2) array of integers"
        )


def _sum(left: IntArray, right: IntArray) -> IntArray:
    """Return left + right, without the broadcasting of NumPy."""
    if left.shape != right.shape:
        raise ValueError(f"tallies of {len(left)} and of {len(right)} levels do not add up")
    return left + right
