"""Evidence over nights: nights to a false alarm, and nights to a leak (docs/method.md §15).

    python -m benchmarks.nights

Counts are drawn from exact laws of right, wrong and no guesses, without an audit.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpaudit.certificates.evidence import CERTIFICATION_SHARE
from dpaudit.certificates.result import FreshCounts
from dpaudit.claims import ProfilePoint
from dpaudit.levels.portfolio import OTHER_SHARE, RARE_SHARE
from dpaudit.nights.detector import log_factors
from dpaudit.stats.game import Game, p_value

# Probabilities of a right, a wrong and no guess.
Law = tuple[float, float, float]
# Seven eighths of 100,000 draws: an eighth is for learning.
FRESH = 87_500
PAST = 200


def laplace(epsilon: float) -> Law:
    """Return the law of the best rule with two guesses for Laplace noise whose ε is `epsilon`."""
    return 0.5, 0.5 * math.exp(-epsilon), 0.5 - 0.5 * math.exp(-epsilon)


def tight(point: ProfilePoint, wrong: float) -> Law:
    """Return the law of a rule with two guesses where the claim is met just so."""
    right = math.exp(point.epsilon) * wrong + point.delta
    return right, wrong, 1 - right - wrong


def nights_to_alarm(
    law_of: Callable[[int], Law],
    point: ProfilePoint,
    level: float,
    *,
    runs: int,
    most: int,
    fresh: int = FRESH,
    past: int = 0,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Return the number of nights after `past` until the first alarm of each run, at most `most`.

    law_of: returns the law of each night, from 1 on.
    """
    rng = np.random.default_rng(seed)
    # The log factor is linear in the counts.
    units = [FreshCounts(r, w, n, True, point) for r, w, n in np.eye(3, dtype=int).tolist()]
    gains = np.array([log_factors(unit, point) for unit in units])
    log_m = np.full((runs, gains.shape[1]), -np.inf)
    until = np.full(runs, most, dtype=np.int64)
    is_waiting = np.ones(runs, dtype=bool)
    for night in range(1, past + most + 1):
        counts = rng.multinomial(fresh, law_of(night), size=runs)
        log_m = np.logaddexp(log_m, 0.0) + counts @ gains
        mean = np.logaddexp.reduce(log_m, axis=1) - math.log(gains.shape[1])
        alarmed = mean >= math.log(1 / level)
        log_m[alarmed] = -np.inf
        if night > past:
            until[is_waiting & alarmed] = night - past
            is_waiting &= ~alarmed
            if not is_waiting.any():
                break
    return until


def false_alarms(runs: int) -> None:
    print(f"Mean nights to a false alarm at α = 0.05 (at least 20), {runs:,} runs of at most 1,000")
    print(f"{'claim met just so':<36}{'from night 1':>14}{f'after {PAST} private nights':>28}")
    cases = {
        "ε = 1, δ = 0 (Laplace)": (ProfilePoint(1.0, 0.0), laplace(1.0), laplace(0.9)),
        "ε = 0.1, δ = 0 (Laplace)": (ProfilePoint(0.1, 0.0), laplace(0.1), laplace(0.05)),
        "ε = 1, δ = 0.01": (ProfilePoint(1.0, 0.01), *_with_delta(ProfilePoint(1.0, 0.01))),
        "ε = 1, δ = 1e-5": (ProfilePoint(1.0, 1e-5), *_with_delta(ProfilePoint(1.0, 1e-5))),
        "ε = 0, δ = 0.1": (ProfilePoint(0.0, 0.1), *_with_delta(ProfilePoint(0.0, 0.1))),
    }
    for name, (point, law, private) in cases.items():
        means = []
        for past in (0, PAST):

            def law_of(night: int, past: int = past, laws: tuple[Law, Law] = (private, law)) -> Law:
                return laws[night > past]

            nights = nights_to_alarm(law_of, point, 0.05, runs=runs, most=1_000, past=past)
            means.append(nights.mean())
        print(f"{name:<36}{means[0]:>14.0f}{means[1]:>28.0f}")


def _with_delta(point: ProfilePoint) -> tuple[Law, Law]:
    right, wrong, none = tight(point, 0.05)
    return (right, wrong, none), (0.9 * right, wrong, none + 0.1 * right)


def leaks(runs: int) -> None:
    point = ProfilePoint(1.0, 0.0)
    print(
        f"\nNights until a leak over ε = 1 is found: 100,000 draws a night, α = 1e-4, {runs} runs"
    )
    print(f"{'true ε':<10}{'from night 1':>24}{f'from night {PAST + 1}':>24}{'one audit, 10⁶':>18}")
    print(f"{'':<10}{'median (9 of 10 within)':>24}{'median (9 of 10 within)':>24}{'power':>18}")
    for epsilon in (1.01, 1.02, 1.05):
        cells = []
        for past in (0, PAST):

            def law_of(night: int, past: int = past, epsilon: float = epsilon) -> Law:
                return laplace(epsilon if night > past else 1.0)

            nights = nights_to_alarm(law_of, point, 1e-4, runs=runs, most=400, past=past)
            cells.append(f"{np.median(nights):.0f} ({np.quantile(nights, 0.9):.0f})")
        power = one_audit(epsilon, point, runs)
        print(f"{epsilon:<10}{cells[0]:>24}{cells[1]:>24}{power:>18.2f}")


def one_audit(epsilon: float, point: ProfilePoint, runs: int, draws: int = 10 * FRESH) -> float:
    """Return the share of audits at 99 % whose main rule refutes the claim at the planned end."""
    alpha = 0.01 * CERTIFICATION_SHARE * (1 - RARE_SHARE - OTHER_SHARE)
    counts = np.random.default_rng(1).multinomial(draws, laplace(epsilon), size=runs)
    games = (Game(right, wrong, draws, two_guesses=True) for right, wrong, _ in counts.tolist())
    p_values = [p_value(game, point.epsilon, point.delta, alpha) for game in games]
    return float(np.mean([p <= alpha for p in p_values]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2_000)
    options = parser.parse_args()
    false_alarms(options.runs)
    leaks(options.runs)
