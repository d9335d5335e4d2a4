"""Families of audits with one false-alarm probability, on results made by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from dpaudit.api import audit
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.familywise import is_open, settled, share_of, together, unsettled
from dpaudit.auditing.recheck import recheck_families
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Failed, Family, Sampled, Verdict
from dpaudit.claims import PureDP
from dpaudit.errors import UsageError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.reports.json import read_document
from dpaudit.targets.target import CallableTarget
from mechanisms.pdp import counterexample
from tests.cli.made_results import CLEARED, PASS
from tests.forging import forged
from tests.raising import refusal
from tests.result_files import from_json, reported, to_json
from tests.specs import audit_of, replace

FAMILY = Family("audits.yaml", 4, 0.96, 0.01)


def audited(p_value: float, name: str = "", family: Family = FAMILY) -> AuditResult:
    """Return the result of an audit of the family: refuted alone if p is at most its share."""
    own = share_of(family.confidence, family.size)
    alone = p_value <= 1 - own
    certificate = replace(
        CLEARED, point=PureDP(1.0).point(), p_value=p_value, refuted=alone, alpha=1 - own
    )
    return replace(
        PASS,
        name=name or f"p {p_value}",
        confidence=own,
        ending=Sampled((certificate,)),
        family=replace(family, level=1 - own),
    )


def verdicts(results: list[AuditResult]) -> list[bool]:
    return [one.verdict is Verdict.VIOLATION for one in results]


def spec(name: str, **options: Any) -> AuditSpec:
    pair = NeighbouringPair(0, 1, None, "d1 = 0, d2 = 1")
    options.setdefault("target", CallableTarget(function=lambda x: x))
    return audit_of(name=name, pairs=(pair,), claim=PureDP(1.0), **options)


def test_shares_add_up_to_no_more_than_the_whole() -> None:
    for confidence in (0.5, 0.95, 0.99, 0.9999):
        for size in (1, 2, 3, 7, 300):
            alpha = size * (1 - share_of(confidence, size))
            assert (1 - confidence) * (1 - 1e-6) <= alpha <= 1 - confidence
    assert share_of(0.99, 1) == 0.99


def test_an_exact_audit_has_no_share() -> None:
    specs = together([spec("a"), spec("b", exact=True), spec("c", confidence=0.99)], "audits.yaml")
    assert [one.statistics.confidence for one in specs] == [0.995, 0.99, 0.995]
    assert [one.statistics.family and one.statistics.family.size for one in specs] == [2, None, 2]
    assert together([spec("b", exact=True)], "x")[0].statistics.family is None


def test_two_confidences_are_refused() -> None:
    with pytest.raises(UsageError) as error:
        together([spec("a"), spec("b", confidence=0.9)], "audits.yaml")
    assert error.value.code == "options-conflict"


def test_holms_verdicts_follow_from_all_p_values() -> None:
    results = [audited(p) for p in (0.019, 0.9, 0.001, 0.012)]
    assert verdicts(results) == [False, False, True, False]
    assert [is_open(one) for one in results] == [True, False, False, True]
    final = settled(results)
    assert verdicts(final) == [True, False, True, True]
    levels = [one.family.level for one in final if one.family]
    assert levels == pytest.approx([0.02, 0.04, 0.01, 0.04 / 3])
    assert verdicts(unsettled(final)) == verdicts(results)
    assert recheck_families(final, has_ended=True) == []
    assert recheck_families(results, has_ended=False) == []


def test_a_small_p_value_stands_where_no_other_is_smaller() -> None:
    """A p-value just below the level of the family is too large for Holm's procedure."""
    assert verdicts(settled([audited(p) for p in (0.011, 0.9, 0.9, 0.9)])) == [False] * 4
    assert verdicts(settled([audited(p) for p in (0.039, 0.001, 0.001, 0.001)])) == [True] * 4


def test_an_error_refutes_nothing_and_families_are_separate() -> None:
    failed = replace(audited(0.001), ending=Failed("broken", audited(0.001).certificates))
    others = [audited(p, family=replace(FAMILY, name="b.yaml")) for p in (0.001, 0.013)]
    final = settled([failed, audited(0.013), *others])
    assert [one.verdict for one in final] == [
        Verdict.ERROR,
        Verdict.NO_VIOLATION_FOUND,
        Verdict.VIOLATION,
        Verdict.VIOLATION,
    ]


def test_an_audit_that_others_refute_is_not_under_powered() -> None:
    late = replace(audited(0.013), underpowered="too few draws")
    assert settled([audited(0.001), late])[1].underpowered is None
    assert settled([audited(0.5), late])[1].underpowered == "too few draws"


def test_a_level_that_does_not_follow_is_noticed() -> None:
    final = settled([audited(p) for p in (0.019, 0.9, 0.001, 0.012)])
    for place, one in enumerate(final):
        assert one.family is not None
        forged = list(final)
        forged[place] = replace(one, family=replace(one.family, level=one.family.level * 1.5))
        assert len(recheck_families(forged, has_ended=True)) == 1
    assert len(recheck_families(final, has_ended=False)) == 3
    alone = [replace(one, confidence=0.96) for one in final]
    assert recheck_families(alone, has_ended=True)
    assert recheck_families([*final, audited(0.5)], has_ended=True)
    assert from_json(to_json(final)) == final


def test_reports_for_programs_do_not_say_more_of_a_late_refutation() -> None:
    late = settled([audited(0.001), audited(0.013, "late")])[1]
    assert late.verdict is Verdict.VIOLATION
    text = reported("sarif", [late])
    assert "0.98666666" in text
    assert "0.99" not in text  # its share


CALLS: list[int] = []


def counting(x: int, rng: np.random.Generator) -> float:
    CALLS.append(x)
    return float(x + rng.laplace(scale=0.8))


def test_a_claim_that_others_may_refute_is_doubted_like_a_violation() -> None:
    """State that calls change is a reason for doubt, whoever refutes the claim."""
    alone = spec("a", target=CallableTarget(function=counting), samples=1_000)
    warned = {}
    for confidence in (None, 0.01, 0.98):
        family = None if confidence is None else Family("x", 2, confidence, 0.01)
        result = run_audit(replace(alone, family=family))
        assert result.verdict is Verdict.NO_VIOLATION_FOUND
        warned[confidence] = any("keeps state " in one for one in _warnings(result))
    assert result.p_value > 0.02
    assert warned == {None: False, 0.01: True, 0.98: False}


def _warnings(result: AuditResult) -> list[str]:
    return [text for one in result.certificates for text in one.warnings]


def test_an_exact_audit_is_not_part_of_a_family() -> None:
    """Else an exact violation would raise the levels of the other audits."""
    wrong = audit(counterexample, 0, 1, PureDP(0.01), exact=True)
    computed = replace(wrong, family=FAMILY, confidence=share_of(0.96, 4))
    final = settled([computed, audited(0.013)])
    assert verdicts(final) == [True, True]
    assert len(recheck_families(final, has_ended=True)) == 1


def test_a_forged_size_takes_no_memory_and_raises_no_other_error() -> None:
    (late,) = settled([audited(1e-12, family=replace(FAMILY, size=100_000))])
    assert late.verdict is Verdict.VIOLATION
    assert recheck_families([late], has_ended=True) == []
    for size in (0, 100_001, 10**400):
        document = json.loads(to_json([late]))
        document["audits"][0]["family"]["size"] = size
        assert refusal(read_document, forged(document)).code == "results-damaged"
