"""Units of sampling, one type for each kind, and what each gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import AtomTally, FreshDraws, RangeTally, SelectionDraws, Tally, pool
from dpaudit.levels.level_map import CellCounter
from dpaudit.levels.portfolio import Portfolio, SingleOutputs
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.outcomes import KeyArray, Outcomes, Raised

Key = tuple[int, ...]

# Draws that are kept of a counted chunk.
HEAD = 64
# Rare draws that are kept of the part of one input in a counted chunk, at most.
MOST_RARE = 8_192


@dataclass(frozen=True, slots=True)
class Probe:
    """reproducible: whether equal seeds gave equal outcomes. columns: of one. seconds: a call's."""

    reproducible: bool
    columns: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """Draws that were exceptions: kind -> (draws of d1, draws of d2), and the first of each."""

    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    first: Mapping[str, Raised] = field(default_factory=dict)

    def __add__(self, other: Failures) -> Failures:
        counts = dict(self.counts)
        for kind, (d1, d2) in other.counts.items():
            before = counts.get(kind, (0, 0))
            counts[kind] = (before[0] + d1, before[1] + d2)
        return Failures(counts, {**self.first, **other.first, **self.first})

    @property
    def total(self) -> int:
        return sum(map(sum, self.counts.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """Keys of the first draws of a counted chunk, in order, and whether they are of d1: kept only
    to see whether another chunk repeats them."""

    keys: KeyArray
    is_d1: NDArray[np.bool_]

    @classmethod
    def of(cls, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> Head:
        return cls(outcomes.take(slice(HEAD)).keys(), is_d1[:HEAD])

    @classmethod
    def mixed(cls, d1: Outcomes, d2: Outcomes, coins: np.random.Generator) -> Head:
        """Return the first draws of both inputs in an order of coins, as when in turns."""
        is_d1 = coins.permutation(np.repeat([True, False], [d1.size, d2.size]))
        keys = np.empty(len(is_d1), dtype=np.uint64)
        keys[is_d1], keys[~is_d1] = d1.keys(), d2.keys()
        return cls(keys, is_d1)


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """Draws to learn from, once they have been bet on."""

    fresh: FreshDraws
    failures: Failures


@dataclass(frozen=True, slots=True, eq=False)
class Rare:
    """What a filter let through of draws that were counted to learn from.

    arms: of how many draws it is, by input.  lost: how many more there were, of other draws, that
    there was no room for.
    """

    kept: SelectionDraws
    arms: tuple[int, int]
    lost: int = 0

    def __add__(self, other: Rare) -> Rare:
        arms = self.arms[0] + other.arms[0], self.arms[1] + other.arms[1]
        return Rare(pool([self.kept, other.kept]), arms, self.lost + other.lost)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """All that is kept of draws that one rule has counted; parts add up. others, rare, unseen: as
    the measure asks."""

    tally: Tally
    atoms: AtomTally | None
    declared: RangeTally | None
    failures: Failures
    heads: tuple[Head, ...] = ()
    others: tuple[Tally, ...] = ()
    rare: Rare | None = None
    unseen: tuple[int, int] | None = None

    def __add__(self, other: Counted) -> Counted:
        return Counted(
            self.tally + other.tally,
            self.atoms and other.atoms and self.atoms + other.atoms,
            self.declared and other.declared and self.declared + other.declared,
            self.failures + other.failures,
            self.heads + other.heads,
            tuple(one + more for one, more in zip(self.others, other.others, strict=True)),
            self.rare and other.rare and self.rare + other.rare,
            self.unseen
            and other.unseen
            and (self.unseen[0] + other.unseen[0], self.unseen[1] + other.unseen[1]),
        )


Drawn = Learning | Counted | Probe
Result = TypeVar("Result", Learning, Counted, Probe)


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """What certification keeps of a draw: its level, for accused atoms which one it is, and which
    of the outputs that were declared to be all there are (by their keys, rising).

    Draws to learn from are counted by other maps as well (others), and kept where a filter lets
    them through. Of those that certify, the ones are counted, by input, that have anything that was
    not seen before.
    """

    portfolio: Portfolio
    atoms: SingleOutputs | None = None
    declared: KeyArray | None = None
    others: tuple[CellCounter, ...] = ()
    rare_filter: RareFilter | None = None
    seen: RareFilter | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Chunk(Generic[Result]):
    """A unit of sampling: `key` names its random streams; the pair comes first in it."""

    key: Key
    size: int

    @property
    def pair(self) -> int:
        return self.key[0]


@dataclass(frozen=True, slots=True, eq=False)
class ToLearn(Chunk[Learning]):
    """Draws whose outcomes are wanted."""


@dataclass(frozen=True, slots=True, eq=False)
class ToCount(Chunk[Counted]):
    """Draws that are only counted."""

    measure: Measure
    # Draws to hold the outcomes of at a time, and whether to keep what the first were.
    at_once: int = 131_072
    heads: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ToTime(ToCount):
    """Draws that are counted only to see how long that takes, before their number is planned: when
    all are there who will draw, or after so many seconds of patience."""

    patience: float = 15.0


@dataclass(frozen=True, slots=True, eq=False)
class ToProbe(Chunk[Probe]):
    """Draws that are made twice, only to see what the mechanism is like."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstCalls(Chunk[Probe]):
    """Draws one by one, before any others, only to see what the mechanism is like."""
