"""Define two types of draws of both inputs: fresh draws, which may certify, and draws to learn
from.

A rule guesses the input of a draw from its output. A draw that enters a bound or a bet must not
have been seen when the rule was chosen. Blocks to learn from are `FreshDraws` first: they can be
counted, by a function that was fixed before the draws, and then be released as `SelectionDraws`,
which cannot certify. Draws of the exact test are never seen: a `Measure`, which says what to count,
is sent to the process that makes the draws, and only counts come back (sampling/chunks.py).

arm
    The input of a draw, d1 or d2.
atom
    A single output whose draws are counted.
tally
    A table of counts by level (or atom) and arm. Of the draws that certify, only the tally is kept.
"""

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

# Largest number of draws whose outputs are in memory at a time, and usual largest size of a block.
MAX_BLOCK = 131_072
# Largest number of draws whose outputs are kept in memory to learn from.
MAX_BUFFERED_DRAWS = 100_000


@dataclass(frozen=True, slots=True, eq=False)
class SelectionDraws:
    """Draws from which rules may be learned. They can no longer count towards a bound or a bet: a
    rule fits the draws from which it was learned better than other draws. `is_d1` has shape
    (size,)."""

    outcomes: Outcomes
    is_d1: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return self.outcomes.size

    @property
    def arms(self) -> IntArray:
        """Numbers of draws of d1 and of d2: (2,)."""
        arms: IntArray = by_arm(np.zeros(self.size, dtype=np.intp), 1, self.is_d1)[0]
        return arms

    def take(self, rows: NDArray[np.integer] | slice) -> SelectionDraws:
        return SelectionDraws(self.outcomes.take(rows), self.is_d1[rows])


def pool(parts: Sequence[SelectionDraws]) -> SelectionDraws:
    """Return the draws of several blocks as one block, in the same order."""
    if len(parts) == 1:
        return parts[0]
    outcomes = concatenate([part.outcomes for part in parts])
    return SelectionDraws(outcomes, np.concatenate([part.is_d1 for part in parts]))


@dataclass(frozen=True, slots=True, eq=False)
class FreshDraws:
    """Draws that no rule was learned from yet, so that their counts may certify. The toss of a fair
    coin chose the arm of each draw."""

    _outcomes: Outcomes = field(repr=False)
    _is_d1: NDArray[np.bool_] = field(repr=False)

    @property
    def size(self) -> int:
        return self._outcomes.size

    def looks(
        self, level: Callable[[Outcomes], LevelArray], levels: int, stride: int
    ) -> tuple[Tally, ...]:
        """Return one tally for each `stride` consecutive draws, in order; the last may have fewer.
        `level` maps outputs to levels, (draws,), and must have been fixed before these draws."""
        looks = -(-self.size // stride)
        cells = np.arange(self.size) // stride * levels + level(self._outcomes)
        counts = by_arm(cells, looks * levels, self._is_d1)
        return tuple(map(Tally, counts.reshape(looks, levels, 2)))

    def release(self, size: int | None = None) -> SelectionDraws:
        """Return the first `size` draws, or all, to learn from; they must not certify any more."""
        every = SelectionDraws(self._outcomes, self._is_d1)
        return every if size is None or size >= self.size else every.take(slice(size))


IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The tally of some draws: `counts` has those of d1 and of d2 at each level, (levels, 2).
    Tallies of equal shape can be added. Raises ValueError for counts of another shape or type."""

    counts: IntArray

    def __post_init__(self) -> None:
        _check(self.counts)

    @classmethod
    def empty(cls, levels: int) -> Tally:
        return cls(np.zeros((levels, 2), dtype=np.int64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tally) and np.array_equal(self.counts, other.counts)

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def __add__(self, other: Tally) -> Tally:
        return Tally(_sum(self.counts, other.counts))

    @property
    def draws(self) -> int:
        return int(self.counts.sum())

    @property
    def arms(self) -> tuple[int, int]:
        """Number of draws of d1, and number of draws of d2."""
        return int(self.counts[:, 0].sum()), int(self.counts[:, 1].sum())

    def event(self, levels: NDArray[np.bool_]) -> tuple[int, int]:
        """Return the numbers of draws of d1 and of d2 in an event, a mask of shape (levels,)."""
        return int(self.counts[levels, 0].sum()), int(self.counts[levels, 1].sum())

    def game(self, guesses: NDArray[np.int64]) -> Game:
        """Return the numbers of right and wrong guesses of a rule about the arms of these draws.
        The guess at each level, (levels,), is 1 for d1, -1 for d2, or 0 for none."""
        # Imported inside the method: `game` imports SciPy, which takes as long as all other imports
        # together and which worker processes do not need.
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
    """The tally of some draws by atom. Raises ValueError for counts of another shape or type.

    counts: numbers of draws of d1 and of d2 that equal each atom, (atoms, 2).
    arms: number of all draws of d1, and of all draws of d2, whether or not they equal an atom.
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
    """The tally of the declared outputs of a mechanism. `undeclared` describes the first draw that
    equals none of them, if there is one."""

    atoms: AtomTally
    undeclared: str | None = None

    def __add__(self, other: RangeTally) -> RangeTally:
        return RangeTally(self.atoms + other.atoms, self.undeclared or other.undeclared)


def by_arm(indices: NDArray[np.integer], size: int, is_d1: NDArray[np.bool_]) -> IntArray:
    """Return the numbers of draws of d1 and of d2 in each of `size` bins or at each atom,
    (size, 2), for the index of each draw's bin or atom, from 0, (draws,)."""
    cell = indices.astype(np.intp, copy=False) * 2 + ~is_d1
    return np.bincount(cell, minlength=2 * size).reshape(-1, 2)


def _check(counts: IntArray) -> None:
    if counts.ndim != 2 or counts.shape[1] != 2 or counts.dtype.kind not in "iu":
        raise ValueError(
            f"counts of shape {counts.shape} and type {counts.dtype}; "
            "a tally is a (levels, 2) array of integers"
        )


def _sum(left: IntArray, right: IntArray) -> IntArray:
    """Return left + right. Raise ValueError if the shapes differ; NumPy would broadcast."""
    if left.shape != right.shape:
        raise ValueError(f"tallies of {len(left)} and of {len(right)} levels do not add up")
    return left + right
