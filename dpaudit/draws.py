"""Define the draws of both inputs: fresh draws, which may certify, and draws to learn from.

A rule guesses the input of a draw from its output. Draws that enter a bound or a bet must not have
been seen when the rule was chosen. So every block of draws is first a `FreshDraws`. It can be
counted by a function that was fixed before the draws. It can then be released as `SelectionDraws`,
from which rules are learned and which cannot certify. The exact test never sees its draws: the
process that makes them gets a `Measure`, which says what to count, and returns only counts
(sampling/chunks.py).

arm
    The input of a draw, d1 or d2.
atom
    A single output whose draws are counted.
level
    A group of outputs that a rule treats alike, as a number from 0.
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
    """Draws from which rules may be learned. They cannot certify: a rule fits the draws from which
    it was learned better than other draws. `is_d1`, of shape (size,), says which draws are of
    d1."""

    outcomes: Outcomes
    is_d1: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return self.outcomes.size

    @property
    def arms(self) -> IntArray:
        """Numbers of draws of d1 and of d2, of shape (2,)."""
        arms: IntArray = by_arm(np.zeros(self.size, dtype=np.intp), 1, self.is_d1)[0]
        return arms

    def take(self, rows: NDArray[np.integer] | slice) -> SelectionDraws:
        return SelectionDraws(self.outcomes.take(rows), self.is_d1[rows])


def pool(parts: Sequence[SelectionDraws]) -> SelectionDraws:
    """Return one block with the draws of all `parts`, in the order of the parts."""
    if len(parts) == 1:
        return parts[0]
    outcomes = concatenate([part.outcomes for part in parts])
    return SelectionDraws(outcomes, np.concatenate([part.is_d1 for part in parts]))


@dataclass(frozen=True, slots=True, eq=False)
class FreshDraws:
    """Draws from which no rule was learned yet, so that their counts may certify. The toss of a
    fair coin chose the arm of each draw."""

    _outcomes: Outcomes = field(repr=False)
    _is_d1: NDArray[np.bool_] = field(repr=False)

    @property
    def size(self) -> int:
        return self._outcomes.size

    def looks(
        self, level: Callable[[Outcomes], LevelArray], levels: int, stride: int
    ) -> tuple[Tally, ...]:
        """Return one tally for each `stride` consecutive draws, in order. The last tally may have
        fewer draws. `level` maps the outputs of some draws to an array of their levels, and must
        have been fixed before these draws."""
        looks = -(-self.size // stride)
        cells = np.arange(self.size) // stride * levels + level(self._outcomes)
        counts = by_arm(cells, looks * levels, self._is_d1)
        return tuple(map(Tally, counts.reshape(looks, levels, 2)))

    def release(self, size: int | None = None) -> SelectionDraws:
        """Return the first `size` draws (default: all) as draws to learn from. From then on, none
        of these draws may certify."""
        every = SelectionDraws(self._outcomes, self._is_d1)
        return every if size is None or size >= self.size else every.take(slice(size))


IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """The tally of some draws by level. `counts`, of shape (levels, 2), has the numbers of draws of
    d1 and of d2 at each level. Tallies of equal shape can be added. Raises ValueError if `counts`
    has another shape, or does not contain integers."""

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
        """Return the numbers of draws of d1 and of d2 in an event. `levels`, of shape (levels,), is
        True for each level of the event."""
        return int(self.counts[levels, 0].sum()), int(self.counts[levels, 1].sum())

    def game(self, guesses: NDArray[np.int64]) -> Game:
        """Return how many of these draws a rule guesses right and how many wrong. `guesses`, of
        shape (levels,), is the guess at each level: 1 for d1, -1 for d2, 0 for no guess."""
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
    """The tally of some draws by atom. Raises ValueError if the counts have another shape, or are
    not integers.

    counts: numbers of draws of d1 and of d2 that equal each atom, of shape (atoms, 2).
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
    """The tally of a mechanism whose user declared all possible outputs. `undeclared` describes the
    first draw that is not one of them, or is None."""

    atoms: AtomTally
    undeclared: str | None = None

    def __add__(self, other: RangeTally) -> RangeTally:
        return RangeTally(self.atoms + other.atoms, self.undeclared or other.undeclared)


def by_arm(indices: NDArray[np.integer], size: int, is_d1: NDArray[np.bool_]) -> IntArray:
    """Return the numbers of draws of d1 and of d2 in each of `size` bins, of shape (size, 2).
    `indices`, of shape (draws,), has the bin of each draw, from 0. A bin may be an atom."""
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
