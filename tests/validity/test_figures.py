"""Figures of docs/method.md that take a simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from dpaudit.stats.binomial import pair_epsilon_lower
from dpaudit.stats.game import Game, epsilon_lower

ALPHA = 0.05
Interval = Callable[[int, int], tuple[float, float]]


def laplace_medians(epsilon: float, draws: int) -> tuple[float, float]:
    """Median bounds of the game on the tails {x ≤ 0}, {x ≥ 1} of x + Laplace, and of the pair.

    P(E1) = ½, Q(E1) = e^-ε / 2, and the mirror; the pair of intervals, α / 2 each, takes E1 alone.
    Counts are put at their medians, all bounds being monotone in them.
    """
    n1 = draws // 2
    ahead, behind = n1 / 2, n1 * math.exp(-epsilon) / 2
    game = Game(round(2 * ahead), round(2 * behind), draws, two_guesses=True)
    pair = pair_epsilon_lower(round(ahead), n1, round(behind), n1, 0.0, ALPHA)
    return epsilon_lower(game, 0.0, ALPHA), pair


def draws_for(bound: float, epsilon: float) -> float:
    """Draws at which the median of the pair of intervals reaches a bound, by bisection."""
    low, high = 100.0, 1e9
    while high / low > 1.001:
        middle = math.sqrt(low * high)
        is_below = laplace_medians(epsilon, int(middle))[1] < bound
        low, high = (middle, high) if is_below else (low, middle)
    return high


@pytest.mark.parametrize(("epsilon", "draws"), [(0.1, 20_000), (1.0, 200_000), (4.0, 20_000)])
def test_the_pair_of_intervals_needs_three_to_almost_four_times_the_draws(
    epsilon: float, draws: int
) -> None:
    game = laplace_medians(epsilon, draws)[0]
    assert 2.9 <= draws_for(game, epsilon) / draws <= 3.9


def test_guessing_on_one_side_only_needs_twice_the_draws() -> None:
    epsilon, draws = 1.0, 50_000
    both = laplace_medians(epsilon, draws)[0]
    ahead, behind = draws / 2, draws / 2 * math.exp(-epsilon)
    one = Game(round(ahead), round(behind), 2 * draws, two_guesses=False)
    assert epsilon_lower(one, 0.0, ALPHA) == pytest.approx(both, abs=1e-4)
