"""Laplace queries, noisy max and the exponential mechanism, against other ways to compute them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from mechanisms import exponential, laplace_queries, noisy_max
from mechanisms.truth import truth_of

ROWS = [[0, 1, 0], [1, 1, 0], [0, 0, 0]]
CHANGED = [[0, 1, 0], [1, 1, 0], [1, 1, 1]]
# Specimen, parameters, the scale of its noise, and the ε that follows by hand.
SUMS: list[tuple[Callable[..., Any], dict[str, float], float, float]] = [
    (laplace_queries.column_sums, {}, 3.0, 1.0),
    (laplace_queries.column_sums, {"epsilon": 0.5}, 6.0, 0.5),
    (laplace_queries.column_sums_linf, {}, 1.0, 3.0),
    (laplace_queries.column_sums_linf, {"epsilon": 0.5}, 2.0, 1.5),
    (laplace_queries.column_sums_half, {}, 1.5, 2.0),
]


@pytest.mark.parametrize(("specimen", "params", "scale", "epsilon"), SUMS)
def test_sums_have_the_stated_density_and_epsilon(
    specimen: Callable[..., Any], params: dict[str, float], scale: float, epsilon: float
) -> None:
    truth, rng = truth_of(specimen), np.random.default_rng(1)
    assert truth.epsilon(ROWS, CHANGED, **params) == pytest.approx(epsilon)
    outputs = [*rng.normal(1, 3, (200, 3)), np.array([-1.0, -1.0, -1.0])]
    p = [truth.density(one, ROWS, **params) for one in outputs]
    q = [truth.density(one, CHANGED, **params) for one in outputs]
    assert p == pytest.approx([np.prod(stats.laplace.pdf(y, [1, 2, 0], scale)) for y in outputs])
    assert q == pytest.approx([np.prod(stats.laplace.pdf(y, [2, 3, 1], scale)) for y in outputs])
    assert np.abs(np.log(p) - np.log(q)).max() == pytest.approx(epsilon)


@pytest.mark.parametrize(("specimen", "params", "scale", "epsilon"), SUMS)
def test_sums_are_drawn_as_stated(
    specimen: Callable[..., Any], params: dict[str, float], scale: float, epsilon: float
) -> None:
    drawn = specimen(ROWS, size=20_000, rng=np.random.default_rng(2), **params)
    assert drawn.shape == (20_000, 3)
    for column, centre in zip(drawn.T, (1, 2, 0), strict=True):
        assert stats.kstest(column, stats.laplace(centre, scale).cdf).pvalue > 1e-6
    assert np.abs(np.corrcoef(drawn.T) - np.eye(3)).max() < 0.05


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_mean_is_released_as_one_number_of_sensitivity_one_nth(epsilon: float) -> None:
    truth = truth_of(laplace_queries.mean)
    d1, d2 = [0, 1, 0, 1, 1], [0, 1, 1, 1, 1]
    assert truth.epsilon(d1, d2, epsilon=epsilon) == pytest.approx(epsilon)
    drawn = laplace_queries.mean(d1, epsilon, size=20_000, rng=np.random.default_rng(3))
    law, other = stats.laplace(0.6, 0.2 / epsilon), stats.laplace(0.8, 0.2 / epsilon)
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-6
    assert truth.density([0.3], d1, epsilon=epsilon) == pytest.approx(law.pdf(0.3))
    # δ(ε') is that of the event {y ≤ t} at the threshold where the densities' ratio is e^ε'.
    at = epsilon / 3
    threshold = 0.7 - 0.1 * at / epsilon
    delta = law.cdf(threshold) - math.exp(at) * other.cdf(threshold)
    assert truth.profile(d1, d2, at, epsilon=epsilon) == pytest.approx(delta)


@pytest.mark.parametrize("gap", [0, 0.3, 1, 4, 30])
@pytest.mark.parametrize("scale", [0.5, 1, 2])
def test_noisy_max_of_two_has_a_closed_form(gap: float, scale: float) -> None:
    """The difference of two Laplace variables exceeds t with probability ½ e^{-t}(1 + t/2)."""
    t = gap / scale
    law = noisy_max.winning_law([gap, 0], scale)
    assert law[1] == pytest.approx(math.exp(-t) * (1 + t / 2) / 2, rel=1e-12)
    assert law[0] == pytest.approx(1 - law[1], abs=1e-13)


@pytest.mark.parametrize(
    "answers", [[6, 4, 3], [7, 3, 3], [0, 0, 0, 0], [40, 1, 2], [0, 0.5, 9, 9, 3, 20]]
)
@pytest.mark.parametrize("scale", [0.7, 2.0])
def test_noisy_max_agrees_with_adaptive_quadrature(answers: list[float], scale: float) -> None:
    law = noisy_max.winning_law(answers, scale)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-13)
    for index, probability in law.items():
        expected = _adaptive_quadrature(answers, index, scale)
        assert probability == pytest.approx(expected, abs=1e-10)


def _adaptive_quadrature(answers: Sequence[float], index: int, scale: float) -> float:
    others = [answer for i, answer in enumerate(answers) if i != index]

    def cdf(t: float) -> float:
        return math.exp(t) / 2 if t < 0 else 1 - math.exp(-t) / 2

    def integrand(x: float) -> float:
        density = math.exp(-abs(x - answers[index]) / scale) / (2 * scale)
        return density * math.prod(cdf((x - answer) / scale) for answer in others)

    edges = sorted({min(answers) - 40 * scale, *answers, max(answers) + 40 * scale})
    areas = [
        integrate.quad(integrand, one, other, epsabs=1e-13, limit=200)[0]
        for one, other in pairwise(edges)
    ]
    return math.fsum(areas)


def test_noisy_max_approaches_its_epsilon_for_rarer_and_rarer_outputs() -> None:
    """With one disease far ahead, a replaced diagnosis moves the other one's log chance by ε."""
    for specimen, limit in ((noisy_max.noisy_max, 1.0), (noisy_max.noisy_max_half, 2.0)):
        truth = truth_of(specimen)
        found = [
            truth.epsilon([0] * ahead + [1], [0] * (ahead + 1), diseases=2)
            for ahead in (2, 8, 40, 200)
        ]
        assert found == sorted(found)
        assert 0.98 * limit < found[-1] < limit


def test_half_the_noise_is_enough_where_all_counts_move_the_same_way() -> None:
    """Dwork & Roth 2014, Claim 3.9, for every multiset of up to eight diagnoses."""
    truth, rng = truth_of(noisy_max.noisy_max_half), np.random.default_rng(4)
    for _ in range(100):
        diagnoses = rng.integers(0, 3, rng.integers(1, 9)).tolist()
        assert truth.epsilon(diagnoses, [*diagnoses, int(rng.integers(3))]) <= 1


@pytest.mark.parametrize(
    ("d1", "d2", "stated"),
    [
        ([0, 0, 0, 0], [1, 1, 1, 1], 2.0),
        ([5, 0], [6, 1], 1.0),
        ([0, 1, 3], [1, 1.5, 3], 0.75),
        ([2, 2, 2], [1, 1, 2], 1.0),
    ],
)
def test_value_of_a_noisy_max_tells_more_than_its_index(
    d1: list[float], d2: list[float], stated: float
) -> None:
    truth = truth_of(noisy_max.noisy_max_value)
    assert truth.epsilon(d1, d2) == pytest.approx(stated)
    outputs = np.linspace(-40, 40, 801)
    ratios = [math.log(truth.density(y, d1) / truth.density(y, d2)) for y in outputs]
    assert max(map(abs, ratios)) == pytest.approx(stated, rel=1e-9)
    drawn = noisy_max.noisy_max_value(d1, size=20_000, rng=np.random.default_rng(5))
    laws = [stats.laplace(answer, 2) for answer in d1]
    assert stats.kstest(drawn, lambda y: np.prod([one.cdf(y) for one in laws], 0)).pvalue > 1e-6
    area, _ = integrate.quad(truth.density, -90, 0.7, args=(d1,), points=sorted({0, *d1})[:1])
    assert area == pytest.approx(np.prod([one.cdf(0.7) for one in laws]), abs=1e-8)


def test_exponential_mechanism_by_hand() -> None:
    law = truth_of(exponential.common_disease).pmf([0, 0, 1], epsilon=2 * math.log(2))
    assert law == pytest.approx({0: 4 / 7, 1: 2 / 7, 2: 1 / 7})
    assert exponential.exponential_law([1000.0, 1000.0]) == [0.5, 0.5]
    assert exponential.revenues([0.3, 0.5, 1.0], [0.25, 0.5, 1.0]) == [0.75, 1.0, 1.0]


@pytest.mark.parametrize(
    ("specimen", "dataset", "params", "scores"),
    [
        (exponential.common_disease, [2, 2, 0], {"epsilon": 3.0}, [1.5, 0.0, 3.0]),
        (exponential.common_disease_printed, [2, 2, 0], {}, [0.5, 0.0, 1.0]),
        (exponential.common_disease_without_two, [2, 2, 0], {"epsilon": 3.0}, [3.0, 0.0, 6.0]),
        (exponential.auction, [4.0, 1.0], {"prices": [1.0, 4.0]}, [2 / 8, 4 / 8]),
        (exponential.auction_without_two, [4.0, 1.0], {"prices": [1.0, 4.0]}, [2 / 4, 4 / 4]),
        (exponential.auction_sensitivity_one, [4.0, 1.0], {"prices": [1.0, 4.0]}, [2 / 2, 4 / 2]),
    ],
)
def test_weights_are_those_that_are_documented(
    specimen: Callable[..., Any], dataset: Any, params: dict[str, Any], scores: list[float]
) -> None:
    law = list(truth_of(specimen).pmf(dataset, **params).values())
    assert law == pytest.approx(np.exp(scores) / np.exp(scores).sum())


def test_counts_need_the_factor_two_and_the_auction_does_not() -> None:
    rng, prices = np.random.default_rng(6), (0.25, 0.5, 0.75, 1.0)
    auction, half = truth_of(exponential.auction_without_two), truth_of(exponential.auction)
    for _ in range(200):
        bids = rng.random(rng.integers(1, 8)).round(2).tolist()
        changed = [*bids[1:], float(rng.random())]
        assert auction.epsilon(bids, changed, prices=prices) <= 1
        assert half.epsilon(bids, changed, prices=prices) <= 0.5
    counts = truth_of(exponential.common_disease_without_two)
    assert counts.epsilon([0] * 9 + [1], [0] * 10) > 1.99
    assert truth_of(exponential.common_disease).epsilon([0] * 30 + [1], [0] * 31) < 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("sensitivity", [1.0, 2.0])
def test_utility_guarantee_holds_exactly(epsilon: float, sensitivity: float) -> None:
    """Dwork & Roth 2014, Thm. 3.11, on laws of which every probability is known."""
    assert exponential.utility_floor(100, 10, 1.0, 3.0) == pytest.approx(89.39, abs=0.005)
    rng = np.random.default_rng(7)
    for _ in range(200):
        options, slack = int(rng.integers(2, 60)), float(rng.uniform(0, 4))
        floor = exponential.utility_floor(0.0, options, epsilon, slack, sensitivity)
        # Just at the floor is where most probability lies below; elsewhere at random.
        lower = rng.choice([floor, 2 * floor, 0.5 * floor], size=options - 1).tolist()
        assert _below([0.0, *lower], epsilon / (2 * sensitivity), floor) <= math.exp(-slack)


@pytest.mark.parametrize(("slack", "found"), [(0.0, 99 / 109), (2.0, 0.7846)])
def test_printed_utility_guarantee_does_not_hold(slack: float, found: float) -> None:
    floor = exponential.printed_utility_floor(0.0, 100, 1.0, slack)
    utilities = [0.0] + 99 * [floor]
    assert _below(utilities, 0.5, floor) == pytest.approx(found, abs=1e-4)
    if slack:
        assert found > 5 * math.exp(-slack)
    # It is that of e^{εu}, without the factor 2 in the mechanism as well.
    assert _below(utilities, 1.0, floor) <= math.exp(-slack)


def _below(utilities: list[float], factor: float, floor: float) -> float:
    """The exact probability of a utility of at most `floor`, under weights e^{factor·u}."""
    law = exponential.exponential_law([factor * utility for utility in utilities])
    return math.fsum(p for p, utility in zip(law, utilities, strict=True) if utility <= floor)
