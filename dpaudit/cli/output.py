"""What the terminal shows of audits: their progress, reports with the verdict in colour, and the
summary of a batch."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from typing import Any, TextIO

import click

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.evidence import BETTING_SHARE
from dpaudit.certificates.result import AuditResult, Progress, Verdict
from dpaudit.errors import UsageError
from dpaudit.reports import numbers
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
    """Prints audits as they end: the report of a single audit; for a batch, a line for each audit,
    the report of each unexpected result, and a summary at the end."""

    def __init__(
        self, names: Sequence[str], *, quiet: bool, verbose: int, to: TextIO | None = None
    ) -> None:
        """names: names of all audits.  to: stream in place of standard output."""
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
            return  # the line states the warnings
        remarks = render_warnings if self._quiet else render_remarks
        for text in remarks(result):
            self._line(text)

    def summarise(self, results: Sequence[AuditResult], not_run: Sequence[str] = ()) -> None:
        """Print the summary of a batch. not_run: names of audits that were left out."""
        if self._width is not None:
            for name in not_run:
                self._line(render_not_run(name, self._width))
            self._needs_blank = True
            self._block(render_summary(results, not_run, in_full=not self._quiet))

    def _line(self, text: str) -> None:
        """Print a line, after an empty line if a block came before."""
        click.echo(f"\n{text}" if self._needs_blank else text, file=self._to)
        self._needs_blank = False

    def _block(self, text: str) -> None:
        """Print lines with an empty line before and after them."""
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


_BAR = 30


class Display:
    """Shows the progress of an audit; this class shows nothing.

    patience: seconds before the first display.  pause: seconds between two displays.
    """

    patience = pause = math.inf

    def __init__(self, spec: AuditSpec, title: str) -> None:
        self._spec, self._title = spec, title
        self._next = time.monotonic() + self.patience

    def update(self, progress: Progress) -> None:
        """Show the progress if it is time to."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self.pause
            self.show(progress)

    def show(self, progress: Progress) -> None:
        """Show the progress."""

    def close(self) -> None:
        """Remove the display from the terminal."""


def make_display(spec: AuditSpec, title: str, *, quiet: bool) -> Display:
    """Return the display for standard error. title: name of the audit, and its place in a batch."""
    if quiet:
        return Display(spec, title)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return _Live(spec, title)
    return _Lines(spec, title)


class _Lines(Display):
    """A line every few seconds, for logs."""

    patience = pause = 5.0

    def show(self, progress: Progress) -> None:
        click.echo(f"{self._title}: {status(progress, self._spec)}", err=True)


class _Live(Display):
    """A bar and a line below it, which vanish at the end."""

    # Most audits that find a violation end sooner, and then rich is not imported.
    patience = 0.5
    pause = 1 / 5
    _live: Any = None

    def show(self, progress: Progress) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            # Without a thread, which would compete with the mechanism for the interpreter.
            self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._picture(progress), refresh=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _picture(self, progress: Progress) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        first = Table.grid(padding=(0, 1))
        share = f"{100 * progress.draws / progress.budget:3.0f} %" if progress.budget else ""
        done = progress.draws if progress.budget else 0
        first.add_row(
            Text(self._title, style="bold", overflow="ellipsis", no_wrap=True),
            ProgressBar(total=max(1, progress.budget), completed=done, width=_BAR),
            Text(share),
            Text(remaining(progress), no_wrap=True),
        )
        second = Text(status(progress, self._spec, with_share=False), style="dim", no_wrap=True)
        return Group(first, second)


def status(progress: Progress, spec: AuditSpec, *, with_share: bool = True) -> str:
    """Return draws, speed, evidence, bound and, with `with_share`, the time left.

    Evidence is the betting wealth; `needed` is the wealth that refutes the claim.
    """
    of = f" of {progress.budget:,}" if progress.budget else ""
    needed = 1 / (BETTING_SHARE * spec.alpha)
    reached = numbers.at_least(progress.wealth, digits=2)
    is_over = progress.wealth >= needed
    parts = [
        f"{progress.draws:,}{of} draws",
        speed(progress.rate),
        "refuted" if is_over else f"evidence {reached} of {numbers.about(needed)} needed",
        f"ε ≥ {numbers.at_least(progress.epsilon_lower)}",
        remaining(progress) if with_share else "",
        progress.waiting,
    ]
    return numbers.unglued(", ".join(filter(None, parts)))


def speed(rate: float) -> str:
    """Return draws per second, such as `1.2 M/s`."""
    if not math.isfinite(rate) or rate <= 0:
        return ""
    if rate >= 1e6:
        return f"{rate / 1e6:.1f} M/s"
    return f"{numbers.about(rate, digits=2)}/s"


def remaining(progress: Progress) -> str:
    """Return the time left; "" if it is unknown."""
    if not math.isfinite(progress.remaining):
        return ""
    return numbers.unglued(f"{numbers.duration(max(1.0, round(progress.remaining)))} left")
