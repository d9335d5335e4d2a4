"""What a draw costs more in another process, and what replacing a process costs.

python -m benchmarks.isolation [--times 5]
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.processes import ROOT
from dpaudit.adapters.loading import load_mechanism
from dpaudit.targets.target import AnyTarget, CommandTarget, ImportedTarget, IsolatedTarget, Limits

SINGLE = 32_768 * 20
BATCH = 131_072 * 40
CRASHES = 20
SINGLE_WANTED, BINARY_WANTED = 3.0, 0.5
C_SOURCE = ROOT / "docs" / "examples" / "laplace.c"


def laplace(dataset, rng):  # type: ignore[no-untyped-def]  # as a user writes it
    """One draw a call."""
    return dataset + rng.laplace()


def words(dataset, rng):  # type: ignore[no-untyped-def]  # as a user writes it
    """One draw a call, of something that is no number."""
    return "yes" if rng.random() < 0.5 else "no"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    for name in ("laplace", "words"):
        single(name, times)
    binary(times)
    replacing(times)


def single(name: str, times: int) -> None:
    """Print what one call a draw costs more."""
    here = ImportedTarget(path=f"benchmarks.isolation:{name}")
    isolated = IsolatedTarget(target=here, limits=Limits(timeout=10.0))
    python = IsolatedTarget(target=here, python=sys.executable)
    plain, *others = _alternated([_each(one) for one in (here, isolated, python)], times)
    for where, seconds in zip(("isolate", "python"), others, strict=True):
        overhead = 1e6 * (seconds - plain) / SINGLE
        print(
            f"{name} by {where}: {seconds / plain:.2f} times as long as in this process, ", end=""
        )
        print(f"{overhead:+.2f} µs a draw (wanted: ≤ {SINGLE_WANTED:g})")


def binary(times: int) -> None:
    """Print what a draw of a program costs beyond what the program takes by itself."""
    with tempfile.TemporaryDirectory() as folder:
        program = str(Path(folder) / "laplace")
        subprocess.run(["cc", "-O2", "-o", program, str(C_SOURCE), "-lm"], check=True)  # noqa: S607  # whichever
        target = CommandTarget(words=(program, "1"))
        alone, audited = _alternated([lambda: _alone(program), _batches(target)], times)
    overhead = 1e6 * (audited - alone) / BATCH
    print(
        f"command with frames: {audited / alone:.2f} times as long as the program by itself, ",
        end="",
    )
    print(f"{overhead:+.3f} µs a draw (wanted: ≤ {BINARY_WANTED:g})")


def replacing(times: int) -> None:
    """Print what a crash costs."""
    target = IsolatedTarget(target=ImportedTarget(path="signal:raise_signal"))
    nothing = [sys.executable, "-c", ""]

    def crashes() -> None:
        mechanism = load_mechanism(target)
        mechanism.sample(signal.SIGABRT, CRASHES, np.random.default_rng(0))
        mechanism.close()

    def start() -> None:
        subprocess.run(nothing, check=True)

    seconds, starting = _alternated([crashes, start], times)
    print(f"a crash: {1000 * seconds / CRASHES:.0f} ms, {1000 * starting:.0f} of them ", end="")
    print("for Python to start; a mechanism's own imports come to that")


def _each(target: AnyTarget) -> Callable[[], object]:
    mechanism = load_mechanism(target)
    inputs: list[Any] = [0, 1] * 16_384

    def run() -> None:
        for start in range(0, SINGLE, len(inputs)):
            mechanism.sample_each(inputs, np.random.default_rng(start))

    return run


def _batches(target: AnyTarget) -> Callable[[], object]:
    mechanism = load_mechanism(target)

    def run() -> None:
        for start in range(0, BATCH, 65_536):
            mechanism.sample(0, 65_536, np.random.default_rng(start))

    return run


def _alone(program: str) -> None:
    request = f'{{"dataset": 0, "size": {BATCH}, "seed": 1}}\n'
    subprocess.run([program, "1"], input=request.encode(), stdout=subprocess.DEVNULL, check=True)


def _alternated(runs: list[Callable[[], object]], times: int) -> list[float]:
    """Return the median seconds of each, run in turns."""
    seconds: list[list[float]] = [[] for _ in runs]
    for _ in range(times):
        for run, kept in zip(runs, seconds, strict=True):
            start = time.perf_counter()
            run()
            kept.append(time.perf_counter() - start)
    return list(map(median, seconds))


if __name__ == "__main__":
    main()
