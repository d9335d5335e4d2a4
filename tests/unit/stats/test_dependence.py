from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.diagnostic import acorr_ljungbox

from dpaudit.stats.dependence import collision_bound, ljung_box, repetition_p_value

LAWS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "bit": lambda rng, n: rng.integers(0, 2, n),
    "rare": lambda rng, n: rng.random(n) < 0.01,
    "thousand": lambda rng, n: rng.integers(0, 1_000, n),
    "atom": lambda rng, n: np.where(rng.random(n) < 0.1, 0, rng.normal(size=n)),
    "heavy tail": lambda rng, n: rng.zipf(1.5, n),
    "constant": lambda rng, n: np.ones(n),
}


@pytest.mark.parametrize("lags", [1, 10])
def test_ljung_box_is_that_of_statsmodels(lags: int) -> None:
    rng = np.random.default_rng(1)
    series = rng.normal(size=300)
    series[1:] += 0.1 * series[:-1]
    theirs = acorr_ljungbox(series, lags=[lags])["lb_pvalue"].iloc[0]
    assert ljung_box(series, lags) == pytest.approx(theirs, rel=1e-9)


def test_ljung_box_says_nothing_of_a_constant() -> None:
    assert ljung_box(np.ones(100), 10) == 1


def test_what_rounding_leaves_of_a_constant_is_no_dependence() -> None:
    assert ljung_box(np.full(1_000, 0.4995), 10) == 1.0


@pytest.mark.parametrize("law", LAWS)
def test_a_coincidence_is_never_thought_rarer_than_it_is(law: str) -> None:
    rng = np.random.default_rng(2)
    truth = {"bit": 0.5, "rare": 0.99**2 + 0.01**2, "thousand": 1e-3, "atom": 0.01, "constant": 1}
    for size in (50, 500, 5_000):
        assert collision_bound(LAWS[law](rng, size)) >= truth.get(law, 0.0)


@pytest.mark.parametrize("law", LAWS)
def test_independent_draws_repeat_nothing(law: str) -> None:
    rng = np.random.default_rng(3)
    assert (
        min(
            repetition_p_value(LAWS[law](rng, n))[0]
            for n in (100, 3_000, 20_000)
            for _ in range(10)
        )
        > 1e-4
    )


@pytest.mark.parametrize("law", ["continuous", "thousand", "atom", "heavy tail"])
def test_a_period_is_found(law: str) -> None:
    pool = LAWS[law](np.random.default_rng(4), 200)
    chance, lag = repetition_p_value(np.resize(pool, 600))
    assert chance < 1e-12
    assert lag == 200


def test_too_short_for_anything() -> None:
    for size in (0, 1, 2):
        assert repetition_p_value(np.arange(size)) == (1.0, 0)
        assert collision_bound(np.arange(size)) == 1
