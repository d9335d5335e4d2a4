"""Chunks, the units of sampling, and their results. Each kind of chunk is one type."""

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

# Draws at the start of a counted chunk whose keys are kept.
HEAD = 64
# Rare draws of one input that are kept of a counted chunk, at most.
MOST_RARE = 8_192


@dataclass(frozen=True, slots=True)
class Probe:
    """First impression of a mechanism.

    reproducible: whether equal seeds gave equal outcomes.  columns: columns of an outcome.
    seconds: duration of a call.
    """

    reproducible: bool
    columns: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """Draws that were exceptions. counts: by kind, for (d1, d2).  first: by kind, the first one."""

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
    """Keys of the first draws of a counted chunk, in order, and whether each is of d1. They only
    show whether another chunk repeats them."""

    keys: KeyArray
    is_d1: NDArray[np.bool_]

    @classmethod
    def of(cls, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> Head:
        return cls(outcomes.take(slice(HEAD)).keys(), is_d1[:HEAD])

    @classmethod
    def mixed(cls, d1: Outcomes, d2: Outcomes, coins: np.random.Generator) -> Head:
        """Return the first draws of both inputs in random order, as if drawn in turns."""
        is_d1 = coins.permutation(np.repeat([True, False], [d1.size, d2.size]))
        keys = np.empty(len(is_d1), dtype=np.uint64)
        keys[is_d1], keys[~is_d1] = d1.keys(), d2.keys()
        return cls(keys, is_d1)


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """Result of `ToLearn`: draws to bet on first, and then to learn from."""

    fresh: FreshDraws
    failures: Failures


@dataclass(frozen=True, slots=True, eq=False)
class Rare:
    """Draws with rare outputs, among counted draws to learn from.

    kept: the rare draws.  arms: draws of d1 and of d2 from which they were taken.  lost: further
    rare draws, for which there was no room.
    """

    kept: SelectionDraws
    arms: tuple[int, int]
    lost: int = 0

    def __add__(self, other: Rare) -> Rare:
        arms = self.arms[0] + other.arms[0], self.arms[1] + other.arms[1]
        return Rare(pool([self.kept, other.kept]), arms, self.lost + other.lost)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Counts of draws by the levels of one rule; counts of parts add up.

    heads: keys of the first draws.  atoms, declared, others, rare, unseen: see `Measure`.
    """

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
            tuple(mine + theirs for mine, theirs in zip(self.others, other.others, strict=True)),
            self.rare and other.rare and self.rare + other.rare,
            self.unseen
            and other.unseen
            and (self.unseen[0] + other.unseen[0], self.unseen[1] + other.unseen[1]),
        )


Drawn = Learning | Counted | Probe
Result = TypeVar("Result", Learning, Counted, Probe)


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """What is counted of each draw.

    portfolio: gives its level.  atoms: single outputs, each counted.  declared: keys, in rising
    order, of the outputs that the user declared to be all.  others: further maps to levels, for
    draws to learn from.  rare_filter: draws to learn from that it passes are kept.  seen: draws
    with outputs that it has not seen are counted by input.
    """

    portfolio: Portfolio
    atoms: SingleOutputs | None = None
    declared: KeyArray | None = None
    others: tuple[CellCounter, ...] = ()
    rare_filter: RareFilter | None = None
    seen: RareFilter | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Chunk(Generic[Result]):
    """A unit of sampling.

    key: names its random streams; begins with the number of the pair.  size: draws.
    """

    key: Key
    size: int

    @property
    def pair(self) -> int:
        return self.key[0]


@dataclass(frozen=True, slots=True, eq=False)
class ToLearn(Chunk[Learning]):
    """Draws whose outcomes are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class ToCount(Chunk[Counted]):
    """Draws that are only counted.

    in_memory: draws whose outcomes are in memory at the same time.  heads: whether to keep the keys
    of the first draws.
    """

    measure: Measure
    in_memory: int = 131_072
    heads: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ToTime(ToCount):
    """Draws that are timed to plan their number.

    patience: seconds to wait until all workers have started.
    """

    patience: float = 15.0


@dataclass(frozen=True, slots=True, eq=False)
class ToProbe(Chunk[Probe]):
    """Draws that are made twice, to see whether a seed repeats them. They count for nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstCalls(Chunk[Probe]):
    """First calls of the mechanism, one by one. They count for nothing."""
