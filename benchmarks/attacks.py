"""What each attack adds on outputs of several columns: `python -m benchmarks.attacks`.

ε_lower of whole audits at 99 %, with the attacks of a row and of all rows above it.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

import dpaudit
from dpaudit.attacks.additive import additive
from dpaudit.attacks.single_columns import one_dimensional, single_columns
from dpaudit.attacks.single_outputs import atoms
from dpaudit.attacks.weighted_sums import logistic, mean_differences
from dpaudit.attacks.whitened import innovations
from dpaudit.levels.candidates import Scorer

Rng = np.random.Generator
Batch = NDArray[np.float64]
Mechanism = Callable[[float, int, Rng], Batch]

CHEAP: tuple[Scorer, ...] = (one_dimensional, single_columns, additive, atoms)
# What is added, and whether trees are there.
STEPS: tuple[tuple[str, tuple[Scorer, ...], bool], ...] = (
    ("columns, and their sum", (), False),
    ("logistic regression", (logistic,), False),
    ("what is new in each", (innovations,), False),
    ("difference of means", (mean_differences,), False),
    ("boosted trees", (), True),
)


def prefix_sums(x: float, size: int, rng: Rng) -> Batch:
    answers = rng.laplace(size=(size, 10))
    answers[:, 5] += x
    return np.cumsum(answers, axis=1)


def prefix_sums_of_all(x: float, size: int, rng: Rng) -> Batch:
    return np.cumsum(rng.laplace(size=(size, 10)) + x / 10, axis=1)


def correlated(x: float, size: int, rng: Rng) -> Batch:
    leak = 0.1 * x * np.linspace(-1, 1, 10)
    return 3 * rng.normal(size=(size, 1)) + rng.normal(size=(size, 10)) / 2 + leak


def agreeing_signs(x: float, size: int, rng: Rng, width: int = 2, epsilon: float = 1) -> Batch:
    numbers = rng.laplace(size=(size, width))
    agree = (rng.random(size) < 1 / (1 + math.exp(-epsilon))) == bool(x)
    numbers[:, 1] = np.abs(numbers[:, 1]) * np.sign(numbers[:, 0]) * np.where(agree, 1, -1)
    return numbers


def signs_among_20(x: float, size: int, rng: Rng) -> Batch:
    return agreeing_signs(x, size, rng, width=20)


def signs_and_sums(x: float, size: int, rng: Rng) -> Batch:
    """ε = ½ from ten columns, a twentieth each, and ½ from the signs of two others."""
    apart = rng.laplace(size=(size, 10)) + x / 20
    return np.column_stack([apart, agreeing_signs(x, size, rng, epsilon=0.5)])


def gradient(x: float, size: int, rng: Rng) -> Batch:
    """A thousand numbers with normal noise; all are a little larger for one input, by 3 standard
    deviations together."""
    return rng.normal(3 * x / math.sqrt(1_000), 1, (size, 1_000))


# True ε; None for Gaussian noise, whose ε is not bounded.
CASES: tuple[tuple[str, Mechanism, float | None], ...] = (
    ("prefix sums of 10, one answer differs", prefix_sums, 1.0),
    ("prefix sums of 10, all differ", prefix_sums_of_all, 1.0),
    ("small leak in 10 correlated columns", correlated, None),
    ("whether two signs agree", agreeing_signs, 1.0),
    ("the same, beside 18 columns of noise", signs_among_20, 1.0),
    ("ten small leaks, and two signs", signs_and_sums, 1.0),
    ("a gradient of 1,000 entries", gradient, None),
)


@contextmanager
def only(attacks: tuple[Scorer, ...], *, trees: bool) -> Iterator[None]:
    """Audit with these attacks, and trees or none."""
    with (
        patch("dpaudit.auditing.pair_audit.scorers_of", lambda *_, **__: attacks),
        patch("dpaudit.attacks.trees.is_installed", lambda: trees),
    ):
        yield


def epsilon_lower(mechanism: Mechanism, samples: int, seed: int) -> float:
    claim = dpaudit.PureDP(1.0)
    result = dpaudit.audit(mechanism, 0.0, 1.0, claim, samples=samples, seed=seed, stop="never")
    if result.error is not None:
        raise RuntimeError(result.error)
    return result.epsilon_lower


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print(f"ε_lower at 99 %, {given.samples:,} draws, median of {given.seeds} seeds")
    print(f"(of the gradient {given.samples // 10:,} draws)")
    for name, mechanism, epsilon in CASES:
        truth = "∞" if epsilon is None else f"{epsilon:g}"
        print(f"\n{name} (ε = {truth})")
        attacks = CHEAP
        samples = given.samples // 10 if mechanism is gradient else given.samples
        for added, more, trees in STEPS:
            attacks = (*attacks, *more)
            start = time.process_time()
            with only(attacks, trees=trees):
                every = [epsilon_lower(mechanism, samples, s) for s in range(given.seeds)]
            seconds = (time.process_time() - start) / given.seeds
            print(f"  + {added:23} {median(every):6.3f}   {seconds:5.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
