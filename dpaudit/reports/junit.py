"""Audits as JUnit XML, which CI systems display: each audit is a test case with its name.

An unexpected verdict is a failure, and the verdict ERROR is an error. An expected verdict passes,
even if it is a violation. The report of an audit is the text of the failure or error or, for an
expected result, in `system-out`. Each audit is a test suite of its own, which has the numbers of
the audit as properties and the file of the mechanism: in the schema of Jenkins and pytest
(junit-10.xsd), a test case can have none of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from xml.etree import ElementTree

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.reports.audit_report import is_expected, reason, warnings_of
from dpaudit.reports.bounds_report import detectable_epsilon, p_value
from dpaudit.reports.github import attributes
from dpaudit.reports.numbers import at_least, at_most, unglued
from dpaudit.reports.text import render, unended
from dpaudit.wording import visible


def entry(result: AuditResult) -> ElementTree.Element:
    """Return the test suite of one audit. It contains one test case."""
    suite = new_suite(visible(result.name), f"{result.seconds:.3f}")
    properties = ElementTree.SubElement(suite, "properties")
    where = attributes(result)
    for name, value in {**_figures(result), **where}.items():
        ElementTree.SubElement(properties, "property", name=name, value=visible(value))
    case = new_case(suite, visible(result.target))
    report = visible(render(result))
    if where:
        suite.set("file", visible(where["file"]))
    if is_expected(result):
        ElementTree.SubElement(case, "system-out").text = report
    else:
        kind = "error" if result.verdict is Verdict.ERROR else "failure"
        message = visible(unglued(reason(result)))
        ElementTree.SubElement(case, kind, message=message, type=result.verdict.value).text = report
    warnings = "\n".join(map(visible, warnings_of(result)))
    if warnings:
        ElementTree.SubElement(case, "system-err").text = warnings
    return suite


def document(
    suites: Sequence[ElementTree.Element], planned: int, not_run: Sequence[str] = ()
) -> str:
    """Return the XML document. If the run is incomplete, it contains an error."""
    words = unended(len(suites), planned, not_run)
    suites = [*suites, *map(_skipped, not_run)]
    if words:
        suite = new_suite("the run", "0.000")
        ElementTree.SubElement(new_case(suite, "dpaudit"), "error", message=words, type="ERROR")
        suites = [*suites, suite]
    root = ElementTree.Element("testsuites", {"name": "dpaudit", **_counts(suites)})
    for suite in _with_unique_names(suites):
        suite.attrib |= _counts([suite])
        root.append(suite)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'


def _skipped(name: str) -> ElementTree.Element:
    """Return the test suite of an audit that was not run."""
    suite = new_suite(visible(name), "0.000")
    message = "not run: a failure stopped the run (-x, --maxfail)"
    ElementTree.SubElement(new_case(suite, "dpaudit"), "skipped", message=message)
    suite.set("skipped", "1")
    return suite


def new_suite(name: str, time: str) -> ElementTree.Element:
    """Return an empty test suite. time: its seconds."""
    return ElementTree.Element("testsuite", name=name, time=time)


def new_case(suite: ElementTree.Element, classname: str) -> ElementTree.Element:
    """Return the test case of a suite, which is added to it and has its name."""
    return ElementTree.SubElement(suite, "testcase", {**suite.attrib, "classname": classname})


def _counts(suites: Sequence[ElementTree.Element]) -> dict[str, str]:
    """Return the numbers of test cases, failures and errors, and the time, as attributes."""
    cases = [case for suite in suites for case in suite.iter("testcase")]
    return {
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "time": f"{sum(float(case.attrib['time']) for case in cases):.3f}",
    }


def _with_unique_names(suites: Sequence[ElementTree.Element]) -> Iterator[ElementTree.Element]:
    """Yield copies with unique names, since CI systems merge test cases of the same name."""
    taken: set[tuple[str, str]] = set()
    for suite in map(deepcopy, suites):
        (case,) = suite.iter("testcase")
        name, number = case.attrib["name"], 1
        while (case.attrib["classname"], case.attrib["name"]) in taken:
            number += 1
            case.attrib["name"] = suite.attrib["name"] = f"{name} ({number})"
        taken.add((case.attrib["classname"], case.attrib["name"]))
        yield suite


def _figures(result: AuditResult) -> dict[str, str]:
    """Return numbers of an audit by name, rounded as in its text report."""
    point, least = result.point, detectable_epsilon(result)
    return {
        "verdict": result.verdict.value,
        "expect": result.expect or "",
        "claim": result.claim.describe(),
        "epsilon_lower": at_least(result.epsilon_lower, above=point.epsilon),
        "delta_lower": at_least(result.delta_lower, above=point.delta),
        "p_value": p_value(result)[0],
        "confidence": repr(1 - result.level),  # of the verdict and of the bounds
        "detectable_epsilon": "" if least is None else at_most(least),
        "draws": str(result.draws),
        "seed": str(result.seed),
        "command": result.command or "",
    }
