"""What an audit costs beyond the draws themselves: CPU, memory, and what a second worker brings.

python -m benchmarks.throughput [--times 5]
"""

from __future__ import annotations

import argparse

from benchmarks.processes import Cost, alternated, dpaudit, python

BATCH = 10_000_000
SINGLE = 5_000_000
LONG = 25_000_000
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


def audit(target: str, draws: int, *more: str) -> list[str]:
    """Return the command that audits a correct mechanism, ε = 1."""
    inputs = ("--d1", "0", "--d2", "1", "--epsilon", "1")
    return dpaudit("run", target, *inputs, "--samples", str(draws), *more)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    batch(times)
    single(times)
    workers(max(1, times // 2))


def batch(times: int) -> None:
    """Print CPU and memory for a mechanism that draws many at once."""
    target = "mechanisms.laplace:laplace"
    commands = [python(DRAWING.format(draws=draws)) for draws in (LEAST, BATCH)]
    commands += [audit(target, draws) for draws in (LEAST, BATCH // 10, BATCH)]
    idle, drawing, start, tenth, whole = alternated(commands, times)
    ratio = _beyond(start, whole) / _beyond(idle, drawing)
    print(f"batch, {BATCH:,} draws: CPU {ratio:.2f} times that of drawing alone (wanted: ≤ 2)")
    change = whole.memory / tenth.memory - 1
    print(f"  peak memory {whole.memory / 1e6:.0f} MB (wanted: < 500), ", end="")
    print(f"{100 * change:+.1f} % against {BATCH // 10:,} draws (wanted: within 10 %)")


def single(times: int) -> None:
    """Print CPU for a mechanism that is called once a draw."""
    commands = [python(CALLING.format(draws=draws)) for draws in (1, SINGLE)]
    commands += [audit("benchmarks.throughput:laplace", draws) for draws in (LEAST, SINGLE)]
    idle, calling, start, whole = alternated(commands, times)
    ratio = _beyond(start, whole) / _beyond(idle, calling)
    print(f"one call a draw, {SINGLE:,} draws: CPU {ratio:.2f} times that of a bare loop", end="")
    print(" (wanted: ≤ 1.3)")


def workers(times: int) -> None:
    """Print what a second worker brings in wall time."""
    target = "benchmarks.throughput:laplace"
    commands = [audit(target, LONG, "--workers", count) for count in ("1", "2")]
    one, two = alternated(commands, times)
    print(f"{LONG:,} draws in {one.wall:.1f} s with one worker, {two.wall:.1f} s with two:", end="")
    print(f" {one.wall / two.wall:.2f} times as fast (wanted: ≥ 1.7)")


def _beyond(start: Cost, whole: Cost) -> float:
    return whole.cpu - start.cpu


if __name__ == "__main__":
    main()
