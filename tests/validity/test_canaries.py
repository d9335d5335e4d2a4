"""False alarms of bounds from canaries, and the mistakes that would cause them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpaudit import ApproximateDP, GaussianDP
from dpaudit.auditing.canary_scores import _rate, right_guesses
from dpaudit.auditing.single_run import SHARES, guess_numbers, wrong_numbers
from dpaudit.stats import one_run
from dpaudit.stats.binomial import clopper_pearson_interval, right_share
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.one_run_tradeoff import independent_mu_lower, mu_lower
from tests.validity.conftest import IsAbove

ALPHA, RUNS, SEED = 0.05, 2_000, 47
CLAIM = GaussianDP(1.0)
# A public coin decides whether every coin is released by randomized response with accuracy 0.9, or
# nothing is. The mechanism has ε = log 9, and this μ (docs/method.md §12).
ACCURACY, TOGETHER_MU = 0.9, 1.519
# A mechanism that spends its δ on few guesses and its ε on many (docs/method.md §12).
SPENT = ApproximateDP(0.1, 0.003834)
# The same for a number of guesses that half of the canaries choose, at 10 %.
SPLIT, NAMED, SPLIT_ALPHA = ApproximateDP(0.1, 3.98e-4), 20, 0.1

bound = lru_cache(maxsize=None)(mu_lower)
independent_bound = lru_cache(maxsize=None)(independent_mu_lower)
p_value = lru_cache(maxsize=None)(one_run.p_value)
Coins = NDArray[np.bool_]


def ranked(canaries: int) -> Iterator[Coins]:
    """Yield coins in the order of scores that say nothing about them."""
    rng = np.random.default_rng(SEED)
    while True:
        yield rng.integers(0, 2, canaries, dtype=np.int8).astype(bool)


def counts(coins: Coins) -> tuple[Guesses, ...]:
    """Return the counts of the two numbers of guesses, from coins in falling order of scores."""
    n = len(coins)
    return tuple(Guesses(n, r, right_guesses(coins, r, "both")) for r in guess_numbers(n))


def shared(coins: Coins, claim: ApproximateDP) -> float:
    """Return the p-value of the two numbers of guesses, each at its share of α."""
    return min(
        p_value(seen, claim.epsilon, claim.delta) / share
        for seen, share in zip(counts(coins), SHARES, strict=True)
    )


def spending(canaries: int, named: int, groups: int, claim: ApproximateDP) -> Iterator[Coins]:
    """Yield coins in falling order of the scores of a mechanism that is exactly (ε, δ)-DP.

    With a probability, it names the coins of `named` random canaries of each of `groups` equal
    groups of canaries, and otherwise it answers each coin by randomized response.
    """
    rng, size = np.random.default_rng(SEED), canaries // groups
    while True:
        coins, scores = rng.random(canaries) < 0.5, 0.1 * rng.random(canaries)
        if rng.random() < claim.delta * size / named:
            rows = [group * size + rng.permutation(size)[:named] for group in range(groups)]
            chosen = np.concatenate(rows)
            scores[chosen] = np.where(coins[chosen], 1, -1)
        else:
            is_right = rng.random(canaries) < right_share(claim.epsilon)
            scores += coins == is_right
        # The order of the groups stays, so that a test can take them apart.
        parts = scores.reshape(groups, size)
        order = np.argsort(-parts, axis=1)
        yield np.take_along_axis(coins.reshape(groups, size), order, axis=1)


def test_two_numbers_of_guesses_that_share_alpha_keep_the_level(is_above: IsAbove) -> None:
    runs = 20_000
    alarms = (shared(coins, SPENT) <= ALPHA for (coins,) in spending(200, 20, 1, SPENT))
    assert not is_above(islice(alarms, runs), runs, ALPHA)


def test_two_numbers_of_guesses_without_shares_are_caught(is_above: IsAbove) -> None:
    runs = 20_000
    alarms = (
        min(p_value(seen, SPENT.epsilon, SPENT.delta) for seen in counts(coins)) <= ALPHA
        for (coins,) in spending(200, 20, 1, SPENT)
    )
    assert is_above(islice(alarms, runs), runs, ALPHA)


def test_all_canaries_keep_the_level_where_halves_do_not(is_above: IsAbove) -> None:
    # All canaries are ranked by turns from both halves.
    alarms = (
        shared(halves.T.reshape(-1), SPLIT) <= SPLIT_ALPHA
        for halves in spending(8_000, NAMED, 2, SPLIT)
    )
    assert not is_above(islice(alarms, RUNS), RUNS, SPLIT_ALPHA)


def test_a_number_of_guesses_chosen_on_half_of_the_canaries_is_caught(is_above: IsAbove) -> None:
    runs = 6_000

    def p_of(coins: Coins, number: int, epsilon: float) -> float:
        seen = Guesses(len(coins), number, right_guesses(coins, number, "both"))
        return p_value(seen, epsilon, SPLIT.delta)

    def alarms() -> Iterator[bool]:
        for first, second in spending(8_000, NAMED, 2, SPLIT):
            number = min((NAMED, len(first)), key=lambda r: p_of(first, r, 0.0))
            yield p_of(second, number, SPLIT.epsilon) <= SPLIT_ALPHA

    assert is_above(islice(alarms(), runs), runs, SPLIT_ALPHA)


def test_the_best_number_of_guesses_on_the_same_scores_is_caught(is_above: IsAbove) -> None:
    alarms = (
        any(
            bound(Guesses(400, number, right_guesses(coins, number, "both")), ALPHA)
            for number in (2, 4, 8, 16, 40, 80, 160, 400)
        )
        for coins in ranked(400)
    )
    assert is_above(islice(alarms, RUNS), RUNS, ALPHA)


def exceeds(coins: Coins, numbers: Mapping[int, float]) -> bool:
    """Return whether some number of wrong guesses shows a leak at its share of α, for coins by
    falling scores."""
    others, n = np.flatnonzero(~coins), len(coins)
    return any(
        independent_bound(Guesses(n, int(others[wrong]), int(others[wrong]) - wrong), share * ALPHA)
        for wrong, share in numbers.items()
    )


def test_two_fixed_numbers_of_wrong_guesses_keep_the_level(is_above: IsAbove) -> None:
    numbers = dict(zip(wrong_numbers(1_000), SHARES, strict=True))
    alarms = (exceeds(coins, numbers) for coins in ranked(1_000))
    assert not is_above(islice(alarms, RUNS), RUNS, ALPHA)


def test_the_best_number_of_wrong_guesses_is_caught(is_above: IsAbove) -> None:
    runs = 6_000
    alarms = (exceeds(coins, dict.fromkeys(range(440), 1.0)) for coins in ranked(1_000))
    assert is_above(islice(alarms, runs), runs, ALPHA)


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
