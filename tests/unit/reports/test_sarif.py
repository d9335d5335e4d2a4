"""SARIF: valid by its schema, with a place for every finding."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from dpaudit.certificates.result import AuditResult, Failed
from dpaudit.cli.exit_codes import of_result
from dpaudit.reports import github, sarif
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.forging import with_certificates
from tests.specs import replace

# Of https://github.com/oasis-tcs/sarif-spec, sarif-2.1/schema.
SCHEMA = json.loads((Path(__file__).parent / "schemas/sarif-2.1.0.json").read_text("utf-8"))
NASTY = 'a"b</script>]]>\x00\x1b[31m\ud800\n::error'


def written(results: list[AuditResult], planned: int = 0) -> dict[str, Any]:
    text = sarif.document([sarif.entry(one) for one in results], planned or len(results))
    document: dict[str, Any] = json.loads(text)
    Draft4Validator(SCHEMA).validate(document)
    return document


def results_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["runs"][0]["results"]
    return found


def test_the_schema_is_one_that_refuses() -> None:
    document = written([VIOLATION])
    del document["runs"][0]["tool"]
    assert not Draft4Validator(SCHEMA).is_valid(document)


def test_what_somebody_has_to_look_at_is_a_result() -> None:
    weak = replace(PASS, underpowered="too few draws")
    missed = replace(PASS, expect="violation")
    found = results_of(written([VIOLATION, PASS, ERROR, weak, missed]))
    assert [one["ruleId"] for one in found] == [
        "claim-refuted",
        "audit-error",
        "under-powered",
        "not-refuted",
    ]
    assert found[0]["message"]["text"].startswith("wrong-density: refuted at 99 %: outputs ≤ 0.13")
    assert results_of(written([PASS, replace(VIOLATION, expect="violation")])) == []


def test_alerts_and_annotations_are_errors_if_and_only_if_the_run_fails() -> None:
    weak = replace(PASS, underpowered="too few draws")
    doubted = replace(PASS.certificates[0], warnings=("draws depend",))
    strict = replace(with_certificates(PASS, doubted), strict=True)
    results = {
        "violation": (VIOLATION, 1),
        "missed": (replace(PASS, expect="violation"), 1),
        "strict": (strict, 1),
        "error": (ERROR, 3),
        "weak": (weak, 4),
        "passed": (PASS, 0),
        "expected": (replace(VIOLATION, expect="violation"), 0),
    }
    codes = {name: of_result(result) for name, (result, _) in results.items()}
    assert codes == {name: code for name, (_, code) in results.items()}
    for name, (result, code) in results.items():
        levels = [one["level"] for one in results_of(written([result]))]
        annotation = github.entry(result)
        assert levels == (["error"] if code else []), name
        assert (annotation or "").startswith("::error ") == bool(code), name
    rules = written([])["runs"][0]["tool"]["driver"]["rules"]
    assert {rule["defaultConfiguration"]["level"] for rule in rules} == {"error"}


def test_a_finding_is_at_the_line_of_the_mechanism(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("my mine.py").write_text("class A:\n    def count(self): ...\n", encoding="utf-8")
    (found,) = results_of(written([replace(VIOLATION, source="my mine.py:2")]))
    place = found["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "my%20mine.py"
    assert place["region"] == {"startLine": 2, "endLine": 2, "startColumn": 5, "endColumn": 25}


def test_a_finding_is_known_again_when_its_line_moves_and_others_are_others() -> None:
    def mark(result: AuditResult) -> str:
        (found,) = results_of(written([result]))
        return str(found["partialFingerprints"]["primaryLocationLineHash"])

    one = replace(VIOLATION, source="mine.py:2")
    assert mark(one) == mark(replace(one, source="mine.py:40", seconds=9.0))
    others = [replace(one, name="b"), replace(one, source="b.py:2"), replace(one, claim=PASS.claim)]
    assert len({mark(one), *map(mark, others)}) == 4


def test_nothing_in_a_name_or_an_error_makes_it_invalid() -> None:
    broken = replace(VIOLATION, name=NASTY, ending=Failed(NASTY), source=f"{NASTY}.py:3")
    (found,) = results_of(written([broken]))
    assert found["ruleId"] == "audit-error"


def test_no_name_becomes_a_link() -> None:
    (found,) = results_of(written([replace(VIOLATION, name="a[here](http://b.example)")]))
    assert found["message"]["text"].startswith("a[here] (http://b.example): refuted")


def test_numbers_that_json_does_not_have() -> None:
    (one,) = VIOLATION.certificates
    infinite = with_certificates(VIOLATION, replace(one, epsilon_lower=math.inf))
    (found,) = results_of(written([infinite]))
    assert found["properties"]["epsilonLower"] == "inf"


def test_a_run_that_did_not_end_is_no_success() -> None:
    (invocation,) = written([PASS], planned=2)["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert "1 of 2 audits" in invocation["toolExecutionNotifications"][0]["message"]["text"]
