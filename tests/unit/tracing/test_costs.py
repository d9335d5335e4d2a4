"""Costs of noise, against independent sums and integrals of the laws."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from dpaudit.claims import ApproximateDP as ApproxDP
from dpaudit.claims import GaussianDP, PureDP, RenyiDP, TotalVariation, ZeroConcentratedDP
from dpaudit.tracing.costs import Piece, exceeds, sum_exceeds, tail, together
from dpaudit.tracing.findings.detectors import excess
from dpaudit.tracing.runs.coins import epsilon as log_ratio

LAWS = {"laplace": stats.laplace, "normal": stats.norm, "logistic": stats.logistic}
SHIFTS = (0.3, 1.0, 4.0)
SCALES = ((1.0, 1.0), (0.5, 0.5), (1.0, 1.3), (2.0, 1.0))
EPSILONS = (0.0, 0.2, 1.0, 2.5)


def weights(x: Any) -> Any:
    """Return what the trapezoidal rule multiplies the values at some points by."""
    steps = np.diff(x)
    return (np.append(steps, 0) + np.append(0, steps)) / 2


_WIDE = np.geomspace(1e-4, 1e7, 30_001)
POINTS = np.unique(np.concatenate([-_WIDE, _WIDE, np.linspace(-60, 60, 240_001)]))
WEIGHTS = weights(POINTS)


@functools.lru_cache
def density(law: str, location: float, scale: float) -> Any:
    return LAWS[law](location, scale).pdf(POINTS)


def integrated(law: str, scales: tuple[float, float], shift: float, epsilon: float) -> float:
    """Return the profile by quadrature of the densities."""
    first, second = density(law, 0.0, scales[0]), density(law, shift, scales[1])
    return max(
        float(np.maximum(0.0, p - math.exp(epsilon) * q) @ WEIGHTS)
        for p, q in ((first, second), (second, first))
    )


def piece(law: str, scales: tuple[float, float], shift: float) -> Piece:
    return Piece(law, scales, shift, released=True)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scales", SCALES)
def test_profile_is_the_integral(law: str, scales: tuple[float, float]) -> None:
    for shift, epsilon in itertools.product(SHIFTS, EPSILONS):
        delta = piece(law, scales, shift).delta(epsilon)
        assert delta == pytest.approx(integrated(law, scales, shift, epsilon), rel=2e-4, abs=2e-6)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_profile_of_one_sided_noise(scale: float) -> None:
    # What lies beyond is e⁻²⁰ of the widest.
    x = np.linspace(0, 64, 640_001)
    at_points, first = weights(x), stats.expon(0, scale).pdf(x)
    for shift in SHIFTS:
        densities = first, stats.expon(shift, scale).pdf(x)
        noise = piece("exponential", (scale, scale), shift)
        for epsilon in EPSILONS:
            deltas = [
                float(np.maximum(0.0, p - math.exp(epsilon) * q) @ at_points)
                for p, q in (densities, densities[::-1])
            ]
            assert noise.delta(epsilon) == pytest.approx(max(deltas), abs=2e-4)
        assert noise.value == math.inf
        assert exceeds(noise, PureDP(1.0))


@pytest.mark.parametrize("shift", [1, 3])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_profiles_of_whole_numbers_are_sums(shift: int, epsilon: float) -> None:
    k = np.arange(-500, 501)
    for law, masses in (
        ("discrete", lambda at: stats.dlaplace.pmf(k - at, 1 / 1.5)),
        ("geometric", lambda at: stats.geom.pmf(k - at + 1, -math.expm1(-1 / 1.5))),
    ):
        p, q = masses(0), masses(shift)  # type: ignore[no-untyped-call]  # of scipy
        sums = [np.maximum(0, a - math.exp(epsilon) * b).sum() for a, b in ((p, q), (q, p))]
        delta = piece(law, (1.5, 1.5), shift).delta(epsilon)
        assert delta == pytest.approx(max(sums), abs=1e-12)


@pytest.mark.parametrize("law", ["laplace", "normal"])
@pytest.mark.parametrize("order", [1.5, 2.0, 8.0])
def test_divergence_is_the_integral(law: str, order: float) -> None:
    first, second = LAWS[law](0, 1.2), LAWS[law](1, 1.2)
    x = np.linspace(-60, 60, 1_200_001)
    inside = np.exp(order * first.logpdf(x) + (1 - order) * second.logpdf(x))
    expected = math.log(integrate.trapezoid(inside, x)) / (order - 1)
    assert piece(law, (1.2, 1.2), 1.0).divergence(order) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("law", ["laplace", "logistic", "gumbel"])
def test_an_infinite_ratio_in_the_tails_is_no_infinite_divergence(law: str) -> None:
    scales = (1.0, 1.0) if law == "gumbel" else (1.0, 1.01)
    noise = piece(law, scales, 0.1)
    assert noise.value == math.inf
    assert noise.divergence(2.0) is None
    assert not exceeds(noise, RenyiDP(2.0, 5.0))


@pytest.mark.parametrize(
    ("law", "claim"),
    [
        ("laplace", PureDP(1.0)),
        ("discrete", PureDP(1.0)),
        ("logistic", PureDP(1.0)),
        ("laplace", ApproxDP(0.5, -math.expm1(-0.25))),
        ("laplace", TotalVariation(-math.expm1(-0.5))),
        ("normal", GaussianDP(1.0)),
        ("normal", ZeroConcentratedDP(0.5)),
        ("normal", RenyiDP(4.0, 2.0)),
        ("normal", TotalVariation(2 * stats.norm.cdf(0.5) - 1)),
        ("normal", ApproxDP(1.0, stats.norm.cdf(-0.5) - math.e * stats.norm.cdf(-1.5))),
    ],
)
def test_a_scale_one_percent_too_small_is_above_a_claim(law: str, claim) -> None:  # type: ignore[no-untyped-def]
    assert not exceeds(piece(law, (1.0, 1.0), 1.0), claim)
    assert not exceeds(piece(law, (1.01, 1.01), 1.0), claim)
    assert exceeds(piece(law, (0.99, 0.99), 1.0), claim)


@pytest.mark.parametrize("mu", [0.001, 0.01, 0.1, 1.0, 5.0, 10.0])
def test_normal_noise_of_its_own_claim_is_no_cause(mu: float) -> None:
    noise = piece("normal", (1.0, 1.0), mu)
    for claim in (GaussianDP(mu), ZeroConcentratedDP(mu**2 / 2), RenyiDP(2.0, mu**2)):
        assert not exceeds(noise, claim), claim


def test_tail_of_discrete_noise_is_a_sum() -> None:
    x = np.arange(-400, 401)
    for scale, margin in itertools.product((0.5, 3.0), (-2.5, -1.0, 0.0, 0.5, 2.0)):
        masses = math.tanh(1 / (2 * scale)) * np.exp(-np.abs(x) / scale)
        expected = float(np.sum(masses[x > margin]))
        assert tail("discrete", scale, margin) == pytest.approx(expected, rel=1e-9)
    assert tail("cauchy", 1.0, 2.0) is None


@pytest.mark.parametrize("margin", [-3.0, 0.0, 3.0])
@pytest.mark.parametrize("law", ["laplace", "normal", "logistic"])
def test_tail_of_continuous_noise_is_the_survival_function(law: str, margin: float) -> None:
    assert tail(law, 2.0, margin) == pytest.approx(LAWS[law](0, 2).sf(margin), rel=1e-9)


def test_divergences_are_exact_or_unknown() -> None:
    assert piece("laplace", (1.0, 1.0), 0.0).divergence(2.0) == 0
    for law in ("logistic", "unknown"):
        assert piece(law, (1.0, 1.0), 1.0).divergence(2.0) is None


def test_edges() -> None:
    laws = ("laplace", "normal", "logistic", "discrete", "geometric", "uniform", "cauchy")
    for law in laws:
        assert piece(law, (1.0, 1.0), 0.0).delta(0.0) in (0.0, None)
    for law in laws[:3]:
        assert piece(law, (0.0, 0.0), 1.0).delta(1.0) == 1.0
        assert piece(law, (0.0, 1.0), 1.0).delta(1.0) == 1.0
        assert piece(law, (1.0, 1.0), 1e9).delta(1.0) == pytest.approx(1.0)
    for scale in (math.nan, math.inf):
        assert not exceeds(piece("laplace", (scale, scale), 1.0), PureDP(1.0))
    assert not exceeds(piece("unknown", (math.nan, math.nan), 1.0), PureDP(1.0))
    assert together([piece("unknown", (1.0, 1.0), 1.0)]) is None
    assert not sum_exceeds([], PureDP(1.0))
    assert sum_exceeds([piece("laplace", (1.0, 1.0), 1.0)] * 2, PureDP(1.99))
    assert not sum_exceeds([piece("laplace", (1.0, 1.0), 1.0)] * 2, PureDP(2.0))


def test_choices() -> None:
    first, second = np.array([0.25, 0.75]), np.array([0.5, 0.5])
    assert log_ratio(first, second) == pytest.approx(math.log(2))
    assert not excess(first, second, PureDP(math.log(2)))
    assert excess(first, second, PureDP(0.99 * math.log(2)))
    assert not excess(first, second, TotalVariation(0.25))
    assert excess(first, second, TotalVariation(0.2475))
    assert not excess(first, second, PureDP(1000.0))
    # D_2 in both directions, summed by hand
    most = max(math.log(0.25**2 / 0.5 + 0.75**2 / 0.5), math.log(0.5**2 / 0.25 + 0.5**2 / 0.75))
    assert not excess(first, second, RenyiDP(2.0, most))
    assert excess(first, second, RenyiDP(2.0, 0.99 * most))
    assert excess(np.array([0.0, 1.0]), second, RenyiDP(2.0, 9.0))
    assert excess(np.array([0.0, 1.0]), second, None)
    # A softmax whose least probability is 0 by rounding.
    assert not excess(np.array([0.0, 1.0]), np.array([1e-310, 1.0]), None)
