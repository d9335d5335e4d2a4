"""What is shown of a trace: it diagnoses, proves nothing, and steers no terminal."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dpaudit import PureDP
from dpaudit.certificates.result import AuditResult
from dpaudit.certificates.traced import Excerpt, Finding, SourceLine, Trace
from dpaudit.reports import github, sarif, trace
from dpaudit.reports.html.page import view_of
from dpaudit.reports.json import plain, read_document
from dpaudit.reports.text import render as render_audit
from dpaudit.reports.text import render_summary
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.trace import trace_pair
from tests.cli.made_results import ERROR, PASS, VIOLATION
from tests.forging import forged
from tests.hostile import PLANTED, TRACE, with_texts
from tests.raising import refusal
from tests.result_files import from_json, reported, to_json
from tests.specs import replace
from tests.unit.reports.test_nasty_names import _COMMANDS, _STEERS, NASTY

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


def right(rows: list[int], rng: Any) -> Any:
    return len(rows) + rng.laplace(scale=1.0)


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
@pytest.mark.parametrize("verbose", [0, 1])
def test_a_trace_has_80_columns_and_ends_once(kind: str, verbose: int) -> None:
    text = trace.render(EVERY[kind], verbose=verbose)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("quiet", [False, True])
def test_no_words_say_that_a_mechanism_passes(kind: str, quiet: bool) -> None:
    text = flat(trace.render(EVERY[kind], quiet=quiet))
    assert not re.search(r"\b(private|safe|correct|fine|passes|passed|satisfies|OK)\b", text)
    if not EVERY[kind].causes:
        assert text.startswith(("NO CAUSE FOUND", "NOT UNDERSTOOD"))
        assert "no proof" in text or "no noise seen" in text


def test_causes_come_first_with_their_remedy() -> None:
    text = trace.render(made(halved))
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
    assert trace.render(turned).index("  cause ") < trace.render(turned).index("  finding ")


def test_nothing_found_is_no_proof() -> None:
    text = trace.render(made(right))
    assert "no proof" in flat(text)
    assert "at most ε = 1" in flat(text)
    assert "no proof" in flat(trace.render(made(right), quiet=True))


def test_without_a_claim_costs_are_shown() -> None:
    text = flat(trace.render(made(halved, None)))
    assert "claim none" in text
    assert "ε = 2" in text
    assert "allows" not in text


def test_what_was_not_seen_is_not_understood() -> None:
    assert trace.render(UNSEEN).startswith("NOT UNDERSTOOD  mine.py:laplace: no noise seen")
    assert trace.render(UNSEEN).count("no noise seen") == 1
    without = trace.render(replace(UNSEEN, notes=()))
    assert "no pass" in flat(without)
    assert "CAUSE FOUND" in trace.render(made(bare))


def test_all_that_a_site_has_is_said() -> None:
    text = flat(trace.render(TRACE))
    for said in (
        "mine.py:3: rng.laplace(scale=0.5), 3 times, scale 0.5 for d1, 0.25 for d2",
        "(0 for d1, 1 for d2)",
        "together at most ε = ∞",
        "cost unknown",
        "unknown mine.py:2: what a sort does to noise is not understood",
        "note every second run raised",
        "(see also mine.py:2)",
    ):
        assert said in text


def test_few_lines_are_shown_unless_all_are_wanted() -> None:
    many = replace(TRACE, sites=TRACE.sites[:1] * 9, not_understood=TRACE.not_understood * 7)
    text = trace.render(many)
    assert "and 4 more (-v)" in text
    assert "and 2 more (-v)" in text
    assert "more (-v)" not in trace.render(many, verbose=1)
    assert trace.render(many, verbose=1).count("scale 0.5 for d1") == 9


def test_quiet_shows_the_findings_alone() -> None:
    text = trace.render(TRACE, quiet=True)
    assert "noise       mine" not in text
    assert text.count("  cause  ") == 2
    assert "remedy: a scale of 1 would do" in text


def test_a_long_line_of_code_is_cut_and_a_tab_is_not_one() -> None:
    piece = Excerpt("f" * 200, 9, ("\tx = " + "y" * 200,), ((9, "z" * 200),))
    text = trace.render(replace(TRACE, excerpts=(piece,)))
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "\t" not in text
    assert "      x = yyy" in text


# In the reports of audits.


def test_a_refuted_claim_has_a_likely_cause() -> None:
    text = render_audit(REFUTED)
    assert "  cause       likely mine.py:3: `rng.laplace(scale=0.5)` with scale 0.5" in text
    assert "a scale of 1 would do" in text
    assert "rng.laplace(scale=0.5), 3 times" not in flat(text)
    assert all(len(line) <= 80 for line in text.splitlines())


def test_verbose_shows_the_sites_and_the_source() -> None:
    text = render_audit(REFUTED, verbose=1)
    assert "6 coupled runs" in flat(text)
    assert "rng.laplace(scale=0.5), 3 times" in flat(text)
    assert "  > 3      rng.laplace(scale=0.5)\n" in text


def test_where_no_cause_is_certain_that_is_said() -> None:
    text = flat(render_audit(replace(REFUTED, trace=TOGETHER)))
    assert "cause none for certain; mine.py:3: `rng.laplace(scale=0.5)` costs most: ε = ∞" in text
    assert "all lines together: at most ε = ∞" in text
    # What is seen costs no more than is claimed: the leak may be elsewhere.
    below = replace(TOGETHER, exceeds=False)
    said = flat(render_audit(replace(REFUTED, trace=below)))
    assert "look elsewhere" in said
    unknown = flat(render_audit(replace(REFUTED, trace=replace(below, total=None))))
    assert "costs most" in unknown
    assert "all lines together" not in unknown


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


def test_a_trace_that_shows_nothing_is_not_shown() -> None:
    assert render_audit(replace(VIOLATION, trace=UNSEEN), verbose=1) == render_audit(
        VIOLATION, verbose=1
    )


@pytest.mark.parametrize("form", FORMS)
def test_every_report_names_the_cause(form: str) -> None:
    text = flat(reported(form, [REFUTED]))
    assert "mine.py:3" in text
    assert "a scale of 1 would do" in text


def test_annotations_are_at_the_cause() -> None:
    line = github.entry(REFUTED)
    assert line is not None
    assert line.startswith("::error file=mine.py,line=3,title=VIOLATION%3A wrong-density::refuted")
    assert "%0Alikely cause: mine.py:3: `rng.laplace(scale=0.5)` with scale 0.5" in line
    assert "; a scale of 1 would do%0A" in line or line.endswith("a scale of 1 would do")
    plain = github.entry(replace(REFUTED, trace=None))
    assert plain is not None
    assert plain.startswith("::error file=mine.py,line=12,")


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
    ("file", "line"),
    [
        ("/usr/lib/python3/lib.py", 3),
        ("../other/mine.py", 3),
        ("", 3),
        ("mine.py", 0),
        ("mine.py", -3),
        ("a\nb.py", 3),
        ("a\x1b[31m.py", 3),
    ],
)
def test_a_cause_elsewhere_leaves_the_place_of_the_mechanism(file: str, line: int) -> None:
    cause = replace(TRACE.findings[0], line=SourceLine(file, line, "code"), others=())
    found = replace(REFUTED, trace=replace(TRACE, findings=(cause,)))
    assert github.place(found) == "mine.py:12"
    called = replace(cause, others=(SourceLine(file, line, "code"), SourceLine("b.py", 7, "")))
    from_mine = replace(REFUTED, trace=replace(TRACE, findings=(called,)))
    assert github.place(from_mine) == "b.py:7"
    assert github.place(replace(found, source=None)) is None


def test_a_quiet_batch_names_the_cause() -> None:
    """Of a run that prints no reports; else it stands in the report."""
    assert "likely cause: mine.py:3: `rng.laplace" in flat(render_summary([REFUTED, PASS]))
    assert "likely" not in render_summary([REFUTED, PASS], in_full=True)
    assert "likely" not in render_summary([replace(REFUTED, expect="violation"), PASS])


def test_a_note_is_no_cause_to_point_to() -> None:
    found = replace(REFUTED, trace=TOGETHER)
    assert github.place(found) == "mine.py:12"
    assert trace.briefly(found).startswith("no certain cause: ")


def test_a_page_shows_findings_source_and_sites() -> None:
    text = reported("html", [REFUTED])
    for said in ("Which line leaks", "Likely cause", 'class="marked"', "Lines that draw"):
        assert said in text
    shown = view_of(REFUTED).trace
    assert shown is not None
    sites = shown["sites"]
    assert {len(cells) for cells in (*sites.rows, sites.head)} == {len(trace.HEAD)}
    lines = shown["sources"][0]["lines"]
    assert [is_marked for _, _, is_marked, _ in lines] == [False, True, True]


# Files.


@pytest.mark.parametrize("kind", EVERY)
def test_a_result_file_gives_the_trace_back(kind: str) -> None:
    found = replace(REFUTED, trace=EVERY[kind])
    (again,) = from_json(to_json([found]))
    assert again.trace == found.trace
    assert render_audit(again, verbose=1) == render_audit(found, verbose=1)


def test_a_trace_of_a_run_is_given_back() -> None:
    for function in (halved, right, bare):
        found = made(function)
        (again,) = from_json(to_json([replace(VIOLATION, trace=found)]))
        assert again.trace == found


def test_numbers_that_json_does_not_have() -> None:
    odd = replace(TRACE.sites[0], cost=math.inf, shift=math.nan, scales=(0.0, -math.inf))
    found = replace(REFUTED, trace=replace(TRACE, sites=(odd,)))
    (again,) = from_json(to_json([found]))
    assert repr(again.trace) == repr(found.trace)
    text = flat(render_audit(again, verbose=1))
    assert "scale 0 for d1, -∞ for d2" in text
    assert "nan" not in text


def test_the_json_of_a_trace_is_a_record_of_results() -> None:
    document = json.loads(trace.as_json(TRACE))
    assert document.pop("kind") == "trace"
    assert document.pop("dpaudit")
    assert document == plain(TRACE)
    assert document["sites"][0]["total"] == "Infinity"
    assert msgspec.convert(document, Trace, strict=False) == TRACE
    nasty = hostile()
    assert json.loads(trace.as_json(nasty))["target"] == nasty.target


def _put(*path: Any, to: Any) -> Callable[[Any], None]:
    def change(found: Any) -> None:
        for one in path[:-1]:
            found = found[one]
        found[path[-1]] = to

    return change


SITE, FINDING, EXCERPT = ("trace", "sites", 0), ("trace", "findings", 0), ("trace", "excerpts", 0)
# A change of a record, and the place that the error names.
DAMAGED = [
    (_put("trace", to=7), "trace"),
    (_put("trace", to=[]), "trace"),
    (_put("trace", to={}), "trace"),
    (_put("trace", "sight", to=1), "trace.sight"),
    (_put(*FINDING, "kind", to="<b>"), "findings[0].kind"),
    (_put(*FINDING, "is_cause", to="so"), "findings[0].is_cause"),
    (_put(*FINDING, "line", "line", to="3"), "findings[0].line.line"),
    (_put(*SITE, "unit", to="\x1b[31m"), "sites[0].unit"),
    (_put(*SITE, "cost", to="little"), "sites[0].cost"),
    (_put(*SITE, "scales", to=[1, 2, 3]), "sites[0].scales"),
    (_put(*SITE, "operands", to=["1"]), "sites[0].operands"),
    (_put(*EXCERPT, "marked", to=[["2", "x"]]), "marked[0][0]"),
    (_put(*EXCERPT, "lines", to=[None]), "lines[0]"),
    (_put("trace", "runs", to=1.5), "trace.runs"),
    (_put("trace", "not_understood", to=[["a", "b"]]), "trace.not_understood[0]"),
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


def test_numbers_that_no_trace_has_break_no_report() -> None:
    odd = replace(
        TRACE,
        runs=-5,
        sites=(replace(TRACE.sites[0], entries=-1, cost=-math.inf, total=math.nan),),
        excerpts=(
            Excerpt("a", -3, ("x",) * 5, ((10**30, "far"), (-2, "near"))),
            Excerpt("b", 10**40, (), ()),
            Excerpt("c", 10**90, ("y",), ((10**90, "z"),)),
        ),
    )
    # The schema knows that counts are no less than 0; whoever reads a file may not.
    (again,) = from_json(reported("json", [replace(REFUTED, trace=odd)]))
    for form in (*FORMS, "github"):
        reported(form, [again])
    assert all(len(line) <= 80 for line in trace.render(odd).splitlines())


# Whatever it says.


@pytest.mark.parametrize("kind", [*NASTY, "planted"])
def test_no_text_of_a_trace_steers_a_terminal(kind: str) -> None:
    text = NASTY.get(kind, PLANTED)
    for found in (hostile(text), hostile(text, TOGETHER), hostile(text, UNSEEN)):
        audit = replace(REFUTED, trace=found)
        for shown in (
            trace.render(found),
            trace.render(found, verbose=1, quiet=True),
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


def test_no_code_becomes_a_link() -> None:
    found = sarif.entry(replace(REFUTED, trace=hostile("[here](http://b.example)")))
    assert found is not None
    assert "](" not in found["message"]["text"]


def test_a_finding_names_few_others() -> None:
    others = tuple(SourceLine("a.py", one, "") for one in (*range(9), 0))
    found = Finding("sum", False, SourceLine("a.py", 0, ""), "words", "", others)
    assert trace.sentence(found) == "a.py:0: words (see also a.py:1, a.py:2, a.py:3)"
