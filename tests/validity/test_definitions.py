"""Whole audits of claims in the definitions beside ε and δ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import dpaudit
from dpaudit import (
    ComputationalDP,
    FunctionalDP,
    GaussianDP,
    RenyiDP,
    Verdict,
    ZeroConcentratedDP,
)
from dpaudit.claims import (
    PrivacyClaim,
    gaussian_delta,
)
from dpaudit.claims.renyi import _binary_divergence


def shifted(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.normal(size=size)


def flipped(x: int, size: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(size) < 0.75, x, 1 - x)


def gaussian_tradeoff(mu: float) -> Callable[[float], float]:
    return lambda alpha: float(ndtr(ndtri(1 - alpha) - mu))


@pytest.mark.parametrize(
    "claim",
    [
        ZeroConcentratedDP(0.2),
        RenyiDP(2, 0.3),
        FunctionalDP(gaussian_tradeoff(0.8)),
        ComputationalDP(0.5, 0.01),
        GaussianDP(0.8),
    ],
    ids=lambda claim: claim.key,
)
def test_a_claim_that_is_too_strong_is_refuted(claim: PrivacyClaim) -> None:
    result = dpaudit.audit(shifted, 0, 1, claim, samples=60_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.point in claim.points()


@pytest.mark.parametrize(
    "claim",
    [
        ZeroConcentratedDP(0.5),
        RenyiDP(8, 4.0),
        FunctionalDP(gaussian_tradeoff(1.0)),
        ComputationalDP(1.0, gaussian_delta(1.0, 1.0)),
        GaussianDP(1.0),
    ],
    ids=lambda claim: claim.key,
)
def test_a_true_claim_is_not_refuted(claim: PrivacyClaim) -> None:
    result = dpaudit.audit(shifted, 0, 1, claim, samples=60_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    own = claim.own_lower(result.point.epsilon, result.delta_lower)
    assert own is None or own[1] <= list(claim.parameters().values())[-1]


def test_a_bound_on_the_divergence_of_randomized_response_is_nearly_reached() -> None:
    """Two outcomes, so that nothing is lost by looking at one event."""
    truth = _binary_divergence(0.75, 0.25, 2.0)
    result = dpaudit.audit(flipped, 0, 1, RenyiDP(2, truth), samples=200_000)
    own = result.claim.own_lower(result.point.epsilon, result.delta_lower)
    assert own is not None
    assert own[0] == "epsilon"
    assert 0.93 * truth < own[1] <= truth


def answers(output: float) -> int | None:
    return 1 if output < 0 else 2 if output > 1 else None


@pytest.mark.parametrize(
    "adversary", [lambda output: "yes", lambda output: True, lambda output: 1 / 0]
)
def test_an_adversary_that_does_not_answer_is_an_error(adversary: Any) -> None:
    claim = ComputationalDP(0.5, 0.01, adversary)
    result = dpaudit.audit(shifted, 0, 1, claim, samples=5_000)
    assert (result.verdict, result.error_code) == (Verdict.ERROR, "adversary-failed")


def test_exceptions_of_the_mechanism_are_no_matter_for_the_adversary() -> None:
    def fails(x: int) -> int:
        if x == 1:
            raise ValueError("no")
        return 0

    claim = ComputationalDP(0.5, 0.01, answers)
    result = dpaudit.audit(fails, 0, 1, claim, samples=5_000)
    assert result.verdict is Verdict.VIOLATION
