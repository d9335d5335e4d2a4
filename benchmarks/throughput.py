"""What an audit costs beyond the draws: CPU, memory; what a second worker brings, and Dask.

python -m benchmarks.throughput [--times 5]
"""

from __future__ import annotations

import argparse
import shlex
import tempfile

from benchmarks.processes import Cost, alternated, dpaudit, python

BATCH = 100_000_000
SINGLE = 5_000_000
LONG = 60_000_000
LEAST = 1_000

DRAWING = """
import numpy as np
rng = np.random.default_rng(0)
left = {draws}
while left > 0:
    size = min(left, 131_072)
    0 + rng.laplace(size=size)
    left -= size
"""
CALLING = """
import numpy as np
from benchmarks.throughput import laplace
def loop(draws):
    rng = np.random.default_rng(0)
    for _ in range(draws):
        laplace(0, rng)
loop({draws})
"""


def laplace(x, rng):  # type: ignore[no-untyped-def]  # as a user writes it
    """One draw a call."""
    return x + rng.laplace()


def audit(target: str, draws: int, *more: str, workers: int = 1) -> list[str]:
    """Return the command that audits a correct mechanism, ε = 1."""
    inputs = ("--d1", "0", "--d2", "1", "--epsilon", "1")
    asked = ("--samples", str(draws), "--workers", str(workers))
    return dpaudit("run", target, *inputs, *asked, *more)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    batch(times)
    single(times)
    workers(max(1, times // 2))
    journal(times)


def batch(times: int) -> None:
    """Print CPU and memory for a mechanism that draws many at once."""
    target = "mechanisms.laplace:laplace"
    commands = [python(DRAWING.format(draws=draws)) for draws in (LEAST, BATCH)]
    commands += [audit(target, draws) for draws in (LEAST, BATCH // 100, BATCH)]
    idle, drawing, start, few, whole = alternated(commands, times)
    rate = _beyond(idle, drawing) / _beyond(start, whole)
    print(f"batch, {BATCH:,} draws: {100 * rate:.0f} % of the raw drawing rate per core", end="")
    print(" (wanted: ≥ 60 %)")
    change = whole.memory / few.memory - 1
    print(f"  peak memory {whole.memory / 1e6:.0f} MB (wanted: < 500), ", end="")
    print(f"{100 * change:+.1f} % against {BATCH // 100:,} draws (wanted: within 10 %)")


def single(times: int) -> None:
    """Print CPU for a mechanism that is called once a draw."""
    commands = [python(CALLING.format(draws=draws)) for draws in (1, SINGLE)]
    commands += [audit("benchmarks.throughput:laplace", draws) for draws in (LEAST, SINGLE)]
    idle, calling, start, whole = alternated(commands, times)
    ratio = _beyond(start, whole) / _beyond(idle, calling)
    print(f"one call a draw, {SINGLE:,} draws: CPU {ratio:.2f} times that of a bare loop", end="")
    print(" (wanted: ≤ 1.3)")


def workers(times: int) -> None:
    """Print what a second worker brings in wall time, and how Dask does with two."""
    target = "benchmarks.throughput:laplace"
    commands = [audit(target, LONG, workers=count) for count in (1, 2)]
    commands.append(audit(target, LONG, "--executor", "dask", workers=2))
    one, two, dask = alternated(commands, times)
    print(f"{LONG:,} draws in {one.wall:.1f} s with one worker, {two.wall:.1f} s with two:", end="")
    print(f" {one.wall / two.wall:.2f} times as fast (wanted: ≥ 1.8)")
    print(f"  with two of Dask's in {dask.wall:.1f} s: {two.wall / dask.wall:.2f}", end="")
    print(" times as fast as with the process pool (wanted: ≥ 0.85)")


def journal(times: int) -> None:
    """Print what it costs to keep a journal."""
    target = "mechanisms.laplace:laplace"
    with tempfile.TemporaryDirectory() as folder:
        kept = audit(target, BATCH, "--journal", folder)
        fresh = ["sh", "-c", f"rm -f {folder}/*.journal && exec {shlex.join(kept)}"]
        plain, keeping = alternated([audit(target, BATCH), fresh], times)
    print(
        f"with a journal, {BATCH:,} draws: CPU {keeping.cpu / plain.cpu:.3f} and wall time", end=""
    )
    print(f" {keeping.wall / plain.wall:.3f} times that without (wanted: ≤ 1.03)")


def _beyond(start: Cost, whole: Cost) -> float:
    return whole.cpu - start.cpu


if __name__ == "__main__":
    main()
