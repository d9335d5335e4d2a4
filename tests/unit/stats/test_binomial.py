"""Tails and Clopper-Pearson bounds against exact fractions and against statsmodels."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import betaincinv, gammaln
from statsmodels.stats.proportion import proportion_confint

from dpaudit.stats.binomial import (
    TOSSED_AGAIN,
    clopper_pearson_interval,
    clopper_pearson_lower,
    clopper_pearson_upper,
    coin_flips,
    epsilon_interval,
    likely_counts,
    pair_delta_lower,
    pair_epsilon_lower,
    pair_p_value,
    upper_tail,
)
from dpaudit.stats.dependence import looks_like_fair_coins
from dpaudit.stats.game import Game, p_value
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


def test_the_tail_equals_exact_enumeration() -> None:
    for probability, trials in product(
        [Fraction(0), Fraction(1, 7), Fraction(1, 2), Fraction(1)], [0, 1, 2, 9, 30]
    ):
        for successes in range(-1, trials + 3):
            exact = float(exact_tail(successes, trials, probability))
            assert upper_tail(successes, trials, float(probability)) == pytest.approx(
                exact, rel=1e-12
            )


def test_far_tails_keep_their_relative_precision() -> None:
    exact = exact_tail(380, 400, Fraction(1, 2))
    assert float(exact) < 1e-80
    assert float(upper_tail(380, 400, 0.5)) == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.parametrize(
    ("trials", "p", "alpha"), [(1, 0.3, 0.2), (40, 0.001, 0.005), (1_000, 0.5, 0.2), (7, 1.0, 0.2)]
)
def test_likely_counts_cut_two_tails(trials: int, p: float, alpha: float) -> None:
    low, high = likely_counts(trials, p, alpha)
    law = stats.binom(trials, p)
    assert law.cdf(low - 1) <= alpha / 2 < law.cdf(low)
    assert law.sf(high) <= alpha / 2 < law.sf(high - 1)


def test_clopper_pearson_agrees_with_statsmodels() -> None:
    for alpha, (successes, trials) in product(ALPHAS, COUNTS):
        theirs = proportion_confint(successes, trials, alpha=alpha, method="beta")
        assert clopper_pearson_interval(successes, trials, alpha) == pytest.approx(theirs, rel=1e-6)


def test_bounds_round_outward() -> None:
    """At the bound the exact tail is at most alpha."""
    for alpha, (successes, trials) in product(
        [*ALPHAS, 1e-100, 1e-300], [*COUNTS, (3, 10**8), (10**7, 10**8)]
    ):
        lower = clopper_pearson_lower(successes, trials, alpha)
        upper = clopper_pearson_upper(successes, trials, alpha)
        assert 0 <= lower <= 1
        assert 0 <= upper <= 1
        if successes:
            assert upper_tail(successes, trials, lower) <= alpha
        if successes < trials:
            # Pr[Bin(n, p) ≤ k] = Pr[Bin(n, 1 - p) ≥ n - k], where 1 - p is exact enough
            assert upper_tail(trials - successes, trials, 1 - upper) <= alpha * (1 + 1e-12)


def test_the_lower_bound_has_its_exact_coverage() -> None:
    """Σ over counts whose bound lies above the truth, in exact arithmetic, is at most alpha."""
    for truth in (Fraction(1, 20), Fraction(1, 3), Fraction(9, 10)):
        trials, alpha = 25, 0.05
        missed = sum(
            exact_tail(k, trials, truth) - exact_tail(k + 1, trials, truth)
            for k in range(trials + 1)
            if clopper_pearson_lower(k, trials, alpha) > float(truth)
        )
        assert float(missed) <= alpha


def test_the_pair_bound_is_the_ratio_of_two_clopper_pearson_bounds() -> None:
    low = proportion_confint(90, 200, alpha=0.05, method="beta")[0]
    high = proportion_confint(30, 190, alpha=0.05, method="beta")[1]
    bound = pair_epsilon_lower(90, 200, 30, 190, 0.02, 0.05)
    assert bound == pytest.approx(math.log((low - 0.02) / high), rel=1e-6)
    delta = pair_delta_lower(90, 200, 30, 190, 0.5, 0.05)
    assert delta == pytest.approx(low - math.exp(0.5) * high, rel=1e-6)


def test_p_value_and_bounds_of_the_pair_agree() -> None:
    for (epsilon, delta), counts in product(
        [(0.0, 0.0), (0.3, 0.0), (0.3, 0.05), (2.0, 0.1)], PAIRS
    ):
        p = pair_p_value(*counts, epsilon, delta)
        assert 0 < p <= 1
        if p < 1:
            for alpha, refuted in ((p * 1.001, True), (p * 0.999, False)):
                assert (pair_delta_lower(*counts, epsilon, alpha) > delta) is refuted
                assert (pair_epsilon_lower(*counts, delta, alpha) > epsilon) is refuted


def test_the_pair_bound_handles_no_draws_and_a_claim_that_overflows() -> None:
    assert pair_epsilon_lower(0, 0, 0, 0, 0.0, 0.05) == 0.0
    assert pair_p_value(0, 0, 0, 0, 0.0, 0.0) == 1.0
    assert pair_delta_lower(10, 10, 0, 10, 5_000.0, 0.05) == 0.0
    assert pair_p_value(10, 10, 0, 10, 5_000.0, 0.0) == 1.0


def test_the_smallest_alpha_is_found_and_rounded_up() -> None:
    actual = smallest_alpha(lambda alpha: alpha >= 0.037)
    assert actual == pytest.approx(0.037, rel=1e-12)
    assert math.log(actual) >= math.log(0.037)
    assert smallest_alpha(lambda alpha: False) == 1.0
    assert smallest_alpha(lambda alpha: True) <= 1e-300


Laws = list[tuple[float, float]]

RESPONSE: Laws = [(0.75, 0.25), (0.25, 0.75)]
SKEWED: Laws = [(0.9, 0.7), (0.08, 0.1), (0.02, 0.2)]
ONE_SIDED: Laws = [(0.6, 0.5), (0.4, 0.3), (0.0, 0.2)]
EQUAL: Laws = [(0.5, 0.5), (0.5, 0.5)]


def true_epsilon(laws: Laws) -> float:
    return max(abs(math.log(p / q)) if p and q else math.inf for p, q in laws)


def tables(draws: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Yield all tables of draws by cell."""
    if cells == 1:
        yield (draws,)
        return
    for first in range(draws + 1):
        for rest in tables(draws - first, cells - 1):
            yield (first, *rest)


@pytest.mark.parametrize(
    ("laws", "draws", "alpha"),
    [(RESPONSE, 14, 0.1), (EQUAL, 14, 0.5), (SKEWED, 9, 0.5), (ONE_SIDED, 9, 0.1)],
)
def test_coverage_is_at_least_nominal(laws: Laws, draws: int, alpha: float) -> None:
    """A fair coin picks the input of every draw: all tables, with their exact probabilities."""
    cells = [share / 2 for both in laws for share in both]
    truth, covered, total = true_epsilon(laws), 0.0, 0.0
    for table in tables(draws, len(cells)):
        chance = math.exp(
            gammaln(draws + 1) - sum(gammaln(count + 1) for count in table)
        ) * math.prod(cell**count for cell, count in zip(cells, table, strict=True))
        total += chance
        low, high = epsilon_interval(list(zip(table[::2], table[1::2], strict=True)), alpha)
        covered += chance * (low <= truth <= high)
    assert total == pytest.approx(1)
    assert covered >= 1 - alpha


def simulated(laws: Laws, draws: int, seeds: int) -> NDArray[np.int64]:
    cells = np.array(laws) / 2
    table = np.random.default_rng(2).multinomial(draws, cells.ravel(), size=seeds)
    return table.reshape(seeds, len(laws), 2)


def intervals(counts: NDArray[np.int64], share: float) -> NDArray[np.float64]:
    """Return the lower and upper ends by table, with `share` of the error for every bound."""
    trials = counts.sum(axis=2, keepdims=True)
    bound = betaincinv(np.maximum(counts, 1), trials - counts + 1, share)
    below = np.where(counts > 0, np.log(bound) - np.log1p(-bound), -np.inf)
    return np.stack([below.max(axis=(1, 2)).clip(0), -below.min(axis=(1, 2))], axis=1)


def miss_rate(laws: Laws, actual: NDArray[np.float64]) -> float:
    truth = true_epsilon(laws)
    return float(((actual[:, 0] > truth) | (actual[:, 1] < truth)).mean())


def test_without_bonferroni_it_would_fail() -> None:
    """Ten outputs that all have the largest log-ratio: each of their bounds may fail."""
    laws = [(0.15, 0.05)] * 5 + [(0.05, 0.15)] * 5
    counts, alpha = simulated(laws, 4_000, 20_000), 0.05
    right = intervals(counts, alpha / (2 * len(laws)))
    assert miss_rate(laws, right) <= alpha
    assert miss_rate(laws, intervals(counts, alpha / 2)) > 2 * alpha
    for table, (low, high) in zip(counts[:20].tolist(), right[:20], strict=True):
        assert epsilon_interval([tuple(one) for one in table], alpha) == pytest.approx((low, high))


def test_an_output_unseen_for_one_input_gives_an_infinite_upper_end() -> None:
    for unseen in ((5, 0), (0, 5), (0, 0)):
        low, high = epsilon_interval([(50, 40), unseen], 0.05)
        assert high == math.inf
        assert 0 <= low < math.inf


@pytest.mark.parametrize(("first", "second"), [(20, 20), (1_000, 1_000), (50, 5_000)])
def test_the_number_of_coins_is_the_largest_allowed(first: int, second: int) -> None:
    def excess(coins: int) -> float:
        law = stats.binom(coins, 0.5)
        return float(law.sf(first) + law.sf(second))

    coins = coin_flips(first, second)
    assert excess(coins) <= TOSSED_AGAIN < excess(coins + 1)
    assert coins == coin_flips(second, first)


def test_few_draws_are_lost() -> None:
    assert coin_flips(1_000, 1_000) > 0.92 * 2_000
    assert coin_flips(50_000, 50_000) > 0.989 * 100_000
    assert coin_flips(0, 10) == 0


@pytest.mark.parametrize("ahead", [0.05, 0.4, 0.9])
def test_the_level_is_kept_exactly(ahead: float) -> None:
    """One event, P(E) = e^ε Q(E): the hardest case, of 25 draws of each input."""
    epsilon, most = 0.7, 25
    coins = coin_flips(most, most)
    tosses = np.arange(coins + 1)
    weights = stats.binom(coins, 0.5).pmf(tosses)
    weights[(tosses > most) | (coins - tosses > most)] = 0
    weights /= weights.sum()
    for alpha in (0.01, 0.05, 0.2):
        size = sum(
            weight * _refuted(int(d1), coins, ahead, epsilon, (1 - TOSSED_AGAIN) * alpha)
            for d1, weight in zip(tosses, weights, strict=True)
            if weight
        )
        assert size <= alpha


def _refuted(d1: int, coins: int, ahead: float, epsilon: float, alpha: float) -> float:
    right = stats.binom(d1, ahead).pmf(np.arange(d1 + 1))
    wrong = stats.binom(coins - d1, ahead * math.exp(-epsilon)).pmf(np.arange(coins - d1 + 1))
    return float(
        sum(
            right[c] * wrong[w]
            for c in range(d1 + 1)
            for w in range(coins - d1 + 1)
            if p_value(Game(c, w, coins, two_guesses=False), epsilon, 0.0, alpha) <= alpha
        )
    )


@pytest.mark.parametrize(
    ("first", "second", "changes", "tossed"),
    [
        (500, 500, 499, True),
        (540, 460, 480, True),
        (700, 300, 420, False),  # not fair
        (500, 500, 1, False),  # one after the other
        (500, 500, 999, False),  # in turns
    ],
)
def test_fair_coins_are_distinguished_from_other_orders(
    first: int, second: int, changes: int, tossed: bool
) -> None:
    assert looks_like_fair_coins(first, second, changes, 1e-6) is tossed
