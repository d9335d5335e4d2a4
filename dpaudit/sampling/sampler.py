"""Draws from a mechanism by chunks: outcomes to learn from, tallies to certify with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.adversary import DISTINGUISHER, attacked
from dpaudit.adapters.loading import load_mechanism
from dpaudit.adapters.mechanism import Mechanism
from dpaudit.adapters.timing import check_timeable, sample_timed
from dpaudit.attacks.atoms import find
from dpaudit.claims.computational import Adversary
from dpaudit.draws import FreshDraws
from dpaudit.errors import MechanismError
from dpaudit.inputs.pairs import NeighbouringPair, fingerprint
from dpaudit.levels.distinguisher import AccusedAtoms, Distinguisher
from dpaudit.outcomes import KeyArray, Outcomes, Raised, concatenate, failures, from_raw, timed
from dpaudit.sampling.first import first_calls
from dpaudit.sampling.generators import carried_generators
from dpaudit.sampling.streams import ChunkStreams, chunk_streams, prepare
from dpaudit.tally import AtomTally, RangeTally, Tally
from dpaudit.targets.missing import check_found
from dpaudit.targets.target import AnyTarget

Key = tuple[int, ...]

# Draws that are kept of a measured chunk.
_HEAD = 64
# A mechanism that makes many draws a call is called so many times for each input of a small block:
# what the draws of one call share would otherwise look like the input's own law.
_CALLS, _SMALL = 4, 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """What certification keeps of a draw: its level, for accused atoms which one it is, and which
    of the outputs that were declared to be all there are (by their keys, rising)."""

    distinguisher: Distinguisher
    atoms: AccusedAtoms | None = None
    declared: KeyArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """A unit of sampling: `key` names its random streams; the pair comes first in it.

    at_once: draws to hold the outcomes of at a time, where they are only tallied.
    probes: the draws are made only to see what the mechanism is like; first: so, but one by one,
    before any others. heads: whether to keep what
    the first draws were.
    """

    key: Key
    size: int
    measure: Measure | None = None
    probes: bool = False
    first: bool = False
    at_once: int = 131_072
    heads: bool = True

    @property
    def pair(self) -> int:
        return self.key[0]


@dataclass(frozen=True, slots=True, eq=False)
class Failures:
    """Draws that were exceptions: kind -> (draws of d1, draws of d2), and the first of each."""

    counts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    first: Mapping[str, Raised] = field(default_factory=dict)

    def __add__(self, other: Failures) -> Failures:
        kinds = [*self.counts, *(kind for kind in other.counts if kind not in self.counts)]
        none = (0, 0)
        counts = {
            kind: (
                self.counts.get(kind, none)[0] + other.counts.get(kind, none)[0],
                self.counts.get(kind, none)[1] + other.counts.get(kind, none)[1],
            )
            for kind in kinds
        }
        return Failures(counts, {**self.first, **other.first, **self.first})

    @property
    def total(self) -> int:
        return sum(map(sum, self.counts.values()))


@dataclass(frozen=True, slots=True)
class Probe:
    """reproducible: whether equal seeds gave equal outcomes. columns: of one. seconds: a call's."""

    reproducible: bool
    columns: int
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """Keys of the first draws of a measured chunk, in order, and whether they are of d1: kept only
    to see whether another chunk repeats them."""

    keys: KeyArray
    is_d1: NDArray[np.bool_]

    @classmethod
    def of(cls, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> Head:
        return cls(outcomes.take(slice(_HEAD)).keys(), is_d1[:_HEAD])

    @classmethod
    def mixed(cls, d1: Outcomes, d2: Outcomes, coins: np.random.Generator) -> Head:
        """Return the first draws of both inputs in the order that coins give them, as when in
        turns."""
        parts = [one.keys() for one in (d1, d2)]
        is_d1 = coins.permutation(np.repeat([True, False], [len(part) for part in parts]))
        keys = np.empty(len(is_d1), dtype=np.uint64)
        keys[is_d1], keys[~is_d1] = parts
        return cls(keys, is_d1)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """A chunk, drawn: fresh draws, or when it was measured only their tallies.

    probe: what a chunk that probes found out.
    """

    fresh: FreshDraws | None
    tally: Tally | None
    atoms: AtomTally | None
    failures: Failures
    probe: Probe | None = None
    declared: RangeTally | None = None
    head: Head | None = None


def added(one: Drawn, other: Drawn) -> Drawn:
    """Return what two parts of a measured chunk come to; its head is that of the first."""
    if one.tally is None or other.tally is None:
        raise RuntimeError("parts of a chunk that is not measured cannot be added")
    return Drawn(
        None,
        one.tally + other.tally,
        None if one.atoms is None or other.atoms is None else one.atoms + other.atoms,
        one.failures + other.failures,
        declared=None
        if one.declared is None or other.declared is None
        else one.declared + other.declared,
        head=one.head,
    )


class Sampler:
    """Draws chunks in this process. Equal keys give equal draws, in any order, in any process, for
    a mechanism whose randomness a seed reaches."""

    def __init__(
        self,
        target: AnyTarget,
        pairs: Sequence[NeighbouringPair],
        seed: int,
        *,
        fail_on_error: bool = False,
        adversary: Adversary | str | None = None,
        distinguisher: Callable[[Any], Any] | str | None = None,
        timing: bool = False,
    ) -> None:
        """adversary, distinguisher: stands before the mechanism, its answers are the outcomes.
        timing: how long every call takes is part of its outcome."""
        seen = attacked(load_mechanism(target), adversary)
        self.mechanism: Mechanism = attacked(seen, distinguisher, DISTINGUISHER)
        if timing:
            check_timeable(self.mechanism)
        self._target, self._timing = target, timing
        self.carried = carried_generators(*self.mechanism.parts)
        self._pairs = pairs
        self._seed = seed
        self._fail_on_error = fail_on_error
        self._digests = [(fingerprint(pair.d1), fingerprint(pair.d2)) for pair in pairs]

    def draw(self, chunk: Chunk) -> Drawn:
        """Draw one chunk. Raises MechanismError when that makes the audit meaningless."""
        if chunk.first:
            return Drawn(None, None, None, Failures(), self._first(chunk))
        if chunk.probes:
            return Drawn(None, None, None, Failures(), self.probe(replace(chunk, probes=False)))
        streams = chunk_streams(self._seed, chunk.key)
        prepare(streams, self.carried)
        if chunk.measure is None or chunk.size <= chunk.at_once:
            drawn = self._drawn(chunk, streams)
        else:
            sizes = (min(chunk.at_once, left) for left in range(chunk.size, 0, -chunk.at_once))
            parts = (replace(chunk, size=n, heads=not i) for i, n in enumerate(sizes))
            drawn = reduce(added, (self._drawn(part, streams) for part in parts))
        self._check_unchanged(chunk.pair)
        return drawn

    def _drawn(self, chunk: Chunk, streams: ChunkStreams) -> Drawn:
        pair = self._pairs[chunk.pair]
        if self.mechanism.interleaved:
            return self._draw_in_turns(chunk, pair, streams)
        return self._draw_by_arm(chunk, pair, streams)

    def close(self) -> None:
        """End what the mechanism started to draw; drawing again starts it again."""
        self.mechanism.close()

    def probe(self, chunk: Chunk) -> Probe:
        """Draw the chunk twice, to see what the mechanism is like; the draws count for nothing."""
        drawn = self.draw(chunk)
        check_found(drawn.failures.first, self._target)
        first, second = drawn.fresh, self.draw(chunk).fresh
        if first is None or second is None:
            raise RuntimeError("a chunk without a measure came without its draws")
        one, other = first.release().outcomes, second.release().outcomes
        self._check_kept(chunk)
        return Probe(bool(np.array_equal(one.keys(), other.keys())), len(one.columns))

    def _first(self, chunk: Chunk) -> Probe:
        streams = chunk_streams(self._seed, chunk.key)
        prepare(streams, self.carried)
        pair = self._pairs[chunk.pair]
        length, seconds = first_calls(self.mechanism, pair, streams.mechanism)
        return Probe(True, length, seconds)

    def _draw_in_turns(self, chunk: Chunk, pair: NeighbouringPair, streams: ChunkStreams) -> Drawn:
        """One call a draw: every coin picks the input of the next call."""
        is_d1 = streams.coins.random(chunk.size) < 0.5
        # Taken from an array of both, a draw's input costs a few nanoseconds.
        both = np.empty(2, dtype=object)
        both[0], both[1] = pair.d2, pair.d1
        inputs = both.take(is_d1.astype(np.intp)).tolist()
        raw, outcomes = self._each(inputs, streams)
        failed = self._failures(outcomes, raw, is_d1)
        if chunk.measure is None:
            return Drawn(FreshDraws(outcomes, is_d1), None, None, failed)
        level = chunk.measure.distinguisher(outcomes)
        levels = chunk.measure.distinguisher.levels
        cell = level.astype(np.intp) * 2 + ~is_d1
        counts = np.bincount(cell, minlength=2 * levels).reshape(levels, 2)
        atoms = atom_tally(chunk.measure, outcomes, is_d1)
        declared = _range_tally(chunk.measure, outcomes, is_d1)
        head = Head.of(outcomes, is_d1) if chunk.heads else None
        return Drawn(None, Tally(counts), atoms, failed, declared=declared, head=head)

    def _each(self, inputs: list[Any], streams: ChunkStreams) -> tuple[Any, Outcomes]:
        if not self._timing:
            raw = self.mechanism.sample_each(inputs, streams.mechanism)
            return raw, from_raw(raw)
        raw, nanoseconds = sample_timed(self.mechanism, inputs, streams.mechanism)
        return raw, timed(from_raw(raw), nanoseconds)

    def _draw_by_arm(self, chunk: Chunk, pair: NeighbouringPair, streams: ChunkStreams) -> Drawn:
        """A few calls for many draws each; as many of d1 as coins would have picked."""
        if chunk.measure is not None:
            return self._tally_by_arm(chunk, chunk.measure, pair, streams)
        is_d1 = streams.coins.random(chunk.size) < 0.5
        size = int(is_d1.sum())
        sizes = _calls(size, chunk.size), _calls(chunk.size - size, chunk.size)
        calls = [(pair.d1, draws) for draws in sizes[0]] + [(pair.d2, draws) for draws in sizes[1]]
        # In random order, so that what the calls before have left behind favours neither input.
        raw: list[Any] = [None] * len(calls)
        for number in streams.coins.permutation(len(calls)).tolist():
            dataset, draws = calls[number]
            raw[number] = self._batch(dataset, draws, streams)
        place = np.empty(chunk.size, dtype=np.intp)
        place[is_d1] = np.arange(size)
        place[~is_d1] = np.arange(size, chunk.size)
        outcomes = concatenate([from_raw(one) for one in raw]).take(place)
        arms = np.arange(chunk.size) < size
        in_order = list(chain.from_iterable(raw)) if failures(outcomes) else ()
        failed = self._failures(outcomes, in_order, arms)
        return Drawn(FreshDraws(outcomes, is_d1), None, None, failed)

    def _tally_by_arm(
        self, chunk: Chunk, measure: Measure, pair: NeighbouringPair, streams: ChunkStreams
    ) -> Drawn:
        size = int(streams.coins.binomial(chunk.size, 0.5))
        levels, failed = measure.distinguisher.levels, Failures()
        counts = np.zeros((levels, 2), dtype=np.int64)
        atoms: AtomTally | None = None
        declared: RangeTally | None = None
        first: dict[int, Outcomes] = {}
        arms = ((pair.d1, size), (pair.d2, chunk.size - size))
        # One input after the other, so that what was drawn is still in the cache when it is read; a
        # coin says which comes first.
        for arm in streams.coins.permutation(2).tolist():
            dataset, draws = arms[arm]
            raw = self._batch(dataset, draws, streams)
            outcomes = from_raw(raw)
            counts[:, arm] = measure.distinguisher.counts(outcomes)
            is_d1 = np.full(outcomes.size, arm == 0)
            part = atom_tally(measure, outcomes, is_d1)
            atoms = part if atoms is None or part is None else atoms + part
            counted = _range_tally(measure, outcomes, is_d1)
            declared = counted if declared is None or counted is None else declared + counted
            failed += self._failures(outcomes, raw, is_d1)
            if chunk.heads:
                first[arm] = outcomes.take(slice(_HEAD))
        head = Head.mixed(first[0], first[1], streams.coins) if chunk.heads else None
        return Drawn(None, Tally(counts), atoms, failed, declared=declared, head=head)

    def _batch(self, dataset: Any, size: int, streams: ChunkStreams) -> Any:
        return self.mechanism.sample(dataset, size, streams.mechanism) if size else []

    def _failures(
        self, outcomes: Outcomes, raw: Sequence[Any], is_d1: NDArray[np.bool_]
    ) -> Failures:
        if not failures(outcomes):
            return Failures()
        both = zip(raw, is_d1.tolist(), strict=True)
        raised = [(entry, one) for entry, one in both if isinstance(entry, Raised)]
        if self._fail_on_error:
            raise MechanismError(
                f"the mechanism raised {raised[0][0].words} (on_error: fail); with "
                "on_error: outcome an exception is an outcome like any other"
            )
        counts = Counter((entry.kind, one) for entry, one in raised)
        first: dict[str, Raised] = {}
        for entry, _ in raised:
            first.setdefault(entry.kind, entry)
        return Failures({kind: (counts[kind, True], counts[kind, False]) for kind in first}, first)

    def _check_kept(self, chunk: Chunk) -> None:
        """Raise when a later call changes what an earlier one returned."""
        streams = chunk_streams(self._seed, chunk.key)
        prepare(streams, self.carried)
        pair = self._pairs[chunk.pair]
        raw = self.mechanism.sample(pair.d1, 1, streams.mechanism)
        before = from_raw(raw).keys()
        for dataset in (pair.d2, pair.d1):
            self.mechanism.sample(dataset, chunk.size, streams.mechanism)
        if not np.array_equal(from_raw(raw).keys(), before):
            raise MechanismError(
                "the mechanism changes an output that it returned before, so that earlier draws "
                "are lost; let it return a new object, or a copy"
            )

    def _check_unchanged(self, number: int) -> None:
        pair, digests = self._pairs[number], self._digests[number]
        for name, dataset, digest in (("d1", pair.d1, digests[0]), ("d2", pair.d2, digests[1])):
            if digest is not None and fingerprint(dataset) != digest:
                raise MechanismError(
                    f"the mechanism changes its input {name}, so that its draws are not "
                    "independent; let it work on a copy"
                )


def _calls(draws: int, block: int) -> list[int]:
    """Return the sizes of the calls for one input's draws of a block to learn from."""
    calls = min(draws, _CALLS if block < _SMALL else 1)
    return [draws // calls + (number < draws % calls) for number in range(calls)]


def failures_by_arm(outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> dict[str, tuple[int, int]]:
    """Return how many outcomes of d1 and of d2 were exceptions, by kind."""
    d1, d2 = (failures(outcomes.take(arm)) for arm in (is_d1, ~is_d1))
    return {kind: (d1.get(kind, 0), d2.get(kind, 0)) for kind in {**d1, **d2}}


def atom_tally(measure: Measure, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> AtomTally | None:
    """Return the draws of the accused atoms; None when none are."""
    if measure.atoms is None:
        return None
    keys = measure.atoms.keys
    return _counted(find(keys, outcomes.keys()), len(keys), is_d1)


def _range_tally(
    measure: Measure, outcomes: Outcomes, is_d1: NDArray[np.bool_]
) -> RangeTally | None:
    if measure.declared is None:
        return None
    place = find(measure.declared, outcomes.keys())
    strange = np.flatnonzero(place == len(measure.declared))
    undeclared = outcomes.word(int(strange[0])) if len(strange) else None
    return RangeTally(_counted(place, len(measure.declared), is_d1), undeclared)


def _counted(place: NDArray[np.intp], atoms: int, is_d1: NDArray[np.bool_]) -> AtomTally:
    """Return the draws at each of `atoms` places, by arm; a place beyond them is not counted."""
    counts = np.bincount(place * 2 + ~is_d1, minlength=2 * (atoms + 1)).reshape(atoms + 1, 2)
    return AtomTally(counts[:-1], (int(is_d1.sum()), int((~is_d1).sum())))
