"""What traces name: `python -m benchmarks.traces`.

Of mechanisms of which one line leaks: whether a finding names it, how long it takes, and whether
their correct counterparts have a cause. Mechanisms of torch, JAX and diffprivlib are traced if
these are installed. `-v`: every line.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import math
import statistics
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import chain

import numpy as np

from dpaudit.certificates.traced import Finding, SourceLine, Trace
from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP, ZeroConcentratedDP
from dpaudit.import_path import resolve
from dpaudit.targets.target import CallableTarget, ImportedTarget
from dpaudit.tracing.mechanism_trace import subject_of, trace_pair
from dpaudit.tracing.runs.running import run
from mechanisms.causes.planted import CAUSES, OF_LIBRARIES, Cause


def claim_of(one: Cause) -> PrivacyClaim:
    if one.rho:
        return ZeroConcentratedDP(one.rho)
    return ApproximateDP(one.epsilon, one.delta) if one.delta else PureDP(one.epsilon)


def correct_of(one: Cause) -> tuple[str, ...]:
    """Return the import paths of the correct counterparts of a mechanism."""
    return (*(() if one.correct is None else (one.correct,)), *one.also_correct)


def traced(one: Cause, target: str) -> tuple[Trace, float]:
    """Return a trace, and the seconds it took beside importing the mechanism."""
    resolve(target)
    began = time.perf_counter()
    found = trace_pair(
        ImportedTarget(path=target, params=one.params),
        one.d1,
        one.d2,
        claim_of(one),
        primitives=one.primitives,
    )
    return found, time.perf_counter() - began


def planted_lines(one: Cause) -> set[int]:
    """Return the numbers of the lines at fault."""
    module, _, name = one.broken.partition(":")
    lines, start = inspect.getsourcelines(getattr(importlib.import_module(module), name))
    return {
        number
        for number, line in enumerate(lines, start)
        if any(piece in line for piece in one.lines)
    }


def named(found: Finding) -> Iterator[SourceLine]:
    yield found.line
    yield from found.others


def names(one: Cause, findings: tuple[Finding, ...]) -> bool:
    """Return whether a finding names a line at fault."""
    module = sys.modules[one.broken.partition(":")[0]]
    lines, file = planted_lines(one), inspect.getsourcefile(module) or ""
    return any(
        line.line in lines and file.endswith(line.file)
        for found in findings
        for line in named(found)
    )


def cost_of_a_run() -> tuple[float, float]:
    """Return how many times as long as a plain call a run takes that is watched line by line, of a
    mechanism that goes through 20,000 records; and the milliseconds of a run of a short one."""
    data, rng = [0.5] * 20_000, np.random.default_rng(0)
    subject = subject_of(ImportedTarget(path="mechanisms.causes.additive:not_clipped"))
    looping = subject_of(ImportedTarget(path="mechanisms.causes.released:raises_for_large"))
    plain, watched, short = [], [], []
    for seed in range(9):
        began = time.perf_counter()
        looping.function(data, rng=rng)
        middle = time.perf_counter()
        run(looping, data, seed)
        end = time.perf_counter()
        run(subject, [0.5], seed)
        plain.append(middle - began)
        watched.append(end - middle)
        short.append(time.perf_counter() - end)
    return statistics.median(watched) / statistics.median(plain), 1000 * statistics.median(short)


def poll(answers: list[int], rng: np.random.Generator) -> list[int]:
    """Return honest answers with probability 3/4, each by a coin of its own."""
    return [one if rng.random() < 0.75 else 1 - one for one in answers]


def cost_of_coins() -> tuple[float, float, float]:
    """Return the seconds that the trace of a poll of 300 takes; the microseconds that each coin
    takes in a run; and how many times as long as a plain call that is."""
    d1, d2 = [0] * 300, [0] * 299 + [1]
    began = time.perf_counter()
    assert trace_pair(CallableTarget(function=poll), d1, d2, PureDP(1.0)).causes
    seconds = time.perf_counter() - began
    subject, many = subject_of(CallableTarget(function=poll)), [0] * 20_000
    plain, taken = [], []
    for seed in range(9):
        began = time.perf_counter()
        poll(many, np.random.default_rng(seed))
        middle = time.perf_counter()
        run(subject, many, seed)
        plain.append(middle - began)
        taken.append(time.perf_counter() - middle)
    each = statistics.median(taken)
    return seconds, 1e6 * each / len(many), each / statistics.median(plain)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    installed = [OF_LIBRARIES[name] for name in OF_LIBRARIES if find_spec(name)]
    every = [*CAUSES, *chain.from_iterable(installed)]
    chosen = [one for one in every if not asked.names or one.name in asked.names]
    causes, likely, false, seconds = 0, 0, 0, []
    for one in chosen:
        found, took = traced(one, one.broken)
        seconds.append(took)
        is_cause = names(one, found.causes)
        guess = () if found.likely is None else (found.likely,)
        is_likely = is_cause or names(one, guess)
        correct = [cause for path in correct_of(one) for cause in traced(one, path)[0].causes]
        causes, likely = causes + is_cause, likely + is_likely
        false += bool(correct)
        how = "cause" if is_cause else "ranked first" if is_likely else "MISSED"
        wrong = "  FALSE CAUSE" if correct else ""
        print(f"{one.name:28} {how:14} {1000 * took:6.0f} ms{wrong}")
        if asked.verbose or how == "MISSED" or wrong:
            for each in (*found.findings, *guess)[:3]:
                print(f"    {each.kind}: {each.line} {each.words}")
            for each in correct:
                print(f"    correct: {each.kind}: {each.line} {each.words}")
            if not found.findings:
                print(f"    {found.total} {found.notes} {found.not_understood}")
    times, milliseconds = cost_of_a_run()
    print(
        f"a run over 20,000 records: {times:.0f} times a plain call; a short one: "
        f"{milliseconds:.1f} ms"
    )
    whole, each, ratio = cost_of_coins()
    print(
        f"a poll of 300 is traced in {whole:.1f} s; a coin takes {each:.0f} µs in a run, "
        f"{ratio:.0f} times as long as in a plain call"
    )
    print(
        f"{len(chosen)} mechanisms: a cause names the line in {causes}, a cause or the costliest "
        f"line in {likely}; correct counterparts with a cause: {false}; "
        f"median {1000 * statistics.median(seconds):.0f} ms, at most {1000 * max(seconds):.0f} ms"
    )
    return int(false > 0 or likely < math.ceil(0.9 * len(chosen)))


if __name__ == "__main__":
    sys.exit(main())
