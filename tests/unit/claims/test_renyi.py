"""Rényi DP: the least divergence that a point (ε, δ) implies."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dpaudit
from dpaudit import ApproximateZCDP, Verdict, ZeroConcentratedDP
from dpaudit.auditing.exact_pmf import certify_laws
from dpaudit.claims import ApproximateDP, compose, make_claim
from dpaudit.claims.renyi import (
    _MAX_DIVERGENCE,
    RenyiDP,
    _binary_divergence,
    _least_divergence,
    _renyi_delta,
)
from dpaudit.claims.solving import largest_parameter
from tests.result_files import from_json, to_json


def test_no_pair_of_coins_on_the_line_has_a_smaller_divergence() -> None:
    for delta, epsilon, order in product([1e-5, 1e-3, 0.4], [0.0, 1.0, 5.0], [1.05, 2.0, 64.0]):
        least, most = _least_divergence(order, epsilon, delta), (1 - delta) / math.exp(epsilon)
        every = []
        for place in range(1, 1_000):
            q = most * math.exp(-place / 50)
            p = delta + math.exp(epsilon) * q
            every.append(max(_binary_divergence(p, q, order), _binary_divergence(q, p, order)))
        assert least <= min(every) * (1 + 1e-9)
        assert least == pytest.approx(min(every), rel=1e-2)


@pytest.mark.parametrize("near", [math.inf, 0.0, 0.5466, 99.99])
def test_an_initial_guess_does_not_change_the_result(near: float) -> None:
    """The bound, 0.5466, is found with any guess, and with none."""
    delta_of = partial(_renyi_delta, 2.0, epsilon=1.0)
    actual = largest_parameter(delta_of, 0.1, _MAX_DIVERGENCE, near)
    assert actual == pytest.approx(largest_parameter(delta_of, 0.1, _MAX_DIVERGENCE), rel=2e-6)
    assert delta_of(actual) <= 0.1 < delta_of(actual * (1 + 4e-6))
    assert RenyiDP(2.0, 1.0).own_lower(1.0, 0.1)[1] == pytest.approx(actual, rel=2e-6)


Law = Mapping[str, float]
Pmf = NDArray[np.float64]

# D_a grows with a, and D_a / a is largest somewhere on this grid, or is log max P/Q / a beyond it.
ORDERS = 1 + np.geomspace(1e-4, 400, 400)
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0)


def discrete_gaussian(mean: int, sigma: float) -> dict[str, float]:
    """Return a law that is 1/(2σ²)-zCDP for means 1 apart (Canonne, Kamath & Steinke 2020)."""
    reach = range(mean - int(40 * sigma), mean + int(40 * sigma) + 1)
    weights = {str(x): math.exp(-((x - mean) ** 2) / (2 * sigma**2)) for x in reach}
    whole = math.fsum(weights.values())
    return {x: weight / whole for x, weight in weights.items()}


def failing(law: Law, delta: float, text: str) -> dict[str, float]:
    """Return the law that publishes its input with probability δ, and is `law` else."""
    return {**{x: (1 - delta) * p for x, p in law.items()}, text: delta}


def gaussians(sigma: float, delta: float) -> tuple[dict[str, float], dict[str, float]]:
    first, second = (failing(discrete_gaussian(x, sigma), delta, f"it is {x}") for x in (0, 1))
    return first, second


def delta_of(p: Law, q: Law, epsilon: float) -> float:
    return max(
        math.fsum(
            max(0.0, one.get(x, 0.0) - math.exp(epsilon) * other.get(x, 0.0)) for x in {*p, *q}
        )
        for one, other in ((p, q), (q, p))
    )


def rho_of(p: Pmf, q: Pmf) -> float:
    """Return the least ρ with D_a ≤ ρ a both ways, for two laws of one support."""

    def divergences(first: Pmf, other: Pmf) -> Pmf:
        terms = np.outer(ORDERS, np.log(first)) + np.outer(1 - ORDERS, np.log(other))
        return np.asarray(np.logaddexp.reduce(terms, axis=1) / (ORDERS - 1))

    both = np.maximum(divergences(p, q), divergences(q, p))
    beyond = float(np.abs(np.log(p / q)).max()) / ORDERS[-1]
    kullback_leibler = max(float((p * np.log(p / q)).sum()), float((q * np.log(q / p)).sum()))
    return float(max((both / ORDERS).max(), beyond, kullback_leibler)) * 1.0005  # between orders


# The profile ---------------------------------------------------------------------------------


def test_failing_gaussian_noise_stays_below_the_profile() -> None:
    for sigma, delta in product([0.6, 1.0, 3.0], [0.0, 1e-6, 0.02, 0.4]):
        claim = ApproximateZCDP(1 / (2 * sigma**2), delta)
        p, q = gaussians(sigma, delta)
        for epsilon in EPSILONS:
            assert delta_of(p, q, epsilon) <= claim.profile(epsilon) + 1e-14


def test_any_laws_that_satisfy_the_definition_stay_below_the_profile() -> None:
    """P₀ and Q₀ of random divergence; P₁ and Q₁ are anything, on the same outcomes and others."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 6))
        p, q = rng.dirichlet(np.full(size, 3.0), size=2)
        rho, delta = rho_of(p, q), float(rng.uniform(0, 0.5))
        claim = ApproximateZCDP(rho, delta)
        anything = rng.dirichlet(np.full(size + 2, 0.3), size=2)
        first, second = (
            (1 - delta) * np.append(inside, [0, 0]) + delta * other
            for inside, other in zip((p, q), anything, strict=True)
        )
        laws = [{str(x): float(one) for x, one in enumerate(law)} for law in (first, second)]
        for epsilon in EPSILONS:
            assert delta_of(laws[0], laws[1], epsilon) <= claim.profile(epsilon) + 1e-14


# Exact audits --------------------------------------------------------------------------------


def refuted(claim: dpaudit.PrivacyClaim, p: Law, q: Law) -> bool:
    table = [(x, p.get(x, 0.0), q.get(x, 0.0)) for x in {**p, **q}]
    return certify_laws(claim, "0 and 1", table).refuted


def test_an_exact_law_refutes_only_what_is_false() -> None:
    for sigma, delta in product([0.7, 1.0, 4.0], [0.0, 1e-8, 1e-3, 0.2]):
        rho = 1 / (2 * sigma**2)
        p, q = gaussians(sigma, delta)
        assert not refuted(ApproximateZCDP(rho, delta), p, q)
        # One event shows only a part of the divergence, so that ρ must be wrong by a margin.
        assert refuted(ApproximateZCDP(0.6 * rho, delta), p, q)
        if delta:
            assert refuted(ApproximateZCDP(rho, delta / 4), p, q)
            assert refuted(ZeroConcentratedDP(rho), *gaussians(sigma, 0.2))


# What is implied -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_composition_leaks_at_most_as_the_implied_claim_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    claims, laws = [], []
    for place in range(2):
        p, q = rng.dirichlet(np.full(3, 3.0), size=2)
        delta = float(rng.uniform(0, 0.3))
        claims.append(ApproximateZCDP(rho_of(p, q), delta))
        pair = [{str(x): float(one) for x, one in enumerate(law)} for law in (p, q)]
        laws.append([failing(law, delta, f"{place} {arm}") for arm, law in enumerate(pair)])
    together = [
        {f"{x}, {y}": a * b for x, a in laws[0][arm].items() for y, b in laws[1][arm].items()}
        for arm in (0, 1)
    ]
    implied = compose(claims)
    assert isinstance(implied, ApproximateZCDP)
    assert implied.rho == pytest.approx(sum(one.rho for one in claims))
    assert implied.delta <= sum(one.delta for one in claims)
    for epsilon in EPSILONS:
        assert delta_of(together[0], together[1], epsilon) <= implied.profile(epsilon) + 1e-14


def test_the_composition_of_one_claim_is_the_claim() -> None:
    claim = ApproximateZCDP(0.2, 0.1)
    assert compose([claim]) == claim
    assert compose([ApproximateZCDP(0.25, 0)] * 2) == make_claim({"rho": 0.5, "delta": 0})
    # Many releases fail almost surely, but with a probability below 1, unlike the sum of all δ.
    many = compose([claim] * 30).parameters()
    assert 1 - 0.9**30 <= many["delta"] < 1
    assert isinstance(compose([claim, ZeroConcentratedDP(0.1)]), ApproximateDP)


# Parameters and round trips ------------------------------------------------------------------


def fails_sometimes(x: int, share: float, size: int, rng: np.random.Generator) -> Any:
    """Publish the input with some probability, else add noise of 0.5-zCDP."""
    return np.where(rng.random(size) < share, 100 * x - 50, x + rng.normal(size=size))


@pytest.mark.parametrize(
    ("rho", "delta", "verdict"),
    [
        (0.5, 0.3, Verdict.NO_VIOLATION_FOUND),
        (0.1, 0.3, Verdict.VIOLATION),
        (0.5, 0.02, Verdict.VIOLATION),
    ],
)
def test_audits_refute_false_claims_and_round_trip_through_json(
    rho: float, delta: float, verdict: Verdict
) -> None:
    claim = ApproximateZCDP(rho, delta)
    mechanism = partial(fails_sometimes, share=0.3)
    result = dpaudit.audit(mechanism, 0, 1, claim, samples=4_000)
    assert result.verdict is verdict
    (again,) = from_json(to_json([result]))
    assert again.claim == claim
    assert json.loads(to_json([result]))["audits"][0]["claim"] == {
        "definition": "approximate-zcdp",
        **claim.parameters(),
    }
