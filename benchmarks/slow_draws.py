"""Draws to refute by bets alone, as for slow mechanisms: `python -m benchmarks.slow_draws`.

The first four mechanisms scale the noise on a mean by the number of records, which the claim does
not cover. The limit is the number of draws that an optimal test would need that knows both laws and
the nearest law that meets the claim: among all laws for these four, among Gaussian laws for the
others (461 among all laws for the vector). Each run has a seed of its own; the mechanisms take no
time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit import GaussianDP, PrivacyClaim, PureDP, RenyiDP, Verdict, ZeroConcentratedDP, audit
from dpaudit.sampling.executors import new_processes


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism, called with d1 = [0] and d2 = [0, 1], and the claim that it breaks.

    limit: draws of an optimal test.
    """

    name: str
    mechanism: Callable[..., Any]
    claim: PrivacyClaim
    confidence: float
    limit: int


def _mean(noise: str, epsilon: float) -> Callable[..., float]:
    def mean(data: list[float], rng: np.random.Generator) -> float:
        scale = 2 / (len(data) * epsilon)
        return sum(data) / len(data) + float(getattr(rng, noise)(scale=scale))

    return mean


def _normal(data: list[float], rng: np.random.Generator) -> float:
    return sum(data) + float(rng.normal())


def _vector(data: list[float], rng: np.random.Generator) -> Any:
    return sum(data) / np.sqrt(32) + rng.normal(size=32)


CASES = (
    Case("mean, Laplace, ε = 0.1", _mean("laplace", 0.1), PureDP(0.1), 0.95, 70),
    Case("mean, Laplace, ε = 0.01", _mean("laplace", 0.01), PureDP(0.01), 0.95, 57),
    Case("mean, normal, ε = 0.1", _mean("normal", 0.1), PureDP(0.1), 0.95, 38),
    Case("mean, normal, ε = 0.01", _mean("normal", 0.01), PureDP(0.01), 0.95, 33),
    Case("normal, D₂ = 1 claimed as 0.6", _normal, RenyiDP(2.0, 0.6), 0.99, 725),
    Case("normal, ρ = ½ claimed as 0.3", _normal, ZeroConcentratedDP(0.3), 0.99, 725),
    Case("normal vector, μ = 1 claimed as 0.7", _vector, GaussianDP(0.7), 0.99, 409),
)


def draws(case: Case, seed: int) -> int:
    """Return the number of draws until bets refute the claim, at most 200,000."""
    result = audit(
        case.mechanism,
        [0.0],
        [0.0, 1.0],
        case.claim,
        samples=200_000,
        confidence=case.confidence,
        seed=seed,
        stop="bets",
        no_trace=True,
    )
    return result.draws if result.verdict is Verdict.VIOLATION else 200_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", default="", help="cases with this text in their name")
    given = parser.parse_args()
    new_processes.PROCESSES = 0  # the checks after a refutation are counted apart
    print(f"{'case':37} {'limit':>6} {'mean':>7} {'median':>7}")
    for case in (one for one in CASES if given.only in one.name):
        made = [draws(case, seed) for seed in range(given.runs)]
        mean, median = np.mean(made), np.median(made)
        print(f"{case.name:37} {case.limit:>6} {mean:7.0f} {median:7.0f}", flush=True)


if __name__ == "__main__":
    main()
