"""The laws of the gallery: against enumeration by other means, and against their own samplers."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from mechanisms.gallery import laws
from mechanisms.truth import truth_of

OPENDP = truth_of(laws.opendp_0_14_1)
PURE_LDP = truth_of(laws.pure_ldp_1_1_2)
SLOPE = truth_of(laws.diffprivlib_slope)
D1, D2 = [(1.0, 0.0), (10.0, 0.0)], [(1.0, 0.0), (0.0, 0.0)]


def accepted(x: Fraction, terms: int = 40) -> Fraction:
    """Return the probability of an e^(-x) event under the division of dashu/#57."""
    total, reached = Fraction(0), Fraction(1)
    for k in range(1, terms):
        shared = math.gcd(x.numerator, k)
        quotient = Fraction(x.numerator // shared, (x.denominator // shared) * k)
        total += reached * (1 - quotient) * (k % 2)
        reached *= quotient
    return total


def test_the_true_epsilon_of_opendp() -> None:
    wrong = float(accepted(Fraction(2, 3)))
    assert wrong == pytest.approx(0.609, abs=5e-4)
    assert OPENDP.epsilon(0, 1) == pytest.approx(1 + math.log(wrong), rel=1e-12)
    assert OPENDP.epsilon(0, 1) == pytest.approx(0.504, abs=5e-4)
    assert OPENDP.epsilon(0, 1, scale=6) == pytest.approx(0.339, abs=5e-4)


def test_what_a_threshold_shows_of_it() -> None:
    first, second = OPENDP.pmf(0), OPENDP.pmf(1)
    below = [[sum(law[y] for y in law if y < t) for law in (first, second)] for t in range(-29, 31)]
    assert max(math.log(p / q) for p, q in below) == pytest.approx(0.372, abs=5e-4)


@pytest.mark.parametrize("scale", [1, 2])
def test_scales_that_are_spared(scale: int) -> None:
    law = OPENDP.pmf(0, scale=scale)
    assert OPENDP.epsilon(0, 1, scale=scale) == pytest.approx(1 / scale, rel=1e-9)
    for output in range(-20, 21):
        exact = math.tanh(1 / (2 * scale)) * math.exp(-abs(output) / scale)
        assert law[output] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("dataset", [0, 1])
def test_draws_of_the_biased_sampler(dataset: int) -> None:
    rng = np.random.default_rng(dataset)
    drawn = [laws.opendp_0_14_1(dataset, rng=rng) for _ in range(20_000)]
    assert_follows(drawn, OPENDP.pmf(dataset))


@pytest.mark.parametrize("dataset", [1, 2, 4])
def test_draws_of_unary_encoding(dataset: int) -> None:
    rng = np.random.default_rng(dataset)
    drawn = laws.pure_ldp_1_1_2(dataset, size=100_000, rng=rng)
    assert_follows(drawn, PURE_LDP.pmf(dataset))


def assert_follows(drawn: list[Any], law: dict[Any, float]) -> None:
    counts = Counter(drawn)
    assert counts.keys() <= law.keys()
    for output, probability in law.items():
        # Six standard errors, and one draw where hardly any is due: one false alarm in 10⁶.
        error = math.sqrt(probability * (1 - probability) * len(drawn))
        assert abs(counts[output] - probability * len(drawn)) <= 6 * error + 1


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 2.0])
def test_the_true_epsilon_of_unary_encoding(epsilon: float) -> None:
    q = 1 / (math.exp(epsilon / 2) + 1)
    assert PURE_LDP.epsilon(1, 2, epsilon=epsilon) == pytest.approx(math.log((1 - q + q**2) / q**2))
    assert PURE_LDP.epsilon(3, 3, epsilon=epsilon) == 0


def test_the_slope_has_no_epsilon_and_nearly_no_privacy() -> None:
    assert SLOPE.epsilon(D1, D2) == math.inf
    ratio = SLOPE.density(100.0, D2) / SLOPE.density(100.0, D1)
    assert math.log(ratio) > 300
    # δ(1) = ∫ max(0, p2 - e p1), and of the two directions this is the worse one.
    excess = [
        integrate.quad(
            lambda y, one=one, other=other: max(
                0.0, SLOPE.density(y, one) - math.e * SLOPE.density(y, other)
            ),
            -700,
            700,
            points=[-2, -1, 0, 1, 2],
            limit=400,
        )[0]
        for one, other in ((D1, D2), (D2, D1))
    ]
    assert max(excess) == pytest.approx(0.936, abs=5e-4)


def test_the_slope_where_squares_agree() -> None:
    one, other = [(10.0, 1.0)], [(10.0, 0.0)]
    assert SLOPE.epsilon(one, other) == pytest.approx(1 / 3)
    ratios = [SLOPE.density(y, one) / SLOPE.density(y, other) for y in (-1.0, 0.05, 3.0)]
    assert max(abs(math.log(one)) for one in ratios) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("records", "squares"), [(D1, 101), (D2, 1)])
def test_draws_of_the_slope(records: laws.Records, squares: float) -> None:
    drawn = laws.diffprivlib_slope(records, size=20_000, rng=np.random.default_rng(3))
    law = stats.laplace(scale=30 / squares)
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-6
    for y in (-3.0, 0.0, 40.0):
        assert SLOPE.density(y, records) == pytest.approx(law.pdf(y))
