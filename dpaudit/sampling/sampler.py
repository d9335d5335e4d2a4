"""The `Sampler`: makes the draws of a chunk and returns the outcomes, or counts of the outcomes.

The sampler flips the coins that choose d1 or d2, calls the mechanism, reads the outputs into tables
of columns, and counts exceptions. It raises an error if the mechanism changes its inputs or earlier
outputs. Audits of recorded outputs also use the functions here that count outcomes.
"""

from __future__ import annotations

import gc
import operator
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpaudit import torch_use
from dpaudit.adapters.calls import Mechanism, Outputs
from dpaudit.adapters.loading import add_adversary, load_mechanism, timed_calls
from dpaudit.draws import AtomTally, FreshDraws, RangeTally, SelectionDraws, Tally, by_arm
from dpaudit.errors import MechanismError, Name
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.inputs.records import fingerprint
from dpaudit.levels.level_map import CellCounter, by_input
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.outcomes import KeyArray, Outcomes, Raised, concatenate, failures, from_raw, timed
from dpaudit.outcomes.columns import find
from dpaudit.outcomes.reader import checked_length
from dpaudit.sampling.chunks import (
    HEAD_DRAWS,
    MAX_RARE,
    Chunk,
    Failures,
    FirstCalls,
    Head,
    Learning,
    LevelCounts,
    Measure,
    Probe,
    Rare,
    Result,
    ToCount,
    ToLearn,
    ToPace,
    ToProbe,
)
from dpaudit.sampling.seeding import ChunkStreams, carried_generators, chunk_streams
from dpaudit.targets.construction import check_found
from dpaudit.targets.target import AnyTarget

if TYPE_CHECKING:  # spares workers the import of claims
    from dpaudit.claims.base import Adversary

# While outputs are read, Python's cyclic garbage collector runs after this number of new objects.
# The number is larger than Python's default, to save time; a still larger number saves little more.
_OBJECTS_PER_COLLECTION = 10_000
# By default, glibc returns the memory of large freed arrays to the system. Freeing one array of
# this size (in bytes) raises glibc's threshold, so that glibc keeps freed arrays of up to this size
# for later use. The size is 32 MiB, the highest possible threshold, minus room for glibc's own
# data.
_KEPT_ARRAY_BYTES = (32 << 20) - (64 << 10)
# _SMALL_BLOCK_CALLS: number of calls for each input of a small learning block, if the mechanism
#     makes many draws per call. With one call, noise that all draws of the call share would look
#     like a property of the input.
# _SMALL_BLOCK: a learning block is small if it has fewer draws than this number.
_SMALL_BLOCK_CALLS, _SMALL_BLOCK = 4, 1_000


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Return a context in which Python's cyclic garbage collector runs rarely. Use it to read
    outputs, since each collection would visit all lists and dicts that reading makes. Do not call
    the mechanism in it: calls may leave cycles, which must be collected."""
    thresholds = gc.get_threshold()
    here = (_OBJECTS_PER_COLLECTION, *thresholds[1:])
    if 0 < thresholds[0] < _OBJECTS_PER_COLLECTION:
        gc.set_threshold(*here)
    try:
        yield
    finally:
        if gc.get_threshold() == here:  # otherwise other code has set a threshold of its own
            gc.set_threshold(*thresholds)


def keep_freed_memory() -> None:
    """Make the process keep freed memory instead of returning it to the operating system. The
    system would clear every page of it for the arrays of the next chunk.

    glibc keeps freed arrays up to the size of the largest array that was freed before (mallopt(3),
    M_MMAP_THRESHOLD). So this function allocates and frees a large array, which takes no memory
    since nothing is written to it. With other C libraries, the function has no effect.
    """
    np.empty(_KEPT_ARRAY_BYTES, dtype=np.uint8)


class Sampler:
    """Makes the draws of chunks in this process. If all randomness of the mechanism can be seeded,
    chunks with equal keys have equal draws, in any process and in any order of the chunks.

    changes_environment: whether a draw has changed an environment variable.
    carried: random generators that the mechanism holds, which every chunk re-seeds.
    """

    def __init__(
        self,
        target: AnyTarget,
        pairs: Sequence[NeighbouringPair],
        seed: int,
        *,
        fail_on_error: bool = False,
        adversary: Adversary | str | None = None,
        timing: bool = False,
        text_orders: bool = True,
        rounds: bool = False,
    ) -> None:
        """Load the mechanism.

        seed: seed of the audit.
        fail_on_error: whether an exception raises MechanismError, instead of counting as an
            outcome.
        adversary: function that gets each output; its answer replaces the output.
        timing: whether to add the duration of each call to its outcome.
        text_orders: whether outcomes may differ in the order of text keys. That order depends on
            the hash seed, so all processes that draw must have one hash seed.
        rounds: round fractions, so that outcomes do not differ in their last bits.
        """
        keep_freed_memory()
        self.mechanism: Mechanism = add_adversary(load_mechanism(target), adversary)
        self._timed = timed_calls(self.mechanism) if timing else None
        # Whether a draw has changed an environment variable. Variables are compared before and
        # after each chunk of draws: a comparison at the end of the audit would also show changes by
        # libraries that attacks import between chunks.
        self.changes_environment = False
        self._target = target
        self.carried = carried_generators(*self.mechanism.parts)
        self._pairs = pairs
        self._seed = seed
        self._fail_on_error = fail_on_error
        self._text_orders = text_orders and self.mechanism.text_orders
        self._rounds = rounds
        self._digests = [(fingerprint(pair.d1), fingerprint(pair.d2)) for pair in pairs]

    def draw(self, chunk: Chunk[Result]) -> Result:
        """Make the draws of a chunk, and return a result of the chunk's type. Raises MechanismError
        if the mechanism makes the audit meaningless, for example if it changes its input."""
        environment, modules = _environment(), len(sys.modules)
        kinds: dict[type, Callable[[Any], Any]]
        kinds = {
            ToLearn: self.learn,
            ToPace: self.pace,
            ToProbe: self.probe,
            FirstCalls: self.first,
        }
        draw = kinds.get(type(chunk), self.count)
        had_torch = torch_use.is_loaded()
        result: Result = draw(chunk)
        if torch_use.is_loaded() and not had_torch:  # the draws of torch had no seed
            result = draw(chunk)
        if len(sys.modules) == modules:  # an import may set variables, once
            self.changes_environment |= _environment() != environment
        return result

    def learn(self, chunk: ToLearn) -> Learning:
        streams = self._reseed_all(chunk)
        if self.mechanism.interleaved:
            raw, outcomes, is_d1 = self._in_turns(chunk, streams)
            failed = self._failures(outcomes, raw, is_d1)
            learning = Learning(FreshDraws(outcomes, is_d1), failed)
        else:
            learning = self._learn_by_arm(chunk, streams)
        self._check_unchanged(chunk.pair)
        return learning

    def count(self, chunk: ToCount) -> LevelCounts:
        streams = self._reseed_all(chunk)
        count = self._count_in_turns if self.mechanism.interleaved else self._count_by_arm
        sizes = (min(chunk.in_memory, left) for left in range(chunk.size, 0, -chunk.in_memory))
        parts = (replace(chunk, size=n, heads=chunk.heads and not i) for i, n in enumerate(sizes))
        counted = reduce(operator.add, (count(part, streams) for part in parts))
        self._check_unchanged(chunk.pair)
        return counted

    def _reseed_all(self, chunk: Chunk[Any]) -> ChunkStreams:
        """Re-seed all generators that the mechanism may use. Return the streams of the chunk."""
        return chunk_streams(self._seed, chunk.key, self.carried)

    def close(self) -> None:
        """End the processes in which the mechanism runs, if any; the next draw starts new ones."""
        self.mechanism.close()

    def probe(self, chunk: ToProbe) -> Probe:
        """Make the draws of the chunk twice from one seed, and measure all fields of `Probe`.
        Raises TargetError if a package that the mechanism imports is not installed, and
        MechanismError if a later call changes an earlier output."""
        learning = ToLearn(chunk.key, chunk.size)
        result = self.learn(learning)
        check_found(result.failures.first, self._target)
        start = time.perf_counter()
        again = self.learn(learning)
        seconds = (time.perf_counter() - start) / chunk.size if self.mechanism.interleaved else 0.0
        first, second = (draws.fresh.release().outcomes for draws in (result, again))
        self._check_kept(chunk)
        return Probe(bool(np.array_equal(first.keys(), second.keys())), len(first.columns), seconds)

    def pace(self, chunk: ToPace) -> Probe:
        """Make the draws of the chunk, and read their outputs. The caller measures the duration."""
        result = self.learn(ToLearn(chunk.key, chunk.size))
        return Probe(True, len(result.fresh.release().outcomes.columns))

    def first(self, chunk: FirstCalls) -> Probe:
        """Call the mechanism twice for each input. Measure the length of the outputs, and the
        duration of the second calls, since the first may import modules. Raises TargetError if a
        package is not found, and MechanismError if an output is so long that many outputs of this
        length could not be kept."""
        pair, rng = self._pairs[chunk.pair], self._reseed_all(chunk).mechanism
        datasets = (pair.d1, pair.d2)
        longest = 0
        for dataset in datasets:
            (output,) = self.mechanism.sample(dataset, 1, rng)
            if isinstance(output, Raised):
                check_found({output.kind: output}, self._target)
            longest = max(longest, checked_length(output))
        start = time.perf_counter()
        for dataset in datasets:
            self.mechanism.sample(dataset, 1, rng)
        return Probe(True, longest, (time.perf_counter() - start) / len(datasets))

    def _in_turns(
        self, chunk: Chunk[Any], streams: ChunkStreams
    ) -> tuple[Any, Outcomes, NDArray[np.bool_]]:
        """Make each draw by a call of its own; a fair coin picks the input of each call."""
        pair = self._pairs[chunk.pair]
        is_d1 = streams.coins.random(chunk.size) < 0.5
        # The two inputs are put into an array, since its method `take` picks the input of each draw
        # within a few nanoseconds.
        datasets = np.empty(2, dtype=object)
        datasets[0], datasets[1] = pair.d2, pair.d1
        inputs = datasets.take(is_d1.astype(np.intp)).tolist()
        if self._timed is None:
            raw = self.mechanism.sample_each(inputs, streams.mechanism)
            return raw, self._read(raw), is_d1
        raw, nanoseconds = self._timed(inputs, streams.mechanism)
        return raw, timed(self._read(raw), nanoseconds), is_d1

    def _count_in_turns(self, chunk: ToCount, streams: ChunkStreams) -> LevelCounts:
        raw, outcomes, is_d1 = self._in_turns(chunk, streams)
        counted = self._measured(chunk.measure, outcomes, raw, is_d1)
        return replace(counted, heads=(Head.of(outcomes, is_d1),)) if chunk.heads else counted

    def _learn_by_arm(self, chunk: ToLearn, streams: ChunkStreams) -> Learning:
        """Make learning draws by a few calls for each input, in an order as if by a fair coin."""
        pair = self._pairs[chunk.pair]
        is_d1 = streams.coins.random(chunk.size) < 0.5
        size = int(is_d1.sum())
        sizes = _calls(size, chunk.size), _calls(chunk.size - size, chunk.size)
        calls = [(pair.d1, draws) for draws in sizes[0]] + [(pair.d2, draws) for draws in sizes[1]]
        # The calls are made in a random order, so that effects of earlier calls favour neither
        # input.
        raw: list[Any] = [None] * len(calls)
        for number in streams.coins.permutation(len(calls)).tolist():
            dataset, draws = calls[number]
            raw[number] = self._batch(dataset, draws, streams)
        indices = np.where(is_d1, np.cumsum(is_d1) - 1, size + np.cumsum(~is_d1) - 1)
        with rarely_collecting():
            outcomes = concatenate(list(map(self._read, raw))).take(indices)
        in_order = list(chain.from_iterable(raw)) if failures(outcomes) else ()
        failed = self._failures(outcomes, in_order, np.arange(chunk.size) < size)
        return Learning(FreshDraws(outcomes, is_d1), failed)

    def _count_by_arm(self, chunk: ToCount, streams: ChunkStreams) -> LevelCounts:
        pair, size = self._pairs[chunk.pair], int(streams.coins.binomial(chunk.size, 0.5))
        arms = ((pair.d1, size), (pair.d2, chunk.size - size))
        parts: list[LevelCounts] = []
        first: dict[int, Outcomes] = {}
        # The outputs of one input are counted before the other input is drawn, while they are still
        # in the CPU cache. A coin picks the input that is drawn first.
        for arm in streams.coins.permutation(2).tolist():
            raw = self._batch(*arms[arm], streams)
            with rarely_collecting():
                outcomes = self._read(raw)
            is_d1 = np.full(outcomes.size, arm == 0)
            parts.append(self._measured(chunk.measure, outcomes, raw, is_d1))
            first[arm] = outcomes.take(slice(HEAD_DRAWS))
        heads = (Head.mixed(first[0], first[1], streams.coins),) if chunk.heads else ()
        return replace(parts[0] + parts[1], heads=heads)

    def _measured(
        self, measure: Measure, outcomes: Outcomes, raw: Sequence[Any], is_d1: NDArray[np.bool_]
    ) -> LevelCounts:
        atoms, declared = measure.atoms, measure.declared
        rare_filter, unseen_filter = measure.rare_filter, measure.seen
        return LevelCounts(
            _tally(measure.portfolio.level, outcomes, is_d1),
            None if atoms is None else atom_tally(atoms.keys, outcomes, is_d1),
            None if declared is None else _range_tally(declared, outcomes, is_d1),
            self._failures(outcomes, raw, is_d1),
            others=tuple(_tally(counter, outcomes, is_d1) for counter in measure.others),
            rare=None if rare_filter is None else rare(rare_filter, outcomes, is_d1),
            unseen=None if unseen_filter is None else unseen(unseen_filter, outcomes, is_d1),
        )

    def _batch(self, dataset: Any, size: int, streams: ChunkStreams) -> Any:
        return self.mechanism.sample(dataset, size, streams.mechanism) if size else []

    def _read(self, raw: Outputs) -> Outcomes:
        types, orders = self.mechanism.types_by_draw, self._text_orders
        return from_raw(raw, types=types, text_orders=orders, rounds=self._rounds)

    def _failures(
        self, outcomes: Outcomes, raw: Sequence[Any], is_d1: NDArray[np.bool_]
    ) -> Failures:
        if not failures(outcomes):
            return Failures()
        entries = zip(raw, is_d1.tolist(), strict=True)
        raised = [(entry, of_d1) for entry, of_d1 in entries if isinstance(entry, Raised)]
        if self._fail_on_error:
            raise MechanismError(
                f"the mechanism raised {raised[0][0].words}, and ",
                *(Name("on_error"), " is fail; with outcome, an exception counts as an outcome"),
                code="mechanism-raised",
            )
        counts = Counter((entry.kind, of_d1) for entry, of_d1 in raised)
        first: dict[str, Raised] = {}
        for entry, _ in raised:
            first.setdefault(entry.kind, entry)
        return Failures({kind: (counts[kind, True], counts[kind, False]) for kind in first}, first)

    def _check_kept(self, chunk: Chunk[Any]) -> None:
        """Raise MechanismError if a later call changes the output of an earlier call."""
        pair, rng = self._pairs[chunk.pair], self._reseed_all(chunk).mechanism
        raw = self.mechanism.sample(pair.d1, 1, rng)
        keys = self._read(raw).keys()
        for dataset in (pair.d2, pair.d1):
            self.mechanism.sample(dataset, chunk.size, rng)
        if not np.array_equal(self._read(raw).keys(), keys):
            raise MechanismError(
                "the mechanism changes an output after returning it, so earlier draws are lost; "
                "return a new object or a copy from each call",
                code="output-changed",
            )

    def _check_unchanged(self, number: int) -> None:
        for name, digest in zip(("d1", "d2"), self._digests[number], strict=True):
            if digest is not None and fingerprint(getattr(self._pairs[number], name)) != digest:
                raise MechanismError(
                    f"the mechanism changes its input {name}, so its draws are not independent; "
                    "change a copy instead",
                    code="input-changed",
                )


def _environment() -> dict[Any, Any]:
    """Return the environment variables as Python stores them."""
    # On Linux these are bytes; decoding them would take longer than a few draws.
    return dict(getattr(os.environ, "_data", os.environ))


def _calls(draws: int, block: int) -> list[int]:
    """Return the number of draws of each call, for a learning block whose calls draw one input."""
    calls = min(draws, _SMALL_BLOCK_CALLS if block < _SMALL_BLOCK else 1)
    return [draws // calls + (number < draws % calls) for number in range(calls)]


def failures_by_arm(outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> dict[str, tuple[int, int]]:
    """Return {kind of exception: (draws of d1, draws of d2)} for draws that raised an exception."""
    if not failures(outcomes):  # the usual case; avoids copies
        return {}
    d1, d2 = (failures(outcomes.take(arm)) for arm in (is_d1, ~is_d1))
    return {kind: (d1.get(kind, 0), d2.get(kind, 0)) for kind in {**d1, **d2}}


def atom_tally(keys: KeyArray, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> AtomTally:
    """Return the counts, for d1 and d2, of the outputs with the hashes `keys`, in rising order."""
    return _atoms_at(find(keys, outcomes.keys()), len(keys), is_d1)


def _atoms_at(indices: NDArray[np.intp], atoms: int, is_d1: NDArray[np.bool_]) -> AtomTally:
    """Return the numbers of draws of d1 and of d2 that gave each atom."""
    counts = by_arm(indices, atoms + 1, is_d1)
    return AtomTally(counts[:-1], (int(is_d1.sum()), int((~is_d1).sum())))


def _tally(counter: CellCounter, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> Tally:
    """Return the numbers of outcomes at each level, for d1 and for d2: (levels, 2)."""
    draws = int(np.count_nonzero(is_d1))
    if 0 < draws < len(is_d1):
        return Tally(by_input(counter, outcomes, is_d1))
    counts = np.zeros((counter.levels, 2), dtype=np.int64)  # all draws have one input: no copies
    counts[:, int(draws == 0)] = counter.tally(outcomes)
    return Tally(counts)


def rare(
    rare_filter: RareFilter, outcomes: Outcomes, is_d1: NDArray[np.bool_], most: int = MAX_RARE
) -> Rare:
    """Return the first `most` draws with rare outputs, which the filter selects. If there are more,
    `arms` counts only the draws before the first rare draw that is not kept; otherwise the share of
    rare draws would be too small."""
    rows = np.flatnonzero(rare_filter.is_rare(outcomes))
    kept_rows = rows[:most]
    draws = int(rows[most]) if len(rows) > most else outcomes.size
    d1 = int(np.count_nonzero(is_d1[:draws]))
    passed = SelectionDraws(outcomes.take(kept_rows), is_d1[kept_rows])
    return Rare(passed, (d1, draws - d1), len(rows) - len(kept_rows))


def unseen(seen: RareFilter, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> tuple[int, int]:
    """Return the arms of the draws that `seen` selects, whose values learning never saw."""
    is_new = seen.is_rare(outcomes)
    new = int(np.count_nonzero(is_new))
    d1 = int(np.count_nonzero(is_new & is_d1)) if new else 0
    return d1, new - d1


def _range_tally(keys: KeyArray, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> RangeTally:
    indices = find(keys, outcomes.plain().keys())
    undeclared_rows = np.flatnonzero(indices == len(keys))
    undeclared = outcomes.word(int(undeclared_rows[0])) if len(undeclared_rows) else None
    return RangeTally(_atoms_at(indices, len(keys), is_d1), undeclared)
