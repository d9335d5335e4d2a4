"""The bound for one run is attained, so a linear programme over all mechanisms is its oracle."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from dpaudit.stats import one_run
from dpaudit.stats.one_run import Guesses


def largest(canaries: int, guesses: int, right: int, epsilon: float, delta: float) -> float:
    """Return the largest Pr[`right` or more guesses are right] of any (ε, δ)-DP mechanism.

    Unknowns: Pr[answer | coins] for all coins and all answers with `guesses` guesses, and, for
    every pair of neighbouring coins and every answer, an upper bound for (Pr[·|one] - e^ε
    Pr[·|other])+."""
    coins = list(itertools.product((-1, 1), repeat=canaries))
    answers = [
        first
        for first in itertools.product((-1, 0, 1), repeat=canaries)
        if sum(map(abs, first)) == guesses
    ]
    place = {first: k for k, first in enumerate(itertools.product(coins, answers))}
    pairs = [p for p in itertools.product(coins, coins) if sum(np.not_equal(*p)) == 1]
    excess = {first: len(place) + k for k, first in enumerate(itertools.product(pairs, answers))}
    rows: list[dict[int, float]] = []
    limits: list[float] = []
    for pair in pairs:
        for answer in answers:
            first, other = (place[side, answer] for side in pair)
            rows.append({first: 1.0, other: -math.exp(epsilon), excess[pair, answer]: -1.0})
            limits.append(0.0)
        rows.append({excess[pair, answer]: 1.0 for answer in answers})
        limits.append(delta)
    wins = np.zeros(len(place) + len(excess))
    for (side, answer), k in place.items():
        wins[k] = (sum(np.equal(side, answer)) >= right) / len(coins)
    sums = [{place[side, answer]: 1.0 for answer in answers} for side in coins]
    size = len(wins)
    actual = optimize.linprog(
        -wins, matrix(rows, size), limits, matrix(sums, size), np.ones(len(coins)), (0, None)
    )
    return -float(actual.fun or 0.0)


def matrix(rows: list[dict[int, float]], size: int) -> NDArray[np.float64]:
    actual = np.zeros((len(rows), size))
    for row, first in enumerate(rows):
        actual[row, list(first)] = list(first.values())
    return actual


def published(seen: Guesses, epsilon: float, delta: float) -> float:
    """The bound of Steinke, Nasr & Jagielski 2023, Corollary 5.4."""
    law = stats.binom(seen.guesses, 1 / (1 + math.exp(-epsilon)))
    tail = law.sf(seen.correct - 1)
    steps = np.arange(1, seen.correct + 1)
    steepest = np.max((law.sf(seen.correct - 1 - steps) - tail) / steps)
    return float(min(1.0, tail + 2 * seen.canaries * delta * steepest))


def test_some_mechanism_attains_the_bound() -> None:
    for delta, epsilon, (canaries, guesses) in product(
        [0.0, 0.01, 0.1], [0.0, 1.0], [(1, 1), (2, 1), (2, 2), (3, 2), (3, 3)]
    ):
        for right in range(1, guesses + 1):
            p = one_run.p_value(Guesses(canaries, guesses, right), epsilon, delta)
            assert p == pytest.approx(largest(canaries, guesses, right, epsilon, delta), abs=1e-8)


@pytest.mark.parametrize(
    ("seen", "delta", "printed"),
    [(Guesses(1_000, 100, 75), 1e-4, 0.673), (Guesses(100_000, 1_510, 1_439), 1e-5, 2.675)],
)
def test_the_bound_is_tighter_than_published_numbers(
    seen: Guesses, delta: float, printed: float
) -> None:
    """The values printed in Appendix D and in section 7, at 95 %."""
    theirs = optimize.brentq(lambda e: published(seen, e, delta) - 0.05, 0.01, 5)
    assert theirs == pytest.approx(printed, abs=1e-3)
    assert one_run.epsilon_lower(seen, delta, 0.05) > theirs


@pytest.mark.parametrize("seen", [Guesses(50, 20, 16), Guesses(10_000, 3_000, 2_100)])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 1e-3])
def test_bounds_are_where_p_is_alpha(seen: Guesses, delta: float) -> None:
    alpha = 0.03
    epsilon = one_run.epsilon_lower(seen, delta, alpha)
    if epsilon:
        assert one_run.p_value(seen, epsilon, delta) == pytest.approx(alpha, rel=1e-5)
        assert one_run.p_value(seen, epsilon - 1e-6, delta) < alpha
    lower = one_run.delta_lower(seen, 0.1, alpha)
    if lower:
        assert one_run.p_value(seen, 0.1, lower) == pytest.approx(alpha, rel=1e-9)


@pytest.mark.parametrize(
    ("seen", "epsilon", "p"),
    [
        (Guesses(10, 0, 0), 1.0, 1.0),
        (Guesses(10, 10, 0), 1.0, 1.0),
        (Guesses(10, 10, 10), 50.0, 1.0),
        (Guesses(10**6, 10**6, 10**6), 40.0, 1.0),
        (Guesses(10**6, 10**6, 10**6), 0.1, 0.0),
    ],
)
def test_extremes(seen: Guesses, epsilon: float, p: float) -> None:
    assert one_run.p_value(seen, epsilon, 1e-9) == pytest.approx(p, abs=1e-2)


def test_no_guesses_show_nothing() -> None:
    nothing = Guesses(10, 0, 0)
    assert one_run.epsilon_lower(nothing, 0.0, 0.05) == 0
    assert one_run.delta_lower(nothing, 0.0, 0.05) == 0
    assert math.isinf(one_run.smallest_detectable(nothing, 1, 1.0))


def test_the_detectable_epsilon_has_power_0_9() -> None:
    seen, delta, alpha = Guesses(1_000, 400, 200), 1e-4, 0.05

    def refutes(other: Guesses) -> bool:
        return one_run.p_value(other, 0.5, delta) <= alpha

    needed = one_run.fewest_correct(seen, refutes)
    epsilon = one_run.smallest_detectable(seen, needed, 0.5)
    law = stats.binom(400, 1 / (1 + math.exp(-epsilon)))
    refuted = [refutes(Guesses(1_000, 400, right)) for right in range(401)]
    assert law.pmf(np.arange(401)) @ np.array(refuted) == pytest.approx(0.9, abs=1e-3)


def false_alarms(delta: float, alpha: float, chosen: int, canaries: int) -> float:
    """Return how often a (0, δ)-DP mechanism is refuted that names `chosen` random canaries and
    their coins with probability nδ / chosen, if these are guessed, and otherwise all canaries."""
    names = canaries * delta / chosen
    is_refuted = one_run.p_value(Guesses(canaries, chosen, chosen), 0.0, delta) <= alpha
    needed = bisect_left(
        range(canaries + 1),
        True,
        key=lambda v: one_run.p_value(Guesses(canaries, canaries, v), 0.0, delta) <= alpha,
    )
    blind = float(stats.binom.sf(needed - 1, canaries, 0.5))
    return names * is_refuted + (1 - names) * blind


def test_the_number_of_guesses_must_be_fixed_with_delta() -> None:
    """docs/method.md §12: a number that depends on the output has 18.5 % false alarms at 10 %."""
    canaries = 100_000
    rate = false_alarms(0.77 / canaries, 0.1, 8, canaries)
    assert rate == pytest.approx(0.185, abs=5e-4)
