"""Tails and Clopper-Pearson bounds against exact fractions and against statsmodels."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from statsmodels.stats.proportion import proportion_confint

from dpaudit.stats import trinomial
from dpaudit.stats.binomial import (
    clopper_pearson_interval,
    clopper_pearson_lower,
    clopper_pearson_upper,
    pair_delta_lower,
    pair_epsilon_lower,
    pair_p_value,
    upper_tail,
)
from dpaudit.stats.p_values import smallest_alpha

ALPHAS = (0.5, 0.1, 0.01, 1e-6, 1e-12)
COUNTS = [(k, n) for n in (1, 2, 7, 40, 1_000) for k in {0, 1, n // 3, n - 1, n} if 0 <= k <= n]
PAIRS = [(90, 200, 30, 190), (5, 60, 0, 70), (500, 1_000, 480, 1_000), (20, 20, 0, 20)]


def exact_tail(successes: int, trials: int, probability: Fraction) -> Fraction:
    """Pr[Bin(trials, probability) ≥ successes], term by term in rational numbers."""
    terms = range(max(successes, 0), trials + 1)
    return sum(
        (math.comb(trials, k) * probability**k * (1 - probability) ** (trials - k) for k in terms),
        start=Fraction(0),
    )


@pytest.mark.parametrize("trials", [0, 1, 2, 9, 30])
@pytest.mark.parametrize("probability", [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1)])
def test_the_tail_is_that_of_exact_enumeration(trials: int, probability: Fraction) -> None:
    for successes in range(-1, trials + 3):
        exact = float(exact_tail(successes, trials, probability))
        assert upper_tail(successes, trials, float(probability)) == pytest.approx(exact, rel=1e-12)


def test_far_tails_keep_their_relative_precision() -> None:
    exact = exact_tail(380, 400, Fraction(1, 2))
    assert float(exact) < 1e-80
    assert float(upper_tail(380, 400, 0.5)) == pytest.approx(float(exact), rel=1e-9)


def test_the_tail_broadcasts() -> None:
    tails = upper_tail(np.arange(4)[:, None], 3, np.array([0.25, 0.5]))
    assert tails.shape == (4, 2)
    assert tails[0].tolist() == [1.0, 1.0]
    assert tails[3, 1] == pytest.approx(0.125)


@pytest.mark.parametrize(("successes", "trials"), COUNTS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_clopper_pearson_agrees_with_statsmodels(successes: int, trials: int, alpha: float) -> None:
    theirs = proportion_confint(successes, trials, alpha=alpha, method="beta")
    assert clopper_pearson_interval(successes, trials, alpha) == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize(("successes", "trials"), [*COUNTS, (3, 10**8), (10**7, 10**8)])
@pytest.mark.parametrize("alpha", [*ALPHAS, 1e-100, 1e-300])
def test_bounds_round_outward(successes: int, trials: int, alpha: float) -> None:
    """At the bound the exact tail is at most alpha: a bound inside would promise too much."""
    lower = clopper_pearson_lower(successes, trials, alpha)
    upper = clopper_pearson_upper(successes, trials, alpha)
    assert 0 <= lower <= 1
    assert 0 <= upper <= 1
    if successes:
        assert upper_tail(successes, trials, lower) <= alpha
    if successes < trials:
        # Pr[Bin(n, p) ≤ k] = Pr[Bin(n, 1 - p) ≥ n - k], where 1 - p is exact enough
        assert upper_tail(trials - successes, trials, 1 - upper) <= alpha * (1 + 1e-12)


@pytest.mark.parametrize(("successes", "trials"), COUNTS)
def test_the_upper_bound_mirrors_the_lower_one(successes: int, trials: int) -> None:
    upper = clopper_pearson_upper(successes, trials, 0.05)
    mirrored = 1 - clopper_pearson_lower(trials - successes, trials, 0.05)
    assert upper == pytest.approx(mirrored, rel=1e-7)


def test_the_lower_bound_covers_exactly_as_promised() -> None:
    """Σ over counts whose bound lies above the truth, in exact arithmetic, is at most alpha."""
    for truth in (Fraction(1, 20), Fraction(1, 3), Fraction(9, 10)):
        trials, alpha = 25, 0.05
        missed = sum(
            exact_tail(k, trials, truth) - exact_tail(k + 1, trials, truth)
            for k in range(trials + 1)
            if clopper_pearson_lower(k, trials, alpha) > float(truth)
        )
        assert float(missed) <= alpha


@pytest.mark.parametrize(
    ("successes", "trials", "alpha", "named"),
    [(-1, 5, 0.1, "successes=-1"), (6, 5, 0.1, "successes=6"), (1, 5, 0.0, "alpha=0.0")],
)
def test_impossible_counts_are_refused(
    successes: int, trials: int, alpha: float, named: str
) -> None:
    for bound in (clopper_pearson_lower, clopper_pearson_upper):
        with pytest.raises(ValueError, match=named):
            bound(successes, trials, alpha)


@pytest.mark.parametrize("gamma", [0.3, 0.01, 1e-6])
@pytest.mark.parametrize("probability", [Fraction(0), Fraction(1, 40), Fraction(3, 5)])
def test_the_quantile_is_the_smallest_one(gamma: float, probability: Fraction) -> None:
    trials = 30
    quantile = trinomial._tail_quantile(gamma, trials, float(probability))
    assert exact_tail(quantile + 1, trials, probability) <= gamma
    assert quantile == 0 or exact_tail(quantile, trials, probability) > gamma


def test_the_pair_bound_is_the_ratio_of_two_clopper_pearson_bounds() -> None:
    low = proportion_confint(90, 200, alpha=0.05, method="beta")[0]
    high = proportion_confint(30, 190, alpha=0.05, method="beta")[1]
    bound = pair_epsilon_lower(90, 200, 30, 190, 0.02, 0.05)
    assert bound == pytest.approx(math.log((low - 0.02) / high), rel=1e-6)
    delta = pair_delta_lower(90, 200, 30, 190, 0.5, 0.05)
    assert delta == pytest.approx(low - math.exp(0.5) * high, rel=1e-6)


@pytest.mark.parametrize("counts", PAIRS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.3, 0.0), (0.3, 0.05), (2.0, 0.1)])
def test_p_value_and_bounds_of_the_pair_say_the_same(
    counts: tuple[int, int, int, int], epsilon: float, delta: float
) -> None:
    p = pair_p_value(*counts, epsilon, delta)
    assert 0 < p <= 1
    if p < 1:
        for alpha, refuted in ((p * 1.001, True), (p * 0.999, False)):
            assert (pair_delta_lower(*counts, epsilon, alpha) > delta) is refuted
            assert (pair_epsilon_lower(*counts, delta, alpha) > epsilon) is refuted


def test_the_pair_bound_survives_a_claim_that_no_float_can_hold() -> None:
    assert pair_delta_lower(10, 10, 0, 10, 5_000.0, 0.05) == 0.0
    assert pair_p_value(10, 10, 0, 10, 5_000.0, 0.0) == 1.0


def test_nothing_counted_bounds_nothing() -> None:
    assert pair_epsilon_lower(0, 0, 0, 0, 0.0, 0.05) == 0.0
    assert pair_p_value(0, 0, 0, 0, 0.0, 0.0) == 1.0


def test_the_smallest_alpha_is_found_and_rounded_up() -> None:
    found = smallest_alpha(lambda alpha: alpha >= 0.037)
    assert found == pytest.approx(0.037, rel=1e-12)
    assert math.log(found) >= math.log(0.037)
    assert smallest_alpha(lambda alpha: False) == 1.0
    assert smallest_alpha(lambda alpha: True) <= 1e-300
