"""How many draws a search may make, and for how many pairs: a part of the draws of the audit, or of
its time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from dpaudit.auditing.spec import AuditSpec
from dpaudit.searching.screening import FEWEST

# Of the budget: for the search, and of that for the proposals, the rest for pairs like the best and
# for making the winner simpler.
SHARE = 1 / 4
PROPOSED, GUIDED = 0.6, 0.15
# Of the budget, for pairs outside the space where these do not count: enough to see what is clear.
NOTED = 0.1
# So much more of a budget is for comparing the best pairs of answers, where they leak clearly:
# fewer draws to certify cost less of the bound then than a pair that is not the best.
COMPARING = 0.6
# Pairs of a first round, at most.
WIDTH = 400
# Inputs that have to be drawn for, for each pair: many pairs share one of theirs.
_INPUTS = 1.3
# With a small budget, pairs that are tried all the same, and draws of either input.
_FEW_PAIRS, BARELY = 24, 10
# Draws of either input that show how fast draws are made.
_FEWEST_TIMED = 2


class Budget:
    """The draws of a search. By the clock they are planned, once there is a pair to be tried."""

    def __init__(self, spec: AuditSpec) -> None:
        self._began, self._deadline, self._time = time.monotonic(), math.inf, spec.time
        self.draws = max(2 * FEWEST, int(SHARE * spec.samples))
        self._is_planned = spec.time is None

    def elapsed(self) -> float:
        """Return for how many seconds the search has run."""
        return time.monotonic() - self._began

    def places(self, share: float) -> int:
        """Return how many pairs there are draws for. share: of the budget."""
        if not self._is_planned:
            return WIDTH
        budget = self.draws_for(share)
        # Of few draws, some pairs get so few that these show large leaks alone.
        return max(int(budget / FEWEST), min(_FEW_PAIRS, int(budget / BARELY)), 1)

    def draws_for(self, share: float) -> float:
        """Return the draws of either input, of all pairs of a first round together: rounds cost
        half of the ones before, and inputs serve several pairs."""
        return share * self.draws / (2 * _INPUTS)

    def plan_by_clock(self, tried: Callable[[int], object]) -> None:
        """See how fast draws are made and judged, to plan how many there is time for; by very few
        where these take long. The first trial may have something to import.

        tried: tries a pair by so many draws of either input.
        """
        seconds = SHARE * (self._time or 0.0)
        taken, size = 0.0, 0
        for draws in (_FEWEST_TIMED, 2 * _FEWEST_TIMED, FEWEST):
            if taken * draws > seconds * max(size, 1) / 10:
                break
            began, size = time.monotonic(), draws
            tried(draws)
            taken = max(time.monotonic() - began, 1e-6)
        self.draws = max(2 * BARELY, int(2 * size * seconds / taken))
        self._is_planned = True
        # What had to be imported takes nothing from a short search.
        self._deadline = time.monotonic() + seconds

    def is_out_of_time(self) -> bool:
        """Return whether time is up."""
        return time.monotonic() > self._deadline
