"""Runs that `-x` stops: reports, comparisons and journals of audits that were not run."""

from __future__ import annotations

import json
import xml.etree.ElementTree as XML
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator

from dpaudit.reports.formats import FORMATS
from tests.cli.test_gates import BATCH, NAMES, names, saved
from tests.cli.test_gates import folder as folder
from tests.forging import forged
from tests.unit.reports.test_junit import schema as junit_schema
from tests.unit.reports.test_sarif import SCHEMA as SARIF_SCHEMA


def test_errors_weak_audits_and_warnings_are_failures(dpaudit: Any) -> None:
    for own, code in (
        ('mechanism: "m.py:absent"', 2),
        ('mechanism: "m.py:broken", on_error: fail', 3),
        ("samples: 100, claim: {epsilon: 12}", 4),
        ('mechanism: "m.py:seven", strict: true', 1),
    ):
        Path("audits.yaml").write_text(BATCH.replace("{name: first}", f"{{name: first, {own}}}"))
        result = dpaudit("run", "audits.yaml", "-x", "--json", "r.json")
        assert result.exit_code == code, own
        assert names("r.json") == ["first"], own


def test_every_format_lists_what_was_not_run(dpaudit: Any) -> None:
    nasty = "third <b>&amp;</b>\\n::error::|*"
    text = BATCH.replace("name: third", f'name: "{nasty}"')
    Path("audits.yaml").write_text(text)
    first, again = (
        [word for form in FORMATS for word in ("--report", f"{form}:{form}.{name}")]
        for name in ("first", "again")
    )
    assert dpaudit("run", "audits.yaml", "-x", *first, "--json", "r.json").exit_code == 1
    assert dpaudit("report", "r.json", *again).exit_code == 0
    for form in FORMATS:
        written = Path(f"{form}.first").read_text("utf-8")
        assert "fourth" in written
        assert "2 audits were not run" in written or form in ("json", "junit")
        assert "fourth" in Path(f"{form}.again").read_text("utf-8")
        if form == "github":
            levels = [line.split(" ")[0] for line in written.splitlines()]
            assert levels == ["::error", "::warning"]
        if form == "html":
            assert "<b>&amp;</b>" not in written


def test_stopped_reports_are_what_their_schemas_ask_for(dpaudit: Any) -> None:
    dpaudit("run", "audits.yaml", "-x", "--report", "junit:r.xml", "--report", "sarif:r.sarif")
    text = Path("r.xml").read_text("utf-8")
    junit_schema().validate(text)
    root = XML.fromstring(text.encode())
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("4", "1", "0")
    cases = list(root.iter("testcase"))
    assert [one.get("name") for one in cases if one.find("skipped") is not None] == NAMES[2:]
    document = saved("r.sarif")
    Draft4Validator(SARIF_SCHEMA).validate(document)
    (invocation,) = document["runs"][0]["invocations"]
    assert invocation["executionSuccessful"] is False
    assert len(invocation["toolExecutionNotifications"]) == 2


def test_a_comparison_knows_what_was_not_run_from_what_vanished(dpaudit: Any) -> None:
    dpaudit("run", "audits.yaml", "--json", "old.json")
    dpaudit("run", "audits.yaml", "-x", "--json", "new.json")
    result = dpaudit("compare", "old.json", "new.json")
    assert result.exit_code == 2  # no regression, and no pass
    assert "vanished" not in result.stdout
    rows = [line.split(" | ") for line in result.stdout.splitlines() if "| not run" in line]
    assert [row[:2] for row in rows] == [["| change", "third"], ["| change", "fourth"]]


def test_a_stopped_run_goes_on_from_its_journals(dpaudit: Any) -> None:
    dpaudit("run", "audits.yaml", "--json", "whole.json")
    assert dpaudit("run", "audits.yaml", "-x", "--journal", "j", "--json", "r.json").exit_code == 1
    assert names("r.json") == NAMES[:2]
    dpaudit("run", "audits.yaml", "-x", "--journal", "j", "--resume", "--json", "r.json")
    assert names("r.json") == NAMES[:2]
    result = dpaudit("run", "audits.yaml", "--journal", "j", "--resume", "--json", "r.json")
    assert result.exit_code == 1
    numbers = [
        [(one["name"], one["p_value"], one["draws"]) for one in saved(file)["audits"]]
        for file in ("whole.json", "r.json")
    ]
    assert numbers[0] == numbers[1]


def test_a_family_that_was_stopped_has_its_shares_alone(dpaudit: Any) -> None:
    Path("audits.yaml").write_text(f"familywise: true\n{BATCH}")
    assert dpaudit("run", "audits.yaml", "-x", "--json", "r.json").exit_code == 1
    levels = [one["family"]["level"] for one in saved("r.json")["audits"]]
    assert levels == pytest.approx([0.01 / 4] * 2)
    assert dpaudit("report", "r.json").exit_code == 0


def test_a_results_file_that_lists_too_many_is_damaged(dpaudit: Any) -> None:
    dpaudit("run", "audits.yaml", "-x", "--json", "r.json")
    document = saved("r.json")
    for bent in ({"planned": 3}, {"not_run": [3]}, {"not_run": "third"}):
        Path("bent.json").write_text(forged({**document, **bent}))
        assert dpaudit("report", "bent.json").exit_code == 2
        Path("bent.json").write_text(json.dumps({**document, **bent}))
        assert dpaudit("report", "bent.json").exit_code == 3  # the digest covers both
