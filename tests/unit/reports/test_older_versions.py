"""Result files of older versions are read, rechecked and rendered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpaudit.auditing.familywise import share_of
from dpaudit.auditing.recheck import recheck, recheck_families
from dpaudit.certificates.result import AuditResult, Failed, Family
from dpaudit.composed import replace
from dpaudit.errors import DpauditError, UsageError
from dpaudit.reports.json import VERSION, document, entry, read_document
from dpaudit.reports.registry import FORMATS
from dpaudit.reports.text import render
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.forging import forged, with_certificates
from tests.result_files import from_json, reported, to_json

# Written by dpaudit before audits froze several rules: a pass, a confirmed violation, a Rényi
# divergence, single outputs, a pair of bounds, and recorded outputs.
VERSION_5 = Path(__file__).parent / "results" / "version-5.json"
# A curve that is refuted; written before the digest covered the version.
VERSION_6 = VERSION_5.with_name("version-6.json")
# A pass with guesses of d2 at 73 % of the draws, written before their number limited the power.
VERSION_7 = VERSION_5.with_name("version-7.json")


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


def test_a_file_of_version_6_is_rechecked_under_its_own_digest() -> None:
    text = VERSION_6.read_text("utf-8")
    assert json.loads(text)["version"] == 6
    (result,), _ = read_document(text)
    assert recheck(result) == []
    assert from_json(to_json([result])) == [result]


@pytest.mark.parametrize("value", ["absent", "null"])
@pytest.mark.parametrize("version", [5, 6])
def test_draws_without_a_schedule_are_refused(version: int, value: str) -> None:
    path = {5: VERSION_5, 6: VERSION_6}[version]
    audits = json.loads(path.read_text("utf-8"))["audits"][:1]
    (certificate,) = audits[0]["certificates"]
    certificate["schedule"] = None
    if value == "absent":
        del certificate["schedule"]
    with pytest.raises(UsageError, match="schedule"):
        read_document(forged({"version": version, "audits": audits}))


@pytest.mark.parametrize(
    ("part", "key"),
    [("audits", "request"), ("audits", "family"), ("certificates", "notes"),
     ("certificates", "unseen"), ("certificates", "others")],
)  # fmt: skip
def test_fields_that_a_version_has_must_be_there(part: str, key: str) -> None:
    audits = json.loads(VERSION_6.read_text("utf-8"))["audits"]
    del (audits[0] if part == "audits" else audits[0]["certificates"][0])[key]
    with pytest.raises(UsageError, match=f"'{key}' is missing"):
        read_document(forged({"version": 6, "audits": audits}))


@pytest.mark.parametrize("changed", [{"version": 6}, {"version": 7}, {"planned": 4}])
def test_the_digest_covers_the_version_and_how_many_audits_there_were_to_be(
    changed: dict[str, int],
) -> None:
    written = json.loads(document([entry(VIOLATION)], 3))
    assert read_document(json.dumps(written))[1] == 3
    with pytest.raises(DpauditError, match="was changed"):
        read_document(json.dumps({**written, **changed}))
    without = {key: value for key, value in written.items() if key != "planned"}
    with pytest.raises(DpauditError, match="was changed"):
        read_document(json.dumps(without))


def test_an_audit_counts_once_in_a_family() -> None:
    family = Family("audits.yaml", 3, 0.99, 0.01 / 3)
    own = share_of(0.99, 3)
    one, other, third = (
        replace(result, confidence=own, family=family) for result in (VIOLATION, PASS, ERROR)
    )
    assert not any(
        "times" in text for text in recheck_families([one, other, third], has_ended=True)
    )
    found = recheck_families([one, one, one], has_ended=True)
    assert len(found) == 1
    assert repr(VIOLATION.name) in found[0]
    elsewhere = replace(one, family=replace(family, name="others.yaml"))
    found = recheck_families([one, other, third, elsewhere], has_ended=False)
    assert not any("times" in text for text in found)


def test_an_error_without_a_code_is_read_and_one_with_a_code_comes_back() -> None:
    coded = replace(ERROR, ending=Failed("draws repeat", code="draws-repeat"))
    (again,) = from_json(to_json([coded]))
    assert again.error_code == "draws-repeat"
    for version in (5, 6, VERSION):
        document = json.loads(to_json([coded]))
        del document["audits"][0]["error_code"]
        ((old,), _) = read_document(forged({**document, "version": version}))
        assert (old.error, old.error_code) == ("draws repeat", None)


def test_the_power_of_a_file_of_version_7_is_rechecked_by_its_own_rule() -> None:
    (result,), _ = read_document(VERSION_7.read_text("utf-8"))
    (certificate,) = result.certificates
    assert result.first_version == 7
    assert max(certificate.fixed.guesses_by_input) > 0.7 * certificate.fixed.draws
    assert recheck(result) == []
    assert len(recheck(replace(result, first_version=None))) == 1
    fixed = replace(certificate.fixed, detectable_epsilon=99.0)
    changed = with_certificates(result, replace(certificate, fixed=fixed))
    assert len(recheck(changed)) == 1


@pytest.mark.parametrize("version", [0, 8, 12, "7"])
def test_the_first_version_of_a_file_is_an_older_one(version: object) -> None:
    document = json.loads(VERSION_7.read_text("utf-8"))
    audits = [{**one, "first_version": version} for one in document["audits"]]
    with pytest.raises(DpauditError):
        read_document(forged({**document, "version": VERSION, "audits": audits}))
