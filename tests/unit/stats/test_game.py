"""The distinguishing game: closed forms, exact enumeration, and the words that must agree."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from dpaudit.stats.game import (
    Game,
    delta_lower,
    epsilon_lower,
    p_value,
)

ALPHA = 0.05
# The tight pair of docs/method.md §2 (ε = 1, δ = 0.05, N = 2,000): the median number of correct
# guesses of Bin(2,000, δ + (1 - δ) e / (1 + e)). The bounds rise with it, so that their medians are
# their values there.
MEDIAN_CORRECT = 1_489
SOME_GAMES = [
    Game(40, 9, 200, two_guesses=True),
    Game(40, 9, 200, two_guesses=False),
    Game(160, 40, 200, two_guesses=True, abstains=False),
    Game(800, 310, 3_000, two_guesses=True),
    Game(12, 0, 300, two_guesses=False),
]


def logit(share: float) -> float:
    return math.log(share / (1 - share))


def binomial_tail(successes: int, trials: int, share: Fraction) -> float:
    terms = range(successes, trials + 1)
    return float(sum(math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in terms))


def test_p_is_an_exact_binomial_tail_without_delta() -> None:
    for odds, (correct, wrong) in product(
        [Fraction(1), Fraction(3), Fraction(20)], [(0, 0), (0, 5), (5, 0), (14, 6), (30, 12)]
    ):
        game = Game(correct, wrong, 60, two_guesses=True)
        exact = binomial_tail(correct, correct + wrong, odds / (1 + odds))
        assert p_value(game, math.log(odds), 0.0, ALPHA) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("delta", "two_guesses"), [(0.0, True), (0.02, False), (0.3, True)])
def test_a_rule_that_never_abstains_has_a_closed_form(two_guesses: bool, delta: float) -> None:
    game = Game(150, 50, 200, two_guesses=two_guesses, abstains=False)
    spared = (1.0 if two_guesses else 0.5) * delta
    share = proportion_confint(150, 200, alpha=2 * ALPHA, method="beta")[0]
    bound = math.log((share - spared) / (1 - share))
    assert epsilon_lower(game, delta, ALPHA) == pytest.approx(bound, rel=1e-6)
    assert p_value(game, bound, delta, ALPHA) == pytest.approx(ALPHA, rel=1e-4)


def test_the_never_abstaining_p_value_is_an_exact_tail() -> None:
    game = Game(24, 6, 30, two_guesses=True, abstains=False)
    # c ≤ (e^ε + δ) / (1 + e^ε), with e^ε = 3 and δ = 1/10
    exact = binomial_tail(24, 30, (3 + Fraction(1, 10)) / 4)
    assert p_value(game, math.log(3), 0.1, ALPHA) == pytest.approx(exact, rel=1e-9)


def test_the_numbers_in_docs_method_are_reproduced() -> None:
    wrong = 2_000 - MEDIAN_CORRECT
    general = Game(MEDIAN_CORRECT, wrong, 2_000, two_guesses=True)
    assert epsilon_lower(general, 0.05, ALPHA) == pytest.approx(0.913, abs=5e-4)
    guessing = Game(MEDIAN_CORRECT, wrong, 2_000, two_guesses=True, abstains=False)
    assert epsilon_lower(guessing, 0.05, ALPHA) == pytest.approx(0.913, abs=5e-4)


def test_the_test_refutes_every_epsilon_up_to_the_bound() -> None:
    """Every ε up to the bound is refuted, and one within a fiftieth of a sd above it is not."""
    for (alpha, delta), game in product([(0.2, 0.0), (0.01, 0.01), (0.2, 0.1)], SOME_GAMES):
        bound = epsilon_lower(game, delta, alpha)
        for share in np.linspace(0, 1, 7):
            if bound:
                assert p_value(game, share * bound, delta, alpha) <= alpha * (1 + 1e-6)
        deviation = math.sqrt(1 / game.correct + 1 / max(1, game.wrong))
        above = bound + deviation * np.linspace(0.001, 0.02, 20)
        assert any(p_value(game, epsilon, delta, alpha) > alpha for epsilon in above[::-1])


def test_the_test_refutes_every_delta_up_to_the_bound() -> None:
    for epsilon, game in product([0.0, 0.7], SOME_GAMES):
        bound = delta_lower(game, epsilon, 0.01, ALPHA)
        assert 0 <= bound <= 1
        for share in np.linspace(0.01, 1, 7):
            if bound:
                assert p_value(game, epsilon, share * bound, ALPHA) <= ALPHA * (1 + 1e-6)
        deviation = (
            math.sqrt(game.correct + math.exp(2 * epsilon) * game.wrong) / game.draws / game.h
        )
        above = bound + deviation * np.linspace(0.001, 0.02, 20)
        assert any(p_value(game, epsilon, point, ALPHA) > ALPHA for point in above[::-1])


def test_delta_counts_half_for_a_rule_with_one_guess() -> None:
    both, first = (Game(40, 9, 200, two_guesses=two) for two in (True, False))
    assert p_value(both, 0.5, 0.05, ALPHA) == pytest.approx(p_value(first, 0.5, 0.1, ALPHA))
    assert epsilon_lower(first, 0.05, ALPHA) > epsilon_lower(both, 0.05, ALPHA)


def test_no_claim_is_too_large_to_test() -> None:
    for epsilon, delta, abstains in product([0.0, 30.0, 800.0, 1e6], [0.0, 0.05], [True, False]):
        for counts in ((100, 0), (0, 100), (60, 40)):
            game = Game(*counts, 100, two_guesses=True, abstains=abstains)
            p = p_value(game, epsilon, delta, ALPHA)
            assert 0 <= p <= 1
            assert 0 <= delta_lower(game, epsilon, delta, ALPHA) <= 1
            assert epsilon < 100 or p == 1


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_no_guesses_refute_nothing(delta: float) -> None:
    game = Game(0, 0, 1_000, two_guesses=False)
    assert p_value(game, 0.0, delta, ALPHA) == 1.0
    assert epsilon_lower(game, delta, ALPHA) == 0.0
    assert delta_lower(game, 0.0, delta, ALPHA) == 0.0


def test_a_perfect_record_is_bounded_by_its_length() -> None:
    bounds = [epsilon_lower(Game(n, 0, n, two_guesses=True), 0.0, ALPHA) for n in (10, 100, 1_000)]
    assert bounds == pytest.approx([logit(ALPHA ** (1 / n)) for n in (10, 100, 1_000)], rel=1e-6)


def test_a_mechanism_that_reveals_its_input_with_probability_delta() -> None:
    game = Game(1_000, 0, 10_000, two_guesses=True)
    bounds = [delta_lower(game, epsilon, 0.01, ALPHA) for epsilon in (0.0, 5.0, 12.0)]
    assert 0.09 < bounds[0] < 0.1
    # W = 0 allows w = 3/N, and with it e^ε · 3/N of the correct guesses are not due to δ
    assert bounds[1] == pytest.approx(0.1 - math.exp(5) * 3 / 10_000, abs=0.01)
    assert bounds[2] == 0.0


def test_grouped_sums_lose_little_with_a_million_draws() -> None:
    """The bound loses no more to its sums in groups than a twentieth of a standard deviation."""
    game = Game(342_000, 108_000, 1_000_000, two_guesses=True)
    exact = epsilon_lower(game, 0.05, 0.01)
    normal = (342_000 - 50_000) / 108_000  # e^ε at the point estimate
    deviation = math.sqrt(342_000 + normal**2 * 108_000) / (normal * 108_000)
    assert exact == pytest.approx(math.log(normal) - 2.33 * deviation, abs=0.1 * deviation)


def test_stopping_early_gives_the_same_verdict() -> None:
    for correct in range(300, 401, 20):
        game = Game(correct, 130, 1_000, two_guesses=True)
        p, quick = p_value(game, 0.8, 0.05, 0.1), p_value(game, 0.8, 0.05, 0.1, enough=0.1)
        assert (quick <= 0.1) is (p <= 0.1)
        assert quick == p or 0.1 < quick <= p
