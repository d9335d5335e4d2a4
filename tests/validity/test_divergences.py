"""Whole audits of Rényi and zero-concentrated claims: a divergence is bounded beside the event."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import RenyiDP, Verdict, ZeroConcentratedDP
from dpaudit.auditing import pair_audit
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.exact_tests import telling_witness
from dpaudit.auditing.pair_audit import PairAudit
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates.certificate import Certificate, DivergenceTest
from dpaudit.certificates.evidence import CERTIFICATION_SHARE, CONFIRMATION_SHARE
from dpaudit.certificates.result import AuditResult
from dpaudit.claims import PrivacyClaim, group
from dpaudit.claims.renyi import ApproximateZCDP
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.reports.bounds_report import bounds
from dpaudit.stats.binomial import TOSSED_AGAIN
from dpaudit.targets.target import CallableTarget
from tests.forging import forged, with_certificates
from tests.raising import code
from tests.result_files import from_json, to_json
from tests.specs import audit_of, replace

ALPHA = 0.01
# Probabilities of True on the inputs 0 and 1: D(P ‖ Q) is far larger than D(Q ‖ P).
OFTEN, RARELY = 0.2, 0.01


def shifted(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.normal(size=size)


def flipped(x: int, size: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(size) < 0.75, x, 1 - x)


def tells(x: int, size: int, rng: np.random.Generator) -> Any:
    return rng.random(size) < (RARELY if x else OFTEN)


def constant(x: int, size: int) -> Any:
    return np.zeros(size)


def raises(x: int, rng: np.random.Generator) -> int:
    if rng.random() < (RARELY if x else OFTEN):
        raise ValueError("no")
    return 0


def of_coins(p: float, q: float, order: float) -> float:
    """Return D_a of two coins."""
    powers = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
    return math.log(powers) / (order - 1)


def certificate(result: AuditResult) -> Certificate:
    (one,) = result.certificates
    return one


def divergence(result: AuditResult) -> DivergenceTest:
    test = certificate(result).divergence
    assert test is not None
    return test


@functools.cache
def audited(claim: PrivacyClaim, mechanism: Any = shifted, **more: Any) -> AuditResult:
    """Return what comes of an audit, rechecked; of equal audits, the same."""
    result = dpaudit.audit(mechanism, 0, 1, claim, **{"samples": 60_000, **more})
    assert recheck(result) == []
    return result


# Of normal noise: D_a = a / 2 -----------------------------------------------------------------


@pytest.mark.parametrize("claim", [RenyiDP(2, 0.8), ZeroConcentratedDP(0.43)], ids=str)
def test_a_violation_that_only_the_divergence_shows(claim: PrivacyClaim) -> None:
    result = audited(claim, samples=200_000, stop="never")
    one, test = certificate(result), divergence(result)
    assert result.verdict is Verdict.VIOLATION
    assert one.fixed.p_value > one.fixed.alpha
    assert one.wealth * one.alpha_betting < 1
    assert test.p_value <= test.alpha
    assert test.allowed < test.lower < test.witness.order / 2
    bets = one.divergence_bets
    assert bets is not None
    by_bets = ALPHA / (bets.alpha * bets.wealth)
    assert one.p_value == pytest.approx(min(test.p_value * ALPHA / test.alpha, by_bets))


@pytest.mark.parametrize(
    ("claim", "least"),
    [(RenyiDP(2, 1.0), 0.85), (RenyiDP(8, 4.0), 1.5), (ZeroConcentratedDP(0.5), 0.45)],
    ids=str,
)
def test_a_true_claim_is_not_refuted_and_a_good_part_of_it_is_shown(
    claim: PrivacyClaim, least: float
) -> None:
    result = audited(claim)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    (own,) = bounds(result)
    assert least < own.lower < own.claimed


# Of coins, of which all divergences are known ---------------------------------------------------


@pytest.mark.parametrize("order", [1.5, 4.0])
def test_a_tight_claim_of_randomised_response_is_not_refuted(order: float) -> None:
    truth = of_coins(0.75, 0.25, order)
    result = audited(RenyiDP(order, truth), flipped)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert 0.9 * truth < divergence(result).lower < truth


@pytest.mark.parametrize(("order", "turned"), [(2.0, False), (6.0, True)])
def test_the_larger_of_both_directions_is_bounded(order: float, turned: bool) -> None:
    truth, other = of_coins(OFTEN, RARELY, order), of_coins(RARELY, OFTEN, order)
    assert other < truth / 5
    inputs = (1, 0) if turned else (0, 1)
    result = dpaudit.audit(tells, *inputs, RenyiDP(order, truth), samples=60_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert divergence(result).witness.from_d1 is not turned
    assert 0.8 * truth < divergence(result).lower < truth
    assert recheck(result) == []


def test_a_claim_about_all_orders_is_tested_at_the_one_that_says_most() -> None:
    rho = max(of_coins(OFTEN, RARELY, a) / a for a in np.linspace(1.001, 20, 2_000))
    result = audited(ZeroConcentratedDP(float(rho)), tells)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert 0.75 * rho < bounds(result)[0].lower < rho
    assert audited(ZeroConcentratedDP(0.6 * float(rho)), tells).verdict is Verdict.VIOLATION


# How the error probability is spent ------------------------------------------------------------


def test_half_of_what_the_exact_test_may_spend() -> None:
    for one in (certificate(audited(RenyiDP(2, 1.0))), certificate(audited(RenyiDP(2, 0.2)))):
        assert one.divergence is not None
        is_confirmed = one.fixed.stage == "confirmation"
        share = CONFIRMATION_SHARE if is_confirmed else CERTIFICATION_SHARE
        assert one.divergence.alpha == one.fixed.alpha == pytest.approx(share * ALPHA / 2)


def test_after_an_early_stop_fresh_draws_confirm() -> None:
    result = audited(RenyiDP(2, 0.2))
    one = certificate(result)
    assert result.verdict is Verdict.VIOLATION
    assert one.fixed.stage == "confirmation"
    assert one.evidence.refuted_after is not None
    assert one.divergence is not None
    assert 0.2 < one.divergence.lower < 1


@pytest.mark.parametrize(
    ("claim", "mechanism"),
    [
        (RenyiDP(10_000, 4.0), shifted),  # no bounded witness of this order shows anything
        (ApproximateZCDP(0.5, 0.01), shifted),
        (dpaudit.GaussianDP(1.0), shifted),
        (RenyiDP(2, 1.0), constant),
    ],
    ids=["large order", "approximate zCDP", "Gaussian", "nothing to tell"],
)
def test_where_no_divergence_is_bounded_the_exact_test_has_all(
    claim: PrivacyClaim, mechanism: Callable[..., Any]
) -> None:
    one = certificate(audited(claim, mechanism))
    assert one.divergence is None
    assert one.fixed.alpha == pytest.approx(CERTIFICATION_SHARE * ALPHA)


def test_several_pairs_share_it_and_the_best_bound_is_reported() -> None:
    pairs = tuple(NeighbouringPair(0, x, label=str(x)) for x in (0.5, 1, 0.25))
    claim, target = RenyiDP(2, 0.8), CallableTarget(function=shifted)
    spec = audit_of(
        name="three", target=target, pairs=pairs, claim=claim, samples=100_000, stop="never"
    )
    result = run_audit(spec)
    assert [one.refuted for one in result.certificates] == [False, True, False]
    tests = [one.divergence for one in result.certificates if one.divergence is not None]
    assert len(tests) == 3
    assert {one.alpha for one in tests} == {CERTIFICATION_SHARE * spec.alpha / 2}
    assert bounds(result)[0].lower == max(one.lower for one in tests) == tests[1].lower
    assert recheck(result) == []


# Claims and outputs at their limits ------------------------------------------------------------


def test_a_claim_that_allows_nothing() -> None:
    result = audited(RenyiDP(2, 0.0))
    assert result.verdict is Verdict.VIOLATION
    assert divergence(result).allowed == 0
    assert audited(RenyiDP(2, 0.0), constant).verdict is Verdict.NO_VIOLATION_FOUND


def test_exceptions_are_outputs_like_others() -> None:
    truth = of_coins(OFTEN, RARELY, 2.0)
    result = audited(RenyiDP(2, truth), raises, samples=20_000)
    assert sum(map(sum, certificate(result).failures.values())) > 1_000
    assert 0.6 * truth < divergence(result).lower < truth
    assert audited(RenyiDP(2, truth / 3), raises, samples=20_000).verdict is Verdict.VIOLATION


def test_inputs_that_share_no_output() -> None:
    result = audited(RenyiDP(2, 3.0), lambda x: x)
    assert result.verdict is Verdict.VIOLATION
    assert divergence(result).lower > 3


def test_several_runs_add_up() -> None:
    result = audited(RenyiDP(2, 0.4), partial(mean_of, 1), repeat=2, samples=100_000)
    assert divergence(result).allowed == 0.8
    assert result.verdict is Verdict.VIOLATION
    true = audited(RenyiDP(2, 1.0), partial(mean_of, 1), repeat=2)
    assert true.verdict is Verdict.NO_VIOLATION_FOUND


def mean_of(scale: float, x: float, size: int, rng: np.random.Generator) -> Any:
    """Noise of which two runs have D_2 = 1 together."""
    return x / math.sqrt(2) + rng.normal(scale=scale, size=size)


def test_groups_of_several_records() -> None:
    claim = group(ZeroConcentratedDP(0.11), 2)
    test = divergence(audited(claim, samples=100_000, stop="never"))
    assert test.allowed == pytest.approx(0.44 * test.witness.order)
    assert test.p_value <= test.alpha


# Recorded outputs --------------------------------------------------------------------------------


@pytest.mark.parametrize("coin_flipped", [False, True])
def test_recorded_outputs(coin_flipped: bool) -> None:
    rng = np.random.default_rng(1)
    first = int(rng.binomial(100_000, 0.5))
    recorded = rng.normal(size=first), 1 + rng.normal(size=100_000 - first)
    too_strong, true = (
        dpaudit.bound(*recorded, RenyiDP(2, epsilon), coin_flipped=coin_flipped)
        for epsilon in (0.8, 1.0)
    )
    assert too_strong.verdict is Verdict.VIOLATION
    assert true.verdict is Verdict.NO_VIOLATION_FOUND
    test = divergence(true)
    assert 0.85 < test.lower < 1
    share = 1.0 if coin_flipped else 1 - TOSSED_AGAIN
    assert test.alpha == certificate(true).fixed.alpha == pytest.approx(share * ALPHA / 2)
    assert recheck(too_strong) == recheck(true) == []


# What a result says, and whether it is true ------------------------------------------------------


@pytest.fixture(scope="module")
def refuted() -> AuditResult:
    return audited(RenyiDP(2, 0.8), samples=200_000, stop="never")


def turned_witness(test: DivergenceTest) -> DivergenceTest:
    return replace(test, witness=replace(test.witness, from_d1=not test.witness.from_d1))


CHANGES: dict[str, tuple[Callable[[DivergenceTest], DivergenceTest], str]] = {
    "direction": (turned_witness, "divergence.witness"),
    "lower": (lambda test: replace(test, lower=test.lower + 0.02), "divergence.lower"),
    "allowed": (lambda test: replace(test, allowed=0.7), "divergence.allowed"),
    "alpha": (lambda test: replace(test, alpha=2 * test.alpha), "divergence.alpha"),
    "p-value": (lambda test: replace(test, p_value=test.p_value / 2), "divergence.p_value"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_divergence_is_noticed(refuted: AuditResult, name: str) -> None:
    change, named = CHANGES[name]
    forgery = replace(certificate(refuted), divergence=change(divergence(refuted)))
    found = recheck(with_certificates(refuted, forgery))
    assert any(named in one for one in found), found


def test_another_witness_of_the_evidence_is_noticed(refuted: AuditResult) -> None:
    witness = divergence(refuted).witness
    halved = replace(witness, values=tuple(one / 2 for one in witness.values))
    changed = replace(divergence(refuted), witness=halved)
    forgery = replace(certificate(refuted), witness=halved, divergence=changed)
    found = recheck(with_certificates(refuted, forgery))
    assert any("divergence.lower" in one for one in found), found


def test_a_divergence_that_was_taken_out_is_noticed(refuted: AuditResult) -> None:
    own = certificate(refuted)
    evidence = replace(own.evidence, witness=None, divergence_bets=None)
    without = replace(own, evidence=evidence, divergence=None, divergence_bets=None)
    found = " ".join(recheck(with_certificates(refuted, without)))
    assert "fixed.alpha" in found
    assert "p_value" in found


def test_a_divergence_belongs_to_a_claim_that_limits_it(refuted: AuditResult) -> None:
    claim = dpaudit.GaussianDP(1.0)
    stranger = replace(audited(claim), ending=refuted.ending)
    assert any("divergences of the claim" in one for one in recheck(stranger))


def test_a_result_is_read_as_it_was_written(refuted: AuditResult) -> None:
    text = to_json([refuted])
    assert from_json(text) == [refuted]
    written = json.loads(text)["audits"][0]["ending"]["certificates"][0]["divergence"]
    assert written["witness"]["order"] == 2.0
    assert len(written["witness"]["values"]) == len(certificate(refuted).fixed.rule.guesses)


def test_a_file_with_stakes_that_could_lose_everything_is_damaged(refuted: AuditResult) -> None:
    document = json.loads(to_json([refuted]))
    (certificate,) = document["audits"][0]["ending"]["certificates"]
    certificate["divergence"]["witness"]["stakes"] = [0.1, 1e6]
    assert code(from_json, forged(document)) == "results-damaged"


def test_what_refutes_by_the_bound_refutes_by_the_p_value() -> None:
    """Each is rounded to its safe side, by halving and by a grid; at the edge they could differ."""
    lower = divergence(audited(RenyiDP(2, 0.8), samples=50_000)).lower
    for factor in (0.9999, 1.0, 1.0001):
        test = divergence(audited(RenyiDP(2, lower * factor), samples=50_000))
        assert (test.lower > test.allowed) is (test.p_value <= test.alpha)


@pytest.mark.parametrize("claimed", [1.0, 0.2])
def test_the_witness_is_fixed_before_any_draw_that_certifies(
    monkeypatch: pytest.MonkeyPatch, claimed: float
) -> None:
    order: list[str] = []
    counted = PairAudit._count

    def choosing(*given: Any) -> Any:
        order.append("chosen")
        return telling_witness(*given)

    def counting(self: PairAudit, stage: Any, *given: Any) -> Any:
        order.append(stage)
        return counted(self, stage, *given)

    monkeypatch.setattr(pair_audit, "telling_witness", choosing)
    monkeypatch.setattr(PairAudit, "_count", counting)
    result = dpaudit.audit(shifted, 0, 1, RenyiDP(2, claimed), samples=60_000)
    stage = certificate(result).fixed.stage
    assert order == ["chosen", stage]
    assert stage == ("certification" if claimed == 1.0 else "confirmation")
