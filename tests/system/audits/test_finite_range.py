from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing.recheck import recheck
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.certificates.rule_bounds import FiniteRange
from dpaudit.claims import PureDP
from dpaudit.draws import AtomTally, RangeTally
from dpaudit.outcomes import Raised, from_raw
from dpaudit.reports.text import render
from tests.forging import forged
from tests.raising import refusal
from tests.result_files import from_json, to_json
from tests.specs import replace

EPSILON = math.log(3)


def response(dataset: int, size: int, rng: np.random.Generator) -> Any:
    return np.where(rng.random(size) < 0.75, dataset, 1 - dataset)


def faulty(dataset: int, rng: np.random.Generator) -> int:
    if rng.random() < 0.1:
        raise TypeError("an exception is an outcome")
    return int(rng.random() < (0.75 if dataset else 0.25))


def audit(mechanism: Any = response, **options: Any) -> AuditResult:
    claim = options.pop("claim", PureDP(1.2))
    settings = {"range": [0, 1], "samples": 4_000, **options}
    return dpaudit.audit(mechanism, 0, 1, claim, **settings)


@pytest.fixture(scope="module")
def audited() -> AuditResult:
    return audit(samples=20_000)


def tally(*counts: tuple[int, int], undeclared: str | None = None) -> RangeTally:
    table = np.array(counts, dtype=np.int64)
    return RangeTally(
        AtomTally(table, (int(table[:, 0].sum()), int(table[:, 1].sum()))), undeclared
    )


def counted(declared: FiniteRange, outputs: list[Any]) -> RangeTally:
    """Return the tally of outputs that came up ten times for each input."""
    keys = from_raw(outputs).plain().keys()
    return tally(*((10, 10) if key in keys else (0, 0) for key in declared.keys))


def declared_of(result: AuditResult) -> tuple[tuple[str, int, int], ...]:
    return result.certificates[0].evidence.declared or ()


def test_an_interval_around_the_truth(audited: AuditResult) -> None:
    result = audited
    (certificate,) = result.certificates
    interval = certificate.interval
    assert interval is not None
    assert interval.lower < EPSILON < interval.upper < interval.lower + 0.25
    assert sum(d1 + d2 for _, d1, d2 in declared_of(result)) == certificate.fixed.draws
    assert recheck(result) == []
    assert from_json(to_json([result])) == [result]
    text = " ".join(render(result).split())
    assert "is between 1.0" in text
    assert "at 99 %" in text


def test_one_call_a_draw_with_declared_failures() -> None:
    result = audit(faulty, range=[0, 1, "TypeError"])
    interval = result.certificates[0].interval
    assert interval is not None
    assert [words for words, _, _ in declared_of(result)] == ["0", "1", "raised TypeError"]
    assert interval.lower < EPSILON < interval.upper


def test_an_output_outside_the_range_is_named() -> None:
    (certificate,) = audit(range=[0, 2, 3]).certificates
    assert certificate.interval is None
    (warning,) = certificate.warnings
    assert warning.startswith("range: no interval ")
    assert " 1 occurred" in warning


def test_no_upper_end_for_an_output_that_never_came_up() -> None:
    result = audit(range=[0, 1, 7])
    interval = result.certificates[0].interval
    assert interval is not None
    assert interval.upper == math.inf
    assert from_json(to_json([result])) == [result]


def test_no_interval_after_an_early_stop() -> None:
    result = audit(claim=PureDP(0.2), samples=20_000)
    assert result.verdict is Verdict.VIOLATION
    assert result.certificates[0].interval is None
    assert "stop: never" in result.certificates[0].warnings[0]


def test_full_goes_on_to_an_interval() -> None:
    result = audit(claim=PureDP(0.2), stop="never")
    assert result.verdict is Verdict.VIOLATION
    assert result.certificates[0].interval is not None
    assert recheck(result) == []


def test_a_changed_interval_is_found_out(audited: AuditResult) -> None:
    document = json.loads(to_json([audited]))
    certificate = document["audits"][0]["ending"]["certificates"][0]
    certificate["interval"]["upper"] = 1.0
    (changed,) = from_json(forged(document))
    assert any("interval.upper" in text for text in recheck(changed))
    certificate["evidence"]["declared"][0][1] += 1
    assert refusal(from_json, forged(document)).code == "results-damaged"


def test_declared_outputs_of_the_other_input_are_found_out(audited: AuditResult) -> None:
    (one,) = audited.certificates
    d1, d2 = one.evidence.total.arms
    assert d1 != d2
    swapped = tuple((name, d2, d1) for name, d1, d2 in declared_of(audited))
    with pytest.raises(ValueError, match="declared"):
        replace(one, declared=swapped)


def test_a_text_is_an_output_or_an_exception() -> None:
    declared = FiniteRange.of(["KeyError", 0])
    for outputs, words in (
        ([0, "KeyError"], "'KeyError'"),
        ([0, Raised("KeyError", "")], "raised KeyError"),
    ):
        counts = declared.counts(counted(declared, outputs))
        assert counts == ((words, 10, 10), ("0", 10, 10))


def test_a_text_that_is_both_is_no_single_output() -> None:
    declared = FiniteRange.of(["KeyError", 0])
    found = declared.counts(counted(declared, ["KeyError", Raised("KeyError", ""), 0]))
    assert isinstance(found, str)
    assert "one text" in found


@pytest.mark.parametrize("declared", [[0, 0.0], ["a", "a"]])
def test_an_output_listed_twice(declared: list[Any]) -> None:
    error = refusal(FiniteRange.of, declared)
    assert (error.code, "twice" in str(error)) == ("option-invalid", True)


def test_what_is_alike_but_differs_is_not_twice() -> None:
    assert len(FiniteRange.of([1, True, "1", None]).keys) == 5


def test_a_range_of_one_is_none() -> None:
    error = refusal(audit, range=[0])
    assert (error.code, "range=[0]" in str(error)) == ("option-invalid", True)
