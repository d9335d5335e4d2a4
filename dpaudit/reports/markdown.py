"""Audits as Markdown for a comment on a code host: a table, then full reports of unexpected
results."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dpaudit.certificates.result import AuditResult
from dpaudit.reports.audit_report import is_expected, leaves_open, verdict_of, warnings_of
from dpaudit.reports.bounds_report import MAY_MISS, UNPROVEN, bounds, may_miss, untested
from dpaudit.reports.numbers import unglued
from dpaudit.reports.text import NOT_RUN, render, stopped, title, unended
from dpaudit.wording import on_one_line, shortened, visible

# Largest size of the document. GitHub allows 1 MiB (1,048,576 bytes) for a summary.
_MAX_BYTES = 900_000
_MAX_NAME = 120
_HEAD = ("verdict", "audit", "claim", "shown", "may miss", "draws", "seed")
# Matches characters that have a meaning in Markdown or HTML, and so need an escape.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&@$])")


class AuditText(NamedTuple):
    """The text of one audit: its row in the table, and its report or warnings, if it has any.

    is_met: whether the result is as expected.
    is_open: whether the audit found no violation, so that more draws or other inputs may still
        refute the claim.
    ignored: what no attack examined, if the audit is open.
    """

    row: str
    report: str
    is_met: bool
    is_open: bool
    ignored: tuple[str, ...] = ()


def entry(result: AuditResult) -> AuditText:
    """Return the row of an audit, and its full report (only its warnings if it is as expected)."""
    is_met = is_expected(result)
    verdict = verdict_of(result)
    shown = bounds(result)[0].brief(result) if result.decisive is not None else ""
    cells = (
        escaped(verdict) if is_met else f"**{escaped(verdict)}**",
        escaped(shortened(result.name, _MAX_NAME)),
        escaped(result.claim.describe()),
        escaped(unglued(shown)),
        escaped(may_miss(result)),
        f"{result.draws:,}" if result.draws else "",
        str(result.seed) if result.draws else "",
    )
    report = "" if is_met else _fenced(render(result))
    if is_met and warnings_of(result):
        report = "\n".join(
            f"* {escaped(' '.join(warning.split()))}" for warning in warnings_of(result)
        )
    section = f"#### {cells[1]}\n\n{report}\n" if report else ""
    is_open = leaves_open(result)
    ignored = getattr(result.decisive, "ignored", ()) if is_open else ()
    return AuditText(table_row(cells), section, is_met, is_open, ignored)


def document(parts: Sequence[AuditText], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return the Markdown document."""
    missing = unended(len(parts), planned, not_run)
    lines = [f"### dpaudit: {title([part.is_met for part in parts], planned, not_run)}", ""]
    lines += [f"**{escaped(missing)}.**", ""] if missing else []
    lines += [escaped(stopped(not_run)), ""] if not_run else []
    names = (escaped(shortened(name, _MAX_NAME)) for name in not_run)
    left_out = [table_row([NOT_RUN, name, *[""] * (len(_HEAD) - 2)]) for name in names]
    ordered = [part.row for part in sorted(parts, key=lambda part: part.is_met)]
    rows = [*table_head(_HEAD), *_first([*ordered, *left_out])]
    reports = _within(parts, sum(map(_size, rows)))
    remark = [escaped(MAY_MISS), "", UNPROVEN, ""] if any(part.is_open for part in parts) else []
    ignored = untested(text for part in parts for text in part.ignored)
    remark += [escaped(ignored), ""] if ignored else []
    return "\n".join([*lines, *rows, "", *reports, *remark])


def escaped(text: str) -> str:
    """Return `text` as a single line, escaped for Markdown and HTML."""
    plain = on_one_line(visible(text))
    return _SPECIAL.sub(r"\\\1", plain).replace(r"\<", "&lt;").replace(r"\&", "&amp;")


def _first(rows: list[str]) -> list[str]:
    """Return the rows that fit in half of the document, and the number of further rows."""
    selection: list[str] = []
    room = _MAX_BYTES // 2
    for row in rows:
        room -= _size(row)
        if room < 0:
            more = f"{len(rows) - len(selection):,} more"
            return [*selection, table_row([more, *[""] * (len(_HEAD) - 1)])]
        selection.append(row)
    return selection


def _within(parts: Sequence[AuditText], used: int) -> list[str]:
    """Return the reports that fit below `used` bytes, and the number of further reports."""
    selection: list[str] = []
    reports = [part.report for part in sorted(parts, key=lambda part: part.is_met) if part.report]
    for report in reports:
        used += _size(report)
        if used > _MAX_BYTES:
            return [
                *selection,
                f"{len(reports) - len(selection):,} more reports are left out here.\n",
            ]
        selection.append(report)
    return selection


def table_head(cells: Sequence[str]) -> list[str]:
    """Return the two lines that begin a Markdown table: header cells and separator."""
    return [table_row(cells), table_row(["---"] * len(cells))]


def table_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _fenced(text: str) -> str:
    """Return `text` as a code block with a fence longer than any backticks in it."""
    plain = visible(text)
    longest = max((len(run) for run in re.findall("`+", plain)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{plain}\n{fence}"


def _size(text: str) -> int:
    return len(text.encode()) + 1
