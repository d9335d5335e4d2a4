"""The draws and bets of the audit of one pair."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.auditing.schedule import Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.certificate import Block, Stage
from dpaudit.certificates.evidence import BETTING_SHARE
from dpaudit.certificates.replay import block_of
from dpaudit.certificates.wealth import Wealth
from dpaudit.claims import ProfilePoint
from dpaudit.draws import Tally
from dpaudit.sampling.chunks import Counted, Failures, Head
from dpaudit.stats.betting import Beliefs


@dataclass(frozen=True, slots=True, eq=False)
class PairProgress:
    """The state of one pair after a block of draws.

    draws: made so far.  budget: draws allowed.  is_planned: whether the budget is final.
    left: draws still to be made, where that is known.
    wealth, epsilon_lower: of the bets so far.  point: of the claim, which is bet against.
    rounds: number of times that the bettors have learned.
    gains: (bettors,), log of what each has gained against the point.
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


class Ledger:
    """The draws and bets of one pair, block by block; its certificate follows from them.

    point: of the claim's profile, which is bet against.
    rounds: beliefs, in the order in which they were bet with.
    blocks, heads: of all draws so far.  failures: exceptions among them.
    spent: number of draws.  refuted_after: draws after which a bet refuted the claim.
    """

    def __init__(
        self,
        spec: AuditSpec,
        plan: Plan,
        point: ProfilePoint,
        notify: Callable[[PairProgress], None],
    ) -> None:
        self._spec, self._plan, self._notify = spec, plan, notify
        self.settle(point)
        self.rounds: list[Beliefs] = []
        self.blocks: list[Block] = []
        self.heads: list[Head] = []
        self.failures = Failures()
        self.spent = 0
        self.refuted_after: int | None = None

    def settle(self, point: ProfilePoint) -> None:
        """Choose the point to bet against; before any bet."""
        self.point = point
        self.wealth = Wealth(point, BETTING_SHARE * self._spec.alpha)

    @property
    def may_stop(self) -> bool:
        """Whether a refutation ends the run: it may, and enough budget is left to confirm it."""
        return self.refuted_after is not None and self._can_confirm(0)

    def bet_with(self, beliefs: Beliefs) -> None:
        self.rounds.append(beliefs)
        self.wealth.believe(beliefs)

    def looks_to_refutation(self, looks: Sequence[Tally]) -> int:
        """Return the number of looks at a block up to the first that ends the run; all if none
        does."""
        first = None if self.refuted_after is not None else self.wealth.first_refuting(looks)
        if first is None:
            return len(looks)
        draws = sum(look.draws for look in looks[: first + 1])
        return first + 1 if self._can_confirm(draws) else len(looks)

    def count(self, stage: Stage, counted: Counted, *, is_bet_on: bool) -> None:
        """Record a block that was only counted."""
        self.failures += counted.failures
        self.heads += counted.heads
        self.write(stage, counted.tally, is_bet_on=is_bet_on)

    def write(self, stage: Stage, tally: Tally, *, is_bet_on: bool) -> None:
        """Record the tally of a block, bet on it, and report the progress."""
        if is_bet_on:
            self.wealth.record([tally])
        self.blocks.append(block_of(stage, len(self.rounds) - 1 if is_bet_on else None, tally))
        self.spent += tally.draws
        if self.refuted_after is None and self.wealth.refuted:
            self.refuted_after = self.spent
        plan = self._plan
        left = plan.budget - self.spent if plan.is_final else None
        if self.may_stop:
            left = min(plan.budget - self.spent, max(self.spent, plan.limits.confirming))
        self._notify(
            PairProgress(
                draws=self.spent,
                budget=plan.budget,
                is_planned=plan.is_final,
                left=left,
                wealth=math.exp(min(self.wealth.log_largest, 700.0)),
                epsilon_lower=self.wealth.epsilon_lower,
                point=self.point,
                rounds=len(self.rounds),
                gains=self.wealth.gains,
            )
        )

    def _can_confirm(self, coming: int) -> bool:
        """Return whether the budget has room for a confirmation after `coming` more draws."""
        room = self._plan.budget - self.spent - coming
        return not self._spec.full and room >= self._plan.limits.confirming
