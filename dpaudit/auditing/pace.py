"""Choose the options that depend on the speed of a mechanism, if the user stated none.

The number of draws is chosen once, from the speed after the first calls, and from draws that
nothing else uses (docs/budget.md).
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

from dpaudit.auditing.ledger import PACING
from dpaudit.auditing.options import MIN_SAMPLES, DefaultSamples, Stop, flag_of
from dpaudit.auditing.schedule import SLOW_DRAW
from dpaudit.auditing.source import Source
from dpaudit.auditing.spec import AuditSpec, Origin
from dpaudit.auditing.underpowered import least_to_refute
from dpaudit.certificates.evidence import DrawLimits
from dpaudit.sampling.chunks import Probe, ToPace
from dpaudit.wording import counted

# The clock that times draws, in seconds. Tests replace it.
clock = time.perf_counter

# To measure the speed of a mechanism, the first call of a mechanism that makes batches asks for
# _PACED_BATCH draws; if each call makes one draw, as many draws are made as take _PACED_SECONDS.
_PACED_BATCH, _PACED_SECONDS = 16, 0.05
# The speed of several processes is measured with _PACED_CHUNKS chunks for each of them, each for
# about _PACED_CHUNK_SECONDS.
_PACED_CHUNKS, _PACED_CHUNK_SECONDS = 4, 0.2
# Seconds of drawing from which the speed of a slow mechanism is measured.
_MEASURED_SECONDS = 0.25
# Factor by which the measured calls grow: a mechanism that makes a batch of draws in one call has
# its full speed only in large batches.
_GROWTH = 4
# A claim gets at least this number of times the least draws that could refute it.
_TIMES_LEAST = 5


def choose(source: Source, number: int, first: Probe, second: Probe, limits: DrawLimits) -> None:
    """Choose the options `samples` and `stop` of an audit, unless the user stated them. The request
    and the command of the audit then state the values, so that a rerun uses the same ones.

    first, second: measurements of the first calls of the pair, and of the calls after them.
    """
    spec, journal = source.spec, source.journal
    samples = spec.sampling.samples
    if isinstance(samples, DefaultSamples) and spec.sampling.time is None:
        seconds = first.seconds if limits.single_draws else 0.0
        enough = rate_enough(samples, len(spec.pairs))
        measure = partial(_rate, source, number, seconds, limits.block, enough)
        # A run that continues a journal takes the rate of the first run.
        spec = with_chosen_samples(spec, journal.once("rate", measure) or measure())
    journal.spec = _with_chosen_end(spec, second.seconds)


def _with_chosen_end(spec: AuditSpec, seconds: float) -> AuditSpec:
    """Return the audit with a value other than "auto" for `stop`; a draw takes `seconds`."""
    sampling = spec.sampling
    if sampling.stop != "auto":
        return spec
    end: Stop = "bets" if seconds > SLOW_DRAW else "confirmed"
    # If draws are faster than a fifth of `SLOW_DRAW`, every rerun chooses "confirmed".
    origin = with_stated(spec.origin, "stop", end) if seconds > SLOW_DRAW / 5 else spec.origin
    return replace(spec, sampling=replace(sampling, stop=end), origin=origin)


def _rate(source: Source, number: int, seconds: float, largest: int, enough: float) -> float:
    """Return the draws per second of all processes that will draw; stop early at `enough`."""
    pool = source.pool

    def draw(indices: Iterable[int], size: int) -> None:
        keys = ((number, PACING, index) for index in indices)
        deque(pool(ToPace(key, size) for key in keys), maxlen=0)

    def draw_again(size: int) -> None:
        # Equal keys give equal numbers of draws of each input, for which a mechanism is compiled
        # only once.
        draw([size], size)

    first = max(1, min(largest, int(_PACED_SECONDS / seconds))) if seconds else _PACED_BATCH
    rate = rate_of(draw_again, first, largest, enough)
    if rate >= enough or source.most_workers == 1:
        return rate
    pool.settle()
    if not pool.others_drew:
        return rate
    chunks = _PACED_CHUNKS * pool.workers
    size = max(1, min(largest, int(_PACED_CHUNK_SECONDS * rate)))
    indices = range(largest + 1, largest + 1 + chunks)
    return chunks * size / _duration(lambda: draw(indices, size))


def _duration(action: Callable[[], object]) -> float:
    start = clock()
    action()
    return max(clock() - start, 1e-9)


def with_stated(origin: Origin, option: str, value: object) -> Origin:
    """Return `origin` with a request and a command that state the value of an option."""
    request, command = origin.request, origin.command
    if request is not None and isinstance(settings := request.get("settings"), Mapping):
        request = {**request, "settings": {**settings, option: value}}
    if command is not None:
        flag = flag_of(option)
        command = f"{command.replace(f' {flag} auto', '')} {flag} {value}"
    return replace(origin, request=request, command=command)


def rate_enough(samples: DefaultSamples, pairs: int) -> float:
    """Return the draws per second at which the largest number of draws of `samples` is chosen."""
    return samples * pairs / samples.seconds


def rate_of(draw: Callable[[int], object], first: int, largest: int, enough: float) -> float:
    """Return the draws per second of a mechanism. As soon as the rate is known to be at least
    `enough`, stop and return it.

    first, largest: the smallest and the largest number of draws in one call of `draw`.
    """
    size, spent, rate = first, 0.0, 0.0
    while True:
        draw(size)  # may compile the mechanism for this number of draws
        seconds = _duration(partial(draw, size))
        rate, spent = max(rate, size / seconds), spent + seconds
        if rate >= enough or spent >= _MEASURED_SECONDS or size >= largest:
            return rate
        size = min(_GROWTH * size, largest)


def with_chosen_samples(spec: AuditSpec, rate: float) -> AuditSpec:
    """Return the audit with the number of draws that suits a speed, `rate` in draws per second. Its
    request and its command state this number, and a note gives the reason."""
    limit = spec.sampling.samples
    if not isinstance(limit, DefaultSamples):
        return spec
    pairs = max(1, len(spec.pairs))
    affordable = _rounded(min(rate * limit.seconds / pairs, limit), math.floor)
    needed = _rounded(
        min(_TIMES_LEAST * least_to_refute(spec.tested, spec.alpha), limit), math.ceil
    )
    samples = min(max(affordable, needed, MIN_SAMPLES), int(limit))
    note = "" if samples == limit else _reason(spec, samples, rate, is_needed=needed > affordable)
    origin = replace(with_stated(spec.origin, "samples", samples), pace=note)
    return replace(spec, sampling=replace(spec.sampling, samples=samples), origin=origin)


def _reason(spec: AuditSpec, samples: int, rate: float, *, is_needed: bool) -> str:
    limit = spec.sampling.samples
    seconds = limit.seconds if isinstance(limit, DefaultSamples) else math.inf
    pairs = len(spec.pairs)
    per_pair = f" for each of {pairs:,} pairs" if pairs > 1 else ""
    speed = f"{float(f'{rate:.2g}'):,.4g} draws/s" if rate < 1e3 else f"{rate:,.0f} draws/s"
    why = f"for about {seconds:g} s at {speed}"
    if is_needed:
        why = f"which {spec.tested.describe()} needs, at {speed}"
    names = ("samples", "time")
    if spec.origin.command is not None:
        names = flag_of("samples"), flag_of("time")
    return f"{counted(samples, 'draw')}{per_pair}, {why}; {' or '.join(names)} for more"


def _rounded(number: float, direction: Callable[[float], int]) -> int:
    """Round a number to 1, 2 or 5 times a power of ten; `direction` is math.floor or math.ceil.

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
