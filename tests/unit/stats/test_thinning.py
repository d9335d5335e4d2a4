"""Thinned samples are held to their level by enumeration of everything that can come out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpaudit.stats.binomial import TOSSED_AGAIN, coin_flips
from dpaudit.stats.dependence import looks_like_fair_coins
from dpaudit.stats.game import Game, p_value


@pytest.mark.parametrize(("first", "second"), [(20, 20), (100, 100), (1_000, 1_000), (50, 5_000)])
def test_coins_ask_for_too_many_seldom_and_one_more_coin_too_often(first: int, second: int) -> None:
    def excess(coins: int) -> float:
        law = stats.binom(coins, 0.5)
        return float(law.sf(first) + law.sf(second))

    coins = coin_flips(first, second)
    assert excess(coins) <= TOSSED_AGAIN < excess(coins + 1)
    assert coins == coin_flips(second, first)


def test_hardly_any_draws_are_lost() -> None:
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
def test_coins_are_told_from_what_is_none(
    first: int, second: int, changes: int, tossed: bool
) -> None:
    assert looks_like_fair_coins(first, second, changes, 1e-6) is tossed
