"""What a running audit shows: a live line on a terminal, now and then a line in a log."""

from __future__ import annotations

import math
import os
import sys
import time
from typing import Any

import click

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.evidence import BETTING_SHARE
from dpaudit.certificates.result import Progress
from dpaudit.reports import numbers

_BAR = 30


class Display:
    """Shows how far one audit is, now and then; this one shows nothing."""

    patience = pause = math.inf

    def __init__(self, spec: AuditSpec, title: str) -> None:
        self._spec, self._title = spec, title
        self._next = time.monotonic() + self.patience

    def update(self, progress: Progress) -> None:
        """Take notice of a moment."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self.pause
            self.show(progress)

    def show(self, progress: Progress) -> None:
        """Show a moment."""

    def close(self) -> None:
        """Leave the terminal as if nothing had been shown."""


def make_display(spec: AuditSpec, title: str, *, quiet: bool) -> Display:
    """Return what suits the stream of errors. title: the audit's name, and its place in a batch."""
    if quiet:
        return Display(spec, title)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return _Live(spec, title)
    return _Lines(spec, title)


class _Lines(Display):
    """At most a line every few seconds, for logs."""

    patience = pause = 5.0

    def show(self, progress: Progress) -> None:
        click.echo(f"{self._title}: {status(progress, self._spec)}", err=True)


class _Live(Display):
    """A bar and a line below it, which vanish at the end."""

    # Most audits that find something are over sooner, and then need not wait for rich to be
    # imported.
    patience = 0.5
    pause = 1 / 5
    _live: Any = None

    def show(self, progress: Progress) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            # No thread of its own: it would compete with the mechanism for the interpreter.
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
    """Return draws, speed, wealth, bound and, for a line by itself, share and time left."""
    of = f" of {progress.budget:,}" if progress.budget else ""
    needed = 1 / (BETTING_SHARE * spec.alpha)
    reached = numbers.at_least(progress.wealth, digits=2)
    is_over = progress.wealth >= needed
    parts = [
        f"{progress.draws:,}{of} draws",
        speed(progress.rate),
        "refuted" if is_over else f"betting wealth {reached} of {numbers.about(needed)}",
        f"ε ≥ {numbers.at_least(progress.epsilon_lower)}",
        remaining(progress) if with_share else "",
        progress.waiting,
    ]
    return numbers.unglued(", ".join(filter(None, parts)))


def speed(rate: float) -> str:
    """Return draws a second: `1.2 M/s`."""
    if not math.isfinite(rate) or rate <= 0:
        return ""
    if rate >= 1e6:
        return f"{rate / 1e6:.1f} M/s"
    return f"{numbers.about(rate, digits=2)}/s"


def remaining(progress: Progress) -> str:
    """Return the time left, when it is known."""
    if not math.isfinite(progress.remaining):
        return ""
    return numbers.unglued(f"{numbers.duration(max(1.0, round(progress.remaining)))} left")
