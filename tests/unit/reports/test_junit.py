"""JUnit XML: well-formed whatever an audit says, and read back as it was."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as XML

import pytest

from dpaudit.certificates.result import AuditResult, Failed
from dpaudit.reports import junit
from dpaudit.reports.text import render
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.result_files import reported
from tests.specs import replace

if TYPE_CHECKING:
    from xmlschema import XMLSchema

MET = replace(VIOLATION, name="foreseen", expect="violation")
UNMET = replace(PASS, name="unforeseen", expect="violation")
IDLE = replace(PASS, name="idle", underpowered="1,000 draws cannot refute it", expect="pass")
ALL = [VIOLATION, PASS, ERROR, MET, UNMET, IDLE]


@cache
def schema() -> XMLSchema:
    """Of Jenkins' xUnit plugin, as pytest's tests have it. Imported here, since every worker of the
    suite imports every module of tests."""
    from xmlschema import XMLSchema

    return XMLSchema(str(Path(__file__).parent / "schemas" / "junit-10.xsd"))


def suites(results: list[AuditResult], planned: int = 0) -> XML.Element:
    entries = [junit.entry(one) for one in results]
    text = junit.document(entries, planned or len(results))
    schema().validate(text)
    assert text == junit.document(entries, planned or len(results))  # it is asked more than once
    return XML.fromstring(text.encode())


def reports_of(suite: XML.Element) -> list[str]:
    """Return every report in the suite: the text of a failure or an error, or the output."""
    tags = ("failure", "error", "system-out")
    return [part.text or "" for part in suite.iter() if part.tag in tags]


def test_the_schema_is_one_that_refuses() -> None:
    text = reported("junit", [PASS])
    assert schema().is_valid(text)
    assert not schema().is_valid(text.replace(' tests="1"', ""))
    assert not schema().is_valid(text.replace("<system-out", "<properties/><system-out"))


def test_every_audit_is_a_case_and_only_the_unexpected_fail() -> None:
    root = suites(ALL)
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "3", "1")
    assert [one.get("tests") for one in root] == ["1"] * 6
    assert [one.get("failures") for one in root] == ["1", "0", "0", "0", "1", "1"]
    outcomes = {
        case.get("name"): [part.tag for part in case if part.tag in ("failure", "error")]
        for case in root.iter("testcase")
    }
    assert outcomes == {
        "wrong-density": ["failure"],
        "laplace": [],
        "broken": ["error"],
        "foreseen": [],
        "unforeseen": ["failure"],
        "idle": ["failure"],
    }


def test_the_report_and_the_figures_come_back() -> None:
    for suite, result in zip(suites(ALL), ALL, strict=True):
        assert suite.get("name") == result.name
        assert reports_of(suite) == [render(result)]
        figures = {one.attrib["name"]: one.attrib["value"] for one in suite.iter("property")}
        assert float(figures["epsilon_lower"]) == pytest.approx(result.epsilon_lower, rel=0.01)
        assert float(figures["p_value"]) == pytest.approx(result.p_value, rel=0.1)
        assert figures["verdict"] == result.verdict.value
    error = suites([ERROR]).find("testsuite/testcase/error")
    assert error is not None
    assert error.get("message") == ERROR.error


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("\x1b[31mred\x00", r"\x1b[31mred\x00"),
        ("\ud800 \uffff", r"\ud800 \uffff"),
        ("a < b & 'c' \"d\" ]]>", "a < b & 'c' \"d\" ]]>"),
        ("\U0001f512 ε ≤ 1", "\U0001f512 ε ≤ 1"),
    ],
)
def test_what_xml_has_no_form_for_is_escaped(said: str, read: str) -> None:
    odd = replace(
        ERROR, name=said, target=said, ending=Failed(said), warnings=(said,), command=said
    )
    root = suites([odd])
    (case,) = root.iter("testcase")
    assert case.get("name") == read
    assert case.get("classname") == read
    assert case.findtext("system-err") == read
    assert read in reports_of(root)[0]


def test_a_run_that_did_not_end_has_an_error_of_its_own() -> None:
    root = suites([PASS], planned=3)
    assert (root.get("tests"), root.get("errors")) == ("2", "1")
    error = root.find("testsuite[@name='the run']/testcase/error")
    assert error is not None
    assert str(error.get("message")).startswith("1 of 3 audits: ")


def test_every_case_has_a_name_of_its_own() -> None:
    """Also of one name in several files, or of several audits in a test."""
    twice = [PASS, PASS, replace(PASS, name="laplace (2)"), PASS, replace(PASS, target="other")]
    cases = list(suites(twice).iter("testcase"))
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(set(names)) == len(names)
    assert [name for _, name in names] == [
        *("laplace", "laplace (2)", "laplace (2) (2)", "laplace (3)", "laplace")
    ]
