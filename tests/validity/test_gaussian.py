"""Whole audits of Gaussian DP."""

from __future__ import annotations

from typing import Any

import numpy as np

import dpaudit
from dpaudit import GaussianDP, Verdict


def shifted(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.normal(size=size)


def test_a_mu_that_is_too_small_is_refuted() -> None:
    result = dpaudit.audit(shifted, 0, 1, GaussianDP(0.8), samples=60_000, stop="never")
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


def rounded(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + np.rint(2 * rng.normal(size=size))


def bit(x: float, size: int, rng: np.random.Generator) -> Any:
    return rng.integers(2, size=size)


def test_integer_noise_gets_a_note_with_the_claim_that_it_satisfies() -> None:
    claims = (GaussianDP(0.5), dpaudit.ZeroConcentratedDP(0.125), dpaudit.PureDP(2.0))
    noted = {}
    for mechanism in (rounded, shifted, bit):
        for claim in claims:
            result = dpaudit.audit(mechanism, 0, 1, claim, samples=1_000)
            noted[mechanism, claim.key] = result.certificates[0].notes
    assert [key for key, notes in noted.items() if notes] == [(rounded, "gaussian")]
    (note,) = noted[rounded, "gaussian"]
    assert "--rho 0.125" in note
    d1, d2 = (rounded(x, 1_000, np.random.default_rng(x)) for x in (0, 1))
    recorded = dpaudit.bound(d1, d2, GaussianDP(0.5))
    assert recorded.certificates[0].notes == (note,)
    assert "--rho 0.125" in " ".join(recorded.report().split())
