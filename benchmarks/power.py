"""How many draws a refutation takes, and how near the bound of a correct mechanism comes.

python -m benchmarks.power [--seeds 100]

For other mechanisms, and against an oracle that knows their laws: benchmarks.efficiency.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from statistics import median
from typing import Any

import dpaudit
from benchmarks.known_laws import laplace_law
from benchmarks.oracle import information_limit

# (true ε, claimed ε, draws within which the median is to lie, budget)
CASES = (
    (2.0, 0.5, 600, 20_000),
    (1.5, 1.0, 1_500, 50_000),
    (1.2, 1.0, 9_000, 300_000),
    (1.1, 1.0, 45_000, 1_000_000),
)
ALPHA = 0.01


def laplace(epsilon: float) -> Callable[..., Any]:
    """Return the textbook mechanism for inputs at distance 1."""
    return lambda x, size, rng: x + rng.laplace(scale=1 / epsilon, size=size)


def draws_to_refute(true: float, claimed: float, budget: int, seed: int) -> float:
    """Return draws of both inputs together; inf when the budget did not suffice."""
    claim = dpaudit.PureDP(claimed)
    result = dpaudit.audit(laplace(true), 0, 1, claim, samples=budget, seed=seed)
    after = result.certificates[0].evidence.refuted_after
    return math.inf if after is None else after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--seeds-of-bound", type=int, default=20)
    given = parser.parse_args()
    print(f"Draws to refute at 99 %, Laplace, median of {given.seeds} seeds")
    print(f"{'truth / claim':>14}{'draws':>10}{'wanted':>10}{'limit of information':>22}")
    for true, claimed, wanted, budget in CASES:
        draws = median(draws_to_refute(true, claimed, budget, seed) for seed in range(given.seeds))
        limit = information_limit(laplace_law(true), claimed, ALPHA)
        name = f"{true:g} / {claimed:g}"
        print(f"{name:>14}{draws:>10,.0f}{f'≤ {wanted:,}':>10}{limit:>22,.0f}")
    bounds = [
        dpaudit.audit(
            laplace(1.0), 0, 1, dpaudit.PureDP(1.0), samples=1_000_000, seed=seed
        ).epsilon_lower
        for seed in range(given.seeds_of_bound)
    ]
    print(
        f"\nε_lower at 99 % of the correct mechanism, ε = 1, 10⁶ draws, median of "
        f"{given.seeds_of_bound} seeds: {median(bounds):.4f} (wanted: ≥ 0.99)"
    )


if __name__ == "__main__":
    main()
