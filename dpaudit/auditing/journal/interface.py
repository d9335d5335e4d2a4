"""What an audit tells its journal and is told by it; this one keeps nothing."""

from __future__ import annotations

import time

from dpaudit.auditing.pair_progress import PairProgress
from dpaudit.auditing.spec import AuditSpec
from dpaudit.sampling.executors import Draws


class Journal:
    """What an audit tells of its draws, so that a run that was cut short can go on. This one keeps
    nothing; `FileJournal` does.

    spec: what is audited, with the seed that the journal was begun with.
    warnings: what is to be said of the journal in the result.
    resumed: how many runs the audit has had before this one.
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
        """Return the seconds that the audit has taken."""
        return time.perf_counter() - self._start

    def clock(self) -> float:
        """Return the same, for whoever decides something by it."""
        return self.now()

    def recording(self, draws: Draws) -> Draws:
        """Return what draws as `draws` does, and records it."""
        return draws

    def sees(self, moment: PairProgress) -> None:
        """Take notice of how far a pair is."""

    def ends(self) -> None:
        """Take notice that all pairs have ended."""
