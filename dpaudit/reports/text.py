"""An audit as plain text of 80 columns: result in, string out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from dpaudit.certificates.result import (
    AuditResult,
    Canaries,
    Exact,
    Failed,
    Recorded,
    Sampled,
    Verdict,
)
from dpaudit.inputs.neighbouring import EQUAL, EQUAL_INPUTS
from dpaudit.reports import exact, numbers, one_run, sampled, searched, trace
from dpaudit.reports.layout import glued, pasted, row, wrap
from dpaudit.wording import UNSEEDED, in_a_line


class _View(Protocol):
    """The texts of one kind of ending: the reason for the verdict, the rows of the result, and
    sentences on what the result means for an attacker and what it does not show."""

    def said(self, result: AuditResult, ending: Any) -> str: ...

    def found(self, result: AuditResult, ending: Any, verbose: int) -> list[str]: ...

    def meaning(self, result: AuditResult, ending: Any, verbose: int) -> list[str]: ...


_VIEWS: Mapping[type, _View] = {
    Sampled: sampled,
    Recorded: sampled,
    Failed: sampled,
    Exact: exact,
    Canaries: one_run,
}


class Statements(NamedTuple):
    """The rows of an audit (settings and result), and the sentences on their meaning."""

    rows: list[str]
    meaning: list[str]


def render(result: AuditResult, *, verbose: int = 0, in_batch: bool = False) -> str:
    """Return the report of one audit, without a final newline; its first word is the verdict.

    verbose: 1 also shows every pair and event, and how the result came about. in_batch: leave out
    notes that the summary of a batch repeats.
    """
    said = statements(result, verbose)
    lines = [*wrap(headline(result), further="  "), "", *said.rows]
    lines += _remarks(result, in_batch)
    # Commands are not wrapped, so that they can be pasted.
    lines += [f"  repeat      {pasted(result.command)}"] if result.command is not None else []
    witness = searched.command(result)
    lines += [f"  reproduce   {pasted(witness)}"] if witness is not None else []
    traced = trace.command(result, witness or result.command)
    lines += [f"  trace       {pasted(traced)}"] if traced is not None else []
    python = searched.snippet(result) if verbose or witness is None else None
    lines += [] if python is None else ["", *(f"    {line}" for line in python.splitlines())]
    lines += trace.details(result) if verbose else []
    return numbers.unglued("\n".join([*lines, *([""] if said.meaning else []), *said.meaning]))


def statements(result: AuditResult, verbose: int) -> Statements:
    """Return the rows and sentences of an audit below its headline, without warnings and notes."""
    view = _VIEWS[type(result.ending)]
    found = view.found(result, result.ending, verbose)
    rows = [
        *_asked(result),
        *found,
        *trace.rows(result),
        *searched.rows(result, verbose),
        *(_time(result) if found and verbose else []),
    ]
    if result.resumed:
        rows += row("runs", f"{result.resumed + 1}: this audit was resumed from its journal")
    return Statements(rows, view.meaning(result, result.ending, verbose))


def render_line(result: AuditResult) -> str:
    """Return the verdict of one audit and its reason in one line."""
    return numbers.unglued(in_a_line(headline(result)))


def render_warnings(result: AuditResult) -> list[str]:
    """Return the warnings of one audit, each in one line."""
    said = (in_a_line(f"warning: {result.name}: {text}") for text in warnings_of(result))
    return list(map(numbers.unglued, said))


def headline(result: AuditResult) -> str:
    """Return the verdict, the name and the reason, as one sentence, and what was expected."""
    is_met = result.meets_expectation
    is_able = result.underpowered is None and not result.failing_warnings
    said = f"{result.verdict.value}  {result.name}: {reason(result)}"
    if result.expect is None or result.verdict is Verdict.ERROR or (is_met and not is_able):
        return said
    return f"{said} (as expected)" if is_met else f"{said} (expected: {result.expect})"


def reason(result: AuditResult) -> str:
    """Return the reason for the verdict, and the warnings that fail a strict audit."""
    if result.underpowered is not None:
        said = f"under-powered: {result.underpowered}"
    else:
        said = _VIEWS[type(result.ending)].said(result, result.ending)
    failing = result.failing_warnings
    if not failing:
        return said
    if result.underpowered is not None and result.verdict is Verdict.NO_VIOLATION_FOUND:
        said += "; the claim is not refuted"
    fail = "warning fails" if len(failing) == 1 else f"{len(failing)} warnings fail"
    return f"{said}; strict: {'1 ' * (len(failing) == 1)}{fail} the audit: {'; '.join(failing)}"


def _asked(result: AuditResult) -> list[str]:
    claim = result.claim
    where = f" ({result.source})" if result.source else ""
    rows = row("claim", f"{claim.describe()}, {claim.title}: {glued(claim.formula)}")
    of_one_run = claim if result.repeated is None else result.repeated.claim
    if result.grouped is not None:
        each, size = result.grouped.claim.describe(), result.grouped.size
        rows += row("", f"{each} for one record, {of_one_run.describe()} for {size:,}")
    if result.repeated is not None:
        times = result.repeated.times
        rows += row("", f"{of_one_run.describe()} for one run, {claim.describe()} for {times}")
    return [*rows, *row("mechanism", f"{result.target}{where}")]


def _time(result: AuditResult) -> list[str]:
    lines = row("seed", str(result.seed)) if result.certificates else []
    lines += row("workers", str(result.workers)) if result.workers is not None else []
    lines += row("time", numbers.duration(result.seconds))
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    return lines + row("versions", versions)


def _remarks(result: AuditResult, in_batch: bool) -> list[str]:
    # Warnings that fail the audit are in the headline.
    shown = [text for text in warnings_of(result) if text not in result.failing_warnings]
    said = [("warning", text) for text in shown]
    said += [("note", text) for text in notes_of(result) if not (in_batch and text == UNSEEDED)]
    return [line for label, text in said for line in row(label, text)]


def warnings_of(result: AuditResult) -> list[str]:
    """Return the distinct warnings of an audit that its headline does not repeat."""
    is_said = result.underpowered == EQUAL_INPUTS
    return [text for text in result.all_warnings if not (is_said and text == EQUAL)]


def notes_of(result: AuditResult) -> list[str]:
    """Return the distinct notes of an audit."""
    of_pairs = (text for one in result.by_pair for text in getattr(one, "notes", ()))
    return list(dict.fromkeys([*result.notes, *of_pairs]))
