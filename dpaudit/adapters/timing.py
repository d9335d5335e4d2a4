"""How long each call of a mechanism takes, measured around the call and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.adapters.calls import ONE_BY_ONE, Batches, SingleDraws, processed
from dpaudit.adapters.composition import Composition, Repetition
from dpaudit.adapters.exceptions import raised
from dpaudit.adapters.mechanism import Mechanism
from dpaudit.errors import UsageError
from dpaudit.processes.origin import FAILURES

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
                output = raised(error)
            else:
                elapsed.append(clock() - start)
            outputs.append(output)
    outputs = processed(mechanism.post_process, outputs, mechanism.watch)
    return outputs, np.array(elapsed, dtype=np.int64)
