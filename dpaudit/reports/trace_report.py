"""Show a trace as text, as report rows and as JSON. A trace looks for the line of code that leaks.
It is a diagnosis and no proof, so no text here says that a mechanism passes."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from dpaudit.certificates.result import AuditResult, Recorded, Sampled, Verdict
from dpaudit.certificates.traced import INSIDE, Excerpt, Finding, Site, Trace, short_path
from dpaudit.inputs.neighbouring import EQUAL_INPUTS
from dpaudit.reports.layout import Item, Row, laid_out, wrap
from dpaudit.reports.numbers import unglued
from dpaudit.version import __version__
from dpaudit.wording import counted, in_a_line, report_width, shortened, visible

CAUSE, NO_CAUSE, NOT_UNDERSTOOD = "CAUSE FOUND", "NO CAUSE FOUND", "NOT UNDERSTOOD"
# Column heads of the table of lines that draw noise.
HEAD = ("line", "noise", "scale", "for d1", "for d2", "change", "pieces", "cost", "together")
# Without -v, a report shows at most this number of lines that draw noise, and at most this number
# of lines that the trace cannot analyse.
_SHOWN_LINES = 5
_MAX_CODE = 60
# A finding names a line of code and, after "see also", related lines, such as the lines that call
# it. Largest number of related lines.
_MAX_RELATED = 3
_TAB = 4
_MARGIN = "  "
# Label of the row with the likely cause.
CAUSE_ROW = "cause"
_NO_PROOF = (
    "A trace without a cause proves nothing: it compares a few runs on these two inputs, and other "
    "inputs or other noise may still show a leak."
)
_EXPLAINS = "A trace diagnoses and proves nothing: dpaudit run can prove that the mechanism leaks."


def render(trace: Trace, *, verbose: int = 0, quiet: bool = False) -> str:
    """Return a trace as text. With `quiet`, it has only the findings. With `verbose`, it also has
    all lines that draw noise or that the trace cannot analyse."""
    lines = wrap(_headline(trace), further=_MARGIN)
    if quiet:
        lines += laid_out(_findings(trace))
    else:
        lines += laid_out(["", *_subject(trace), *_findings(trace), *_table(trace, verbose)])
        lines += laid_out(Row("note", note) for note in _notes(trace))
        lines += excerpts(trace)
        lines += ["", *wrap(_EXPLAINS if trace.causes else _NO_PROOF)]
    return unglued("\n".join(lines)) + "\n"


def traced(result: AuditResult) -> Trace | None:
    """Return the trace of an audit if its claim is refuted and there is something to show."""
    if result.verdict is not Verdict.VIOLATION or result.trace is None:
        return None
    return result.trace if result.trace.likely is not None else None


def rows(result: AuditResult) -> list[Item]:
    """Return rows about the likely cause of a violation, or about why the trace found none. Return
    [] if there is no violation, or if the trace says nothing about the cause."""
    trace = traced(result)
    if trace is not None:
        return [*_likely(trace), *([Row("", trace.cut)] if trace.cut else [])]
    audit_trace = result.trace
    if result.verdict is not Verdict.VIOLATION or audit_trace is None or not audit_trace.notes:
        return []
    if audit_trace.cut:
        return [Row("cause", f"none seen; {audit_trace.cut}")]
    inside = next((note for note in audit_trace.notes if note.endswith(INSIDE)), None)
    why = inside or (None if audit_trace.runs else audit_trace.notes[0])
    return [] if why is None else [Row("cause", f"none: {why}")]


DECIDES = (
    "dpaudit trace needs no draws: it compares the noise of each line with the claim, even if no "
    "number of draws can refute it."
)


def may_decide(result: AuditResult) -> bool:
    """Return whether an audit made too few draws to refute its claim, and a trace may find the line
    that leaks, since it needs no draws. There is no trace for equal inputs, recorded outputs,
    programs and compositions."""
    settings = (result.request or {}).get("settings", {})
    return (
        result.verdict is Verdict.NO_VIOLATION_FOUND
        and result.underpowered not in (None, EQUAL_INPUTS)
        and isinstance(result.ending, Sampled)
        and not isinstance(result.ending, Recorded)
        and not result.is_parity
        and not {"command", "compose"} & settings.keys()
    )


def command(result: AuditResult, line: str | None) -> str | None:
    """Return a command line that traces the pair without a time limit. Return None if the trace was
    complete and draws could decide, or if the inputs are not in `line`, the command that audits the
    pair."""
    trace, audit = result.trace, "dpaudit run "
    is_cut = result.verdict is Verdict.VIOLATION and trace is not None and trace.cut is not None
    is_asked = is_cut or may_decide(result)
    if not is_asked or line is None or not line.startswith(audit) or " --d1" not in line:
        return None
    return f"dpaudit trace {line.removeprefix(audit)}"


def details(result: AuditResult) -> list[Item]:
    """Return further lines about the trace: lines of code that draw noise, lines that the trace
    cannot analyse, and source code."""
    trace = traced(result)
    if trace is None or not trace.runs:  # without runs, the finding comes from the draws
        return []
    text = f"{counted(trace.runs, 'coupled run')}; it diagnoses, and the certificate proves"
    return [
        *("", Row("trace", text)),
        *_table(trace, verbose=1),
        *(Row("note", note) for note in trace.notes),
        *excerpts(trace),
    ]


def briefly(result: AuditResult) -> str:
    """Return one sentence with the likely cause and its remedy. If no cause is certain, name the
    line that costs most. Return "" if the trace shows neither."""
    trace = traced(result)
    cause = None if trace is None else trace.likely
    if cause is None:
        return ""
    remedy = f"; {in_a_line(cause.remedy)}" if cause.remedy else ""
    return f"{'likely cause' if cause.is_cause else 'no certain cause'}: {sentence(cause)}{remedy}"


def sentence(finding: Finding) -> str:
    """Return a finding as one sentence, with its line of code."""
    lines = dict.fromkeys(str(line) for line in finding.others if str(line) != str(finding.line))
    named = [in_a_line(line) for line in lines][:_MAX_RELATED]
    more = f" (see also {', '.join(named)})" if named else ""
    return f"{in_a_line(str(finding.line))}: {in_a_line(finding.words)}{more}"


def total_words(trace: Trace) -> str:
    """Return words for the total privacy cost of all lines that draw noise, compared with the
    claim. Return "" if the cost is unknown."""
    if trace.total is None:
        return ""
    words = f"at most {in_a_line(trace.total)} if every noised value is released"
    if trace.claim is None:
        return words
    claim = in_a_line(trace.claim)
    # If the total is within the claim, the text states both numbers, but does not say that the
    # claim holds: the total omits values that are released without noise.
    return f"{words}, more than {claim} allows" if trace.exceeds else f"{words}; claimed: {claim}"


def unknown(trace: Trace) -> list[str]:
    """Return the lines of code that draw or use noise in a manner that the trace cannot analyse."""
    return [
        f"{in_a_line(str(line))}: {in_a_line(what)} is not understood"
        for line, what in trace.not_understood
    ]


def cells(site: Site) -> tuple[str, ...]:
    """Return the table cells for a line of code that draws noise, in the order of `HEAD`."""
    has_operands = bool(site.operands[0] or site.operands[1])
    return (
        in_a_line(str(site.line)),
        in_a_line(site.primitive),
        "" if site.scales is None else scales(site),
        *(in_a_line(operand) for operand in site.operands),
        f"{_number(site.shift)}{', varying' if site.varies else ''}" if has_operands else "",
        f"{site.entries:,}",
        "unknown" if site.cost is None else _cost(site, site.cost),
        "unknown" if site.total is None else _cost(site, site.total),
    )


def scales(site: Site) -> str:
    """Return the noise scales of a line for d1 and d2 as text. Equal scales are shown once."""
    first, second = (_number(scale) for scale in site.scales or (math.nan, math.nan))
    return first if first == second else f"{first} for d1, {second} for d2"


def _headline(trace: Trace) -> str:
    name = shortened(trace.target)
    runs = counted(trace.runs, "coupled run")
    if trace.causes:
        first, more = trace.causes[0], len(trace.causes) - 1
        further = f", and {counted(more, 'cause')} more" if more else ""
        kind = first.title
        return f"{CAUSE}  {name}: {kind}, {in_a_line(str(first.line))}{further}"
    if not trace.understood:
        if trace.seemingly_bare:
            line = in_a_line(str(trace.seemingly_bare[0].line))
            return f"{NOT_UNDERSTOOD}  {name}: what noise does not seem to hide, {line}; no pass"
        noise = "noise was seen, but not what it costs" if trace.sites else "no noise was seen"
        why = in_a_line(_why(trace) or f"{noise}; this is no pass")
        return f"{NOT_UNDERSTOOD}  {name}: {why}"
    # A finding need not be a certain cause of a violation of the claim. For example, a line whose
    # privacy cost exceeds the claim is a certain cause only if the mechanism releases all noise
    # that the line draws.
    outcome = "no certain cause" if trace.findings else "nothing found"
    return f"{NO_CAUSE}  {name}: {outcome} in {runs}; this is no proof"


def _subject(trace: Trace) -> Iterator[Row]:
    yield Row("claim", "none" if trace.claim is None else trace.claim)
    yield Row("mechanism", trace.target)
    yield Row("inputs", trace.pair)


def _findings(trace: Trace) -> Iterator[Row]:
    for finding in sorted(trace.findings, key=lambda finding: not finding.is_cause):
        yield Row("cause" if finding.is_cause else "finding", sentence(finding))
        if finding.remedy:
            yield Row("", f"remedy: {finding.remedy}")


def _likely(trace: Trace) -> Iterator[Row]:
    finding = trace.likely
    assert finding is not None
    if finding.is_cause:
        yield Row(CAUSE_ROW, f"likely {sentence(finding)}")
        if finding.remedy:
            yield Row("", f"remedy: {finding.remedy}")
        return
    yield Row(CAUSE_ROW, f"none for certain; {sentence(finding)}")
    if trace.exceeds:
        yield Row("", f"all lines together: {total_words(trace)}")


def _table(trace: Trace, verbose: int) -> Iterator[Row]:
    """Yield the rows of the lines that draw noise, their total cost, and what is not understood."""
    limit = None if verbose else _SHOWN_LINES
    yield from _listed("noise", [_site(site) for site in trace.sites], limit)
    if trace.sites and total_words(trace):
        yield Row("total", total_words(trace))
    yield from _listed("unknown", unknown(trace), limit)


def _listed(label: str, texts: list[str], limit: int | None) -> Iterator[Row]:
    for text in texts[:limit]:
        yield Row(label, text)
        label = ""
    left = 0 if limit is None else len(texts) - limit
    if left > 0:
        yield Row("", f"and {left:,} more (-v)")


def _notes(trace: Trace) -> tuple[str, ...]:
    """Return the notes of a trace that its headline does not already contain."""
    why = None if trace.understood or trace.seemingly_bare else _why(trace)
    return tuple(note for note in trace.notes if note != why)


def _why(trace: Trace) -> str | None:
    return trace.cut or next(iter(trace.notes), None)


def _site(site: Site) -> str:
    parts = [f"{in_a_line(str(site.line))}: {shortened(site.line.code, _MAX_CODE)}"]
    if site.entries > 1:
        parts.append(f"{site.entries:,} times")
    if site.scales is not None:
        parts.append(f"scale {scales(site)}")
    hidden = ""
    if site.operands[0] or site.operands[1]:
        operands = f" ({site.operands[0]} for d1, {site.operands[1]} for d2)" if site.shift else ""
        varies = ", another one with other noise" if site.varies else ""
        hidden = f"; hides a change of {_number(site.shift)}{operands}{varies}"
    elif site.varies:
        hidden = "; depends on the noise"
    cost = "cost unknown" if site.cost is None else _cost(site, site.cost)
    together = ""
    if site.entries > 1 and site.total is not None:
        together = f", together at most {_cost(site, site.total)}"
    return f"{', '.join(parts)}{hidden}: {cost}{together}"


def _cost(site: Site, value: float) -> str:
    return f"{site.unit} = {_number(value)}"


def _number(value: float) -> str:
    if math.isnan(value):
        return "unknown"
    return ("∞" if value > 0 else "-∞") if math.isinf(value) else f"{value:.4g}"


def excerpts(trace: Trace) -> list[str]:
    """Return lines of source code. Marks in the margin are explained below their lines."""
    return [line for excerpt in trace.excerpts for line in ("", *_piece(excerpt))]


def _piece(excerpt: Excerpt) -> Iterator[str]:
    # Cut a long line; if it were wrapped, one line of code would look like two.
    yield _cut(f"{_MARGIN}{in_a_line(short_path(excerpt.file))}")
    marks = dict(excerpt.marked)
    digits = len(str(excerpt.start + len(excerpt.lines)))
    for number, code in enumerate(source(excerpt), excerpt.start):
        sign = ">" if number in marks else " "
        yield _cut(f"{_MARGIN}{sign} {number:>{digits}}  {code}".rstrip())
        if marks.get(number):
            indent = min(len(code) - len(code.lstrip()), report_width() // 2)
            below = " " * (len(_MARGIN) + 2 + digits + 2 + indent)
            yield _cut(f"{below}^ {in_a_line(marks[number])}")


def source(excerpt: Excerpt) -> list[str]:
    """Return the source lines of an excerpt, without tabs and blank lines at the end."""
    lines = [in_a_line(line).expandtabs(_TAB).rstrip() for line in excerpt.lines]
    last = max((number - excerpt.start for number, _ in excerpt.marked), default=-1)
    while lines and not lines[-1] and len(lines) - 1 > last:
        lines.pop()
    return lines


def _cut(line: str) -> str:
    # Cut the line after escaping it, since escapes make it longer.
    shown = visible(line)
    return shown if len(shown) <= report_width() else f"{shown[: report_width() - 1]}…"


def as_json(trace: Trace) -> str:
    """Return the fields of a trace as JSON. Infinite numbers are written as in files of results."""
    from dpaudit.reports.json import plain  # not needed for text

    document = {"kind": "trace", "dpaudit": __version__, **plain(trace)}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
