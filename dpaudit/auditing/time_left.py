"""The time that an audit has left: for worker processes, for the display, and for a warning.

engine.py makes a `TimeLeft` for each audit, which reads the clock of its journal. An audit without
a journal file uses `Journal`, which records nothing, and need not import `FileJournal`.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.options import MIN_SAMPLES, DefaultSamples
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Progress
from dpaudit.sampling.executors import Drawer

_NEW_PROCESSES = "checking the refutation with draws of new processes"

_log = logging.getLogger(__name__)

Notify = Callable[[Progress], None]
# A type of values that JSON can hold.
Plain = TypeVar("Plain")


class Journal:
    """A journal that records nothing, for an audit without a journal file.

    spec: the audit. If it continues a run whose seed was drawn at random, it has this seed.
    warnings: warnings about the journal, for the result.
    resumed: number of earlier runs that this run continues.
    """

    def __init__(self, spec: AuditSpec) -> None:
        self.spec, self._start = spec, time.perf_counter()

    @property
    def warnings(self) -> tuple[str, ...]:
        return ()

    @property
    def resumed(self) -> int:
        return 0

    def now(self) -> float:
        """Return the seconds that this run, and the earlier runs that it continues, have taken so
        far."""
        return time.perf_counter() - self._start

    def clock(self) -> float:
        """Return `now()` for a decision of the audit, and record it. A run that continues another
        first returns the recorded values, so that it decides as the other did."""
        return self.now()

    def recording(self, drawer: Drawer, is_here: Callable[[], bool]) -> Drawer:
        """Return a drawer that draws with `drawer` and records the results. If an interrupted run
        is continued, it first yields the recorded results.

        drawer: called with chunks to draw; yields a result per chunk.
        is_here: returns whether this process, and not a worker, draws the next chunk.
        """
        return drawer

    def once(self, name: str, make: Callable[[], Plain]) -> Plain | None:
        """Return the result of `make()`, a value that JSON can hold, and record it under `name`. A
        run that continues another returns the recorded value instead, or None if the next record
        has another name."""
        return make()

    def note(self, ledger: Ledger) -> None:
        """Store the state of the bettors of `ledger` for the next record."""

    def finish(self) -> None:
        """Record that all pairs have ended."""


class TimeLeft:
    """Estimates how much time an audit has left, warns if it is too short, and reports progress.

    warning: a tuple with the warning that the time limit is too short; empty without a warning.
    """

    def __init__(self, journal: Journal, on_progress: Notify | None) -> None:
        """Begin an audit, before its first pair. `on_progress` is called after every block of
        draws."""
        self._journal, self._on_progress = journal, on_progress
        self.warning: tuple[str, ...] = ()
        self._number = 0
        self._ledger: Ledger | None = None
        self._seconds: float | None = None
        self._begun = 0.0
        self._shown: Progress | None = None

    @property
    def _spec(self) -> AuditSpec:
        return self._journal.spec

    def begin(self, number: int) -> None:
        """Begin the pair of inputs with this index."""
        self._number, self._ledger = number, None

    def pair_seconds(self) -> float | None:
        """Return the present pair's share of the seconds that are left; None without a time
        limit."""
        spec = self._spec
        if spec.sampling.time is None:
            return None
        left = max(0.0, spec.sampling.time - self._journal.clock())
        return left / (len(spec.pairs) - self._number)

    def plan(self, ledger: Ledger, seconds: float | None) -> None:
        """Set the ledger of the present pair, and the seconds that the pair has from now on."""
        self._ledger, self._seconds, self._begun = ledger, seconds, self._journal.now()

    def seconds(self, rate: float) -> float:
        """Return the estimated seconds until the last draw of the last pair, at `rate` draws per
        second. With a time limit, it is at most the time that is left."""
        spec, later = self._spec, len(self._spec.pairs) - self._number - 1
        left = None if self._ledger is None else self._ledger.left
        if spec.sampling.time is not None:
            seconds = spec.sampling.time - self._journal.now()
            return seconds if later or left is None else min(seconds, left / rate)
        samples = spec.sampling.samples
        seconds = ((samples if left is None else left) + later * samples) / rate
        # Before the number of draws is chosen, its time limit is known.
        return min(seconds, samples.seconds) if isinstance(samples, DefaultSamples) else seconds

    def check(self, rate: float, spent: int) -> None:
        """Warn, at most once, that `MIN_SAMPLES` draws of each pair will take longer than the time
        limit.

        rate: draws per second.
        spent: number of draws of the pair so far. Before the first draw, it is negative: minus the
            number of test calls to make, which take time, too.
        """
        if self._spec.sampling.time is None:
            return
        pairs = len(self._spec.pairs)
        future_draws = (pairs - self._number) * MIN_SAMPLES - spent
        # Read the clock on every call, even after the warning: a run that continues an interrupted
        # run gets that run's readings from the journal one by one, so both must read the clock
        # equally often.
        takes = self._journal.clock() + future_draws / rate
        if takes > self._spec.sampling.time and not self.warning:
            self.warning = (late_words(self._spec.sampling.time, rate, pairs, takes),)
            _log.warning("%s: %s", self._spec.name, self.warning[0])

    def show(self, ledger: Ledger) -> None:
        """Report the progress of the present pair."""
        self._journal.note(ledger)
        if self._on_progress is None:
            return
        draws, target, seconds = ledger.spent, ledger.target, self._seconds
        elapsed = max(self._journal.now() - self._begun, 1e-9)
        rate = draws / elapsed
        remaining = math.inf if target is None else (target - draws) / rate
        if seconds is not None and elapsed < seconds:
            # The first calls may be slow, so that the average speed is too low for a forecast.
            remaining = min(remaining, seconds - elapsed)
        elif seconds is not None:
            # At least `MIN_SAMPLES` draws are made, even if they take longer.
            remaining = max(0.0, (MIN_SAMPLES - draws) / rate)
        self._shown = Progress(
            name=self._spec.name,
            pair=self._spec.pairs[self._number].label,
            draws=draws,
            budget=target or 0,
            rate=rate,
            wealth=ledger.largest_wealth,
            epsilon_lower=ledger.wealth.epsilon_lower,
            remaining=remaining,
            needed=ledger.needed,
        )
        self._on_progress(self._shown)

    def show_waiting(self) -> None:
        """Report that the audit waits for new processes, which draw to check a refutation."""
        if self._on_progress is not None and self._shown is not None:
            self._on_progress(replace(self._shown, remaining=math.inf, waiting=_NEW_PROCESSES))


def late_words(seconds: float, rate: float, pairs: int, takes: float) -> str:
    """Return the warning that the time limit is too short.

    takes: estimated seconds for `MIN_SAMPLES` draws of each pair.
    """
    per_pair = "" if pairs == 1 else f" for each of {pairs:,} pairs"
    return (
        f"the time limit of {_short(seconds)} s is too short: an audit makes at least "
        f"{MIN_SAMPLES:,} draws{per_pair}, and at {_short(rate)} draws per second it ends after "
        f"about {_short(takes)} s"
    )


def _short(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"
