"""Turn a target into a `Mechanism` that can draw.

This module also has the mechanisms that are made of other mechanisms: several mechanisms on the
same input (`Composition`), several runs of one mechanism (`Repetition`), two mechanisms that are
compared (`TwoMechanisms`), and a mechanism whose outputs are replaced by an adversary's guesses
(`WithAdversary`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
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
    as_python,
    collect_outputs,
)
from dpaudit.errors import MechanismError, Name, TargetError, UsageError
from dpaudit.inputs.pairs import Side
from dpaudit.inputs.values import resolved
from dpaudit.outcomes import Raised
from dpaudit.processes.origin import FAILURES
from dpaudit.targets.compiled import is_compiled_by_size
from dpaudit.targets.construction import applied, functions, post_processing
from dpaudit.targets.parameters import calling
from dpaudit.targets.target import (
    AnyTarget,
    CommandTarget,
    ComposedTarget,
    IsolatedTarget,
    RepeatedTarget,
    TwoTargets,
    name_of,
)
from dpaudit.watching import Watch
from dpaudit.wording import shortened


def load_mechanism(target: AnyTarget) -> Mechanism:
    """Return the mechanism of a target, ready to draw. Raises TargetError if it cannot be imported
    or made, or cannot be called with the parameters of the target."""
    if isinstance(target, RepeatedTarget):
        return Repetition(load_mechanism(target.target), target.times)
    if isinstance(target, TwoTargets):
        return TwoMechanisms(target.name, (load_mechanism(target.a), load_mechanism(target.b)))
    if isinstance(target, ComposedTarget):
        components = tuple(map(load_mechanism, target.parts))
        return Composition(target.name, components, post_processing(target.post_process))
    if isinstance(target, IsolatedTarget | CommandTarget):
        if not hasattr(os, "fork"):
            why = f"{target.name}: a separate process (isolate) needs Linux or macOS"
            raise TargetError(why, code="isolation-impossible")
        # `Command` and `Isolated` draw in other processes. They are imported inside the function,
        # since most audits draw in this process and do not need them.
        from dpaudit.adapters.command import Command
        from dpaudit.adapters.isolation import Isolated

        return Isolated(target) if isinstance(target, IsolatedTarget) else Command(target)
    function, post_process = functions(target)
    how = calling(function, target, unpacks=True)
    kind = SingleDraws if how.batch is None else Batches
    how = replace(how, few_sizes=how.batch is not None and is_compiled_by_size(function))
    return kind(target.name, function, how, resolved(target.params), post_process)


# Largest absolute value up to which all integers are exact as floats.
_MAX_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Composition:
    """Several mechanisms on the same input, whose outputs together are one output, a tuple. The
    mechanisms draw one after the other from the same generator, so that their noise is independent.
    If all of them return batches as arrays of numbers, a batch is an array with these as
    columns."""

    name: str
    components: tuple[Mechanism, ...]
    post_process: Function | None = None
    watch: Watch = field(default_factory=Watch.without_timeout, repr=False, compare=False)

    @property
    def interleaved(self) -> bool:
        return not all(isinstance(component, Batches) for component in self.components)

    @property
    def types_by_draw(self) -> bool:
        return self.interleaved

    @property
    def text_orders(self) -> bool:
        return all(component.text_orders for component in self.components)

    @property
    def parts(self) -> tuple[Any, ...]:
        parts = [part for component in self.components for part in component.parts]
        return (*parts, self.post_process)

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        outputs = [component.sample(dataset, size, rng) for component in self.components]
        table = _side_by_side(outputs) if self.post_process is None else None
        return self.released(outputs) if table is None else table

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> list[Any]:
        inputs = list(datasets)
        return self.released([component.sample_each(inputs, rng) for component in self.components])

    def close(self) -> None:
        for component in self.components:
            component.close()

    def released(self, outputs: Sequence[Outputs]) -> list[Any]:
        """Return, for each draw, the tuple of the outputs of all mechanisms, after
        post-processing."""
        return apply_post_process(
            self.post_process, _rows(list(map(as_python, outputs))), self.watch
        )


@dataclass(frozen=True, slots=True)
class Repetition(Wrapping):
    """Several runs of a mechanism on the same input. An output is a tuple with one entry per run.
    One call for a batch makes the runs of all outputs of the batch."""

    times: int
    watch: Watch = field(default_factory=Watch, repr=False, compare=False)

    @property
    def types_by_draw(self) -> bool:
        return self.interleaved

    def sample(self, dataset: Any, size: int, rng: np.random.Generator) -> Outputs:
        # The watch is given the number of outputs: it waits one second longer for each output
        # before it warns.
        with self.watch.runs(self.name, self.times, size):
            return self.released(self.mechanism.sample(dataset, size * self.times, rng))

    def sample_each(self, datasets: Iterable[Any], rng: np.random.Generator) -> Outputs:
        inputs = self.inputs(datasets)
        with self.watch.runs(self.name, self.times):
            return self.released(self.mechanism.sample_each(inputs, rng))

    def inputs(self, datasets: Iterable[Any]) -> list[Any]:
        """Return a list of the datasets, with `times` consecutive copies of each."""
        return [dataset for dataset in datasets for _ in range(self.times)]

    def released(self, outputs: Outputs) -> Outputs:
        """Return the outputs of the draws: for each, a tuple (or a row of an array) of the outputs
        of its runs. `outputs` has one entry per run, in the order of `inputs`."""
        if isinstance(outputs, np.ndarray):
            if outputs.dtype.names is None and not outputs.dtype.hasobject:
                return outputs.reshape(-1, self.times, *outputs.shape[1:])
            # `list` keeps the rows of a structured array as records; `tolist` would turn them into
            # tuples without field names.
            outputs = list(outputs)
        return _rows([outputs[run :: self.times] for run in range(self.times)])


@dataclass(frozen=True, slots=True)
class TwoMechanisms:
    """Two mechanisms that are compared: A draws for the inputs of its side, and B for those of
    its own. Types of numbers do not count: 1 of A and 1.0 of B are one value."""

    name: str
    mechanisms: tuple[Mechanism, Mechanism]

    types_by_draw = False

    @property
    def interleaved(self) -> bool:
        return all(mechanism.interleaved for mechanism in self.mechanisms)

    @property
    def text_orders(self) -> bool:
        return all(mechanism.text_orders for mechanism in self.mechanisms)

    @property
    def parts(self) -> tuple[Any, ...]:
        return tuple(part for mechanism in self.mechanisms for part in mechanism.parts)

    @property
    def doubt(self) -> str | None:
        doubts = (getattr(mechanism, "doubt", None) for mechanism in self.mechanisms)
        return next(filter(None, doubts), None)

    def sample(self, dataset: Side, size: int, rng: np.random.Generator) -> Outputs:
        return self.mechanisms[dataset.is_b].sample(dataset.dataset, size, rng)

    def sample_each(self, datasets: Iterable[Side], rng: np.random.Generator) -> list[Any]:
        # Each mechanism makes all of its draws in one request, since another process may draw. The
        # order is random, so that effects of earlier calls favour neither.
        inputs = list(datasets)
        outputs: list[Any] = [None] * len(inputs)
        for is_b in rng.permutation(2).tolist():
            rows = [row for row, side in enumerate(inputs) if side.is_b == is_b]
            own = [inputs[row].dataset for row in rows]
            drawn = as_python(self.mechanisms[is_b].sample_each(own, rng)) if own else []
            for row, output in zip(rows, drawn, strict=True):
                outputs[row] = output
        return outputs

    def close(self) -> None:
        for mechanism in self.mechanisms:
            mechanism.close()


def _rows(columns: Sequence[Iterable[Any]]) -> list[Any]:
    """Return for each draw the joint outcome (`together`) of its entries in all `columns`."""
    rows: list[Any] = list(zip(*columns, strict=True))
    fails = any(Raised in set(map(type, column)) for column in columns)
    return list(map(together, rows)) if fails else rows


def together(entries: tuple[Any, ...]) -> Any:
    """Return the joint outcome of several runs: the tuple of their outputs. If a run raised an
    exception, the joint outcome is the first exception."""
    return next((entry for entry in entries if isinstance(entry, Raised)), entries)


def _side_by_side(outputs: Sequence[Outputs]) -> NDArray[Any] | None:
    """Return the outputs as columns of one array; None if that would change a value."""
    arrays = [array for array in outputs if isinstance(array, np.ndarray) and array.ndim in (1, 2)]
    if len(arrays) < len(outputs):
        return None
    if len({array.dtype for array in arrays}) > 1 and not all(map(_fits_float, arrays)):
        return None
    is_plain = all(array.dtype.kind in "iufbU" for array in arrays)
    return np.column_stack(arrays) if is_plain else None


def _fits_float(array: NDArray[Any]) -> bool:
    if array.dtype.kind == "f":
        return array.dtype.itemsize <= 8
    if array.dtype.kind not in "iu":
        return False
    return array.size == 0 or max(int(array.max()), -int(array.min())) <= _MAX_EXACT


@dataclass(frozen=True, slots=True)
class WithAdversary(Wrapping):
    """A mechanism whose outcomes are the guesses of an adversary about another mechanism's outputs.
    The adversary may be random. Draws raise MechanismError if the adversary raises an exception or
    returns no valid guess, since this says nothing about the mechanism."""

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
        """Return the adversary's guess for each output. An exception (`Raised`) stays as it is."""
        return [
            output if isinstance(output, Raised) else self._answer(output)
            for output in as_python(outputs)
        ]

    def _answer(self, output: Any) -> Any:
        try:
            answer = self.adversary(output)
        except FAILURES as error:
            raise MechanismError(
                f"the adversary {self.adversary_name} raised {type(error).__name__}: "
                f"{shortened(str(error), 200)}; return None where it does not know",
                code="adversary-failed",
            ) from error
        if answer is None or (type(answer) is int and answer in (1, 2)):
            return answer
        raise MechanismError(
            f"the adversary {self.adversary_name} answered {answer!r}; "
            "it must answer 1 (d1), 2 (d2) or None (neither)",
            code="adversary-failed",
        )


def add_adversary(mechanism: Mechanism, adversary: Callable[[Any], Any] | str | None) -> Mechanism:
    """Return a mechanism whose outcomes are the guesses of `adversary`. Without an adversary,
    return the mechanism itself. Raises TargetError if the import path of the adversary cannot be
    imported, or names nothing that can be called."""
    if adversary is None:
        return mechanism
    return WithAdversary(mechanism, applied(adversary, "adversary"), name_of(adversary))


# A pair: the outputs of some draws, and the duration of each draw in nanoseconds.
TimedOutputs = tuple[Any, NDArray[np.int64]]
# A function from a list of datasets and a generator to `TimedOutputs`: an output and a duration for
# each dataset, in order.
Timed = Callable[[list[Any], np.random.Generator], TimedOutputs]


def timed_calls(mechanism: Mechanism) -> Timed:
    """Return a function that draws from a mechanism and measures the duration of each draw. The
    duration is that of all calls of a draw, without post-processing. Raises UsageError if the
    mechanism makes batches or runs in another process."""
    match mechanism:
        case SingleDraws():
            return partial(_calls, mechanism)
        case Composition(components=components):
            parts = list(map(timed_calls, components))

            def composed(inputs: list[Any], rng: np.random.Generator) -> TimedOutputs:
                results = [part(inputs, rng) for part in parts]
                elapsed = np.sum([nanoseconds for _, nanoseconds in results], axis=0)
                return mechanism.released([outputs for outputs, _ in results]), elapsed

            return composed
        case Repetition(mechanism=single, times=times):
            draws = timed_calls(single)

            def repeated(inputs: list[Any], rng: np.random.Generator) -> TimedOutputs:
                outputs, elapsed = draws(mechanism.inputs(inputs), rng)
                return mechanism.released(outputs), elapsed.reshape(-1, times).sum(axis=1)

            return repeated
        case Batches(name=name, batch=batch):
            raise UsageError(
                Name("timing"),
                f": {name} makes many draws in one call ({batch}), so the time of one draw "
                "is unknown; give ",
                *(ONE_BY_ONE, " to call it once for each draw"),
                code="timing-impossible",
            )
    raise UsageError(
        Name("timing"),
        f": dpaudit cannot time the calls of {mechanism.name}, which runs in another process or is "
        "seen only through an adversary; leave out ",
        Name("timing"),
        code="timing-impossible",
    )


def _calls(mechanism: SingleDraws, inputs: list[Any], rng: np.random.Generator) -> TimedOutputs:
    draw, clock = mechanism.bound(rng), time.perf_counter_ns
    elapsed: list[int] = []

    def timed(dataset: Any) -> Any:
        start = clock()
        try:
            return draw(dataset)
        finally:
            elapsed.append(clock() - start)

    watched = partial(mechanism.watch.calls, mechanism.name)
    outputs = collect_outputs(map(timed, inputs), inputs, watched)
    outputs = apply_post_process(mechanism.post_process, outputs, mechanism.watch)
    return outputs, np.array(elapsed, dtype=np.int64)
