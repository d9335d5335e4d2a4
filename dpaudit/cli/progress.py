"""Show the progress of an audit on standard error: a bar on a terminal, one line in a log."""

from __future__ import annotations

import math
import os
import time
from typing import Any

from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.evidence import BETTING_SHARE
from dpaudit.certificates.result import Progress
from dpaudit.cli import streams
from dpaudit.cli.messages import standard_error, tell
from dpaudit.reports import numbers

# Width of the progress bar, in characters.
_BAR = 30


class Display:
    """Base class for displays of an audit's progress. It shows nothing. The first display comes
    `patience` seconds after the start, and each further one `pause` seconds after the last."""

    patience = pause = math.inf

    def __init__(self, spec: AuditSpec, title: str) -> None:
        self._spec, self._title = spec, title
        self._next = time.monotonic() + self.patience

    def update(self, progress: Progress) -> None:
        """Show the progress if `pause` seconds have passed since the last display."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self.pause
            self.show(progress)

    def show(self, progress: Progress) -> None:
        """Show the progress. The base class shows nothing."""

    def close(self) -> None:
        """Remove the display from the terminal."""


def make_display(spec: AuditSpec, title: str, *, quiet: bool) -> Display:
    """Return the display of progress on standard error: a progress bar on a terminal, unless
    results go to a pipe; otherwise one line; nothing if `quiet`. `title` has the name of the audit,
    and in a batch its number."""
    if quiet:
        return Display(spec, title)
    is_terminal = standard_error().isatty() and os.environ.get("TERM") != "dumb"
    if is_terminal and not streams.is_piped:
        return _Live(spec, title)
    return _LogDisplay(spec, title)


class _LogDisplay(Display):
    """Prints the progress once, as a line, if the audit takes more than 5 seconds."""

    patience = 5.0

    def show(self, progress: Progress) -> None:
        tell(f"{self._title}: {status(progress, self._spec)}")


class _Live(Display):
    """Shows a progress bar with a line of numbers on a terminal. Both are removed at the end."""

    # Seconds before the bar appears. Most audits that find a violation end sooner; they then need
    # not import the package rich.
    patience = 0.5
    pause = 1 / 5
    _live: Any = None

    def show(self, progress: Progress) -> None:
        if self._live is None:
            from rich.console import Console
            from rich.live import Live

            # Each call of `show` refreshes the display. A refreshing thread would slow the
            # mechanism, since both need the interpreter lock.
            self._live = Live(
                console=Console(file=standard_error()),
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,  # what the mechanism prints has its own way
                redirect_stderr=False,
            )
            self._live.start()
            self._live.console.show_cursor()  # a crash would leave it hidden
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
    """Return the progress of an audit as text: draws, speed, betting wealth, the wealth needed to
    refute the claim, the lower bound for ε and, with `with_share`, the time left."""
    of = f" of {progress.budget:,}" if progress.budget else ""
    needed = progress.needed or 1 / (BETTING_SHARE * spec.alpha)
    reached = numbers.at_least(progress.wealth, digits=2)
    # A refutation by bets shows only that ε exceeds the claim. The report has the exact bound.
    evidence = [
        f"evidence {reached}, refuted at {numbers.about(needed)}",
        f"ε ≥ {numbers.at_least(progress.epsilon_lower)}",
    ]
    parts = [
        f"{progress.draws:,}{of} draws",
        speed(progress.rate),
        *(["refuted"] if progress.wealth >= needed else evidence),
        remaining(progress) if with_share else "",
        progress.waiting,
    ]
    return numbers.unglued(", ".join(filter(None, parts)))


def speed(rate: float) -> str:
    """Return a speed, in draws per second, as text with its unit, such as `1.2 M/s`."""
    if not math.isfinite(rate) or rate <= 0:
        return ""
    if rate >= 1e6:
        return f"{rate / 1e6:.1f} M/s"
    return f"{numbers.about(rate, digits=2)}/s"


def remaining(progress: Progress) -> str:
    """Return the estimated time left as text, or "" if no estimate exists yet."""
    if not math.isfinite(progress.remaining):
        return ""
    return numbers.unglued(f"{numbers.duration(max(1.0, round(progress.remaining)))} left")
