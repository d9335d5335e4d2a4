"""Whole audits of Gaussian DP."""

from __future__ import annotations

from typing import Any

import numpy as np

import dpaudit
from dpaudit import GaussianDP, Verdict


def shifted(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.normal(size=size)


def test_a_mu_that_is_too_small_is_refuted() -> None:
    result = dpaudit.audit(shifted, 0, 1, GaussianDP(0.8), samples=60_000, full=True)
    assert result.verdict is Verdict.VIOLATION
    own = result.claim.own_lower(result.point.epsilon, result.delta_lower)
    assert own is not None
    assert 0.8 < own[1] < 1.0


def test_the_true_mu_is_not_refuted_and_nearly_reached() -> None:
    result = dpaudit.audit(shifted, 0, 1, GaussianDP(1.0), samples=200_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    own = result.claim.own_lower(result.point.epsilon, result.delta_lower)
    assert own is not None
    assert 0.96 < own[1] < 1.0
