"""Chunks and their results.

The audit (`dpaudit.auditing`) makes chunks, `Sampler.draw` makes the draws and returns a result,
and worker processes exchange both as pickles. `ToLearn` keeps all outcomes, `ToCount` keeps only
counts and rare outcomes. The draws of `ToProbe`, `ToTime` and `FirstCalls` measure the mechanism;
no bound or bet uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import MAX_BLOCK, AtomTally, FreshDraws, RangeTally, SelectionDraws, Tally, pool
from dpaudit.levels.level_map import CellCounter
from dpaudit.levels.portfolio import Portfolio, SingleOutputs
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.outcomes import KeyArray, Outcomes, Raised

Key = tuple[int, ...]

# Number of draws at the start of each counted chunk whose hashes are kept. Hashes of different
# chunks are compared, since a chunk that repeats draws of another chunk begins with equal outcomes.
HEAD_DRAWS = 64
# Largest number of rare draws (draws with rare outputs) that are kept when outcomes of a chunk are
# counted, since kept draws use memory and are pickled. Further rare draws are only counted.
MAX_RARE = 8_192


@dataclass(frozen=True, slots=True)
class Probe:
    """Properties of a mechanism, measured by its first calls.

    reproducible: whether equal seeds gave equal outcomes; True if that was not tested.
    columns: number of values in an outcome.
    seconds: mean duration of a call, which may make one draw or many; 0 if not measured.
    """

    reproducible: bool
    columns: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """Exceptions of the mechanism that were counted as outcomes. For each kind, such as
    "ValueError", it has the arms and the first exception."""

    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    first: Mapping[str, Raised] = field(default_factory=dict)

    def __add__(self, other: Failures) -> Failures:
        counts = dict(self.counts)
        for kind, (d1, d2) in other.counts.items():
            numbers = counts.get(kind, (0, 0))
            counts[kind] = (numbers[0] + d1, numbers[1] + d2)
        return Failures(counts, {**self.first, **other.first, **self.first})

    @property
    def total(self) -> int:
        return sum(map(sum, self.counts.values()))


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The first draws of a counted chunk, to detect chunks that repeat each other.

    keys: (draws,), a hash of each whole outcome, in the order of the draws.
    is_d1: (draws,), whether the input of each draw was d1.
    """

    keys: KeyArray
    is_d1: NDArray[np.bool_]

    @classmethod
    def of(cls, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> Head:
        return cls(outcomes.take(slice(HEAD_DRAWS)).keys(), is_d1[:HEAD_DRAWS])

    @classmethod
    def mixed(cls, d1: Outcomes, d2: Outcomes, coins: np.random.Generator) -> Head:
        """Return a `Head` with the first draws of d1 and of d2 in a random order. It is for a
        mechanism that makes many draws of one input per call: its draws of both inputs have no
        common order."""
        is_d1 = coins.permutation(np.repeat([True, False], [d1.size, d2.size]))
        keys = np.empty(len(is_d1), dtype=np.uint64)
        keys[is_d1], keys[~is_d1] = d1.keys(), d2.keys()
        return cls(keys, is_d1)


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """Draws to learn from. Before the audit learns from them, it bets on them."""

    fresh: FreshDraws
    failures: Failures


@dataclass(frozen=True, slots=True, eq=False)
class Rare:
    """The draws of a counted chunk with rare outputs. The audit learns from them.

    arms: the arms of all draws, rare or not, from which the rare draws were selected.
    lost: number of rare draws that were not kept, for lack of room (`MAX_RARE`).
    """

    kept: SelectionDraws
    arms: tuple[int, int]
    lost: int = 0

    def __add__(self, other: Rare) -> Rare:
        arms = self.arms[0] + other.arms[0], self.arms[1] + other.arms[1]
        return Rare(pool([self.kept, other.kept]), arms, self.lost + other.lost)


@dataclass(frozen=True, slots=True, eq=False)
class LevelCounts:
    """Counts of the draws of a `ToCount`. Results with equal `measure` can be added by `+`. A field
    for which the measure did not ask is None.

    tally: counts by the levels of `Measure.portfolio`.
    atoms, declared: counts of the outputs in the fields of `Measure` with these names.
    heads: the first draws of each chunk.
    others: counts by the levels of each map in `Measure.others`.
    rare: draws that `Measure.rare_filter` selects.
    unseen: arms of the draws whose output has a value that learning never saw.
    """

    tally: Tally
    atoms: AtomTally | None
    declared: RangeTally | None
    failures: Failures
    heads: tuple[Head, ...] = ()
    others: tuple[Tally, ...] = ()
    rare: Rare | None = None
    unseen: tuple[int, int] | None = None

    def __add__(self, other: LevelCounts) -> LevelCounts:
        return LevelCounts(
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


Drawn = Learning | LevelCounts | Probe
Result = TypeVar("Result", Learning, LevelCounts, Probe)


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """What to count in the draws of a `ToCount`. A field that is None is not counted.

    portfolio: frozen rules; draws are counted by the levels of these rules.
    atoms: single outputs that are counted one by one.
    declared: hashes of all outputs that the user has declared possible, in rising order.
    others: further maps from outcomes to levels; learning uses their counts.
    rare_filter: selects the draws with rare outputs, which are kept whole.
    seen: selects the draws whose output has a value that learning never saw.
    """

    portfolio: Portfolio
    atoms: SingleOutputs | None = None
    declared: KeyArray | None = None
    others: tuple[CellCounter, ...] = ()
    rare_filter: RareFilter | None = None
    seen: RareFilter | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Chunk(Generic[Result]):
    """A request for `size` draws with a result of type `Result`. The first number of its key is the
    index of the pair of inputs."""

    key: Key
    size: int

    @property
    def pair(self) -> int:
        return self.key[0]


@dataclass(frozen=True, slots=True, eq=False)
class ToLearn(Chunk[Learning]):
    """A request for draws whose whole outcomes are kept, to learn from."""


@dataclass(frozen=True, slots=True, eq=False)
class ToCount(Chunk[LevelCounts]):
    """A request for draws that are counted. The result has the counts, the rare outcomes and, with
    `heads`, the hashes of the first `HEAD_DRAWS` outcomes. At most `in_memory` outcomes are in
    memory at the same time."""

    measure: Measure
    in_memory: int = MAX_BLOCK
    heads: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ToTime(ToCount):
    """A request for draws that measure how fast the mechanism draws, to plan the budget. Before it
    makes these draws, the pool waits until all worker processes have started."""


@dataclass(frozen=True, slots=True, eq=False)
class ToPace(Chunk[Probe]):
    """A request for draws whose duration only chooses the number of draws of the audit."""


@dataclass(frozen=True, slots=True, eq=False)
class ToProbe(Chunk[Probe]):
    """A request to make the same draws twice, to test whether the seed determines the outcomes."""


@dataclass(frozen=True, slots=True, eq=False)
class FirstCalls(Chunk[Probe]):
    """A request for the first calls of the mechanism, to measure duration and output length."""
