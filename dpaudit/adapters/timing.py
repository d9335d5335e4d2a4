"""How long each call of a mechanism takes, measured around the call and nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import Batches, SingleDraws, processed, raised
from dpaudit.adapters.composition import Composition, Repetition
from dpaudit.adapters.mechanism import Mechanism
from dpaudit.errors import UsageError
from dpaudit.processes.origin import FAILURES

Nanoseconds = NDArray[np.int64]


def check_timeable(mechanism: Mechanism) -> None:
    """Raise UsageError unless every call of the mechanism can be timed by itself."""
    match mechanism:
        case SingleDraws():
            return
        case Composition(components=components):
            for one in components:
                check_timeable(one)
        case Repetition(mechanism=one):
            check_timeable(one)
        case Batches(name=name, batch=batch):
            raise UsageError(
                f"timing: {name} makes many draws in one call ({batch}), so the time of one draw "
                "is unknown; give --batch-arg none (YAML: batch_arg: none) to call it once for "
                "each draw"
            )
        case _:
            raise UsageError(
                f"timing: dpaudit cannot time the calls of {mechanism.name}, which runs in "
                "another process or is seen only through an adversary; leave out timing, or else "
                "isolate, python, command and adversary"
            )


def sample_timed(
    mechanism: Mechanism, datasets: Iterable[Any], rng: np.random.Generator
) -> tuple[Any, Nanoseconds]:
    """Return one output for each dataset, in order, and how long each took, in nanoseconds.

    The calls of a composition, or of several runs, are added up; post-processing is left out.
    Raises UsageError as `check_timeable` does.
    """
    inputs = list(datasets)
    match mechanism:
        case SingleDraws():
            return _sample_each(mechanism, inputs, rng)
        case Composition(components=components):
            drawn = [sample_timed(one, inputs, rng) for one in components]
            total = reduce(np.add, (elapsed for _, elapsed in drawn))
            return mechanism.released([outputs for outputs, _ in drawn]), total
        case Repetition(mechanism=one, times=times):
            outputs, elapsed = sample_timed(one, mechanism.inputs(inputs), rng)
            return mechanism.released(outputs), elapsed.reshape(-1, times).sum(axis=1)
    check_timeable(mechanism)
    raise RuntimeError(f"{mechanism.name} cannot be timed")


def _sample_each(
    mechanism: SingleDraws, inputs: list[Any], rng: np.random.Generator
) -> tuple[list[Any], Nanoseconds]:
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
                output = raised(error)
            else:
                elapsed.append(clock() - start)
            outputs.append(output)
    outputs = processed(mechanism.post_process, outputs, mechanism.watch)
    return outputs, np.array(elapsed, dtype=np.int64)
