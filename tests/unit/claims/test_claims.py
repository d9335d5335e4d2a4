"""Claims: valid on construction, and messages that name what is wrong."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import (
    DEFINITIONS,
    ApproximateDP,
    PrivacyClaim,
    ProbabilisticDP,
    ProfilePoint,
    PureDP,
    TotalVariation,
    definitions,
    make_claim,
)
from dpaudit.errors import ClaimError, UsageError

WITH_DELTA = [ApproximateDP, ProbabilisticDP]


@pytest.mark.parametrize(
    ("claim", "point", "words"),
    [
        (PureDP(1), ProfilePoint(1.0, 0.0), "1-DP"),
        (PureDP(0), ProfilePoint(0.0, 0.0), "0-DP"),
        (PureDP(0.1234567), ProfilePoint(0.1234567, 0.0), "0.1234567-DP"),
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


def test_parameters_come_by_name_in_order_as_floats() -> None:
    parameters = make_claim({"epsilon": np.int64(2), "delta": np.float32(0.5)}).parameters()
    assert list(parameters.items()) == [("epsilon", 2.0), ("delta", 0.5)]
    assert {type(value) for value in parameters.values()} == {float}


@pytest.mark.parametrize("epsilon", [-0.1, float("nan"), float("inf"), -float("inf")])
def test_an_impossible_epsilon_is_refused(epsilon: float) -> None:
    for make in (PureDP, lambda e: ApproximateDP(e, 0.1), lambda e: ProbabilisticDP(e, 0.1)):
        with pytest.raises(ClaimError, match=f"epsilon={epsilon!r}") as error:
            make(epsilon)
        assert error.value.code == "option-invalid"


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 7.0, float("nan"), float("inf")])
@pytest.mark.parametrize("definition", WITH_DELTA)
def test_an_impossible_delta_is_refused(definition: Any, delta: float) -> None:
    with pytest.raises(ClaimError, match=f"delta={delta!r}") as error:
        definition(1.0, delta)
    assert error.value.code == "option-invalid"


@pytest.mark.parametrize("wrong", ["1", None, True, [1.0], 1j])
def test_values_that_are_not_numbers_are_refused(wrong: Any) -> None:
    with pytest.raises(ClaimError, match="epsilon="):
        PureDP(wrong)
    with pytest.raises(ClaimError, match="delta="):
        ApproximateDP(1.0, wrong)


def test_an_integer_beyond_every_float_is_refused() -> None:
    with pytest.raises(ClaimError, match="epsilon"):
        PureDP(10**5_000)


def test_a_claim_error_is_a_usage_error_and_a_value_error() -> None:
    with pytest.raises(UsageError):
        PureDP(-1)
    with pytest.raises(ValueError, match="epsilon"):
        PureDP(-1)


def test_a_claim_is_a_frozen_value() -> None:
    assert PureDP(1) == PureDP(1.0)
    assert hash(PureDP(1)) == hash(PureDP(1.0))
    assert PureDP(1) != PureDP(2)
    claims: list[PrivacyClaim] = [ApproximateDP(1, 0.1), ProbabilisticDP(1, 0.1)]
    assert claims[0] != claims[1]
    with pytest.raises(FrozenInstanceError):
        PureDP(1).epsilon = 2.0  # type: ignore[misc]  # what is tested


def test_every_definition_is_registered_under_its_key() -> None:
    classes: list[type[PrivacyClaim]] = [
        one for one in vars(definitions).values() if isinstance(one, type)
    ]
    assert list(DEFINITIONS.items()) == [(one.key, one) for one in classes]
    for definition in DEFINITIONS.values():
        assert definition.title
        assert set(definition.formula) & set("≤≥")


@pytest.mark.parametrize(
    ("parameters", "definition", "claim"),
    [
        ({"epsilon": 1}, None, PureDP(1.0)),
        ({"delta": 0.5}, "total-variation", TotalVariation(0.5)),
        ({"epsilon": 1, "delta": 0}, None, PureDP(1.0)),
        ({"epsilon": 1, "delta": None}, None, PureDP(1.0)),
        ({"epsilon": 1, "delta": 0.0}, "pure", PureDP(1.0)),
        ({"epsilon": 1, "delta": 1e-5}, None, ApproximateDP(1.0, 1e-5)),
        ({"epsilon": 1, "delta": 0}, "approximate", ApproximateDP(1.0, 0.0)),
        ({"epsilon": 1, "delta": 0.1}, "probabilistic", ProbabilisticDP(1.0, 0.1)),
        ({"epsilon": np.float64(2)}, None, PureDP(2.0)),
    ],
)
def test_claims_are_made_from_named_parameters(
    parameters: dict[str, Any], definition: str | None, claim: PrivacyClaim
) -> None:
    assert make_claim(parameters, definition) == claim


@pytest.mark.parametrize(
    ("parameters", "definition", "code", "named"),
    [
        ({"epsilon": 1}, "aproximate", "definition-unknown", "'approximate'"),
        ({"epsilon": 1}, "quantum", "definition-unknown", "pure, approximate, probabilistic"),
        ({"epsilom": 1}, None, "parameter-unknown", "'epsilom'.*'epsilon'"),
        ({"epsilon": 1, "detla": 0.1}, None, "parameter-unknown", "'detla'.*'delta'"),
        (
            {"epsilon": 1, "detla": 0.1},
            "pure",
            "parameter-unknown",
            r"'delta'\?$",
        ),
        ({"rho": 1, "detla": 0.1}, None, "parameter-unknown", r"'delta'\?$"),
        ({"rho": 1, "detla": 0.1}, "zcdp", "parameter-unknown", r"'delta'\?$"),
        ({"mu": 1, "detla": 0.1}, None, "parameter-unknown", r"takes mu or sigma\.$"),
        ({"mu": 1, "detla": 0.1}, "gaussian", "parameter-unknown", r"takes mu or sigma\.$"),
        ({"epsilon": 1, "delta": 0.1}, "pure", "parameter-unknown", "delta .*pure"),
        ({}, None, "parameter-missing", "pure.*epsilon"),
        ({"delta": 0.1}, None, "parameter-missing", "approximate.*epsilon"),
        ({}, "probabilistic", "parameter-missing", "epsilon and delta"),
        ({"epsilon": "one"}, None, "option-invalid", "epsilon='one'"),
        ({"epsilon": -1}, None, "option-invalid", "epsilon=-1.0"),
    ],
)
def test_impossible_claims_raise_errors_with_codes(
    parameters: dict[str, Any], definition: str | None, code: str, named: str
) -> None:
    with pytest.raises(ClaimError, match=named) as error:
        make_claim(parameters, definition)
    assert error.value.code == code


def test_probabilistic_implies_approximate_with_the_same_parameters() -> None:
    assert ProbabilisticDP(1, 0.1).point() == ApproximateDP(1, 0.1).point()
    assert PureDP(1).point() == ApproximateDP(1, 0).point()
