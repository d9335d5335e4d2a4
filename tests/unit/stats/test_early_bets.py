"""Bettors of a run that bets from its first draws, against expectations over small laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpaudit.stats.betting import Beliefs, stakes
from dpaudit.stats.binomial import FloatArray

LEVELS = 4
_shares = st.lists(st.floats(0.01, 1.0), min_size=LEVELS, max_size=LEVELS)


def _beliefs(posterior: list[float]) -> Beliefs:
    rules = np.array([[1, 0, 0, -1], [1, 1, -1, -1], [0, 0, 0, 0]])
    return Beliefs(np.clip([posterior], 1e-5, 1 - 1e-5), rules, early=True)


def _delta(p: FloatArray, q: FloatArray, epsilon: float) -> float:
    """Return δ(ε) of two laws: the larger of both directions, event by event."""
    return max(
        float(np.maximum(one - math.exp(epsilon) * other, 0).sum())
        for one, other in ((p, q), (q, p))
    )


@given(_shares, _shares, _shares, st.floats(0.0, 2.0))
def test_no_factor_gains_on_average_under_the_claim(
    first: list[float], second: list[float], posterior: list[float], epsilon: float
) -> None:
    p, q = (np.array(one) / sum(one) for one in (first, second))
    delta = _delta(p, q, epsilon)
    assume(delta < 0.9)
    factors = np.exp(_beliefs(posterior).log_factors(epsilon, delta))
    mean = 0.5 * (factors[:, :, 0] @ p + factors[:, :, 1] @ q)
    assert (mean <= 1 + 1e-9).all()


def test_a_price_too_small_for_delta_gains_under_the_claim() -> None:
    """The planted twin: the price of another, smaller δ."""
    p, q = np.array([0.2, 0.3, 0.3, 0.2]), np.array([0.0, 0.35, 0.35, 0.3])
    epsilon = 0.0
    delta = _delta(p, q, epsilon)
    factors = np.exp(_beliefs([0.9, 0.4, 0.4, 0.4]).log_factors(epsilon, delta / 4))
    mean = 0.5 * (factors[0, :, 0] @ p + factors[0, :, 1] @ q)
    assert mean > 1.01


@pytest.mark.parametrize(("delta", "rules"), [(0.0, 3), (1e-5, 4), (1e-5, 5)])
def test_stakes_add_up_and_posteriors_have_three_quarters(delta: float, rules: int) -> None:
    beliefs = Beliefs(np.full((8, 2), 0.5), np.zeros((rules, 2), dtype=np.int64), early=True)
    shares = stakes(beliefs, delta)
    assert shares.sum() == pytest.approx(1.0)
    assert shares[:8].sum() == pytest.approx(0.75)
    assert len(shares) == beliefs.log_factors(1.0, delta).shape[-3]
