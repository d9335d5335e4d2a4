"""Claims: valid on construction, and messages that name what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from dpaudit.claims import (
    ApproximateDP,
    PrivacyClaim,
    ProbabilisticDP,
    ProfilePoint,
    PureDP,
    TotalVariation,
    make_claim,
)
from tests.raising import code


@pytest.mark.parametrize(
    ("claim", "point", "words"),
    [
        (PureDP(1), ProfilePoint(1.0, 0.0), "1-DP"),
        (ApproximateDP(1, 1e-5), ProfilePoint(1.0, 1e-5), "(1, 1e-05)-DP"),
        (ProbabilisticDP(0.5, 0.1), ProfilePoint(0.5, 0.1), "(0.5, 0.1)-probabilistic DP"),
        (TotalVariation(0.2), ProfilePoint(0.0, 0.2), "total variation of at most 0.2"),
    ],
)
def test_a_claim_has_a_point_and_words(
    claim: PrivacyClaim, point: ProfilePoint, words: str
) -> None:
    assert claim.point() == point
    assert claim.describe() == words


@pytest.mark.parametrize("epsilon", [-0.1, float("nan"), float("inf"), "1", True, 10**400])
def test_an_impossible_epsilon_is_refused(epsilon: Any) -> None:
    for make in (PureDP, lambda e: ApproximateDP(e, 0.1), lambda e: ProbabilisticDP(e, 0.1)):
        assert code(make, epsilon) == "option-invalid"


@pytest.mark.parametrize("delta", [-1e-9, 1.0, float("nan"), "1", True])
@pytest.mark.parametrize("definition", [ApproximateDP, ProbabilisticDP])
def test_an_impossible_delta_is_refused(definition: Any, delta: Any) -> None:
    assert code(definition, 1.0, delta) == "option-invalid"


@pytest.mark.parametrize(
    ("parameters", "definition", "expected"),
    [
        ({"epsilon": 1}, "quantum", "definition-unknown"),
        ({"epsilom": 1}, None, "parameter-unknown"),
        ({"rho": 1, "detla": 0.1}, None, "parameter-unknown"),
        ({"mu": 1, "detla": 0.1}, "gaussian", "parameter-unknown"),
        ({"epsilon": 1, "delta": 0.1}, "pure", "parameter-unknown"),
        ({}, None, "parameter-missing"),
        ({"delta": 0.1}, None, "parameter-missing"),
        ({"epsilon": "one"}, None, "option-invalid"),
    ],
)
def test_impossible_claims_raise_errors_with_codes(
    parameters: dict[str, Any], definition: str | None, expected: str
) -> None:
    assert code(make_claim, parameters, definition) == expected
