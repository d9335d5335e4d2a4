"""Reports on the terminal: the renderers' words, the verdict in colour where there is one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

import click

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.errors import UsageError
from dpaudit.reports.text import render, render_line, render_summary, render_warnings

_COLOURS = {
    Verdict.VIOLATION: "red",
    Verdict.NO_VIOLATION_FOUND: "green",
    Verdict.ERROR: "magenta",
}


class Printer:
    """Prints audits as they end, a blank line between them, and a summary of several."""

    def __init__(self, *, quiet: bool = False, verbose: int = 0, to: TextIO | None = None) -> None:
        """to: in place of standard output. Raises UsageError for both less and more."""
        if quiet and verbose:
            raise UsageError(
                "-q (--quiet) asks for less, -v (--verbose) for more; give one of them"
            )
        self.quiet = quiet
        self._verbose = verbose
        self._to = to
        self._is_first = True

    def show(self, result: AuditResult) -> None:
        """Print one audit."""
        if self.quiet:
            self._echo(_coloured(render_line(result), result.verdict))
            for text in render_warnings(result):
                self._echo(text)
            return
        if not self._is_first:
            self._echo("")
        self._is_first = False
        self._echo(_coloured(render(result, verbose=self._verbose), result.verdict))

    def summarise(self, results: Sequence[AuditResult]) -> None:
        """Print the summary of several audits."""
        if len(results) > 1 and not self.quiet:
            self._echo(f"\n{render_summary(results)}")

    def _echo(self, text: str) -> None:
        click.echo(text, file=self._to)


def _coloured(text: str, verdict: Verdict) -> str:
    """Return a report with the verdict in bold colour, which click drops in pipes."""
    head = verdict.value
    return click.style(head, fg=_COLOURS[verdict], bold=True) + text.removeprefix(head)
