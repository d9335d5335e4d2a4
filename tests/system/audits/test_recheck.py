"""Results that do not follow from their evidence fail their recheck."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest

import dpaudit
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates import wealth
from dpaudit.certificates.certify import certify
from dpaudit.certificates.result import AuditResult
from mechanisms import laplace
from tests.forging import with_certificates
from tests.result_files import from_json, to_json
from tests.specs import replace


@functools.cache
def audited(mechanism: Any = laplace.laplace, epsilon: float = 1.0, **more: Any) -> AuditResult:
    given = {**({} if "time" in more else {"samples": 5_000}), **more}
    return dpaudit.audit(mechanism, 0.0, 1.0, dpaudit.PureDP(epsilon), **given)


def with_evidence(result: AuditResult, **changes: Any) -> AuditResult:
    """Return a forged result, all of whose numbers follow from the changed evidence."""
    (one,) = result.certificates
    return with_certificates(result, certify(replace(one.evidence, **changes)))


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "samples", "full"),
    [
        (laplace.laplace, 1.0, 150, False),
        (laplace.laplace, 1.0, 1_000, True),
        (laplace.laplace, 0.9, 20_000, False),
        (laplace.wrong_density, 0.5, 150, True),
        (laplace.wrong_density, 0.5, 1_000, False),
        (laplace.wrong_density, 0.5, 20_000, True),
    ],
)
def test_honest_results_are_believed(
    mechanism: Any, epsilon: float, samples: int, full: bool
) -> None:
    assert recheck(audited(mechanism, epsilon, samples=samples, full=full)) == []


def test_a_result_without_detectable_rare_outputs_fails() -> None:
    result = dpaudit.audit(laplace.laplace, 0.0, 0.05, dpaudit.PureDP(1.0), samples=5_000)
    (one,) = result.certificates
    assert one.detectable_rare is not None
    for rare in (None, one.detectable_rare / 2, math.inf):
        changed = with_certificates(result, replace(one, detectable_rare=rare))
        found = [finding for read in from_json(to_json([changed])) for finding in recheck(read)]
        assert len(found) == 1
        assert "detectable_rare" in found[0]


def test_bettors_that_change_during_the_run_are_no_evidence() -> None:
    evidence = audited().certificates[0].evidence
    assert len(evidence.rounds) > 2
    *before, last = evidence.rounds
    with pytest.raises(ValueError, match="bettors"):
        replace(evidence, rounds=(*before, replace(last, rules=last.rules[:-1])))


def test_beliefs_that_are_no_probabilities_are_none() -> None:
    first = audited().certificates[0].evidence.rounds[0]
    for changes in ({"posteriors": first.posteriors * 0 + 1}, {"rules": first.rules * 0 + 2}):
        with pytest.raises(ValueError, match="is n"):
            replace(first, **changes)


def test_a_curve_settles_its_point_first() -> None:
    claim = dpaudit.GaussianDP(2.0)
    result = dpaudit.audit(laplace.laplace, 0.0, 1.0, claim, samples=5_000)
    assert recheck(result) == []


def test_time_that_plans_the_draws() -> None:
    assert recheck(audited(time=0.3)) == []


def test_a_forgery_without_changes_passes() -> None:
    """Else the findings below would show nothing."""
    result = audited()
    assert recheck(with_evidence(result)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"alpha": 0.02},
        {"confidence": 0.9},
        {"point": dpaudit.PureDP(0.9).point()},
        {"points": (dpaudit.PureDP(1.0).point(),)},
        {"divergences": ((2.0, 1.0),)},
        {"method": "probabilistic"},
        {"refuted_after": 1_000},
        {"stage": "confirmation"},
    ],
)
def test_evidence_about_another_claim_or_run_fails(changes: dict[str, Any]) -> None:
    try:
        forged = with_evidence(audited(), **changes)
    except ValueError:
        return
    assert recheck(forged) != []


def test_a_refutation_at_another_block() -> None:
    result = audited(laplace.wrong_density, 0.5, full=True)
    evidence = result.certificates[0].evidence
    assert evidence.refuted_after is not None
    found = " ".join(recheck(with_evidence(result, refuted_after=evidence.draws)))
    assert "to the refutation" in found


@pytest.mark.parametrize(("claimed", "together"), [(0.0, 1), (0.25, 5), (0.9, 1_000), (1.0, 5)])
def test_the_bound_of_betting_is_the_same_however_many_values_are_followed_at_once(
    claimed: float, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = audited(epsilon=claimed)
    (one,) = result.certificates
    monkeypatch.setattr(wealth, "_VALUES_PER_PASS", together)
    found = certify(one.evidence)
    assert (found.epsilon_betting, found.wealth) == (one.epsilon_betting, one.wealth)
    assert one.epsilon_betting > 0
