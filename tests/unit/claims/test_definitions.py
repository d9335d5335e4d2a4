"""Rényi, zero-concentrated, f- and computational DP: profiles, parameters, whole audits."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from itertools import product
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dpaudit import ComputationalDP, FunctionalDP, RenyiDP, ZeroConcentratedDP
from dpaudit.claims import (
    ApproximateDP,
    ApproximateZCDP,
    GaussianDP,
    PrivacyClaim,
    ProbabilisticDP,
    PureDP,
    chain,
    compose,
    gaussian_delta,
    group,
    make_claim,
)
from dpaudit.claims.renyi import _binary_divergence, _concentrated_delta, _renyi_delta
from dpaudit.errors import ClaimError
from tests.raising import code

FloatArray = NDArray[np.float64]


def gaussian_tradeoff(mu: float) -> Callable[[float], float]:
    return lambda alpha: float(ndtr(ndtri(1 - alpha) - mu))


def flat_tradeoff(epsilon: float, delta: float) -> Callable[[float], float]:
    factor = math.exp(epsilon)
    return lambda alpha: max(0.0, 1 - delta - factor * alpha, (1 - delta - alpha) / factor)


# Rényi ---------------------------------------------------------------------------------------


def test_the_renyi_profile_is_the_largest_excess_over_allowed_pairs() -> None:
    for epsilon, divergence, order in product([0.0, 0.4, 1.5], [0.05, 0.5, 2.0], [1.2, 5.0, 40.0]):

        def divergences(p: FloatArray, q: FloatArray, order: float = order) -> FloatArray:
            heads = order * np.log(p) + (1 - order) * np.log(q)
            tails = order * np.log1p(-p) + (1 - order) * np.log1p(-q)
            return np.asarray(np.logaddexp(heads, tails) / (order - 1))

        q = np.exp(np.linspace(-epsilon - 10, -epsilon, 2000))
        q = q[q < 1]  # at 1 there is nothing to gain
        low, high = q.copy(), np.ones(len(q))
        for _ in range(30):
            middle = (low + high) / 2
            allowed = np.maximum(divergences(middle, q), divergences(q, middle)) <= divergence
            low, high = np.where(allowed, middle, low), np.where(allowed, high, middle)
        best = float(np.max(low - math.exp(epsilon) * q))
        actual = _renyi_delta(order, divergence, epsilon)
        assert best <= actual  # it is rounded up
        assert actual == pytest.approx(best, abs=2e-3)


@pytest.mark.parametrize("order", [1.5, 2.0, 10.0])
@pytest.mark.parametrize("keep", [0.6, 0.75, 0.99])
def test_randomized_response_reaches_its_renyi_profile(order: float, keep: float) -> None:
    """With two outcomes, the profile equals the true δ at one ε."""
    divergence = _binary_divergence(keep, 1 - keep, order)
    truth = [(e, max(0.0, keep - math.exp(e) * (1 - keep))) for e in np.linspace(0, 3, 31)]
    excess = [_renyi_delta(order, divergence, epsilon) - delta for epsilon, delta in truth]
    assert min(excess) >= 0
    assert min(excess) < 2e-3


def test_gaussian_noise_stays_below_what_its_divergences_allow() -> None:
    for epsilon, mu in product([0.0, 0.5, 1.0, 3.0], [0.3, 1.0, 2.0]):
        exact = gaussian_delta(mu, epsilon)
        assert exact <= _concentrated_delta(mu**2 / 2, epsilon) + 1e-12
        for order in (1.1, 2.0, 6.0):
            assert exact <= _renyi_delta(order, order * mu**2 / 2, epsilon) + 1e-12


@pytest.mark.parametrize(
    "claim", [RenyiDP(2, 1.0), RenyiDP(1.0001, 0.1), RenyiDP(10_000, 3.0), ZeroConcentratedDP(0.5)]
)
def test_a_profile_falls_up_to_the_largest_float(claim: PrivacyClaim) -> None:
    epsilons = (1.0, 50.0, 600.0, 649.0, 651.0, 700.0, 710.0, 800.0, 1e5, sys.float_info.max)
    profile = [claim.profile(epsilon) for epsilon in epsilons]
    assert all(one >= 0 for one in profile)
    assert profile == sorted(profile, reverse=True)
    assert all(0 <= point.delta < 1 for point in claim.points())


@pytest.mark.parametrize("rho", [0.02, 0.5, 3.0])
def test_the_concentrated_profile_is_the_least_over_orders(rho: float) -> None:
    for epsilon in (0.0, rho, rho + 2 * math.sqrt(rho)):
        orders = 1 + np.exp(np.linspace(-6, 6, 31))
        least = min(_renyi_delta(float(a), rho * float(a), epsilon) for a in orders)
        assert _concentrated_delta(rho, epsilon) == pytest.approx(least, rel=0.02)


@pytest.mark.parametrize(
    "claim",
    [RenyiDP(2, 0.5), RenyiDP(20, 1.0), ZeroConcentratedDP(0.3), GaussianDP(0.7)],
    ids=lambda claim: claim.describe(),
)
def test_points_give_the_parameter_back(claim: PrivacyClaim) -> None:
    *_, (name, own) = claim.parameters().items()
    for point in claim.points()[:3]:
        assert point.delta == claim.profile(point.epsilon)
        actual = claim.own_lower(point.epsilon, point.delta)
        assert actual is not None
        assert actual[0] == name
        assert actual[1] == pytest.approx(own, rel=2e-5)
        less = claim.own_lower(point.epsilon, 0.8 * point.delta)
        assert less is not None
        assert less[1] < own


@pytest.mark.parametrize(
    "claim",
    [RenyiDP(2, 0.5), ZeroConcentratedDP(0.3), GaussianDP(0.7)],
    ids=lambda claim: claim.describe(),
)
def test_a_delta_of_zero_bounds_no_parameter(claim: PrivacyClaim) -> None:
    """Its δ is too small for a float already at some parameters above 0."""
    for epsilon in (0.0, 1.0, 5.0):
        assert claim.own_lower(epsilon, 0.0) == (mock.ANY, 0.0)


# f-DP ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.1, 1.0, 3.0])
def test_the_polygon_below_a_function_is_close_to_it(mu: float) -> None:
    claim = FunctionalDP(gaussian_tradeoff(mu))
    for point in claim.points():
        exact = gaussian_delta(mu, point.epsilon)
        assert exact - 1e-12 <= point.delta <= 1.01 * exact + 1e-9


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (1.0, 0.01), (0.1, 0.3), (4.0, 1e-4)])
def test_straight_lines_are_met_exactly(epsilon: float, delta: float) -> None:
    claim = FunctionalDP(flat_tradeoff(epsilon, delta))
    assert claim.profile(epsilon) == pytest.approx(delta, abs=1e-9)
    assert claim.profile(epsilon) >= delta
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    table = FunctionalDP([[0, 1], [1 - keep, 1 - keep], [1, 0]])
    assert table.profile(epsilon) == pytest.approx(0.0, abs=1e-12)
    assert table.profile(0.0) == pytest.approx(2 * keep - 1)


def test_an_asymmetric_function_is_taken_for_one_direction_only() -> None:
    table = ((0.0, 0.9), (0.5, 0.1), (1.0, 0.0))
    mirrored = ((0.0, 1.0), (0.1, 0.5), (0.9, 0.0), (1.0, 0.0))
    epsilons = np.linspace(0, 2, 9)
    for epsilon in epsilons:
        first = max(1 - b - math.exp(epsilon) * a for a, b in table)
        other = max(1 - b - math.exp(epsilon) * a for a, b in mirrored)
        assert FunctionalDP(table).profile(epsilon) == pytest.approx(max(0, first, other))


@pytest.mark.parametrize(
    "tradeoff",
    [
        lambda a: 1.0,
        lambda a: (1 - a) * (0.5 + 0.5 * a),  # not convex
        lambda a: "x",
        lambda a: math.nan,
        [[0, 1], [0.5, 0.2], [0.6, 0.3], [1, 0]],  # rises
        [[0.1, 0.5], [1, 0]],  # begins after 0
        [1, 2],
        7,
    ],
)
def test_invalid_tradeoff_functions_are_refused(tradeoff: Any) -> None:
    assert code(FunctionalDP, tradeoff) == "option-invalid"


def test_a_tradeoff_function_that_allows_everything_is_refused() -> None:
    assert code(FunctionalDP, lambda a: 0.0) == "claim-says-nothing"


# Parameters and what is implied --------------------------------------------------------------


@pytest.mark.parametrize(
    ("definition", "parameters", "expected"),
    [
        ("renyi", {"order": 1, "epsilon": 1}, "option-invalid"),
        ("renyi", {"order": math.inf, "epsilon": 1}, "option-invalid"),
        ("renyi", {"order": 2, "epsilon": 101}, "option-invalid"),
        ("renyi", {"epsilon": 1}, "parameter-missing"),
        ("zcdp", {"rho": 0}, "option-invalid"),
        ("gaussian", {"mu": math.nan}, "option-invalid"),
        ("gaussian", {"mu": 10.5}, "option-invalid"),
        ("gaussian", {"sigma": 0}, "option-invalid"),
        ("gaussian", {"sigma": 1, "mu": 1}, "options-conflict"),
        ("gaussian", {"mu": 1, "epsilon": 1}, "parameter-unknown"),
        ("gaussian", {}, "parameter-missing"),
        ("computational", {"epsilon": 1, "adversary": 3}, "option-invalid"),
        ("f-dp", {}, "parameter-missing"),
        ("approximate-zcdp", {"rho": 101, "delta": 0.1}, "option-invalid"),
        ("approximate-zcdp", {"rho": 1, "delta": 1}, "option-invalid"),
        ("approximate-zcdp", {"rho": 1, "delta": 1 - 1e-16}, "claim-says-nothing"),
        ("approximate-zcdp", {"rho": 1}, "parameter-missing"),
    ],
)
def test_impossible_parameters_are_refused(
    definition: str, parameters: dict[str, Any], expected: str
) -> None:
    assert code(make_claim, parameters, definition) == expected


@pytest.mark.parametrize(
    ("parameters", "claim"),
    [
        ({"mu": 1}, GaussianDP(1)),
        ({"sigma": 4}, GaussianDP(0.25)),
        ({"rho": 0.1}, ZeroConcentratedDP(0.1)),
        ({"order": 2, "epsilon": 1}, RenyiDP(2, 1)),
        ({"epsilon": 1, "adversary": "m:f"}, ComputationalDP(1, 0, "m:f")),
        ({"tradeoff": ((0, 0.5), (1, 0))}, FunctionalDP(((0, 0.5), (1, 0)))),
        ({"epsilon": 1, "delta": 0}, PureDP(1)),
        ({"epsilon": 1, "delta": 0.1}, ApproximateDP(1, 0.1)),
    ],
)
def test_parameters_imply_the_definition(parameters: dict[str, Any], claim: PrivacyClaim) -> None:
    assert make_claim(parameters) == claim


def test_groups_and_compositions() -> None:
    assert group(ZeroConcentratedDP(0.5), 3) == ZeroConcentratedDP(4.5)
    assert compose([ZeroConcentratedDP(0.1), ZeroConcentratedDP(0.2)]).parameters()[
        "rho"
    ] == pytest.approx(0.3)
    assert compose([RenyiDP(2, 0.5), RenyiDP(2, 0.25)]) == RenyiDP(2, 0.75)
    assert isinstance(compose([RenyiDP(2, 0.5), RenyiDP(3, 0.5)]), ApproximateDP)
    assert compose([ComputationalDP(1, 0.1), ComputationalDP(0.5)]) == ComputationalDP(1.5, 0.1)
    assert group(ComputationalDP(0.5, 0.0, "m:f"), 2) == ComputationalDP(1.0, 0.0, "m:f")
    for claim in (RenyiDP(2, 0.5), ApproximateZCDP(0.1, 1e-6), ProbabilisticDP(1.0, 0.1)):
        assert code(group, claim, 2) == "no-group-bound"


def test_indistinguishability_is_transitive() -> None:
    """Exercise 7.2 of the seed 003, against three random laws on six outcomes."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, q, r = rng.dirichlet(np.full(6, 2.0), size=3)
        epsilons = rng.uniform(0, 1, size=2)

        def delta(first: Any, other: Any, epsilon: float) -> float:
            both = (first - math.exp(epsilon) * other, other - math.exp(epsilon) * first)
            return max(float(np.maximum(part, 0).sum()) for part in both)

        links = [delta(p, q, epsilons[0]), delta(q, r, epsilons[1])]
        claims = [ApproximateDP(*pair) for pair in zip(epsilons, links, strict=True)]
        forwards = links[0] + math.exp(epsilons[0]) * links[1]
        backwards = links[1] + math.exp(epsilons[1]) * links[0]
        if max(forwards, backwards) >= 1:
            with pytest.raises(ClaimError, match="chain"):
                chain(*claims)
            return
        whole = chain(*claims)
        assert delta(p, r, whole.epsilon) <= whole.delta + 1e-12
