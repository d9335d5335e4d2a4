"""What a trace shows: as text of 80 columns, as rows in the report of an audit, and as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import chain

from dpaudit.certificates.traced import Excerpt, Finding, Site, Trace
from dpaudit.reports.layout import BELOW, row, wrap
from dpaudit.reports.numbers import unglued
from dpaudit.reports.records import encode_record
from dpaudit.version import __version__
from dpaudit.wording import counted, in_a_line, shortened, visible

CAUSE, NO_CAUSE, NOT_UNDERSTOOD = "CAUSE FOUND", "NO CAUSE FOUND", "NOT UNDERSTOOD"
# Notes, and lines that draw noise, that are shown without -v.
_FEW = 5
_LONGEST_CODE = 60
_NO_PROOF = (
    "A trace explains a leak and proves none: dpaudit run does. That no cause was found does not "
    "show that there is none: the trace holds for these inputs and the noise that was tried."
)
_EXPLAINS = "A trace explains, and proves nothing: dpaudit run shows that the mechanism leaks."


def render(trace: Trace, *, verbose: int = 0, quiet: bool = False) -> str:
    """Return a trace as text; quiet: findings alone."""
    head = wrap(_headline(trace), further="  ")
    lines = [*head, *_others(trace)] if quiet else [*head, "", *_body(trace, verbose)]
    return visible(unglued("\n".join(lines))) + "\n"


def rows(trace: Trace | None, verbose: int) -> list[str]:
    """Return the rows of a trace in the report of an audit that refutes a claim."""
    found = None if trace is None else trace.likely
    if trace is None or found is None:
        return []
    lines = row("cause", f"likely {said(found)}")
    lines += row("", found.remedy) if found.remedy else []
    if not found.is_cause:
        lines += row("", "no line alone costs more than the claim; together they do")
    if verbose:
        lines += [*_sites(trace, all_of_them=True), *chain.from_iterable(_source(trace))]
    return lines


def said(finding: Finding) -> str:
    """Return a finding in a sentence, with its line."""
    called = list(dict.fromkeys(str(one) for one in finding.others))
    called = [one for one in called if one != str(finding.line)]
    more = f" (see also {', '.join(called[:3])})" if called else ""
    return f"{finding.line}: {in_a_line(finding.words)}{more}"


def _headline(trace: Trace) -> str:
    name = shortened(trace.target)
    if trace.causes:
        return f"{CAUSE}  {name}: {in_a_line(trace.causes[0].words)}, {trace.causes[0].line}"
    if not trace.understood:
        why = in_a_line(trace.notes[0]) if trace.notes else "no noise was seen"
        return f"{NOT_UNDERSTOOD}  {name}: {why}"
    claimed = "" if trace.claim is None else f", claimed {trace.claim}"
    worst = max(trace.sites, key=lambda one: -1.0 if one.cost is None else one.cost)
    cost = "" if worst.cost is None else f"; the costliest single noise {_cost(worst, worst.cost)}"
    return f"{NO_CAUSE}  {name}: {counted(trace.runs, 'coupled run')}{cost}{claimed}"


def _body(trace: Trace, verbose: int) -> Iterator[str]:
    if trace.claim is not None:
        yield from row("claim", trace.claim)
    yield from row("mechanism", trace.target)
    yield from row("inputs", trace.pair)
    yield from _others(trace)
    yield from _sites(trace, all_of_them=bool(verbose))
    for line, why in trace.not_understood[: None if verbose else _FEW]:
        yield from row("unknown", f"{line}: {in_a_line(why)} is not understood")
    for note in trace.notes[0 if trace.understood or trace.causes else 1 :]:
        yield from row("note", note)
    if trace.excerpts:
        yield ""
        yield from chain.from_iterable(_source(trace))
    yield ""
    yield from wrap(_EXPLAINS if trace.causes else _NO_PROOF)


def _others(trace: Trace) -> Iterator[str]:
    for one in trace.findings:
        yield from row("cause" if one.is_cause else "note", said(one))
        if one.remedy:
            yield from row("", f"remedy: {one.remedy}")


def _sites(trace: Trace, *, all_of_them: bool) -> Iterator[str]:
    """Yield the table of lines that draw noise."""
    label = "noise"
    for one in trace.sites if all_of_them else trace.sites[:_FEW]:
        yield from row(label, _site(one))
        label = ""
    left = len(trace.sites) - _FEW
    if left > 0 and not all_of_them:
        yield from row("", f"and {counted(left, 'line')} more (-v)")
    if trace.total is not None and len(trace.sites) > 0:
        above = "" if trace.claim is None else f"; claimed {trace.claim}"
        yield from row("total", f"at most {trace.total}, if all is released{above}")


def _site(one: Site) -> str:
    scale = ""
    if one.scales is not None:
        first, second = (_number(each) for each in one.scales)
        scale = (
            f", scale {first}" if first == second else f", scale {first} for d1, {second} for d2"
        )
    hidden = ""
    if one.law != "choice":
        operands = f" ({one.operands[0]} for d1, {one.operands[1]} for d2)" if one.shift else ""
        hidden = f"; hides a change of {_number(one.shift)}{operands}"
    cost = "unknown" if one.cost is None else _cost(one, one.cost)
    many = f"{one.entries:,} times, " if one.entries > 1 else ""
    total = ""
    if one.entries > 1 and one.total is not None:
        total = f", together at most {_cost(one, one.total)}"
    varies = "; depends on the noise" if one.varies else ""
    code = shortened(one.line.code, _LONGEST_CODE)
    return f"{one.line}: {many}{code}{scale}{hidden}: {cost}{total}{varies}"


def _cost(one: Site, value: float) -> str:
    return f"{one.unit} = {_number(value)}"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.4g}"


def _source(trace: Trace) -> Iterator[list[str]]:
    """Yield pieces of source code, marked below the lines in question."""
    for one in trace.excerpts:
        yield [f"  {one.file}", *_piece(one)]


def _piece(one: Excerpt) -> Iterator[str]:
    marks = dict(one.marked)
    width = len(str(one.start + len(one.lines)))
    for number, code in enumerate(one.lines, one.start):
        sign = ">" if number in marks else " "
        yield f"  {sign} {number:>{width}}  {code}".rstrip()
        if marks.get(number):
            indent = len(code) - len(code.lstrip())
            yield f"{BELOW[:4]}{'':{width}}  {'':{indent}}^ {marks[number]}"


def as_json(trace: Trace) -> str:
    """Return a trace as JSON: its fields, infinite numbers as in files of results."""
    document = {"kind": "trace", "dpaudit": __version__, **encode_record(trace)}
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
