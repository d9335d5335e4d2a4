"""Results that do not follow from their evidence fail their recheck."""

from __future__ import annotations

import functools
import math
from typing import Any

import pytest

import dpaudit
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates import wealth
from dpaudit.certificates.certify import certify
from dpaudit.certificates.evidence import Block
from dpaudit.certificates.result import AuditResult
from dpaudit.config.building import build_spec
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
    result = audited(laplace.wrong_density, 0.5, stop="never")
    evidence = result.certificates[0].evidence
    assert evidence.refuted_after is not None
    found = " ".join(recheck(with_evidence(result, refuted_after=evidence.draws)))
    assert "to the refutation" in found


@pytest.mark.parametrize(("claimed", "together"), [(0.0, 1), (0.9, 1_000)])
def test_the_bound_of_betting_is_the_same_however_many_values_are_followed_at_once(
    claimed: float, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = audited(epsilon=claimed)
    (one,) = result.certificates
    monkeypatch.setattr(wealth, "_VALUES_PER_PASS", together)
    found = certify(one.evidence)
    assert (found.epsilon_betting, found.wealth) == (one.epsilon_betting, one.wealth)
    assert one.epsilon_betting > 0


@functools.cache
def requested(epsilon: float = 1.0, mechanism: str = "laplace", **more: Any) -> AuditResult:
    """Return the result of an audit whose settings the file states."""
    settings = {"mechanism": f"mechanisms.laplace:{mechanism}", "d1": 0.0, "d2": 1.0}
    settings |= {"claim": {"epsilon": epsilon}, **more}
    return run_audit(build_spec(settings))


def blocks_of(result: AuditResult, stage: str) -> list[Block]:
    (one,) = result.certificates
    return [block for block in one.evidence.blocks if block.stage == stage]


@pytest.mark.parametrize(
    "more",
    [
        {"samples": 5_000},
        {"time": "0.3s"},
        {"samples": 5_000, "bound": "clopper-pearson"},
        {"samples": 5_000, "stop": "never", "mechanism": "wrong_density", "epsilon": 0.5},
        {"samples": 5_000, "stop": "bets", "mechanism": "wrong_density", "epsilon": 0.5},
    ],
)
def test_an_honest_result_has_the_planned_draws(more: dict[str, Any]) -> None:
    assert recheck(requested(**more)) == []


def test_a_result_without_its_last_blocks_is_no_evidence() -> None:
    """Else a forger could stop at the moment that suits."""
    result = requested(samples=20_000)
    (one,) = result.certificates
    last = blocks_of(result, "certification")
    assert len(last) > 5
    for k in range(1, len(last) + 1):
        blocks = one.evidence.blocks[:-k]
        with pytest.raises(ValueError, match="planned"):
            with_evidence(result, blocks=blocks)
        if k == len(last):
            break
        cut = with_evidence(
            result, blocks=blocks, budget=20_000 - sum(block.draws for block in last[-k:])
        )
        assert any("evidence.budget" in finding for finding in recheck(cut))


def test_blocks_that_count_twice_exceed_the_draws_asked_for() -> None:
    result = requested(samples=5_000)
    (one,) = result.certificates
    twice = blocks_of(result, "certification")
    blocks = (*one.evidence.blocks, *twice)
    with pytest.raises(ValueError, match="budget"):
        with_evidence(result, blocks=blocks)
    budget = 5_000 + sum(block.draws for block in twice)
    changed = with_evidence(result, blocks=blocks, budget=budget)
    assert any("evidence.budget" in finding for finding in recheck(changed))


def test_a_confirmation_has_the_planned_draws_after_the_refutation() -> None:
    result = requested(0.5, "wrong_density", samples=20_000)
    (one,) = result.certificates
    evidence = one.evidence
    assert evidence.stage == "confirmation"
    assert evidence.refuted_after is not None
    *first, last = evidence.blocks
    for changes in (
        {"blocks": tuple(first)},
        {"blocks": (*first, last, last)},
        {"refuted_after": None},
        {"refuted_after": evidence.refuted_after + 1},
        {"refuted_after": evidence.refuted_after - 1},
        {"limits": replace(evidence.limits, confirming=evidence.draws)},
        {"declared": (("0", *evidence.total.arms),)},
        {"blocks": tuple(first), "budget": evidence.draws - last.draws},
    ):
        with pytest.raises(ValueError, match=r"draws|refutation|declared"):
            with_evidence(result, **changes)


@pytest.mark.parametrize("changes", [{"budget": 19_999}, {"counted": -5}])
def test_a_changed_budget_or_number_of_counted_draws_is_no_evidence(changes: Any) -> None:
    with pytest.raises(ValueError, match="draws"):
        with_evidence(requested(samples=20_000), **changes)


def test_limits_and_methods_that_the_settings_do_not_ask_for() -> None:
    result = requested(samples=5_000)
    (one,) = result.certificates
    limits = one.evidence.limits
    assert limits is not None
    for name, changes in (
        ("confirmation", {"limits": replace(limits, confirming=100)}),
        ("confirmation", {"limits": replace(limits, confirming=1)}),
        ("evidence.method", {"method": "clopper-pearson"}),
        ("evidence.by_clock", {"by_clock": True}),
    ):
        found = recheck(with_evidence(result, **changes))
        assert any(name in finding for finding in found), changes
