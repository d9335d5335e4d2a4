"""From a target to the mechanism that it names."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import (
    ONE_BY_ONE,
    Batches,
    Function,
    Mechanism,
    Outputs,
    SingleDraws,
    Wrapping,
    apply_post_process,
    as_outcome,
    as_python,
)
from dpaudit.errors import MechanismError, TargetError, UsageError
from dpaudit.inputs.values import resolved
from dpaudit.outcomes import Raised
from dpaudit.processes.origin import FAILURES
from dpaudit.targets.construction import applied, functions, is_made, post_processing
from dpaudit.targets.parameters import calling
from dpaudit.targets.target import (
    AnyTarget,
    CommandTarget,
    ComposedTarget,
    IsolatedTarget,
    RepeatedTarget,
    name_of,
)
from dpaudit.watching import Watch


def load_mechanism(target: AnyTarget) -> Mechanism:
    """Return the mechanism that a target names, ready to draw. Raises TargetError when it cannot be
    found, built or called as asked."""
    if isinstance(target, RepeatedTarget):
        return Repetition(load_mechanism(target.target), target.times)
    if isinstance(target, ComposedTarget):
        components = tuple(map(load_mechanism, target.parts))
        return Composition(target.name, components, post_processing(target.post_process))
    if isinstance(target, IsolatedTarget | CommandTarget):
        if not hasattr(os, "fork"):
            raise TargetError(f"{target.name}: a separate process (isolate) needs Linux or macOS")
        # Most audits do without.
        from dpaudit.adapters.command import Command
        from dpaudit.adapters.isolation import Isolated

        return Isolated(target) if isinstance(target, IsolatedTarget) else Command(target)
    function, post_process = functions(target)
    how = calling(function, target, is_made=is_made(target), unpacks=True)
    kind = SingleDraws if how.batch is None else Batches
    return kind(target.name, function, how, resolved(target.params), post_process)


# Integers up to here are floats without loss, so that they may stand beside floats.
_LARGEST_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Composition:
    """The outputs of `components` on one input, as a tuple with an entry for each.

    All draw from the generator handed over, one component after the other, so that their noise is
    independent. Components that all draw by the batch stay fast: arrays of numbers are put side by
    side, a column (of vectors: as many as they are long) for each.
    """

    name: str
    components: tuple[Mechanism, ...]
    post_process: Function | None = None
    watch: Watch = field(default_factory=Watch.untimed, repr=False, compare=False)

    @property
    def interleaved(self) -> bool:
        return not all(isinstance(one, Batches) for one in self.components)

    @property
    def types_by_draw(self) -> bool:
        return self.interleaved

    @property
    def text_orders(self) -> bool:
        return all(one.text_orders for one in self.components)

    @property
    def parts(self) -> tuple[Any, ...]:
        return (*(part for one in self.components for part in one.parts), self.post_process)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        drawn = [one.sample(dataset, size, rng) for one in self.components]
        table = _side_by_side(drawn) if self.post_process is None else None
        return self.released(drawn) if table is None else table

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        inputs = list(datasets)
        return self.released([one.sample_each(inputs, rng) for one in self.components])

    def close(self) -> None:
        for one in self.components:
            one.close()

    def released(self, drawn: Sequence[Outputs]) -> list[Any]:
        """Return the outputs of all components, those of one draw together."""
        return apply_post_process(self.post_process, _rows(list(map(as_python, drawn))), self.watch)


@dataclass(frozen=True, slots=True)
class Repetition(Wrapping):
    """The outputs of `times` runs on one input, as a tuple with an entry for each. A mechanism that
    draws by the batch is asked for all runs of all outputs at once."""

    times: int
    watch: Watch = field(default_factory=Watch, repr=False, compare=False)

    @property
    def types_by_draw(self) -> bool:
        return self.interleaved

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        # What draws by the batch may take longer for more outputs.
        with self.watch.runs(self.name, self.times, size):
            return self.released(self.mechanism.sample(dataset, size * self.times, rng))

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs:
        inputs = self.inputs(datasets)
        with self.watch.runs(self.name, self.times):
            return self.released(self.mechanism.sample_each(inputs, rng))

    def inputs(self, datasets: Iterable[Any]) -> list[Any]:
        """Return every dataset as often as there are runs."""
        return [dataset for dataset in datasets for _ in range(self.times)]

    def released(self, outputs: Outputs) -> Outputs:
        """Return the outputs of all runs, those on one input together."""
        if isinstance(outputs, np.ndarray):
            if outputs.dtype.names is None and not outputs.dtype.hasobject:
                return outputs.reshape(-1, self.times, *outputs.shape[1:])
            # Records, which as plain values would be tuples without names.
            outputs = list(outputs)
        return _rows([outputs[run :: self.times] for run in range(self.times)])


def _rows(columns: Sequence[Iterable[Any]]) -> list[Any]:
    """Return `together` of the entries of each row."""
    rows: list[Any] = list(zip(*columns, strict=True))
    fails = any(Raised in set(map(type, column)) for column in columns)
    return list(map(together, rows)) if fails else rows


def together(entries: tuple[Any, ...]) -> Any:
    """Return the outcome of several on one input: the first exception, else all as a tuple."""
    return next((entry for entry in entries if isinstance(entry, Raised)), entries)


def _side_by_side(drawn: Sequence[Outputs]) -> NDArray[Any] | None:
    """Return arrays of numbers as columns of one; None where that would change a value."""
    arrays = [one for one in drawn if isinstance(one, np.ndarray) and one.ndim in (1, 2)]
    if len(arrays) < len(drawn):
        return None
    if len({one.dtype for one in arrays}) > 1 and not all(map(_fits_float, arrays)):
        return None
    return np.column_stack(arrays) if all(one.dtype.kind in "iufbU" for one in arrays) else None


def _fits_float(array: NDArray[Any]) -> bool:
    if array.dtype.kind == "f":
        return array.dtype.itemsize <= 8
    if array.dtype.kind not in "iu":
        return False
    return array.size == 0 or max(int(array.max()), -int(array.min())) <= _LARGEST_EXACT


@dataclass(frozen=True, slots=True)
class WithAdversary(Wrapping):
    """A mechanism whose outcomes are the guesses of an adversary, who may toss coins. Raises
    MechanismError when these cannot be had, which says nothing about the mechanism."""

    adversary: Callable[[Any], Any]
    adversary_name: str

    @property
    def parts(self) -> tuple[Any, ...]:
        return (*self.mechanism.parts, self.adversary)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> list[Any]:
        return self.answers(self.mechanism.sample(dataset, size, rng))

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        return self.answers(self.mechanism.sample_each(datasets, rng))

    def answers(self, outputs: Outputs) -> list[Any]:
        """Return what the adversary answers to outputs; an exception stays what it is."""
        return [one if isinstance(one, Raised) else self._answer(one) for one in as_python(outputs)]

    def _answer(self, output: Any) -> Any:
        try:
            answer = self.adversary(output)
        except FAILURES as error:
            raise MechanismError(
                f"the adversary {self.adversary_name} raised {type(error).__name__}: "
                f"{' '.join(str(error).split())[:200]}; return None where it does not know"
            ) from error
        if answer is None or (type(answer) is int and answer in (1, 2)):
            return answer
        raise MechanismError(
            f"the adversary {self.adversary_name} answered {answer!r}; "
            "it must answer 1 (d1), 2 (d2) or None (neither)"
        )


def add_adversary(mechanism: Mechanism, adversary: Callable[[Any], Any] | str | None) -> Mechanism:
    """Return the mechanism as an adversary sees it; itself without one. Raises TargetError."""
    if adversary is None:
        return mechanism
    return WithAdversary(mechanism, applied(adversary, "adversary"), name_of(adversary))


# From datasets to one output for each, in order, and how long each took, in nanoseconds.
Timed = Callable[[list[Any], np.random.Generator], tuple[Any, NDArray[np.int64]]]


def timed_calls(mechanism: Mechanism) -> Timed:
    """Return what draws from a mechanism and times every call; the calls of a composition, or of
    several runs, are added up, and post-processing is left out. Raises UsageError unless every call
    can be timed by itself."""
    match mechanism:
        case SingleDraws():
            return partial(_calls, mechanism)
        case Composition(components=components):
            return partial(_composition, mechanism, [timed_calls(one) for one in components])
        case Repetition(mechanism=one):
            return partial(_repetition, mechanism, timed_calls(one))
        case Batches(name=name, batch=batch):
            raise UsageError(
                f"timing: {name} makes many draws in one call ({batch}), so the time of one draw "
                "is unknown; give ",
                *(ONE_BY_ONE, " to call it once for each draw"),
            )
    raise UsageError(
        f"timing: dpaudit cannot time the calls of {mechanism.name}, which runs in another "
        "process or is seen only through an adversary; leave out timing, or else isolate, python, "
        "command and adversary"
    )


def _composition(
    mechanism: Composition, parts: list[Timed], inputs: list[Any], rng: np.random.Generator
) -> tuple[Any, NDArray[np.int64]]:
    drawn = [part(inputs, rng) for part in parts]
    elapsed = np.sum([nanoseconds for _, nanoseconds in drawn], axis=0)
    return mechanism.released([outputs for outputs, _ in drawn]), elapsed


def _repetition(
    mechanism: Repetition, draws: Timed, inputs: list[Any], rng: np.random.Generator
) -> tuple[Any, NDArray[np.int64]]:
    outputs, elapsed = draws(mechanism.inputs(inputs), rng)
    return mechanism.released(outputs), elapsed.reshape(-1, mechanism.times).sum(axis=1)


def _calls(
    mechanism: SingleDraws, inputs: list[Any], rng: np.random.Generator
) -> tuple[list[Any], NDArray[np.int64]]:
    draw, clock = mechanism.bound(rng), time.perf_counter_ns
    outputs: list[Any] = []
    elapsed: list[int] = []
    with mechanism.watch.calls(mechanism.name, outputs):
        for dataset in inputs:
            start = clock()
            try:
                output = draw(dataset)
            except FAILURES as error:
                elapsed.append(clock() - start)
                output = as_outcome(error)
            else:
                elapsed.append(clock() - start)
            outputs.append(output)
    outputs = apply_post_process(mechanism.post_process, outputs, mechanism.watch)
    return outputs, np.array(elapsed, dtype=np.int64)
