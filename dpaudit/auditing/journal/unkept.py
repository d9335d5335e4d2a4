"""What an audit tells its journal and is told by it, where none is kept."""

from __future__ import annotations

import time

from dpaudit.auditing.moment import Moment
from dpaudit.auditing.spec import AuditSpec
from dpaudit.sampling.executors import Draws


class Unkept:
    """Stands for a journal where none is kept."""

    def __init__(self, spec: AuditSpec) -> None:
        self.spec = spec
        self._start = time.perf_counter()

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is to be said of the journal in the result."""
        return ()

    @property
    def resumed(self) -> int:
        """How many runs the audit has had before this one."""
        return 0

    def now(self) -> float:
        """Return the seconds that the audit has taken."""
        return time.perf_counter() - self._start

    def clock(self) -> float:
        """Return the same, for whoever decides something by it."""
        return self.now()

    def draws(self, draws: Draws) -> Draws:
        """Return who draws."""
        return draws

    def sees(self, moment: Moment) -> None:
        """Take notice of how far a pair is."""

    def ends(self) -> None:
        """Take notice that all pairs have ended."""
