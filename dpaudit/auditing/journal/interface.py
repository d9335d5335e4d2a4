"""What an audit tells its journal and is told by it, and what stands in where none is kept."""

from __future__ import annotations

import time
from typing import Protocol

from dpaudit.auditing.pair_progress import PairProgress
from dpaudit.auditing.spec import AuditSpec
from dpaudit.sampling.executors import Draws


class Journal(Protocol):
    """Keeps what an audit draws, so that a run that was cut short can go on.

    spec: what is audited, with the seed that the journal was begun with.
    warnings: what is to be said of the journal in the result.
    resumed: how many runs the audit has had before this one.
    """

    @property
    def spec(self) -> AuditSpec: ...
    @property
    def warnings(self) -> tuple[str, ...]: ...
    @property
    def resumed(self) -> int: ...

    def now(self) -> float:
        """Return the seconds that the audit has taken."""
        ...

    def clock(self) -> float:
        """Return the same, for whoever decides something by it."""
        ...

    def recording(self, draws: Draws) -> Draws:
        """Return what draws as `draws` does, and records it."""
        ...

    def sees(self, moment: PairProgress) -> None:
        """Take notice of how far a pair is."""
        ...

    def ends(self) -> None:
        """Take notice that all pairs have ended."""
        ...


class NoJournal:
    """A `Journal` that keeps nothing."""

    warnings: tuple[str, ...] = ()
    resumed = 0

    def __init__(self, spec: AuditSpec) -> None:
        self.spec = spec
        self._start = time.perf_counter()

    def now(self) -> float:
        return time.perf_counter() - self._start

    def clock(self) -> float:
        return self.now()

    def recording(self, draws: Draws) -> Draws:
        return draws

    def sees(self, moment: PairProgress) -> None:
        """Nobody goes on from here."""

    def ends(self) -> None:
        """Nothing was kept."""
