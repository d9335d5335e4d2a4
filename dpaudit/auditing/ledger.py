"""What the audit of a pair has drawn, bet and seen so far."""

from __future__ import annotations

import math
from collections.abc import Callable
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
    """The record of one pair, block by block, which its certificate follows from.

    rounds: beliefs, each bet on from one block to another.  refuted_after: draws after which bets
    refuted the claim.
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
        """Choose the point of the claim's profile that is bet against, before anything is bet."""
        self.point = point
        self.wealth = Wealth(point, BETTING_SHARE * self._spec.alpha)

    @property
    def may_stop(self) -> bool:
        """Whether a refutation ends the run: asked for, and enough budget left to confirm it."""
        return self.refuted_after is not None and self.can_confirm(0)

    def can_confirm(self, coming: int) -> bool:
        """Return whether, after so many draws more, there is budget left to confirm with."""
        room = self._plan.budget - self.spent - coming
        return not self._spec.full and room >= self._plan.limits.confirming

    def believe(self, beliefs: Beliefs) -> None:
        """Bet on these from now on."""
        self.rounds.append(beliefs)
        self.wealth.believe(beliefs)

    def count(self, stage: Stage, counted: Counted, *, is_bet_on: bool) -> None:
        """Write down a block that a frozen rule has counted."""
        self.failures += counted.failures
        self.heads += counted.heads
        self.write(stage, counted.tally, is_bet_on=is_bet_on)

    def write(self, stage: Stage, tally: Tally, *, is_bet_on: bool) -> None:
        """Write a block down."""
        if is_bet_on:
            self.wealth.record([tally])
        self.blocks.append(block_of(stage, len(self.rounds) - 1 if is_bet_on else None, tally))
        self.spent += tally.draws
        if self.refuted_after is None and self.wealth.refuted:
            self.refuted_after = self.spent
        moment = PairProgress(
            draws=self.spent,
            budget=self._plan.budget,
            is_planned=self._plan.is_final,
            left=self._left,
            wealth=math.exp(min(self.wealth.log_largest, 700.0)),
            epsilon_lower=self.wealth.epsilon_lower,
            point=self.point,
            rounds=len(self.rounds),
            gains=self.wealth.gains,
        )
        self._notify(moment)

    @property
    def _left(self) -> int | None:
        """The draws still to be made, if that is known."""
        room = self._plan.budget - self.spent
        if self.may_stop:
            return min(room, max(self.spent, self._plan.limits.confirming))
        return room if self._plan.is_final else None
