"""Annotations: at the code, at most ten, and nothing in them ends a line."""

from __future__ import annotations

from dpaudit.certificates.result import AuditResult
from dpaudit.reports import github
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.specs import replace


def written(results: list[AuditResult], planned: int = 0) -> str:
    return github.document([github.entry(one) for one in results], planned or len(results))


def test_only_what_nobody_expected_is_annotated() -> None:
    expected = replace(VIOLATION, expect="violation")
    text = written([PASS, expected, replace(VIOLATION, source="src/mine.py:12"), ERROR])
    first, second = text.splitlines()
    assert first.startswith(
        "::error file=src/mine.py,line=12,title=VIOLATION%3A wrong-density::refuted at 99 %25: "
    )
    assert second.startswith("::error title=ERROR%3A broken::the mechanism raises ValueError")
    assert written([PASS, expected]) == ""


def test_an_expectation_that_is_not_met_is_named() -> None:
    assert "wrong-density (expected%3A pass)" in written([replace(VIOLATION, expect="pass")])


def test_nothing_ends_a_line_or_begins_a_command() -> None:
    name = "a\n::warning file=x::b,c:d\r%\x85\u2028e"
    (line,) = written([replace(VIOLATION, name=name, source="a,b\n:c.py:3")]).splitlines()
    assert line.startswith(
        "::error file=a%2Cb%0A%3Ac.py,line=3,title=VIOLATION%3A a%0A%3A%3Awarning"
    )
    assert "b%2Cc%3Ad%0D%25%0A%0Ae" in line


def test_no_more_than_github_shows() -> None:
    lines = written([VIOLATION] * 25).splitlines()
    assert len(lines) == 10
    assert lines[-1].endswith("::16 audits more did not come out as expected")


def test_a_run_that_did_not_end_comes_first() -> None:
    assert written([PASS], planned=2).startswith(
        "::error title=dpaudit::1 of 2 audits: the run did"
    )
