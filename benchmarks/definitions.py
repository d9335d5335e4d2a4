"""Power for claims that are not pure: Gaussian, Rényi, zCDP, approximate and probabilistic.

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
from dpaudit.claims import ProfilePoint
from dpaudit.reports import bounds_report as reported
from dpaudit.stats.game import Game, delta_lower, p_value
from mechanisms.pdp import counterexample, merge

DRAWS = 1_000_000
DELTAS = (1e-5, 1e-3, 0.05)
# Orders of which normal noise has a divergence of 1, in its standard deviations of shift.
ORDERS = {2.0: 1.0, 8.0: 0.5, 16.0: math.sqrt(1 / 8)}
PDP_DELTA, PDP_DRAWS = 0.01, 2_000_000
_TRUTH = 1 / (1 + math.exp(-1))


def gaussian(x: float, size: int, rng: np.random.Generator) -> Any:
    """Noise of standard deviation 1: exactly 1-Gaussian DP for inputs at distance 1."""
    return x + rng.normal(size=size)


def shifted(x: float, shift: float, size: int, rng: np.random.Generator) -> Any:
    """Noise of standard deviation 1 for inputs at this distance: D_a is a shift² / 2."""
    return shift * x + rng.normal(size=size)


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
    draws = median(audit.certificates[0].evidence.refuted_after or math.inf for audit in refuted)
    true = audits(gaussian, dpaudit.GaussianDP(1.0), DRAWS, seeds)
    bounds = [audit.claim.own_lower(audit.point.epsilon, audit.delta_lower) for audit in true]
    lower = median(bound[1] for bound in bounds if bound is not None)
    return [
        f"Gaussian μ = 1 claimed as 0.9: refuted after {draws:,.0f} draws (wanted ≤ 30,000)",
        f"Gaussian μ = 1 claimed as 1, 10⁶ draws: μ ≥ {lower:.4f} (wanted ≥ 0.99)",
    ]


def divergence_lines(seeds: int) -> list[str]:
    """Return the bounds for divergences of normal noise, beside those that one event shows, and how
    often and how soon a claim that is too strong is refuted."""
    cases: list[tuple[str, dpaudit.PrivacyClaim, float]] = [
        *((f"D_{a:g} = 1", dpaudit.RenyiDP(a, 1.0), shift) for a, shift in ORDERS.items()),
        ("ρ = ½", dpaudit.ZeroConcentratedDP(0.5), 1.0),
    ]
    lines = []
    for words, claim, shift in cases:
        true = audits(partial(shifted, shift=shift), claim, DRAWS, seeds)
        lower, event = median(map(_shown, true)), median(map(_shown_by_event, true))
        bounds = f"at least {lower:.4f} (by one event {event:.4f})"
        lines.append(f"normal noise, {words}, claimed so, 10⁶ draws: {bounds}")
    refuted = audits(gaussian, dpaudit.RenyiDP(2.0, 0.8), 200_000, seeds)
    violations = sum(audit.verdict is dpaudit.Verdict.VIOLATION for audit in refuted)
    by_event = sum(map(_is_refuted_by_event, refuted))
    lines.append(
        f"normal noise, D_2 = 1 claimed as 0.8, 2·10⁵ draws: refuted in {violations} of {seeds} "
        f"(by one event in {by_event})"
    )
    return lines


def _shown(result: dpaudit.AuditResult) -> float:
    """Return the bound for the claim's own parameter."""
    return reported.bounds(result)[0].lower


def _game(result: dpaudit.AuditResult) -> tuple[Game, ProfilePoint, float]:
    """Return the game of the exact test, the point it tests, and all of the α of both tests."""
    (certificate,) = result.certificates
    fixed, share = certificate.fixed, 1 if certificate.divergence is None else 2
    game = Game(fixed.correct, fixed.wrong, fixed.draws, two_guesses=fixed.two_guesses)
    return game, certificate.point, share * fixed.alpha


def _shown_by_event(result: dpaudit.AuditResult) -> float:
    """Return the bound that the event would give if the exact test had all of the α."""
    game, point, alpha = _game(result)
    delta = delta_lower(game, point.epsilon, point.delta, alpha)
    shown = result.claim.own_lower(point.epsilon, delta)
    return 0.0 if shown is None else shown[1]


def _is_refuted_by_event(result: dpaudit.AuditResult) -> bool:
    game, point, alpha = _game(result)
    return p_value(game, point.epsilon, point.delta, alpha) <= alpha


def tight_lines(seeds: int) -> list[str]:
    """Return the bounds for ε = 1 on the pair that meets (ε, δ) exactly."""
    lines = []
    for delta in DELTAS:
        mechanism = partial(reveal_or_randomize, delta=delta)
        results = audits(mechanism, dpaudit.ApproximateDP(1.0, delta), DRAWS, seeds)
        lower = median(audit.epsilon_lower for audit in results)
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
    drawn = sum(audit.draws for audit in results)
    count = sum(audit.verdict is dpaudit.Verdict.VIOLATION for audit in results)
    rng = np.random.default_rng(0)
    start = time.process_time()
    for call in range(20):
        mechanism(call % 2, size=drawn // 20, rng=rng)
    ratio = spent / (time.process_time() - start)
    approximate = audits(mechanism, dpaudit.ApproximateDP(1.0, PDP_DELTA), 200_000, seeds)
    alarms = sum(audit.verdict is dpaudit.Verdict.VIOLATION for audit in approximate)
    return [
        f"T∘K as PDP, ε = 1, δ = {PDP_DELTA:g}, at most 2·10⁶ draws: refuted in {count} of {seeds}",
        f"  CPU against drawing as many with the bare mechanism: {ratio:.2f} (wanted ≤ 5)",
        f"  as approximate DP, which it meets exactly: refuted in {alarms} of {seeds}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    seeds = parser.parse_args().seeds
    print(f"99 %, medians of {seeds} seeds")
    for lines in (gaussian_lines, divergence_lines, tight_lines, probabilistic_lines):
        print("\n".join(lines(seeds)), flush=True)


if __name__ == "__main__":
    main()
