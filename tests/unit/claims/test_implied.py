"""What claims imply, against exact probabilities: groups, composition, relaxation, beliefs."""

from __future__ import annotations

import itertools
import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.claims import (
    ApproximateDP,
    PrivacyClaim,
    ProbabilisticDP,
    PureDP,
    TotalVariation,
    compose,
    group,
    posterior_bounds,
    relax,
)
from dpaudit.errors import ClaimError
from tests.raising import code

Pmf = NDArray[np.float64]
EPSILONS = (0.0, 0.3, 1.0)


def profile(p: Pmf, q: Pmf, epsilon: float) -> float:
    """Return the exact δ(ε) of two laws, the larger of both directions."""
    ratio = math.exp(epsilon)
    return max(float(np.maximum(one - ratio * other, 0).sum()) for one, other in ((p, q), (q, p)))


def neighbours(seed: int, count: int) -> list[Pmf]:
    """Return laws of a mechanism on inputs that each differ from the next in one record."""
    rng = np.random.default_rng(seed)
    return list(rng.dirichlet(np.full(5, 2.0), size=count))


def randomized_response(epsilon: float) -> tuple[Pmf, Pmf]:
    share = 1 / (1 + math.exp(-epsilon))
    return np.array([share, 1 - share]), np.array([1 - share, share])


def revealing(epsilon: float, delta: float) -> tuple[Pmf, Pmf]:
    """Return the tight pair: revealed with probability δ, else randomized response."""
    p, q = randomized_response(epsilon)
    return np.append((1 - delta) * p, [delta, 0]), np.append((1 - delta) * q, [0, delta])


def test_a_group_leaks_at_most_as_the_implied_claim_allows() -> None:
    for seed, epsilon in product(range(20), EPSILONS):
        laws = neighbours(seed, 4)
        delta = max(profile(p, q, epsilon) for p, q in itertools.pairwise(laws))
        for size in (1, 2, 3):
            try:
                implied = group(ApproximateDP(epsilon, delta), size).point()
            except ClaimError:  # δ would reach 1
                assert delta * sum(math.exp(i * epsilon) for i in range(size)) >= 1
                continue
            assert profile(laws[0], laws[size], implied.epsilon) <= implied.delta + 1e-12


def test_groups_of_pure_claims_and_distances() -> None:
    assert group(PureDP(0.5), 4) == PureDP(2.0)
    assert group(ApproximateDP(0, 0.1), 3).point().delta == pytest.approx(0.3)
    assert group(TotalVariation(0.1), 3).point().delta == pytest.approx(0.3)
    three = group(ApproximateDP(1, 1e-6), 3).point()
    assert three.epsilon == 3.0
    assert three.delta == pytest.approx(1e-6 * (1 + math.e + math.e**2))
    # Tight for pure claims: a chain of inputs on which randomized response shifts by ε each.
    assert group(PureDP(0.0), 10) == PureDP(0.0)


@pytest.mark.parametrize("size", [0, 1.5, True, "2"])
def test_a_group_is_a_number_of_records(size: Any) -> None:
    assert code(group, PureDP(1.0), size) == "option-invalid"


@pytest.mark.parametrize("epsilon", [0.5, 800.0])
def test_a_vacuous_delta_is_refused(epsilon: float) -> None:
    assert code(group, ApproximateDP(epsilon, 0.5), 2) == "claim-says-nothing"


def test_a_composition_leaks_at_most_the_sum() -> None:
    for epsilons, seed in product(list(itertools.product(EPSILONS, repeat=2)), range(20)):
        pairs = [tuple(neighbours(100 * seed + place, 2)) for place in range(2)]
        claims = [
            ApproximateDP(epsilon, profile(p, q, epsilon))
            for epsilon, (p, q) in zip(epsilons, pairs, strict=True)
        ]
        try:
            implied = compose(claims).point()
        except ClaimError:
            assert sum(claim.delta for claim in claims) >= 1
            return
        p, q = (np.outer(pairs[0][arm], pairs[1][arm]).ravel() for arm in (0, 1))
        assert profile(p, q, implied.epsilon) <= implied.delta + 1e-12


def test_composition_of_pure_claims_is_tight() -> None:
    pairs = [randomized_response(epsilon) for epsilon in (0.5, 1.0)]
    p, q = (np.outer(pairs[0][arm], pairs[1][arm]).ravel() for arm in (0, 1))
    together = compose([PureDP(0.5), PureDP(1.0)])
    assert together == PureDP(1.5)
    assert np.log(p / q).max() == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("claims", "implied"),
    [
        ([TotalVariation(0.1), TotalVariation(0.2)], (0.0, 0.3)),
        ([PureDP(1), ProbabilisticDP(0.5, 0.01)], (1.5, 0.01)),
        ([PureDP(1), TotalVariation(0.1)], (1.0, 0.1)),
    ],
)
def test_claims_of_different_kinds_compose(
    claims: list[PrivacyClaim], implied: tuple[float, float]
) -> None:
    point = compose(claims).point()
    assert (point.epsilon, point.delta) == pytest.approx(implied)


@pytest.mark.parametrize(("delta", "smaller"), [(0.0, 0.0), (1e-5, 0.4), (0.1, 0.4), (0.1, 1.0)])
def test_the_tight_relaxation_is_attained_and_the_simple_one_is_larger(
    smaller: float, delta: float
) -> None:
    exact = profile(*revealing(1.0, delta), smaller)
    tight = relax(ApproximateDP(1.0, delta), smaller)
    assert tight.delta == pytest.approx(exact, abs=1e-12)
    if delta + math.e - math.exp(smaller) < 1:
        simple = relax(ApproximateDP(1.0, delta), smaller, tight=False)
        assert simple.delta == pytest.approx(delta + math.e - math.exp(smaller))
        assert simple.delta >= tight.delta - 1e-12


def test_impossible_relaxations_are_refused() -> None:
    assert code(relax, ApproximateDP(1, 1e-5), 0.5, tight=False) == "claim-says-nothing"
    assert code(relax, PureDP(1.0), 2.0) == "option-invalid"


def test_beliefs_move_at_most_by_bayes_rule() -> None:
    for epsilon, prior in product([0.0, 1.1, 5.0, 2_000.0], [0.0, 0.1, 0.5, 0.9, 1.0]):
        low, high = posterior_bounds(epsilon, prior)
        assert 0 <= low <= prior + 1e-12
        assert prior - 1e-12 <= high <= 1
        if 0 < prior < 1 and epsilon < 10:
            odds = prior / (1 - prior)
            assert low / (1 - low) == pytest.approx(odds * math.exp(-epsilon))
            assert high / (1 - high) == pytest.approx(odds * math.exp(epsilon))


def test_half_and_half_becomes_three_to_one_at_ln_3() -> None:
    assert posterior_bounds(math.log(3), 0.5) == pytest.approx((0.25, 0.75))
    assert code(posterior_bounds, 1.0, 1.5) == "option-invalid"


def test_post_processing_never_leaks_more() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p, q = neighbours(seed, 2)
        kernel = rng.dirichlet(np.ones(3), size=5)
        for epsilon in EPSILONS:
            assert profile(p @ kernel, q @ kernel, epsilon) <= profile(p, q, epsilon) + 1e-12
