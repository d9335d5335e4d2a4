"""What audits show of outputs of several kinds, beside those of one kind.

python -m benchmarks.kinds_of_outputs [--seeds 3]

Prefix sums of ten numbers that each differ by 0.2, noise of scale 1: always; None in one output
of a hundred; beside a sparse vector that releases the answer it has compared, with such gaps; and,
of four numbers that differ by 0.3, in four outputs of ten, in the others their total as a dict with
more noise. Every audit runs to its last draw, and claims nothing that would stop it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np

import dpaudit
from benchmarks.side_by_side import with_answers

Rng = np.random.Generator
Draw = Callable[[float, int, Rng], Any]
DRAWS, CLAIM = (100_000, 1_000_000), 5.0


def main() -> None:
    """Print the bounds of every case, and their means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(1, parser.parse_args().seeds + 1)
    cases: dict[str, Draw] = {
        "prefix sums": prefix_sums,
        "prefix sums, None": with_gaps(prefix_sums),
        "two releases": two_releases,
        "two releases, None": with_gaps(two_releases),
        "prefix sums or their total": sums_or_total,
    }
    for name, draw in cases.items():
        for draws in DRAWS:
            bounds = [bound(draw, draws, seed) for seed in seeds]
            each = ", ".join(f"{one:.3f}" for one in bounds)
            print(f"{name:30}{draws:>10,}  mean {fmean(bounds):.3f}  of {each}", flush=True)


def bound(draw: Draw, draws: int, seed: int) -> float:
    """Return the lower bound for ε."""

    def mechanism(bit: float, *, size: int, rng: Rng) -> Any:
        return draw(bit, size, rng)

    claim = dpaudit.PureDP(CLAIM)
    return dpaudit.audit(
        mechanism, 0.0, 1.0, claim, samples=draws, seed=seed, stop="never"
    ).epsilon_lower


def prefix_sums(bit: float, size: int, rng: Rng, many: int = 10, step: float = 0.2) -> Any:
    """Return the sums of the first one, two and so on."""
    return np.cumsum(rng.laplace(0.0, 1.0, (size, many)) + step * bit, axis=1)


def two_releases(bit: float, size: int, rng: Rng) -> Any:
    """Return prefix sums, and the answers of a sparse vector that shows the first one above."""
    answers = with_answers(np.full(10, bit), size, rng)
    return np.concatenate([prefix_sums(bit, size, rng), answers], axis=1)


def with_gaps(draw: Draw) -> Draw:
    """Return the same with None in one output of a hundred."""

    def drawn(bit: float, size: int, rng: Rng) -> Any:
        rows = draw(bit, size, rng).tolist()
        gaps = (rng.random(size) < 0.01).tolist()
        return [None if gap else row for gap, row in zip(gaps, rows, strict=True)]

    return drawn


def sums_or_total(bit: float, size: int, rng: Rng) -> Any:
    """Return four prefix sums or, as a dict, one noisy total."""
    sums = prefix_sums(bit, size, rng, 4, 0.3).tolist()
    totals = (rng.laplace(0.0, 1.0, size) + 0.5 * bit).tolist()
    has_sums = (rng.random(size) < 0.4).tolist()
    return [
        row if one else {"total": total}
        for row, total, one in zip(sums, totals, has_sums, strict=True)
    ]


if __name__ == "__main__":
    main()
