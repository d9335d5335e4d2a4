"""The record of a pair's draws and bets.

pair_audit.py and counted_learning.py record every block of draws in a `Ledger`. Bettors stake
wealth on the guesses of rules (docs/method.md §4). A tally is the (levels, 2) array of counts of
draws by level and input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpaudit.auditing.schedule import Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.evidence import (
    BETTING_SHARE,
    EARLY_BETTING_SHARE,
    Block,
    DivergenceBet,
    Stage,
)
from dpaudit.certificates.wealth import Wealth
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, Tally
from dpaudit.levels.portfolio import Learned
from dpaudit.sampling.chunks import Counted, Failures, Head, Measure, ToCount
from dpaudit.sampling.executors import Drawer
from dpaudit.stats.betting import Beliefs

if TYPE_CHECKING:
    from dpaudit.auditing.divergence_bets import DivergenceBets

# Indices of the stages of a pair. Each chunk of draws has a random stream of its own, selected by
# (index of the pair, index of the stage, index of the chunk).
LEARNING, CERTIFYING, CONFIRMING, PROBING, REDRAWING, COUNTING, DOUBTING, TIMING, PACING = range(9)
_STREAMS = {"learning": COUNTING, "certification": CERTIFYING, "confirmation": CONFIRMING}


@dataclass(frozen=True, slots=True)
class Recorded:
    """The state of a ledger at the end of a block.

    blocks: number of blocks.
    refuted_after: as in `Ledger`.
    divergence_bets: the bets against a Rényi divergence; None if there are none.
    """

    blocks: int
    refuted_after: int | None
    divergence_bets: tuple[DivergenceBet, ...] | None


class Ledger:
    """The draws and bets of one pair, block by block, from which the certificate is computed.

    spec, number, plan: the audit, the index of the pair in it, and the schedule of the pair.
    drawer: called with chunks (requests, each for one block of draws); yields a result per chunk.
    point: the point (ε, δ) of the claim that is bet against.
    wealth: the bettors' wealth.
    needed: the wealth at which the claim is refuted.
    rounds: the bettors' beliefs, in the order of their use.
    blocks: the tally of each block so far.
    heads: the first draws of each counted block, to find blocks that repeat earlier draws.
    failures: exceptions among the draws.
    spent: number of draws so far.
    refuted_after: number of draws after which a bet refuted the claim; None if no bet has.
    recorded: the state after the last block, which an exception at any moment leaves whole; None
        before the first block.
    """

    def __init__(
        self,
        spec: AuditSpec,
        number: int,
        plan: Plan,
        drawer: Drawer,
        notify: Callable[[Ledger], None],
    ) -> None:
        """Begin the ledger (draws and bets) of a pair of inputs. It is empty at first.

        spec: the audit.
        number: index of the pair.
        plan: the schedule of the pair.
        drawer: makes the draws of chunks.
        notify: called with the ledger after every block.
        """
        self.spec, self.number, self.plan, self.drawer = spec, number, plan, drawer
        self._notify = notify
        self.bet_against(spec.tested.point())
        self.rounds: list[Beliefs] = []
        self.blocks: list[Block] = []
        self.heads: list[Head] = []
        self.failures = Failures()
        self.spent = 0
        self.refuted_after: int | None = None
        self.recorded: Recorded | None = None

    def bet_against(self, point: ProfilePoint) -> None:
        """Set the point (ε, δ) of the claim that bets try to refute, and reset the wealth of the
        bettors. This is allowed only before the first bet.
        """
        self.point = point
        share = EARLY_BETTING_SHARE if self.ends_by_bets else BETTING_SHARE
        limits = dict(self.spec.tested.divergences())
        share = share / 2 if limits else share
        self.wealth = Wealth(point, share * self.spec.alpha)
        self.needed = 1 / (share * self.spec.alpha)
        self.divergences: DivergenceBets | None = None
        if limits:  # the claim is about a Rényi divergence
            from dpaudit.auditing.divergence_bets import DivergenceBets

            self.divergences = DivergenceBets(limits, share * self.spec.alpha)

    @property
    def ends_by_bets(self) -> bool:
        """Whether a refutation by bets ends the run without a confirmation by the exact test."""
        return self.plan.limits.ends_by_bets

    @property
    def may_stop(self) -> bool:
        """Whether a bet has refuted the claim and the run may now end early. It may not if the user
        asked for the full budget (`full`), or if a refutation by bets needs a confirmation by the
        exact test and the budget has no room for it.
        """
        return self.refuted_after is not None and self._can_confirm(0)

    @property
    def left(self) -> int | None:
        """Number of draws still to be made; None if the budget is not known yet."""
        return None if self.target is None else max(0, self.target - self.spent)

    @property
    def target(self) -> int | None:
        """Number of draws at the end of the run, with the confirmation if bets have refuted the
        claim; None if the budget is not known yet."""
        plan, first = self.plan, self.refuted_after
        if first is not None and not self.spec.sampling.full:
            if self.ends_by_bets:
                return self.spent
            if plan.budget - first >= plan.limits.confirming:
                return first + plan.confirming(first)
        return plan.budget if plan.is_final else None

    @property
    def coming(self) -> int:
        """Number of draws on which the next rules will be tested: the draws of the confirmation if
        bets have refuted the claim and the run may end early, else the remaining budget.
        """
        if self.may_stop:
            return self.plan.confirming(self.spent)
        return max(self.plan.budget - self.spent, 1)

    @property
    def largest_wealth(self) -> float:
        """Largest wealth so far of the bettors (strategies that bet against the claim). They begin
        with wealth 1; a large wealth is evidence against the claim."""
        largest = self.wealth.log_largest
        if self.divergences is not None:
            largest = max(largest, self.divergences.log_wealth)
        return math.exp(min(largest, 700.0))  # beyond 700, exp would overflow

    def bet_with(self, beliefs: Beliefs) -> None:
        beliefs = replace(beliefs, early=self.ends_by_bets)
        self.rounds.append(beliefs)
        self.wealth.believe(beliefs)

    def begin_witnesses(self, learned: Learned, selection: SelectionDraws) -> None:
        """Start witnesses (functions of the output that bet) against a divergence of the claim.
        They bet on all draws from now on. Do nothing if the claim bounds no divergence, if it is
        refuted already, or if it is too early for further witnesses.

        learned: rules from all draws so far.
        selection: the draws in the sample buffer.
        """
        bets = self.divergences
        if bets is None or self.refuted_after is not None or not bets.is_due(self.spent):
            return
        expected = learned.expected_by_joint_level(selection)
        if expected is not None:
            bets.begin(learned.portfolio.level, expected, self.spent)

    def looks_to_refutation(self, looks: Sequence[Tally]) -> int:
        """Return how many of the tallies to keep: the tallies up to the first one that ends the
        run, or all of them if none ends it. A tally ends the run if the bets up to this tally
        refute the claim, and the rest of the draw budget is enough for a confirmation.

        looks: tallies of consecutive parts of a block of draws.
        """
        first = None if self.refuted_after is not None else self.wealth.first_refuting(looks)
        if first is None:
            return len(looks)
        draws = sum(look.draws for look in looks[: first + 1])
        return first + 1 if self._can_confirm(draws) else len(looks)

    def draw_and_bet(
        self, stage: Stage, sizes: Iterable[int], measure: Measure, first: int = 0
    ) -> Iterator[Counted]:
        """Draw and count blocks. Record and yield each block, and bet on it, except in a
        confirmation (the exact test that follows a refutation by bets). End early if a bet refutes
        the claim and the budget has room for a confirmation.

        stage: the stage of the draws, such as "learning".
        sizes: number of draws of each block.
        measure: the rules that count the draws.
        first: index of the first block among the blocks of the stage; the index selects the random
            stream of a block.
        """
        is_bet_on = stage != "confirmation"
        if is_bet_on and self.divergences is not None:
            measure = replace(measure, others=(*measure.others, *self.divergences.counters))
        stream, block = (self.number, _STREAMS[stage]), self.plan.limits.block
        chunks = (
            ToCount((*stream, place), size, measure, block)
            for place, size in enumerate(sizes, first)
        )
        for drawn in self.drawer(chunks):
            self.failures += drawn.failures
            self.heads += drawn.heads
            if is_bet_on and self.divergences is not None:
                witnesses = len(self.divergences.counters)
                self.divergences.record(drawn.others[len(drawn.others) - witnesses :])
            self.write(stage, drawn.tally, is_bet_on=is_bet_on)
            yield drawn
            if is_bet_on and self.may_stop:
                return

    def write(self, stage: Stage, tally: Tally, *, is_bet_on: bool) -> None:
        """Record the tally of a block, bet on it if `is_bet_on`, and report the progress."""
        if is_bet_on:
            self.wealth.record([tally])
        self.blocks.append(Block(stage, len(self.rounds) - 1 if is_bet_on else None, tally))
        self.spent += tally.draws
        is_refuted = self.wealth.refuted or (
            self.divergences is not None and self.divergences.refuted
        )
        if self.refuted_after is None and is_refuted:
            self.refuted_after = self.spent
        bets = None if self.divergences is None else self.divergences.recorded
        self.recorded = Recorded(len(self.blocks), self.refuted_after, bets)
        self._notify(self)

    def _can_confirm(self, coming: int) -> bool:
        """Return whether a refutation after `coming` more draws would end the run. It does not if
        the user asked for the full budget (`full`), or if a confirmation is needed and the budget
        has no room for it.
        """
        room = self.plan.budget - self.spent - coming
        if self.ends_by_bets:
            return not self.spec.sampling.full
        return not self.spec.sampling.full and room >= self.plan.limits.confirming
