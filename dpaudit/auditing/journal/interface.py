"""What an audit tells its journal, and is told by it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import ProfilePoint
from dpaudit.sampling.executors import Drawer

Plain = TypeVar("Plain")


@dataclass(frozen=True, slots=True, eq=False)
class PairProgress:
    """How far a pair is, after a block.

    draws of budget.  is_planned: whether the budget is final.  left: draws still to be made, as far
    as that is known.  wealth, epsilon_lower: as they
    stand.  point: what is bet against.  rounds: how often the bettors have learned.  gains: of each
    of them against the point, in logs.
    """

    draws: int
    budget: int
    is_planned: bool
    left: int | None
    wealth: float
    epsilon_lower: float
    point: ProfilePoint
    rounds: int
    gains: NDArray[np.float64]


class Journal:
    """A journal that keeps nothing; `FileJournal` does.

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

    def recording(self, draws: Drawer, is_here: Callable[[], bool]) -> Drawer:
        """Return what draws as `draws` does, and records it. is_here: whether this process draws
        the next chunk."""
        return draws

    def once(self, name: str, make: Callable[[], Plain]) -> Plain | None:
        """Return what `make` does, a value that JSON has, and record it under a name. What is
        recorded is returned without a call; None where the record goes on without it."""
        return make()

    def sees(self, moment: PairProgress) -> None:
        """Take notice of how far a pair is."""

    def ends(self) -> None:
        """Take notice that all pairs have ended."""
