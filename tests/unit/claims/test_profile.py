"""Claims of several points of a privacy curve."""

from __future__ import annotations

import math

import pytest

from dpaudit.claims import ApproximateDP, ProfileDP, ProfilePoint, make_claim
from dpaudit.claims.tradeoff import gaussian_delta
from tests.raising import code

POINTS = [[1.0, gaussian_delta(1.0, 1.0)], [4.0, gaussian_delta(1.0, 4.0)], [0.0, 0.39]]


def test_every_point_is_tested_and_the_first_represents_the_claim() -> None:
    claim = make_claim({"guarantees": POINTS})
    assert claim == ProfileDP(POINTS)
    assert claim.points() == tuple(ProfilePoint(*one) for one in POINTS)
    assert claim.parameters() == {"guarantees": POINTS}
    assert make_claim(claim.parameters(), "profile") == claim


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5, 4.0, 9.0])
def test_the_profile_is_the_least_that_a_point_implies(epsilon: float) -> None:
    implied = [ApproximateDP(*one).profile(epsilon) for one in POINTS]
    assert ProfileDP(POINTS).profile(epsilon) == min(implied)
    # A mechanism that has all points satisfies the profile: here one with Gaussian noise.
    assert ProfileDP(POINTS).profile(epsilon) >= gaussian_delta(1.0, epsilon)


@pytest.mark.parametrize("table", [3, [], [1, 2], [[1, 1.0]], [[math.inf, 0.1]]])
def test_impossible_tables_are_refused(table: object) -> None:
    assert code(make_claim, {"guarantees": table}) == "option-invalid"
