"""Gaussian differential privacy: its profile, its point, its bound."""

from __future__ import annotations

import math
from itertools import product

import pytest
from scipy.stats import norm

from dpaudit import GaussianDP
from dpaudit.claims import PureDP, compose, gaussian_delta, group, make_claim


def test_the_profile_is_the_integral_of_the_excess_density() -> None:
    for epsilon, mu in product([0.0, 0.1, 1.0, 5.0], [0.01, 0.5, 1.0, 3.0, 10.0]):
        # P(E) - e^ε Q(E) is largest on the outputs where the density is e^ε times the other one.
        edge = epsilon / mu + mu / 2
        exact = norm.sf(edge, loc=mu) - math.exp(epsilon) * norm.sf(edge)
        delta = gaussian_delta(mu, epsilon)
        assert delta == pytest.approx(exact, rel=1e-9, abs=1e-12)
        assert delta >= exact - 1e-16


@pytest.mark.parametrize("mu", [0.001, 1.0, 10.0])
def test_the_point_lies_on_the_profile_and_gives_mu_back(mu: float) -> None:
    claim = GaussianDP(mu)
    point = claim.point()
    assert point.delta == gaussian_delta(mu, point.epsilon)
    assert 0 < point.delta < 1
    parameter, lower = claim.own_lower(point.epsilon, point.delta)
    assert (parameter, claim.symbol_of(parameter)) == ("mu", "μ")
    assert lower == pytest.approx(mu, abs=2e-6)
    assert claim.own_lower(point.epsilon, 0.0)[1] < mu
    assert claim.own_lower(point.epsilon, 0.9 * point.delta)[1] < mu


def test_groups_and_compositions_of_gaussian_claims() -> None:
    assert group(GaussianDP(0.5), 3) == GaussianDP(1.5)
    together = compose([GaussianDP(0.3), GaussianDP(0.4)])
    assert isinstance(together, GaussianDP)
    assert together.mu == pytest.approx(0.5)
    mixed = compose([GaussianDP(1.0), PureDP(1.0)]).point()
    assert mixed.epsilon == pytest.approx(1 + GaussianDP(1.0).point().epsilon)
    assert make_claim({"mu": 1}, "gaussian") == GaussianDP(1.0)
