"""Audits as JUnit XML, which CI systems show: a test case for each, named like the audit.

An audit that did not come out as expected is a failure; one that ended with ERROR is an error. What
was expected passes, a violation, too. The report is in `system-out`, the figures are properties.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.reports.batch import unended
from dpaudit.reports.findings import is_expected
from dpaudit.reports.numbers import unglued
from dpaudit.reports.text import reason, render, warnings_of

# What XML 1.0 has no form for, not even an escaped one: control characters, lone surrogates.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def entry(result: AuditResult) -> ElementTree.Element:
    """Return the test case of one audit."""
    case = ElementTree.Element(
        "testcase",
        name=_text(result.name),
        classname=_text(result.target),
        time=f"{result.seconds:.3f}",
    )
    properties = ElementTree.SubElement(case, "properties")
    for name, value in _figures(result).items():
        ElementTree.SubElement(properties, "property", name=name, value=_text(value))
    report = _text(render(result))
    if not is_expected(result):
        kind = "error" if result.verdict is Verdict.ERROR else "failure"
        message = _text(unglued(reason(result)))
        ElementTree.SubElement(case, kind, message=message, type=result.verdict.value).text = report
    ElementTree.SubElement(case, "system-out").text = report
    warnings = "\n".join(map(_text, warnings_of(result)))
    if warnings:
        ElementTree.SubElement(case, "system-err").text = warnings
    return case


def document(cases: Sequence[ElementTree.Element], planned: int) -> str:
    """Return the document of test cases; with an error where there are to be more of them."""
    words = unended(len(cases), planned)
    if words:
        case = ElementTree.Element("testcase", name="the run", classname="dpaudit", time="0.000")
        ElementTree.SubElement(case, "error", message=words, type="ERROR")
        cases = [*cases, case]
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(one.find("failure") is not None for one in cases)),
        "errors": str(sum(one.find("error") is not None for one in cases)),
        "time": f"{sum(float(one.attrib['time']) for one in cases):.3f}",
    }
    suites = ElementTree.Element("testsuites", counts)
    ElementTree.SubElement(suites, "testsuite", {"name": "dpaudit", **counts}).extend(cases)
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _figures(result: AuditResult) -> dict[str, str]:
    """Return the figures of an audit, to all their digits."""
    return {
        "verdict": result.verdict.value,
        "expect": result.expect or "",
        "claim": result.claim.describe(),
        "epsilon_lower": repr(result.epsilon_lower),
        "delta_lower": repr(result.delta_lower),
        "p_value": repr(result.p_value),
        "confidence": repr(result.confidence),
        "draws": str(result.draws),
        "seed": str(result.seed),
        "command": result.command or "",
    }


def _text(text: str) -> str:
    return _NO_XML.sub(lambda found: ascii(found[0])[1:-1], text)
