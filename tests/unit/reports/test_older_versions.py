"""Result files of older versions are read, rechecked and rendered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpaudit.auditing.recheck import recheck
from dpaudit.certificates.result import AuditResult
from dpaudit.reports.json import VERSION, read_document
from dpaudit.reports.registry import FORMATS
from dpaudit.reports.text import render
from tests.result_files import from_json, reported, to_json

# Written by dpaudit before audits froze several rules: a pass, a confirmed violation, a Rényi
# divergence, single outputs, a pair of bounds, and recorded outputs.
VERSION_5 = Path(__file__).parent / "results" / "version-5.json"


@pytest.fixture(scope="module")
def results() -> list[AuditResult]:
    found, _ = read_document(VERSION_5.read_text("utf-8"))
    return found


def test_a_file_of_version_5_has_one_rule_for_each_pair(results: list[AuditResult]) -> None:
    assert json.loads(VERSION_5.read_text("utf-8"))["version"] == 5 < VERSION
    certificates = [one for result in results for one in result.certificates]
    assert len(certificates) == 6
    for one in certificates:
        assert [(rule.kind, rule.share) for rule in one.rules] == [("main", 1.0)]
        assert one.detectable_rare is None
        assert one.attack
        assert len(one.guesses) == len(one.blocks[-1].tally)


def test_a_file_of_version_5_is_rechecked_from_its_draws(results: list[AuditResult]) -> None:
    assert {one.fixed.stage for result in results for one in result.certificates} == {
        "certification",
        "confirmation",
        "recorded",
    }
    for result in results:
        assert recheck(result) == []


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_of_version_5_is_rendered(results: list[AuditResult], name: str) -> None:
    text = reported(name, results)
    assert "violation" in text


def test_nothing_is_said_of_rare_outputs_where_nothing_is_known(
    results: list[AuditResult],
) -> None:
    for result in results:
        text = render(result, verbose=1)
        assert "only one input gives" not in text
        assert "\n  rules " not in text


def test_a_file_of_version_5_is_written_as_the_present_version(results: list[AuditResult]) -> None:
    again = to_json(results)
    assert json.loads(again)["version"] == VERSION
    assert from_json(again) == results
    for before, after in zip(results, from_json(again), strict=True):
        assert (before.first_version, after.first_version) == (5, 5)
        assert recheck(after) == []
