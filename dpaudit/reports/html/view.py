"""An audit as the page shows it: the words of the text report, row by row, and its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.certificates.traced import Excerpt, Trace
from dpaudit.reports import numbers, searched, trace
from dpaudit.reports.bounds import bounds
from dpaudit.reports.findings import counted_rows, is_expected, verdict_of
from dpaudit.reports.layout import remembered
from dpaudit.reports.text import notes_of, reason, statements, warnings_of
from dpaudit.wording import counted

_KINDS = {
    Verdict.VIOLATION: "violation",
    Verdict.NO_VIOLATION_FOUND: "nothing",
    Verdict.ERROR: "error",
}
_STAGES = {
    "learning": "to learn from, and to bet on",
    "certification": "kept for the exact test",
    "confirmation": "to confirm what betting had refuted",
    "recorded": "kept for the exact test",
}
_Row = tuple[str, tuple[str, ...]]
_WHOLE = "This p-value covers the whole audit: it is corrected for all pairs and tests."
_MOST_EVENTS = 50
# Rows for those who check how the numbers came about.
_FOLDED = ("betting", "error split", "record")
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Table:
    """A table with a caption. The first cell of a row is its heading."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """An audit in the table of all. kind: of its verdict. sign: what is drawn next to it, `missed`
    where a pass is not as expected, `expected` where a violation is. rank: what verdicts are sorted
    by, the one to look at first. draws, seconds: what is sorted by as well; so are symbol, the
    parameter that is shown, and lower, the bound of it. seed: none where chance had no part."""

    verdict: str
    kind: str
    sign: str
    rank: int
    name: str
    claim: str
    shown: str
    symbol: str
    lower: float
    draws: int
    seed: str
    seconds: float
    time: str
    is_met: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A piece of source code. lines: number, code, whether the line is marked, and its mark."""

    file: str
    lines: tuple[tuple[int, str, bool, str], ...]


@dataclass(frozen=True, slots=True)
class Cause:
    """What a trace says first: the likely cause, or that none is certain."""

    is_certain: bool
    words: str
    remedy: str

    @property
    def title(self) -> str:
        """What it is called."""
        return "Likely cause" if self.is_certain else "No certain cause"


@dataclass(frozen=True, slots=True)
class Traced:
    """What the page shows of a trace below. findings: those but the likely cause, causes first,
    each with its remedy. sites: the lines that draw noise. total: what they cost together, against
    the claim."""

    runs: str
    findings: tuple[tuple[bool, str, str], ...]
    sources: tuple[Source, ...]
    sites: Table | None
    total: str
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class View:
    """What the page says of one audit below its headline. rows: labels, each with its texts.
    witness: what reproduces a pair that was searched for, as a command line and in Python. cause,
    trace: what a trace says first, and the rest; None where none was made, or shows nothing."""

    reason: str
    rows: tuple[_Row, ...]
    meaning: tuple[str, ...]
    events: tuple[Table, ...]
    stages: tuple[Table, ...]
    tried: tuple[Table, ...]
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
    command: str | None
    witness: tuple[str, ...]
    cause: Cause | None
    trace: Traced | None

    @property
    def parts(self) -> list[tuple[list[_Row], list[_Row]]]:
        """The rows of the audit and of each pair: what is shown, and what is folded."""
        found: list[tuple[list[_Row], list[_Row]]] = [([], [])]
        for one in self.rows:
            if one[0] == "inputs":
                found.append(([], []))
            found[-1][one[0] in _FOLDED].append(one)
        return found


def row_of(result: AuditResult) -> Row:
    """Return an audit as a row of the table of all."""
    is_met, kind = is_expected(result), _KINDS[result.verdict]
    bound = bounds(result)[0] if result.decisive is not None else None
    return Row(
        verdict=verdict_of(result),
        kind=kind,
        sign=_sign(kind, is_met=is_met),
        rank=list(_KINDS).index(result.verdict) + (len(_KINDS) if is_met else 0),
        name=result.name,
        claim=result.claim.describe(),
        shown="" if bound is None else bound.brief(result),
        symbol="" if bound is None else bound.symbol,
        lower=0.0 if bound is None else bound.shown(result),
        draws=result.draws,
        seed=str(result.seed) if result.draws else "",
        seconds=result.seconds,
        time=numbers.duration(result.seconds),
        is_met=is_met,
    )


def _sign(kind: str, *, is_met: bool) -> str:
    if kind == "nothing" and not is_met:
        return "missed"
    return "expected" if kind == "violation" and is_met else kind


def view_of(result: AuditResult) -> View:
    """Return the texts and tables of an audit."""
    said = statements(result, 1)
    drawn, found = result.certificates, trace.traced(result)
    return View(
        reason=reason(result),
        rows=tuple(_explained(_rows(said.rows), has_tests=bool(drawn))),
        meaning=tuple(one.text for one in remembered(said.meaning)),
        events=tuple(_events(result)),
        stages=tuple(_stages(one, several=len(drawn) > 1) for one in drawn),
        tried=tuple(_tried(one, several=len(drawn) > 1) for one in drawn if one.attacks),
        warnings=tuple(warnings_of(result)),
        notes=tuple(notes_of(result)),
        command=result.command,
        witness=tuple(filter(None, [searched.command(result), searched.snippet(result)])),
        cause=None if found is None else _cause(found),
        trace=None if found is None else _traced(found),
    )


def _cause(found: Trace) -> Cause | None:
    one = found.likely
    return None if one is None else Cause(one.is_cause, trace.said(one), one.remedy)


def _traced(found: Trace) -> Traced:
    rows = tuple(map(trace.cells, found.sites))
    caption = "Lines that draw noise, the costliest first"
    return Traced(
        runs=counted(found.runs, "coupled run"),
        findings=tuple(
            (one.is_cause, trace.said(one), one.remedy)
            for one in found.findings
            if one is not found.likely
        ),
        sources=tuple(map(_source, found.excerpts)),
        sites=Table(caption, trace.HEAD, rows) if rows else None,
        total=trace.total_words(found) if rows else "",
        unknown=tuple(trace.unknown(found)),
        notes=found.notes,
    )


def _source(one: Excerpt) -> Source:
    marks = dict(one.marked)
    lines = enumerate(trace.source(one), one.start)
    return Source(
        one.file,
        tuple((number, code, number in marks, marks.get(number, "")) for number, code in lines),
    )


def _explained(rows: Iterable[_Row], *, has_tests: bool) -> Iterator[_Row]:
    """Yield rows without the likely cause, which stands above. has_tests: whether there are other
    p-values, of single tests."""
    for label, texts in rows:
        if label == "p-value" and has_tests:
            yield label, (*texts, _WHOLE)
        elif label != trace.CAUSE_ROW:
            yield label, texts


def _rows(lines: list[str]) -> Iterator[_Row]:
    """Yield the labels with their texts; a row without a label goes on with the one above."""
    label, texts = "", list[str]()
    for one in remembered(lines):
        if one.label and texts:
            yield label, tuple(texts)
            texts = []
        label = one.label or label
        texts.append(one.text)
    if texts:
        yield label, tuple(texts)


def _of(one: Certificate | ExactCertificate, several: bool) -> str:
    return f" ({one.pair})" if several else ""


def _events(result: AuditResult) -> Iterator[Table]:
    """Yield what each input has of the events, a table for each pair."""
    several = len(result.by_pair) > 1
    for one in result.by_pair:
        if isinstance(one, Certificate) and one.fixed.events:
            level = numbers.level(result.confidence)
            head = ("event", "input", "seen in", "share", f"{level} Clopper–Pearson")
            caption = f"Events of the exact test{_of(one, several)}"
            left_out = len(one.fixed.events) - _MOST_EVENTS
            caption += f"; {left_out:,} more are left out" if left_out > 0 else ""
            yield Table(caption, head, tuple(_counted(one)))
        elif isinstance(one, ExactCertificate) and one.event is not None:
            probabilities = (one.event.probability_d1, one.event.probability_d2)
            written = [numbers.about(each, digits=_DIGITS) for each in probabilities]
            rows = (("P(E)", "d1", written[0]), ("Q(E)", "d2", written[1]))
            caption = f"The event that decides{_of(one, several)}"
            yield Table(caption, ("event", "input", "probability"), rows)


def _counted(one: Certificate) -> Iterator[tuple[str, ...]]:
    events = one.fixed.events
    for place, event in enumerate(events[:_MOST_EVENTS], start=1):
        yield from counted_rows(f"E{place}" if len(events) > 1 else "E", event, one.point)


def _stages(one: Certificate, *, several: bool) -> Table:
    rows = []
    for stage in dict.fromkeys(block.stage for block in one.blocks):
        blocks = [block for block in one.blocks if block.stage == stage]
        arms = [sum(pair[arm] for block in blocks for pair in block.tally) for arm in (0, 1)]
        bets = len({block.round for block in blocks} - {None})
        counts = (sum(block.draws for block in blocks), *arms, len(blocks), bets)
        rows.append((stage, _STAGES[stage], *(f"{count:,}" for count in counts)))
    head = ("stage", "purpose of the draws", "draws", "of d1", "of d2", "blocks", "bets")
    return Table(f"Draws by stage{_of(one, several)}", head, tuple(rows))


def _tried(one: Certificate, *, several: bool) -> Table:
    order = sorted(one.attacks, key=lambda tried: -(tried.predicted or 0.0))
    rows = (
        (each.attack, "" if each.predicted is None else numbers.about(each.predicted), each.skipped)
        for each in order
    )
    head = ("attack", "predicted bound", "reason not tried")
    return Table(f"Attacks by predicted bound{_of(one, several)}", head, tuple(rows))
