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

    def __init__(self, spec: AuditSpec, place: str) -> None:
        self._spec, self._place = spec, place
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


def make_display(spec: AuditSpec, place: str, *, quiet: bool) -> Display:
    """Return what suits the stream of errors. place: `2 of 5`, or nothing for a single audit."""
    if quiet:
        return Display(spec, place)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return _Live(spec, place)
    return _Lines(spec, place)


class _Lines(Display):
    """At most a line every few seconds, for logs."""

    patience = pause = 5.0

    def show(self, progress: Progress) -> None:
        click.echo(f"{title(progress, self._place)}: {status(progress, self._spec)}", err=True)


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
        bar = ProgressBar(total=max(1, progress.budget), completed=done, width=_BAR)
        first.add_row(
            Text(title(progress, self._place), style="bold", overflow="ellipsis", no_wrap=True),
            bar,
            Text(share),
            Text(remaining(progress), no_wrap=True),
        )
        second = Text(status(progress, self._spec, with_share=False), style="dim", no_wrap=True)
        return Group(first, second)


def title(progress: Progress, place: str) -> str:
    """Return the audit's name, and its place in a batch."""
    return f"{progress.name} ({place})" if place else progress.name


def status(progress: Progress, spec: AuditSpec, *, with_share: bool = True) -> str:
    """Return draws, speed, wealth, bound and, for a line by itself, share and time left."""
    of = f" of {progress.budget:,}" if progress.budget else ""
    drawn = f"{progress.draws:,}{of} draws"
    parts = [drawn, speed(progress.rate), wealth(progress, spec)]
    parts.append(f"ε ≥ {numbers.at_least(progress.epsilon_lower)}")
    if with_share:
        parts.append(remaining(progress))
    return numbers.unglued(", ".join(part for part in parts if part))


def wealth(progress: Progress, spec: AuditSpec) -> str:
    """Return the wealth beside what refutes the claim."""
    needed = 1 / (BETTING_SHARE * spec.alpha)
    if progress.wealth >= needed:
        return "refuted"
    reached = numbers.at_least(progress.wealth, digits=2)
    return f"betting wealth {reached} of {numbers.about(needed)}"


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
