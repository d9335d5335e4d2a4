"""Rényi DP: the least divergence that a point (ε, δ) implies."""

from __future__ import annotations

import math
from functools import partial

import pytest

from dpaudit.claims.renyi import (
    _LARGEST,
    RenyiDP,
    _binary_divergence,
    _least_divergence,
    _renyi_delta,
)
from dpaudit.claims.solving import largest_parameter


@pytest.mark.parametrize("order", [1.05, 2.0, 64.0])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-5, 1e-3, 0.4])
def test_no_pair_of_coins_on_the_line_has_a_smaller_divergence(
    order: float, epsilon: float, delta: float
) -> None:
    least, most = _least_divergence(order, epsilon, delta), (1 - delta) / math.exp(epsilon)
    every = []
    for place in range(1, 4_000):
        q = most * math.exp(-place / 200)
        p = delta + math.exp(epsilon) * q
        every.append(max(_binary_divergence(p, q, order), _binary_divergence(q, p, order)))
    assert least <= min(every) * (1 + 1e-9)
    assert least == pytest.approx(min(every), rel=1e-2)


@pytest.mark.parametrize("near", [math.inf, 0.0, 1e-12, 0.3, 0.5466, 99.99])
def test_a_guess_changes_the_time_alone(near: float) -> None:
    """The bound, 0.5466, is found with any guess, and with none."""
    delta_of = partial(_renyi_delta, 2.0, epsilon=1.0)
    found = largest_parameter(delta_of, 0.1, _LARGEST, near)
    assert found == pytest.approx(largest_parameter(delta_of, 0.1, _LARGEST), rel=2e-6)
    assert delta_of(found) <= 0.1 < delta_of(found * (1 + 4e-6))
    assert RenyiDP(2.0, 1.0).own_lower(1.0, 0.1)[1] == pytest.approx(found, rel=2e-6)


@pytest.mark.parametrize(("delta", "bound"), [(0.0, 0.0), (-1.0, 0.0), (1.0, _LARGEST)])
def test_bounds_that_imply_nothing_or_all(delta: float, bound: float) -> None:
    assert RenyiDP(2.0, 1.0).own_lower(1.0, delta) == ("D_2", bound)
