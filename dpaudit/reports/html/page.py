"""Audits as one self-contained HTML file: a table of all audits, then a section for each audit.

Text from a mechanism, a name or a message never becomes markup: Jinja2 escapes it, characters that
browsers do not show are written as Python escapes, and a content security policy allows only the
page's own script and style.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib.util import find_spec
from typing import Any

from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.certificates.traced import Excerpt, Trace, short_path
from dpaudit.errors import UsageError
from dpaudit.reports import inputs_report, numbers, trace_report
from dpaudit.reports.audit_report import (
    is_expected,
    leaves_open,
    notes_of,
    reason,
    statements,
    verdict_of,
    warnings_of,
)
from dpaudit.reports.bounds_report import (
    MAY_MISS,
    UNPROVEN,
    Bound,
    bounds,
    detectable_epsilon,
    may_miss,
)
from dpaudit.reports.events import bets, counted_rows
from dpaudit.reports.html import canvas
from dpaudit.reports.html.pictures import left_out, pictures
from dpaudit.reports.layout import Item, Row
from dpaudit.reports.parity_report import named_html
from dpaudit.reports.text import chances, stopped, title, unended
from dpaudit.version import __version__
from dpaudit.wording import counted, install_command, visible

_KINDS = {
    Verdict.VIOLATION: "violation",
    Verdict.NO_VIOLATION_FOUND: "nothing",
    Verdict.ERROR: "error",
}
# Symbols of results that their kind does not name: by kind, and whether the result is expected.
_SIGNS = {("nothing", False): "missed", ("violation", True): "expected"}
_STAGES = {
    "learning": "to learn from, and to bet on",
    "certification": "kept for the exact test",
    "confirmation": "to confirm what betting had refuted",
    "recorded": "kept for the exact test",
}
_Row = tuple[str, tuple[str, ...]]
_WHOLE = "This p-value covers the whole audit: it is corrected for all pairs and tests."
_MAX_EVENTS = 50
# Labels of rows that are hidden until the reader unfolds them, since few readers need them.
_FOLDED = ("betting", "error split", "record")
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table with a caption. The first cell of each row is the heading of the row."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Overview:
    """A row of the table of all audits.

    kind: CSS class of the verdict.
    sign: name of the symbol next to the verdict. It equals `kind`, except for an expected violation
        (`expected`), and for a claim that was not refuted although a violation was expected
        (`missed`).
    rank: number by which rows are sorted, smallest first. Unexpected results come first.
    bound: the lower bound that the report names first; None without a pair of inputs.
    missed, detectable: the leak that the audit may miss, and its ε as a number to sort by.
    """

    result: AuditResult
    verdict: str
    kind: str
    sign: str
    rank: int
    bound: Bound | None
    missed: str
    detectable: float
    time: str
    is_met: bool

    @property
    def shown(self) -> str:
        """Return the bound as text, such as `ε ≥ 1.69, claimed 1`."""
        return "" if self.bound is None else self.bound.brief(self.result)

    @property
    def lower(self) -> float:
        """Return the bound as a number to sort by."""
        return 0.0 if self.bound is None else self.bound.shown(self.result)


@dataclass(frozen=True, slots=True)
class View:
    """The texts and tables of one audit, below its headline.

    rows: (label, texts) pairs.
    events, stages, tried: tables of the events, of the draws by stage, and of the attacks.
    witness: a command line and Python code, each of which audits the pair that a search has found;
        empty without a search.
    cause: the first finding of a trace as (heading, text, remedy); None if there is none.
    trace: the rest of the trace: `runs`, (is_cause, text, remedy) of further `findings`, `sources`,
        table of `sites`, `total`, `unknown`, `notes`. None if the audit has no trace.
    """

    reason: str
    rows: tuple[_Row, ...]
    meaning: tuple[str, ...]
    events: tuple[PageTable, ...]
    stages: tuple[PageTable, ...]
    tried: tuple[PageTable, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    command: str | None
    witness: tuple[str, ...]
    cause: tuple[str, str, str] | None
    trace: Mapping[str, Any] | None

    @property
    def parts(self) -> list[tuple[list[_Row], list[_Row]]]:
        """Return a list of (visible rows, folded rows). The first item is for the audit as a whole,
        and each further item for a pair of inputs."""
        parts: list[tuple[list[_Row], list[_Row]]] = [([], [])]
        for row in self.rows:
            if row[0] == "inputs":
                parts.append(([], []))
            parts[-1][row[0] in _FOLDED].append(row)
        return parts


def row_of(result: AuditResult) -> Overview:
    """Return the row of an audit in the table of all audits."""
    is_met, kind = is_expected(result), _KINDS[result.verdict]
    return Overview(
        result=result,
        verdict=verdict_of(result),
        kind=kind,
        sign=_SIGNS.get((kind, is_met), kind),
        rank=list(_KINDS).index(result.verdict) + (len(_KINDS) if is_met else 0),
        bound=bounds(result)[0] if result.decisive is not None else None,
        missed=may_miss(result),
        detectable=detectable_epsilon(result) or 0.0,
        time=numbers.duration(result.seconds),
        is_met=is_met,
    )


def view_of(result: AuditResult) -> View:
    """Return the texts and tables of an audit."""
    rows, meaning = statements(result, 1)
    certificates, traced = result.certificates, trace_report.traced(result)
    cause = None if traced is None else traced.likely
    heading = "Likely cause" if cause is not None and cause.is_cause else "No certain cause"
    return View(
        reason=reason(result),
        rows=tuple(_explained(_rows(rows), has_tests=bool(certificates))),
        meaning=tuple(item.text for item in meaning if isinstance(item, Row)),
        events=tuple(_events(result)),
        stages=tuple(_stages(pair, several=len(certificates) > 1) for pair in certificates),
        tried=tuple(
            _tried(pair, several=len(certificates) > 1) for pair in certificates if pair.attacks
        ),
        warnings=tuple(warnings_of(result)),
        notes=tuple(notes_of(result)),
        command=result.command,
        witness=tuple(filter(None, [inputs_report.command(result), inputs_report.snippet(result)])),
        cause=None if cause is None else (heading, trace_report.sentence(cause), cause.remedy),
        trace=None if traced is None else _traced(traced),
    )


def _traced(traced: Trace) -> Mapping[str, Any]:
    sites = tuple(map(trace_report.cells, traced.sites))
    further = [finding for finding in traced.findings if finding is not traced.likely]
    return {
        "runs": counted(traced.runs, "coupled run"),
        "findings": [
            (finding.is_cause, trace_report.sentence(finding), finding.remedy)
            for finding in further
        ],
        "sources": list(map(_source, traced.excerpts)),
        "sites": PageTable("Lines that draw noise, the costliest first", trace_report.HEAD, sites),
        "total": trace_report.total_words(traced) if sites else "",
        "unknown": tuple(trace_report.unknown(traced)),
        "notes": traced.notes,
    }


def _source(excerpt: Excerpt) -> Mapping[str, Any]:
    """Return the file, and (number, code, is marked, text of the mark) for each line."""
    marks = dict(excerpt.marked)
    lines = enumerate(trace_report.source(excerpt), excerpt.start)
    return {
        "file": short_path(excerpt.file),
        "lines": [(line, code, line in marks, marks.get(line, "")) for line, code in lines],
    }


def _explained(rows: Iterable[_Row], *, has_tests: bool) -> Iterator[_Row]:
    """Yield the rows without the likely cause; if there are other tests, explain the p-value."""
    for label, texts in rows:
        if label == "p-value" and has_tests:
            yield label, (*texts, _WHOLE)
        elif label != trace_report.CAUSE_ROW:
            yield label, texts


def _rows(items: Iterable[Item]) -> Iterator[_Row]:
    """Yield (label, texts) for each row with a label and the rows without one below it."""
    label, texts = "", list[str]()
    for item in items:
        if not isinstance(item, Row):
            continue
        if item.label and texts:
            yield label, tuple(texts)
            texts = []
        label = item.label or label
        texts.append(item.text)
    if texts:
        yield label, tuple(texts)


def _of(certificate: Certificate | ExactCertificate, several: bool) -> str:
    return f" ({certificate.pair})" if several else ""


def _events(result: AuditResult) -> Iterator[PageTable]:
    """Yield a table of the events of each pair, with counts or exact probabilities."""
    several = len(result.by_pair) > 1
    for certificate in result.by_pair:
        if isinstance(certificate, Certificate) and certificate.fixed.events:
            level = numbers.level(result.confidence)
            head = ("event", "input", "seen in", "share", f"{level} Clopper–Pearson")
            caption = f"Events of the exact test{_of(certificate, several)}"
            if certificate.ended_by_bets:
                yield PageTable(
                    f"Bets{_of(certificate, several)}",
                    ("number", "value"),
                    tuple(bets(certificate)),
                )
                caption = f"Event that illustrates the bets{_of(certificate, several)}"
            left_out = len(certificate.fixed.events) - _MAX_EVENTS
            caption += f"; {left_out:,} more are left out" if left_out > 0 else ""
            yield PageTable(caption, head, tuple(_counted(certificate)))
        elif isinstance(certificate, ExactCertificate) and certificate.event is not None:
            probabilities = (certificate.event.probability_d1, certificate.event.probability_d2)
            written = [numbers.about(probability, digits=_DIGITS) for probability in probabilities]
            rows = (("P(E)", "d1", written[0]), ("Q(E)", "d2", written[1]))
            caption = f"The event that decides{_of(certificate, several)}"
            yield PageTable(caption, ("event", "input", "probability"), rows)


def _counted(certificate: Certificate) -> Iterator[tuple[str, ...]]:
    events = certificate.fixed.events
    for number, event in enumerate(events[:_MAX_EVENTS], start=1):
        yield from counted_rows(f"E{number}" if len(events) > 1 else "E", event, certificate.point)


def _stages(certificate: Certificate, *, several: bool) -> PageTable:
    rows = []
    for stage in dict.fromkeys(block.stage for block in certificate.evidence.blocks):
        blocks = [block for block in certificate.evidence.blocks if block.stage == stage]
        arms = [sum(block.tally.arms[arm] for block in blocks) for arm in (0, 1)]
        rounds = len({block.round for block in blocks} - {None})
        counts = (sum(block.draws for block in blocks), *arms, len(blocks), rounds)
        rows.append((stage, _STAGES[stage], *(f"{count:,}" for count in counts)))
    head = ("stage", "purpose of the draws", "draws", "of d1", "of d2", "blocks", "bets")
    return PageTable(f"Draws by stage{_of(certificate, several)}", head, tuple(rows))


def _tried(certificate: Certificate, *, several: bool) -> PageTable:
    order = sorted(certificate.attacks, key=lambda attack: -(attack.predicted or 0.0))
    rows = (
        (
            attack.attack,
            "" if attack.predicted is None else numbers.about(attack.predicted),
            attack.skipped,
        )
        for attack in order
    )
    head = ("attack", "predicted bound", "reason not tried")
    return PageTable(f"Attacks by predicted bound{_of(certificate, several)}", head, tuple(rows))


# With more audits than this, the page has no figures. A figure takes 3 ms and 3 kB; without this
# limit, a page with many audits would exceed the 10 MB that browsers show well.
MAX_WITH_FIGURES = 200
# Largest number of sections of unexpected results that are unfolded when the page loads.
MAX_OPEN = 3
# Matches a parameter with its number, such as `ε = 1.69`.
_EXPRESSION = re.compile(
    r"(?<!\w)(?:[α-ωp]|D_[\d.]+) [=≥≤<>≈] (?:-?\d[\d.,]*(?:e[+-]?\d+)?|∞)(?<![.,])"
)
# Maps each module that the page needs to the name of its package for pip.
_NEEDED = {"jinja2": "Jinja2", "matplotlib": "matplotlib"}
_CODE = re.compile(r"`([^`]+)`")


def check() -> None:
    """Raise UsageError if Jinja2 or matplotlib, which the page needs, is not installed."""
    missing = [name for module, name in _NEEDED.items() if find_spec(module) is None]
    if missing:
        are = "which is" if len(missing) == 1 else "which are"
        raise UsageError(
            f"an HTML report needs {' and '.join(missing)}, {are} not installed: "
            f"{install_command('html')}",
            code="package-missing",
        )


class AuditSection:
    """One audit of the page. Its row and its section are made on first use and then cached."""

    def __init__(self, result: AuditResult) -> None:
        self.result = result
        self.is_met = is_expected(result)
        self._sections: dict[tuple[int, bool, bool], str] = {}
        self._row: Overview | None = None

    @property
    def row(self) -> Overview:
        """Return the row of the audit in the table of all audits. It is made only once."""
        if self._row is None:
            self._row = row_of(self.result)
        return self._row

    def section(self, number: int, *, with_figures: bool, is_open: bool) -> str:
        """Return the HTML text of the audit's section. `number` is the position of the section on
        the page, from 1. `is_open` says that the section is unfolded when the page loads."""
        key = (number, with_figures, is_open)
        if key not in self._sections:
            text = _rendered(
                "audit.html",
                number=number,
                row=self.row,
                view=view_of(self.result),
                with_figures=with_figures,
                is_open=is_open,
                pictures=pictures(self.result) if with_figures else [],
                left_out=left_out(self.result),
                size=(canvas.WIDTH, canvas.HEIGHT),
            )
            # Tables and pictures name the inputs, too.
            self._sections[key] = named_html(self.result, text)
        return self._sections[key]


def entry(result: AuditResult) -> AuditSection:
    """Return the part of the page for one audit."""
    return AuditSection(result)


def document(parts: Sequence[AuditSection], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return the HTML text of the page."""
    safe = _environment().filters["ours"]
    order = sorted(range(len(parts)), key=lambda index: parts[index].is_met)
    with_figures = set(order[:MAX_WITH_FIGURES])
    opened = {index for index in order[:MAX_OPEN] if not parts[index].is_met}
    sections = [
        parts[index].section(index + 1, with_figures=index in with_figures, is_open=index in opened)
        for index in order
    ]
    now = clock()
    style, script = _page_file("style.css"), _page_file("script.js")
    return _rendered(
        "page.html",
        policy=safe(_policy(style, script)),
        style=safe(style),
        script=safe(script),
        title=title([part.is_met for part in parts], planned, not_run),
        counts=_counts(parts),
        chances=chances([part.result for part in parts]),
        missing=unended(len(parts), planned, not_run),
        stopped=stopped(not_run) if not_run else "",
        not_run=not_run,
        undrawn=len(parts) - len(with_figures),
        drawn=len(with_figures),
        rows=[(index + 1, parts[index].row) for index in order],
        sections=safe("".join(sections)),
        remarks=(MAY_MISS, UNPROVEN) if any(leaves_open(part.result) for part in parts) else (),
        version=__version__,
        moment=now.isoformat(timespec="seconds"),
        written=f"{now.day} {now:%B %Y, %H:%M} UTC",
    )


def clock() -> datetime:
    """Return the time for the page. The environment variable SOURCE_DATE_EPOCH overrides the
    present time, so that every build gives the same file (https://reproducible-builds.org)."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)


def _counts(parts: Sequence[AuditSection]) -> list[tuple[str, str, int, int]]:
    """Return (verdict, CSS class, number as expected, number not as expected)."""
    tally = Counter((part.result.verdict, part.is_met) for part in parts)
    kinds = {part.result.verdict: part.row.kind for part in parts}
    return [
        (verdict.value, kinds[verdict], tally[verdict, True], tally[verdict, False])
        for verdict in Verdict
        if verdict in kinds
    ]


def _policy(style: str, script: str) -> str:
    """Return a content security policy that allows only this style sheet and script."""
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    allowed = f"style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    return f"default-src 'none'; {allowed}; img-src data:; base-uri 'none'; form-action 'none'"


def _page_file(name: str) -> str:
    """Return the text of a file exactly as the page includes it, as its hash requires."""
    environment = _environment()
    text: str = environment.loader.get_source(environment, name)[0]
    return f"\n{text.strip()}\n"


def _rendered(template: str, **values: Any) -> str:
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> Any:
    import jinja2
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        is_text = isinstance(value, str) and not isinstance(value, Markup)
        return visible(value) if is_text else value

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("dpaudit.reports.html"),
        autoescape=True,
        finalize=shown,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["ours"] = Markup
    environment.filters["whole"] = _glued
    environment.filters["prose"] = _prose
    return environment


def _glued(text: str) -> str:
    """Return `text` with no-break spaces in expressions such as `ε = 1.69`."""
    return _EXPRESSION.sub(lambda match: match[0].replace(" ", numbers.GLUE), text)


def _prose(text: str) -> Any:
    """Return `text` as markup, with `code` for backticks and expressions kept in one line."""
    from markupsafe import Markup

    code = Markup("<code>{}</code>")
    parts = _CODE.split(visible(text))
    return Markup("").join(
        code.format(part) if index % 2 else _glued(part) for index, part in enumerate(parts)
    )
