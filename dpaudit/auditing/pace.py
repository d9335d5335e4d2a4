"""Choose the number of draws of an audit for which neither `samples` nor `time` is stated.

The number is chosen once, from the speed of the mechanism after its first calls, and from draws
that nothing else uses (docs/budget.md). engine.py chooses it for an audit, and searching/search.py
for a search.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dpaudit.auditing.options import MIN_SAMPLES, DefaultSamples, flag_of
from dpaudit.auditing.spec import AuditSpec
from dpaudit.auditing.underpowered import least_to_refute
from dpaudit.wording import counted

# The clock that times draws, in seconds. Tests replace it.
clock = time.perf_counter

# Seconds of drawing from which the speed of a slow mechanism is measured.
_MEASURED_SECONDS = 0.25
# Factor by which the measured calls grow: a mechanism that makes a batch of draws in one call has
# its full speed only in large batches.
_GROWTH = 4
# A claim gets at least this number of times the least draws that could refute it.
_TIMES_LEAST = 5


def duration(draw: Callable[..., object], *arguments: Any) -> float:
    """Return the seconds that `draw(*arguments)` takes, above 0."""
    start = clock()
    draw(*arguments)
    return max(clock() - start, 1e-9)


def rate_enough(samples: DefaultSamples, pairs: int) -> float:
    """Return the draws per second with which the largest number of draws is chosen."""
    return samples * pairs / samples.seconds


def rate_of(draw: Callable[[int], object], first: int, largest: int, enough: float) -> float:
    """Return the draws per second of a mechanism, or a rate of at least `enough`.

    draw: makes a number of draws.
    first, largest: the first and the largest number of draws in one call of `draw`.
    """
    size, spent, rate = first, 0.0, 0.0
    while True:
        draw(size)  # may compile the mechanism for this number of draws
        seconds = duration(draw, size)
        rate, spent = max(rate, size / seconds), spent + seconds
        if rate >= enough or spent >= _MEASURED_SECONDS or size >= largest:
            return rate
        size = min(_GROWTH * size, largest)


def with_chosen_samples(spec: AuditSpec, rate: float) -> AuditSpec:
    """Return the audit with the number of draws for a rate, in draws per second.

    The request and the command of the audit then state this number, and a note gives the reason.
    """
    most = spec.sampling.samples
    if not isinstance(most, DefaultSamples):
        return spec
    pairs = max(1, len(spec.pairs))
    affordable = _rounded(min(rate * most.seconds / pairs, most), math.floor)
    needed = _rounded(min(_TIMES_LEAST * least_to_refute(spec), most), math.ceil)
    samples = min(max(affordable, needed, MIN_SAMPLES), int(most))
    origin = spec.origin
    request, command = origin.request, origin.command
    if request is not None and isinstance(settings := request.get("settings"), Mapping):
        request = {**request, "settings": {**settings, "samples": samples}}
    if command is not None:
        command = f"{command} {flag_of('samples')} {samples}"
    note = "" if samples == most else _reason(spec, samples, rate, is_needed=needed > affordable)
    origin = replace(origin, request=request, command=command, pace=note)
    return replace(spec, sampling=replace(spec.sampling, samples=samples), origin=origin)


def _reason(spec: AuditSpec, samples: int, rate: float, *, is_needed: bool) -> str:
    most = spec.sampling.samples
    seconds = most.seconds if isinstance(most, DefaultSamples) else math.inf
    pairs = len(spec.pairs)
    each = f" for each of {pairs} pairs" if pairs > 1 else ""
    speed = f"{float(f'{rate:.2g}'):,.4g} draws/s" if rate < 1e3 else f"{rate:,.0f} draws/s"
    why = f"for about {seconds:g} s at {speed}"
    if is_needed:
        why = f"which {spec.tested.describe()} needs, at {speed}"
    names = ("samples", "time")
    if spec.origin.command is not None:
        names = flag_of("samples"), flag_of("time")
    return f"{counted(samples, 'draw')}{each}, {why}; {' or '.join(names)} for more"


def _rounded(number: float, direction: Callable[[float], int]) -> int:
    """Return a number rounded to 1, 2 or 5 times a power of ten, down by `math.floor` and up by
    `math.ceil`.

    >>> _rounded(183_000, math.floor), _rounded(183_000, math.ceil), _rounded(50, math.ceil)
    (100000, 200000, 50)
    """
    if number <= 1:
        return 1
    unit: int = 10 ** (len(str(int(number))) - 1)
    steps = [unit, 2 * unit, 5 * unit, 10 * unit]
    if direction is math.floor:
        return max(step for step in steps if step <= number)
    return min(step for step in steps if step >= number)
