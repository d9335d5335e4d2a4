"""What is shown of a trace: it diagnoses, proves nothing, and steers no terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dpaudit import PureDP
from dpaudit.certificates.result import AuditResult
from dpaudit.certificates.traced import SourceLine, Trace
from dpaudit.reports import github, sarif, trace_report
from dpaudit.reports.html.page import view_of
from dpaudit.reports.json import plain, read_document
from dpaudit.reports.text import render as render_audit
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.mechanism_trace import trace_pair
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.forging import forged
from tests.hostile import PLANTED, TRACE, with_texts
from tests.raising import refusal
from tests.result_files import from_json, reported, to_json
from tests.specs import replace
from tests.unit.reports.test_nasty_names import _COMMANDS, _STEERS, NASTY
from tests.unit.reports.test_result_schema import _set

REFUTED = replace(VIOLATION, source="mine.py:12", trace=TRACE)
# Nothing alone costs too much.
TOGETHER = replace(TRACE, findings=(replace(TRACE.findings[2], kind="sum"),))
CLEAN = replace(TRACE, findings=(), exceeds=False, total="ε = 1", not_understood=(), notes=())
UNSEEN = replace(CLEAN, sites=(), total=None, excerpts=(), notes=("no noise seen",))
EVERY = {"causes": TRACE, "together": TOGETHER, "clean": CLEAN, "unseen": UNSEEN}
CLAIM = PureDP(1.0)
FORMS = ("text", "markdown", "junit", "sarif", "html")


def halved(rows: list[int], rng: Any) -> Any:
    return len(rows) + rng.laplace(scale=0.5)


def bare(rows: list[int]) -> int:
    return len(rows)


def made(function: Callable[..., Any], claim: PureDP | None = CLAIM) -> Trace:
    return trace_pair(CallableTarget(function=function), [1, 2], [1], claim)


def flat(text: str) -> str:
    return " ".join(text.replace("\xa0", " ").split())


def hostile(text: str = PLANTED, of: Trace = TRACE) -> Trace:
    found: Trace = with_texts(of, text)
    return found


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("quiet", [False, True])
def test_no_words_say_that_a_mechanism_passes(kind: str, quiet: bool) -> None:
    text = flat(trace_report.render(EVERY[kind], quiet=quiet))
    assert not re.search(r"\b(private|safe|correct|fine|passes|passed|satisfies|OK)\b", text)
    if not EVERY[kind].causes:
        assert text.startswith(("NO CAUSE FOUND", "NOT UNDERSTOOD"))
        assert "no proof" in text or "no noise seen" in text


def test_causes_come_first_with_their_remedy() -> None:
    text = trace_report.render(made(halved))
    head, _, body = text.partition("\n\n")
    assert head.startswith("CAUSE FOUND  ")
    assert "too little noise" in head
    said = flat(body)
    assert "`rng.laplace(scale=0.5)`" in said
    assert "a scale of 1" in said
    assert "total at most ε = 2" in said
    first = next(one for one in text.splitlines() if one.startswith("  > "))
    assert first.endswith("    return len(rows) + rng.laplace(scale=0.5)")
    turned = replace(TRACE, findings=TRACE.findings[::-1])
    text = trace_report.render(turned)
    assert text.index("  cause ") < text.index("  finding ")


def test_what_was_not_seen_is_not_understood() -> None:
    assert trace_report.render(UNSEEN).startswith("NOT UNDERSTOOD  mine.py:laplace: no noise seen")
    assert trace_report.render(UNSEEN).count("no noise seen") == 1
    without = trace_report.render(replace(UNSEEN, notes=()))
    assert "no pass" in flat(without)
    assert "CAUSE FOUND" in trace_report.render(made(bare))


# In the reports of audits.


@pytest.mark.parametrize("base", [PASS, ERROR])
@pytest.mark.parametrize("form", [*FORMS, "github"])
def test_only_what_is_refuted_is_explained(base: AuditResult, form: str) -> None:
    """A result file may have a trace anywhere."""
    text = reported(form, [replace(base, trace=TRACE)]).lower()
    assert "likely cause" not in text
    assert "cause       likely" not in text
    assert "which line leaks" not in text
    assert view_of(replace(base, trace=TRACE)).trace is None
    assert github.place(replace(base, source="a.py:1", trace=TRACE)) == "a.py:1"


def test_alerts_are_at_the_cause_and_stay_the_same_alerts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("a\nb\n    return 1\n", encoding="utf-8")
    with_it, without = (sarif.entry(replace(REFUTED, trace=one)) for one in (TRACE, None))
    assert with_it is not None
    assert without is not None
    region = with_it["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 3, "endLine": 3, "startColumn": 5, "endColumn": 13}
    assert "\nlikely cause: mine.py:3: " in with_it["message"]["text"]
    assert with_it["partialFingerprints"] == without["partialFingerprints"]


@pytest.mark.parametrize(
    ("file", "line"), [("/usr/lib/python3/lib.py", 3), ("", 3), ("mine.py", 0), ("a\nb.py", 3)]
)
def test_a_cause_elsewhere_leaves_the_place_of_the_mechanism(file: str, line: int) -> None:
    cause = replace(TRACE.findings[0], line=SourceLine(file, line, "code"), others=())
    found = replace(REFUTED, trace=replace(TRACE, findings=(cause,)))
    assert github.place(found) == "mine.py:12"
    called = replace(cause, others=(SourceLine(file, line, "code"), SourceLine("b.py", 7, "")))
    from_mine = replace(REFUTED, trace=replace(TRACE, findings=(called,)))
    assert github.place(from_mine) == "b.py:7"
    assert github.place(replace(found, source=None)) is None


# Files.


@pytest.mark.parametrize("kind", EVERY)
def test_a_result_file_gives_the_trace_back(kind: str) -> None:
    found = replace(REFUTED, trace=EVERY[kind])
    (again,) = from_json(to_json([found]))
    assert again.trace == found.trace
    assert render_audit(again, verbose=1) == render_audit(found, verbose=1)


def test_the_json_of_a_trace_is_a_record_of_results() -> None:
    document = json.loads(trace_report.as_json(TRACE))
    assert document.pop("kind") == "trace"
    assert document.pop("dpaudit")
    assert document == plain(TRACE)
    assert document["sites"][0]["total"] == "Infinity"
    assert msgspec.convert(document, Trace, strict=False) == TRACE
    nasty = hostile()
    assert json.loads(trace_report.as_json(nasty))["target"] == nasty.target


SITE, FINDING = ("trace", "sites", 0), ("trace", "findings", 0)
# A change of a record, and the place that the error names.
DAMAGED = [
    (_set("trace", to=7), "trace"),
    (_set("trace", to={}), "trace"),
    (_set(*FINDING, "kind", to="<b>"), "findings[0].kind"),
    (_set(*SITE, "unit", to="\x1b[31m"), "sites[0].unit"),
    (_set(*SITE, "operands", to=["1"]), "sites[0].operands"),
    (_set("trace", "runs", to=1.5), "trace.runs"),
]


def test_a_damaged_trace_is_refused_with_its_place() -> None:
    for change, place in DAMAGED:
        document = json.loads(to_json([REFUTED]))
        change(document["audits"][0])
        error = refusal(read_document, forged(document))
        assert error.code in ("results-damaged", "results-contradictory")
        assert "audits[0].trace" in str(error)
        assert place in str(error).replace("[...]", "[0]")
        assert not _STEERS.search(str(error))


# Whatever it says.


@pytest.mark.parametrize("kind", [*NASTY, "planted"])
def test_no_text_of_a_trace_steers_a_terminal(kind: str) -> None:
    text = NASTY.get(kind, PLANTED)
    for found in (hostile(text), hostile(text, TOGETHER), hostile(text, UNSEEN)):
        audit = replace(REFUTED, trace=found)
        for shown in (
            trace_report.render(found),
            trace_report.render(found, verbose=1, quiet=True),
            render_audit(audit),
            render_audit(audit, verbose=1),
            *(reported(form, [audit]) for form in ("text", "markdown")),
        ):
            assert not _STEERS.search(shown)
            assert not _COMMANDS.search(shown)
            assert "\nVIOLATION  c" not in shown
        lines = reported("github", [audit]).splitlines()
        assert len(lines) == 1
        assert not _COMMANDS.search(lines[0].removeprefix("::error "))
        json.loads(reported("sarif", [audit]))
        assert not re.search("[\x00\x1b\u202e\ud800]", reported("html", [audit]))
        (again,) = from_json(to_json([audit]))
        assert again.trace == found
