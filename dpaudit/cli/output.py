"""Reports on the terminal: the renderers' words, the verdict in colour where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import click

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.errors import UsageError
from dpaudit.reports.batch import (
    name_width,
    render_not_run,
    render_remarks,
    render_row,
    render_summary,
)
from dpaudit.reports.findings import is_expected
from dpaudit.reports.text import render, render_line, render_warnings


class Printer:
    """Prints audits as they end: the report of a single one; of several a line for each, the report
    only of what nobody expected, and at the end a summary."""

    def __init__(
        self, names: Sequence[str], *, quiet: bool, verbose: int, to: TextIO | None = None
    ) -> None:
        """names: of all audits.  to: in place of standard output."""
        if quiet and verbose:
            why = "-q (--quiet) asks for less, -v (--verbose) for more; give one of them"
            raise UsageError(why, code="options-conflict")
        self._quiet, self._verbose, self._to = quiet, verbose, to
        self._width = name_width(names) if len(names) > 1 else None
        self._needs_blank = False

    def show(self, result: AuditResult) -> None:
        """Print one audit."""
        if self._width is not None and not self._verbose:
            self._line(_coloured(render_row(result, self._width), result))
        elif self._quiet:
            self._line(_coloured(render_line(result), result))
        in_full = self._width is None or self._verbose or not is_expected(result)
        if in_full and not self._quiet:
            in_batch = self._width is not None
            text = render(result, verbose=self._verbose, in_batch=in_batch)
            self._block(_coloured(text, result))
            return
        if self._width is None and result.failing_warnings:
            return  # the line has them
        remarks = render_warnings if self._quiet else render_remarks
        for text in remarks(result):
            self._line(text)

    def summarise(self, results: Sequence[AuditResult], not_run: Sequence[str] = ()) -> None:
        """Print the summary of several audits. not_run: names of those that were left out."""
        if self._width is not None:
            for name in not_run:
                self._line(render_not_run(name, self._width))
            self._needs_blank = True
            self._block(render_summary(results, not_run, in_full=not self._quiet))

    def _line(self, text: str) -> None:
        """Print one of the lines that stand together."""
        click.echo(f"\n{text}" if self._needs_blank else text, file=self._to)
        self._needs_blank = False

    def _block(self, text: str) -> None:
        """Print lines with a blank one before and after them, where there is something."""
        if self._width is not None and not self._verbose:
            self._needs_blank = True
        self._line(text)
        self._needs_blank = True


def _coloured(text: str, result: AuditResult) -> str:
    """Return a report with the verdict in bold colour, which click drops in pipes."""
    head = result.verdict.value
    unexpected = "magenta" if result.verdict is Verdict.ERROR else "red"
    colour = "green" if is_expected(result) else unexpected
    return click.style(head, fg=colour, bold=True) + text.removeprefix(head)
