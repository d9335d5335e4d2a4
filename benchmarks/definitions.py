"""Power for claims that are not pure: Gaussian, approximate and probabilistic.

python -m benchmarks.definitions [--seeds 20]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import dpaudit
from mechanisms.pdp import counterexample, merge

DRAWS = 1_000_000
DELTAS = (1e-5, 1e-3, 0.05)
PDP_DELTA, PDP_DRAWS = 0.01, 2_000_000
_TRUTH = 1 / (1 + math.exp(-1))


def gaussian(x: float, size: int, rng: np.random.Generator) -> Any:
    """Noise of standard deviation 1: exactly 1-Gaussian DP for inputs at distance 1."""
    return x + rng.normal(size=size)


def reveal_or_randomize(x: int, delta: float, size: int, rng: np.random.Generator) -> Any:
    """Say the input as 10 or 11 with probability δ, else keep it with the odds e: (1, δ)-DP."""
    answers = np.where(rng.random(size) < _TRUTH, x, 1 - x)
    return np.where(rng.random(size) < delta, 10 + x, answers)


def merged(x: int, delta: float, size: int, rng: np.random.Generator) -> Any:
    """Return the PDP counterexample after T, which merges 0 and 1 into 4."""
    drawn = counterexample(x, 1.0, delta, size=size, rng=rng)
    return np.where(drawn <= 1, merge(0), drawn)


def audits(
    mechanism: Callable[..., Any], claim: dpaudit.PrivacyClaim, samples: int, seeds: int
) -> list[dpaudit.AuditResult]:
    """Return one audit for each seed, on the inputs 0 and 1."""
    run = partial(dpaudit.audit, mechanism, 0, 1, claim, samples=samples)
    return [run(seed=seed) for seed in range(seeds)]


def gaussian_lines(seeds: int) -> list[str]:
    """Return draws to refute μ = 0.9 when it is 1, and the bound for μ when the claim is true."""
    refuted = audits(gaussian, dpaudit.GaussianDP(0.9), 200_000, seeds)
    draws = median(one.certificates[0].refuted_after or math.inf for one in refuted)
    true = audits(gaussian, dpaudit.GaussianDP(1.0), DRAWS, seeds)
    bounds = [one.claim.own_lower(one.point.epsilon, one.delta_lower) for one in true]
    lower = median(bound[1] for bound in bounds if bound is not None)
    return [
        f"Gaussian μ = 1 claimed as 0.9: refuted after {draws:,.0f} draws (wanted ≤ 30,000)",
        f"Gaussian μ = 1 claimed as 1, 10⁶ draws: μ ≥ {lower:.4f} (wanted ≥ 0.99)",
    ]


def tight_lines(seeds: int) -> list[str]:
    """Return the bounds for ε = 1 on the pair that meets (ε, δ) exactly."""
    lines = []
    for delta in DELTAS:
        mechanism = partial(reveal_or_randomize, delta=delta)
        results = audits(mechanism, dpaudit.ApproximateDP(1.0, delta), DRAWS, seeds)
        lower = median(one.epsilon_lower for one in results)
        lines.append(
            f"tight pair, ε = 1, δ = {delta:g}, 10⁶ draws: ε ≥ {lower:.4f} (wanted ≥ 0.985)"
        )
    return lines


def probabilistic_lines(seeds: int) -> list[str]:
    """Return how often the PDP counterexample is refuted, and at what cost."""
    mechanism = partial(merged, delta=PDP_DELTA)
    claim = dpaudit.ProbabilisticDP(1.0, PDP_DELTA)
    start = time.process_time()
    results = audits(mechanism, claim, PDP_DRAWS, seeds)
    spent = time.process_time() - start
    drawn = sum(one.draws for one in results)
    found = sum(one.verdict is dpaudit.Verdict.VIOLATION for one in results)
    rng = np.random.default_rng(0)
    start = time.process_time()
    for place in range(20):
        mechanism(place % 2, size=drawn // 20, rng=rng)
    ratio = spent / (time.process_time() - start)
    approximate = audits(mechanism, dpaudit.ApproximateDP(1.0, PDP_DELTA), 200_000, seeds)
    alarms = sum(one.verdict is dpaudit.Verdict.VIOLATION for one in approximate)
    return [
        f"T∘K as PDP, ε = 1, δ = {PDP_DELTA:g}, at most 2·10⁶ draws: refuted in {found} of {seeds}",
        f"  CPU against drawing as many with the bare mechanism: {ratio:.2f} (wanted ≤ 5)",
        f"  as approximate DP, which it meets exactly: refuted in {alarms} of {seeds}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    print(f"99 %, medians of {seeds} seeds")
    for lines in (gaussian_lines, tight_lines, probabilistic_lines):
        print("\n".join(lines(seeds)), flush=True)


if __name__ == "__main__":
    main()
