"""False alarms of bounds from canaries, and the mistakes that would cause them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpaudit import GaussianDP
from dpaudit.auditing.canary_scores import _rate, chosen_plan, plans, right_guesses
from dpaudit.stats.binomial import clopper_pearson_interval
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.one_run_tradeoff import independent_mu_lower, mu_lower
from tests.validity.conftest import IsAbove

ALPHA, RUNS, SEED = 0.05, 2_000, 47
CLAIM = GaussianDP(1.0)
# A public coin decides whether every coin is released by randomized response with accuracy 0.9, or
# nothing is. The mechanism has ε = log 9, and this μ (docs/method.md §12).
ACCURACY, TOGETHER_MU = 0.9, 1.519

bound = lru_cache(maxsize=None)(mu_lower)
independent_bound = lru_cache(maxsize=None)(independent_mu_lower)


def ranked(canaries: int) -> Iterator[NDArray[np.bool_]]:
    """Yield coins in the order of scores that say nothing about them."""
    rng = np.random.default_rng(SEED)
    while True:
        yield rng.integers(0, 2, canaries, dtype=np.int8).astype(bool)


def counts(coins: NDArray[np.bool_], plan_of: NDArray[np.bool_]) -> Guesses:
    plan, n = chosen_plan(plan_of, CLAIM, ALPHA), len(coins)
    return Guesses(n, plan.made(n), right_guesses(coins, plan.made(n), plan.sides))


def test_a_number_of_guesses_chosen_on_other_canaries_keeps_the_level(is_above: IsAbove) -> None:
    alarms = (bound(counts(one[200:], one[:200]), ALPHA) > 0 for one in ranked(400))
    assert not is_above(islice(alarms, RUNS), RUNS, ALPHA)


def test_the_best_number_of_guesses_on_the_same_scores_is_caught(is_above: IsAbove) -> None:
    alarms = (
        any(
            bound(Guesses(400, plan.guesses, right_guesses(one, plan.guesses, plan.sides)), ALPHA)
            for plan in plans(400, None)
        )
        for one in ranked(400)
    )
    assert is_above(islice(alarms, RUNS), RUNS, ALPHA)


def together(canaries: int) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """Yield coins and answers of the mechanism that leaks about all canaries together."""
    rng = np.random.default_rng(SEED)
    while True:
        coins = rng.integers(0, 2, canaries, dtype=np.int8).astype(bool)
        wrong = rng.random(canaries) >= (ACCURACY if rng.random() < 0.5 else 0.5)
        yield coins, coins ^ wrong


def rates(is_fixed: bool) -> Iterator[bool]:
    """Yield whether the interval of a true-positive rate misses it, for independent canaries.

    is_fixed: whether the threshold counts as known (planted invalid).
    """
    rng, target, n = np.random.default_rng(SEED), 0.01, 2_000
    truth = float(ndtr(1 + ndtri(target)))
    while True:
        coins = rng.integers(0, 2, n, dtype=np.int8).astype(bool)
        inside, outside = (
            np.sort(coins[one] + rng.normal(size=one.sum())) for one in (coins, ~coins)
        )
        rate = _rate(inside, outside, target, 1 - ALPHA)
        ends = (rate.lower, rate.upper)
        if is_fixed:
            ends = clopper_pearson_interval(rate.above, int(coins.sum()), ALPHA)
        yield not ends[0] <= truth <= ends[1]


def test_a_true_positive_rate_lies_in_its_interval(is_above: IsAbove) -> None:
    assert not is_above(islice(rates(is_fixed=False), RUNS), RUNS, ALPHA)


def test_the_interval_at_a_threshold_taken_for_known_is_caught(is_above: IsAbove) -> None:
    assert is_above(islice(rates(is_fixed=True), RUNS), RUNS, ALPHA)


def test_canaries_that_leak_together_keep_the_level(is_above: IsAbove) -> None:
    alarms = (
        bound(Guesses(2_000, 200, int((coins == answers)[:200].sum())), ALPHA) > TOGETHER_MU
        for coins, answers in together(2_000)
    )
    assert not is_above(islice(alarms, RUNS), RUNS, ALPHA)


def test_they_are_caught_if_they_are_taken_for_independent(is_above: IsAbove) -> None:
    alarms = (
        independent_bound(Guesses(2_000, int(answers.sum()), int(coins[answers].sum())), ALPHA)
        > TOGETHER_MU
        for coins, answers in together(2_000)
    )
    assert is_above(islice(alarms, RUNS), RUNS, ALPHA)
