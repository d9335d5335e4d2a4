"""Chunks, the units of sampling, and their results.

A chunk is a request for a number of draws of one pair, with random streams of its own. The audit
(`dpaudit.auditing`) makes chunks, `Sampler.draw` makes the draws and returns a result, and worker
processes exchange both as pickles. The type of a chunk says what happens to its draws: `ToLearn`
keeps all outcomes, `ToCount` keeps only counts and rare outcomes. The draws of `ToProbe`, `ToTime`
and `FirstCalls` measure the mechanism; no bound or bet uses them.
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

    reproducible: whether equal seeds gave equal outcomes (True if that was not tested).
    columns: number of values (columns) in an outcome.
    seconds: mean duration of a call, or of a draw if each call makes one draw; 0 if no time was
        measured.
    """

    reproducible: bool
    columns: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """Exceptions of the mechanism that were counted as outcomes.

    counts: maps a kind of exception, such as "ValueError", to (draws of d1, draws of d2).
    first: maps a kind of exception to the first exception of this kind.
    """

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
    """The first draws of a counted chunk, to detect chunks that repeat each other. A key is a hash
    of a whole outcome.

    keys: (draws,), the keys in the order of the draws.
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
        mechanism that makes many draws of one input per call, so that the draws have no common
        order. (If each call makes one draw, the inputs alternate at random, and `of` keeps the
        order of the draws.)

        d1, d2: the first outcomes of either input.
        coins: generator of the random order.
        """
        is_d1 = coins.permutation(np.repeat([True, False], [d1.size, d2.size]))
        keys = np.empty(len(is_d1), dtype=np.uint64)
        keys[is_d1], keys[~is_d1] = d1.keys(), d2.keys()
        return cls(keys, is_d1)


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """Result of a request `ToLearn`: draws on which the audit first bets, and from which it learns
    after that.

    fresh: the draws.
    failures: exceptions among the draws.
    """

    fresh: FreshDraws
    failures: Failures


@dataclass(frozen=True, slots=True, eq=False)
class Rare:
    """Draws with rare outputs, from a chunk whose other draws are only counted.
    The audit learns from them. An output is rare if learning has seen one of its values rarely or
    never (`Measure.rare_filter`).

    kept: the rare draws.
    arms: number of draws of (d1, d2), rare or not, from which the rare draws were selected.
    lost: number of rare draws that were found but not kept, for lack of room (`MAX_RARE`).
    """

    kept: SelectionDraws
    arms: tuple[int, int]
    lost: int = 0

    def __add__(self, other: Rare) -> Rare:
        arms = self.arms[0] + other.arms[0], self.arms[1] + other.arms[1]
        return Rare(pool([self.kept, other.kept]), arms, self.lost + other.lost)


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Result of `ToCount`: counts of draws by level and input.

    Two results of chunks with equal `measure` (a `Measure`) can be added by `+`. A field that the
    measure did not ask for is None.

    tally: counts by the levels of `Measure.portfolio`.
    atoms: counts of the single outputs in `Measure.atoms`.
    declared: counts of the outputs in `Measure.declared`.
    failures: exceptions among the draws.
    heads: keys of the first draws of each chunk.
    others: counts by the levels of each map from outcomes to levels in `Measure.others`.
    rare: draws that `Measure.rare_filter` selects.
    unseen: number of draws of (d1, d2) whose output has a value that learning never saw.
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
    """What to count in the draws of a `ToCount` chunk. A field that is None is not counted.

    portfolio: frozen rules; draws are counted by the levels of these rules.
    atoms: single outputs that are counted one by one.
    declared: hashes of all outputs that the user has declared possible, in rising order.
    others: further maps from outcomes to levels; learning uses their counts.
    rare_filter: filter of rare outputs; the draws with such outputs are kept whole.
    seen: filter that finds outputs with a value that learning never saw; the number of such draws
        is counted for each input.
    """

    portfolio: Portfolio
    atoms: SingleOutputs | None = None
    declared: KeyArray | None = None
    others: tuple[CellCounter, ...] = ()
    rare_filter: RareFilter | None = None
    seen: RareFilter | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Chunk(Generic[Result]):
    """A request for a number of draws. The type parameter `Result` is the type of its result.

    key: numbers from which `seeding.chunk_streams` derives the random streams of the chunk,
        together with the seed of the audit; key[0] is the index of the pair of inputs.
    size: number of draws.
    """

    key: Key
    size: int

    @property
    def pair(self) -> int:
        return self.key[0]


@dataclass(frozen=True, slots=True, eq=False)
class ToLearn(Chunk[Learning]):
    """A request for draws whose whole outcomes are kept, to learn from."""


@dataclass(frozen=True, slots=True, eq=False)
class ToCount(Chunk[Counted]):
    """A request for draws that are counted. The result has the counts, and the outcomes that are
    rare (see `Measure.rare_filter`); all other outcomes are discarded.

    measure: quantities to count.
    in_memory: largest number of outcomes that are in memory at the same time.
    heads: whether the result also has the hashes of the first `HEAD_DRAWS` outcomes, which show
        whether two chunks repeat the same draws.
    """

    measure: Measure
    in_memory: int = MAX_BLOCK
    heads: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class ToTime(ToCount):
    """A request for draws that measure how fast the mechanism draws, to plan the budget. Before
    them, the pool waits until all worker processes have started.
    """


@dataclass(frozen=True, slots=True, eq=False)
class ToPace(Chunk[Probe]):
    """A request for draws whose duration chooses the number of draws of the audit. Nothing else
    uses these draws.
    """


@dataclass(frozen=True, slots=True, eq=False)
class ToProbe(Chunk[Probe]):
    """A request to make the same draws twice from one seed, to test whether the seed determines the
    outcomes. No bound or bet uses these draws.
    """


@dataclass(frozen=True, slots=True, eq=False)
class FirstCalls(Chunk[Probe]):
    """A request for the first calls of the mechanism, to measure duration and output length.

    No bound or bet uses these draws.
    """
