"""Several runs on one input as one output, audited whole."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates.result import AuditResult, Repeated, Verdict
from dpaudit.claims import compose
from dpaudit.config.building import build_spec
from dpaudit.targets.target import ImportedTarget
from tests.forging import forged, laws_of
from tests.raising import code
from tests.result_files import from_json, to_json

Rng = np.random.Generator
RESPONSE = "mechanisms.randomized_response:randomized_response"
LN3 = math.log(3)


def audited(mechanism: Any, claim: Any, repeat: int, **options: Any) -> AuditResult:
    return dpaudit.audit(mechanism, 0, 1, claim, repeat=repeat, **options)


def test_the_claim_follows_and_the_report_says_so() -> None:
    result = audited(RESPONSE, dpaudit.PureDP(1.125), 3, samples=50_000)
    assert result.claim == dpaudit.PureDP(3.375)
    assert result.repeated == Repeated(3, dpaudit.PureDP(1.125))
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert 2.9 < result.epsilon_lower <= 3 * LN3
    assert from_json(to_json([result])) == [result]
    assert recheck(result) == []


def test_runs_are_refuted_when_one_is_too_leaky() -> None:
    result = audited(RESPONSE, dpaudit.PureDP(0.9 * LN3), 2, samples=100_000)
    assert result.verdict is Verdict.VIOLATION
    events = [event.words for event in result.certificates[0].fixed.events]
    assert any("(0, 0)" in one or "(1, 1)" in one for one in events), events


def test_a_changed_record_is_found_out() -> None:
    result = audited(RESPONSE, dpaudit.PureDP(1.125), 2, samples=2_000)
    document = json.loads(to_json([result]).replace('"times": 2', '"times": 3'))
    assert recheck(from_json(forged(document))[0])


def knows_both(runs: Any) -> int | None:
    return 1 if runs == (0, 0) else 2 if runs == (1, 1) else None


def test_an_adversary_sees_all_runs() -> None:
    claim = dpaudit.ComputationalDP(0.9, 0.0, knows_both)
    assert compose([claim, claim]) == dpaudit.ComputationalDP(1.8, 0.0, knows_both)
    other = dpaudit.ComputationalDP(0.9, 0.0, len)
    assert compose([claim, other]) == dpaudit.ComputationalDP(1.8, 0.0)

    def answer(x: int, rng: Rng) -> int:
        return int(x if rng.random() < 0.75 else 1 - x)

    result = audited(answer, claim, 2, samples=20_000, stop="never")
    assert result.verdict is Verdict.VIOLATION
    assert 1.8 < result.epsilon_lower <= 2 * LN3


def test_exact_laws_are_multiplied() -> None:
    result = audited(RESPONSE, dpaudit.PureDP(1.0), 3, exact=True)
    assert laws_of(result)[0].epsilon == pytest.approx(3 * LN3)
    assert len(laws_of(result)[0].law) == 8


def test_a_set_of_impossible_runs() -> None:
    settings = {"mechanism": RESPONSE, "d1": 0, "d2": 1, "claim": {"epsilon": 1}}
    for runs in (0, 2.5, -1):
        assert code(audited, RESPONSE, dpaudit.PureDP(1.0), runs) == "option-invalid"
        assert code(build_spec, {**settings, "repeat": runs}) == "option-invalid"
    claim = dpaudit.ApproximateDP(1.0, 0.1)
    assert code(audited, RESPONSE, claim, 20) == "claim-says-nothing"
    assert isinstance(build_spec({**settings, "repeat": 1}).target, ImportedTarget)


def test_many_weak_runs_of_a_gaussian_are_refuted_together() -> None:
    """μ grows with the square root, for the truth as for the claim: 1 against 0.75 for 25 runs."""

    def gaussian(x: int, size: int, rng: Rng) -> Any:
        return rng.normal(loc=0.2 * x, size=size)

    assert audited(gaussian, dpaudit.GaussianDP(0.15), 25, samples=30_000).verdict is (
        Verdict.VIOLATION
    )
    kept = audited(gaussian, dpaudit.GaussianDP(0.2), 25, samples=30_000)
    assert kept.verdict is Verdict.NO_VIOLATION_FOUND
