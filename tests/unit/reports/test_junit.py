"""JUnit XML: well-formed whatever an audit says, and read back as it was."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as XML

import pytest

from dpaudit.certificates.result import AuditResult, Failed
from dpaudit.reports.text import render
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.result_files import reported

MET = replace(VIOLATION, name="foreseen", expect="violation")
UNMET = replace(PASS, name="unforeseen", expect="violation")
IDLE = replace(PASS, name="idle", underpowered="1,000 draws cannot refute it", expect="pass")
ALL = [VIOLATION, PASS, ERROR, MET, UNMET, IDLE]


def suites(results: list[AuditResult]) -> XML.Element:
    return XML.fromstring(reported("junit", results).encode())


def test_every_audit_is_a_case_and_only_the_unexpected_fail() -> None:
    root = suites(ALL)
    (suite,) = root
    for one in (root, suite):
        assert (one.get("tests"), one.get("failures"), one.get("errors")) == ("6", "3", "1")
    outcomes = {
        case.get("name"): [part.tag for part in case if part.tag in ("failure", "error")]
        for case in suite
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
    for case, result in zip(suites(ALL)[0], ALL, strict=True):
        assert case.findtext("system-out") == render(result)
        figures = {one.attrib["name"]: one.attrib["value"] for one in case.iter("property")}
        assert float(figures["epsilon_lower"]) == result.epsilon_lower
        assert float(figures["p_value"]) == result.p_value
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
    (case,) = suites([odd])[0]
    assert case.get("name") == read
    assert case.get("classname") == read
    assert case.findtext("system-err") == read
    assert read in (case.findtext("system-out") or "")


def test_no_audits_are_a_suite_without_cases() -> None:
    assert len(suites([])[0]) == 0
