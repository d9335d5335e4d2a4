"""What audits show of several releases in one output.

python -m benchmarks.side_by_side [--seeds 3]

Ten queries of sensitivity 1, noise of scale 4, a threshold of scale 2; prefix sums of the first six
with noise of scale 1. Every audit runs to its last draw, and claims nothing that would stop it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dpaudit

FloatArray = NDArray[np.float64]
Release = Callable[[FloatArray, int, np.random.Generator], FloatArray]
DRAWS, CLAIM = (100_000, 1_000_000), 5.0


def main() -> None:
    """Print the bounds of every case, and their means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=3)
    seeds = range(1, parser.parse_args().seeds + 1)
    cases: dict[str, tuple[Release, ...]] = {
        "sparse vector twice": (sparse_vector, sparse_vector),
        "sparse vector, with answers": (sparse_vector, with_answers),
        "sparse vector, prefix sums": (sparse_vector, prefix_sums),
        "with answers, prefix sums": (with_answers, prefix_sums),
    }
    for name, releases in cases.items():
        for draws in DRAWS:
            bounds = [bound(releases, draws, seed) for seed in seeds]
            each = ", ".join(f"{one:.3f}" for one in bounds)
            print(f"{name:30}{draws:>10,}  mean {fmean(bounds):.3f}  of {each}", flush=True)


def bound(releases: tuple[Release, ...], draws: int, seed: int) -> float:
    """Return the lower bound for ε."""

    def together(queries: Any, *, size: int, rng: np.random.Generator) -> FloatArray:
        answers = np.asarray(queries, dtype=np.float64)
        return np.concatenate([one(answers, size, rng) for one in releases], axis=1)

    d1, d2, claim = [0] * 10, [1] * 10, dpaudit.PureDP(CLAIM)
    return dpaudit.audit(
        together, d1, d2, claim, samples=draws, seed=seed, stop="never"
    ).epsilon_lower


def sparse_vector(answers: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return which answers are above, up to the first one; -1 after it."""
    _, above, is_after = _compared(answers, size, rng)
    return np.where(is_after, -1.0, above)


def with_answers(answers: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return the same with the answer that was compared (Lyu et al. 2017, Alg. 3)."""
    noisy, above, is_after = _compared(answers, size, rng)
    return np.where(above & ~is_after, noisy, np.where(is_after, -2_000.0, -1_000.0))


def prefix_sums(answers: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Return the sums of the first one, two and so on."""
    return np.cumsum(answers[:6] + rng.laplace(0.0, 1.0, (size, 6)), axis=1)


def _compared(
    answers: FloatArray, size: int, rng: np.random.Generator
) -> tuple[FloatArray, NDArray[np.bool_], NDArray[np.bool_]]:
    noisy = answers + rng.laplace(0.0, 4.0, (size, 10))
    above = noisy >= rng.laplace(0.0, 2.0, (size, 1))
    return noisy, above, np.cumsum(above, axis=1) > above


if __name__ == "__main__":
    main()
