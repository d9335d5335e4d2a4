from __future__ import annotations

import json
import math
from typing import Any

import pytest

import dpaudit
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import (
    ApproximateDP,
    ComputationalDP,
    GaussianDP,
    PrivacyClaim,
    ProbabilisticDP,
    PureDP,
    TotalVariation,
)
from dpaudit.errors import UsageError
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.reports.json import ContradictoryFile
from dpaudit.targets.target import AnyTarget, ComposedTarget, ImportedTarget
from tests.forging import forged, laws_of, with_certificates
from tests.result_files import from_json, to_json
from tests.specs import audit_of, replace

K = ImportedTarget(path="mechanisms.pdp:counterexample")
MERGED = ImportedTarget(path="mechanisms.pdp:counterexample", post_process="mechanisms.pdp:merge")
RESPONSE = ImportedTarget(path="mechanisms.randomized_response:randomized_response")
LIKELY = 0.9 * math.e / (1 + math.e)


def audit(target: AnyTarget, claim: PrivacyClaim, **options: Any) -> AuditResult:
    pairs = options.pop("pairs", (NeighbouringPair(0, 1, None, "0 and 1"),))
    spec = audit_of(name="it", target=target, pairs=pairs, claim=claim, exact=True, **options)
    return run_audit(spec)


@pytest.mark.parametrize(
    ("target", "claim", "refuted"),
    [
        (K, ApproximateDP(1, 0.1), False),
        (K, ApproximateDP(1, 0.0999), True),
        (K, ApproximateDP(0.9999, 0.1), True),
        (K, PureDP(1), True),
        (K, ProbabilisticDP(1, 0.1), False),
        (K, ProbabilisticDP(1, 0.0999), True),
        (K, ProbabilisticDP(0.9999, 0.1), True),
        (MERGED, ApproximateDP(1, 0.0999), True),
        (MERGED, ProbabilisticDP(1, 0.1), True),
        (RESPONSE, PureDP(math.log(3)), False),
        (RESPONSE, PureDP(1.0986), True),
        (RESPONSE, TotalVariation(0.5), False),
        (RESPONSE, TotalVariation(0.4999), True),
        (RESPONSE, GaussianDP(5), False),
        (RESPONSE, GaussianDP(0.5), True),
        (ComposedTarget(parts=(RESPONSE, RESPONSE)), PureDP(2 * math.log(3)), False),
        (ComposedTarget(parts=(RESPONSE, RESPONSE)), PureDP(2.197), True),
    ],
)
def test_verdicts(target: AnyTarget, claim: PrivacyClaim, refuted: bool) -> None:
    result = audit(target, claim)
    assert result.verdict is (Verdict.VIOLATION if refuted else Verdict.NO_VIOLATION_FOUND)
    assert result.p_value == (0.0 if refuted else 1.0)
    assert result.draws == 0
    assert recheck(result) == []
    assert from_json(to_json([result])) == [result]


def test_numbers_of_the_counterexample() -> None:
    (found,) = laws_of(audit(MERGED, ProbabilisticDP(1, 0.1)))
    assert found.epsilon == math.inf
    assert found.epsilon_lower == pytest.approx(1)
    assert found.delta_lower == pytest.approx(0.1)
    assert found.probabilistic_delta == pytest.approx(LIKELY + 0.1)
    assert found.event is not None
    assert found.event.words == "output is 4"
    assert found.event.probability_d1 == pytest.approx(LIKELY + 0.1)
    assert [row[0] for row in found.law] == ["4", "2", "3"]


def test_several_pairs_and_the_one_that_decides() -> None:
    pairs = (NeighbouringPair(0, 0, None, "equal"), NeighbouringPair(0, 1, None, "0 and 1"))
    result = audit(RESPONSE, PureDP(1), pairs=pairs)
    assert result.verdict is Verdict.VIOLATION
    assert result.decisive is result.by_pair[1]
    assert result.epsilon_lower == pytest.approx(math.log(3))


def test_an_adversary_is_all_that_counts() -> None:
    def constant(output: int) -> None:
        return None

    def telling(output: int) -> int:
        return 1 if output == 0 else 2

    claim = ComputationalDP(1, 0, constant)
    assert audit(RESPONSE, claim).verdict is Verdict.NO_VIOLATION_FOUND
    claim = ComputationalDP(1, 0, telling)
    assert audit(RESPONSE, claim).verdict is Verdict.VIOLATION


def test_a_computational_claim_needs_an_adversary() -> None:
    with pytest.raises(UsageError, match="give adversary"):
        audit(RESPONSE, ComputationalDP(1, 0))


def test_a_changed_file_is_found_out() -> None:
    result = audit(RESPONSE, PureDP(1))
    document = json.loads(to_json([result]))
    document["audits"][0]["ending"]["certificates"][0]["law"][0][1] = 0.5
    (changed,) = from_json(forged(document))
    assert any("law of d1" in text for text in recheck(changed))
    document["audits"][0]["ending"]["certificates"][0]["law"][1][1] = 0.5
    (changed,) = from_json(forged(document))
    assert any("epsilon" in text for text in recheck(changed))
    document["audits"][0]["verdict"] = "NO VIOLATION FOUND"
    with pytest.raises(ContradictoryFile):
        from_json(forged(document))
    changed = with_certificates(result, replace(laws_of(result)[0], refuted=False))
    assert any("refuted" in text for text in recheck(changed))


def test_the_last_digits_of_the_point_may_be_those_of_another_version() -> None:
    result = audit(RESPONSE, dpaudit.ZeroConcentratedDP(0.1))
    (one,) = laws_of(result)
    for rounding, is_found in ((1e-9, False), (1e-3, True)):
        point = replace(one.point, delta=one.point.delta * (1 + rounding))
        said = recheck(with_certificates(result, replace(one, point=point)))
        assert any("point.delta: recorded" in text for text in said) is is_found


def test_from_python() -> None:
    def answer(dataset: int) -> int:
        raise AssertionError("nothing is drawn")

    answer.pmf = lambda dataset: {dataset: 0.75, 1 - dataset: 0.25}  # type: ignore[attr-defined]
    result = dpaudit.audit(answer, 0, 1, PureDP(1), exact=True)
    assert result.verdict is Verdict.VIOLATION
