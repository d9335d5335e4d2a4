"""The factor of a night and the evidence over nights, compared with enumerations."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.certificates.result import FreshCounts
from dpaudit.claims import ProfilePoint
from dpaudit.nights.detector import ALTERNATIVES, likely_first, log_evidence, log_factors

POINTS = (
    *(ProfilePoint(epsilon, 0.0) for epsilon in (0.0, 0.1, 1.0, 8.0)),
    *(ProfilePoint(0.0, 0.2), ProfilePoint(0.5, 0.1), ProfilePoint(3.0, 1e-3)),
)


def laws(point: ProfilePoint, *, two_guesses: bool) -> list[tuple[float, float, float]]:
    """Return laws (right, wrong, none) of a guess that the claim allows just so."""
    spared = (1.0 if two_guesses else 0.5) * point.delta
    most = (1 - spared) / (1 + math.exp(point.epsilon))
    wrongs = [0.0, 0.3 * most, most]
    return [(r, w, 1 - r - w) for w in wrongs for r in [math.exp(point.epsilon) * w + spared]]


def expected_factor(
    law: tuple[float, float, float], draws: int, point: ProfilePoint, *, two_guesses: bool
) -> np.ndarray:
    total = np.zeros(7)
    for right in range(draws + 1):
        for wrong in range(draws + 1 - right):
            none = draws - right - wrong
            ways = math.comb(draws, right) * math.comb(draws - right, wrong)
            probability = ways * law[0] ** right * law[1] ** wrong * law[2] ** none
            counts = FreshCounts(right, wrong, none, two_guesses, point)
            total += probability * np.exp(log_factors(counts, point))
    return total


@pytest.mark.parametrize("two_guesses", [False, True])
@pytest.mark.parametrize("point", POINTS, ids=str)
def test_a_factor_has_expectation_one_where_the_claim_is_met_just_so(
    point: ProfilePoint, two_guesses: bool
) -> None:
    for law in laws(point, two_guesses=two_guesses):
        for draws in (1, 2, 7):
            expected = expected_factor(law, draws, point, two_guesses=two_guesses)
            assert expected == pytest.approx(np.ones(7), rel=1e-9)
            assert (expected <= 1 + 1e-14).all()


def test_a_factor_grows_where_the_claim_is_broken() -> None:
    point = ProfilePoint(1.0, 0.0)
    right = 1 / (1 + math.exp(-1.5))
    expected = expected_factor((right, 1 - right, 0.0), 7, point, two_guesses=True)
    assert (expected > 1.0005).all()


def test_without_delta_a_factor_is_the_ratio_of_the_shares_of_right_guesses() -> None:
    point, counts = ProfilePoint(1.0, 0.0), FreshCounts(30, 10, 5, True, ProfilePoint(1.0, 0.0))
    claimed, alternative = (1 / (1 + np.exp(-np.array(e))) for e in (1.0, ALTERNATIVES))
    log_ratio = 30 * np.log(alternative / claimed) + 10 * np.log((1 - alternative) / (1 - claimed))
    assert log_factors(counts, point) == pytest.approx(log_ratio, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 40.0, 800.0])
def test_factors_of_extreme_claims_are_numbers(epsilon: float) -> None:
    for right, wrong in ((1_000, 0), (0, 1_000), (0, 0)):
        counts = FreshCounts(right, wrong, 10, True, ProfilePoint(epsilon, 0.0))
        assert np.isfinite(log_factors(counts, counts.point)).all()


def test_the_evidence_is_the_sum_over_all_first_nights() -> None:
    factors = np.random.default_rng(0).normal(size=(6, 2, 7))
    by_first = [np.exp(factors[first:].sum(axis=0)) for first in range(6)]
    assert math.exp(log_evidence(factors)) == pytest.approx(np.mean(sum(by_first)))
    assert likely_first(factors) == int(np.argmax([part.mean() for part in by_first]))


def test_nights_without_draws_count_as_nights() -> None:
    assert math.exp(log_evidence(np.zeros((5, 1, 7)))) == pytest.approx(5)
    assert log_evidence(np.zeros((0, 1, 7))) == -math.inf


def test_the_likely_first_night_is_where_the_leak_began() -> None:
    factors = np.full((30, 1, 7), -2.0)
    factors[22:] = 1.5
    assert likely_first(factors) == 22
