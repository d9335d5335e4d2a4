"""The draws that a requirement for rare outputs names are enough, and few."""

from __future__ import annotations

from typing import Any

import pytest

import dpaudit
from dpaudit.auditing.underpowered import draws_for_rare, misses_rare
from dpaudit.certificates.certificate import Certificate
from dpaudit.claims import ApproximateDP, GaussianDP, PrivacyClaim, PureDP
from tests.specs import replace


def laplace(x: float, size: int, rng: Any) -> Any:
    return x + rng.laplace(size=size)


def blind(x: float, size: int, rng: Any) -> Any:
    return rng.normal(size=size)


def certificate_of(mechanism: Any, claim: PrivacyClaim, **more: Any) -> Certificate:
    given: dict[str, Any] = {"samples": 10_000, "no_trace": True, **more}
    return dpaudit.audit(mechanism, 0, 1, claim, **given).certificates[0]


@pytest.mark.parametrize("mechanism", [laplace, blind])
@pytest.mark.parametrize("claim", [PureDP(1.0), ApproximateDP(1.0, 0.002)])
def test_the_draws_for_rare_outputs_are_enough_and_few(mechanism: Any, claim: PrivacyClaim) -> None:
    """Also where an audit learns from half of its draws, since nothing differs."""
    certificate = certificate_of(mechanism, claim)
    for probability in (0.01, 0.004):
        needed = draws_for_rare(certificate, probability, claim.points())
        assert needed is not None
        enough, fewer = (
            certificate_of(mechanism, claim, samples=samples).detectable_rare
            for samples in (needed, int(0.9 * needed))
        )
        assert enough is not None
        assert fewer is not None
        assert enough <= probability < fewer


def test_a_claim_that_is_a_curve_is_refuted_at_its_best_point() -> None:
    """The point that the audit tested allows the output, another one does not."""
    claim = GaussianDP(1.0)
    points = claim.points()
    certificate = certificate_of(blind, claim, samples=100_000)
    (loosest,) = (one for one in points if one.delta == max(each.delta for each in points))
    certificate = replace(certificate, point=loosest)
    assert loosest.delta > 0.01
    needed = draws_for_rare(certificate, 0.01, points)
    assert needed is not None
    assert draws_for_rare(certificate, 0.01, [loosest]) is None
    enough = certificate_of(blind, claim, samples=needed).detectable_rare
    assert enough is not None
    assert enough <= 0.01
    reason = misses_rare([replace(certificate, detectable_rare=0.5)], 0.01, points)
    assert reason is not None
    assert f"samples={needed:_}" in reason
