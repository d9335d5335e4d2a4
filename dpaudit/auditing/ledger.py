"""The record of a pair's draws and bets.

pair_audit.py and counted_learning.py record every block of draws in a `Ledger`, which places the
bets of bettors and of witnesses on it (docs/method.md §4 and §6).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dpaudit.auditing.exact_tests import several_points
from dpaudit.auditing.schedule import Plan, look_stride
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.evidence import (
    BETTING_SHARE,
    EARLY_BETTING_SHARE,
    Block,
    DivergenceBet,
    Evidence,
    FrozenRule,
    Stage,
)
from dpaudit.certificates.result import FreshCounts
from dpaudit.certificates.wealth import Wealth
from dpaudit.claims import ProfilePoint
from dpaudit.draws import FreshDraws, IntArray, SelectionDraws, Tally
from dpaudit.levels.portfolio import Learned, Portfolio
from dpaudit.sampling.chunks import Failures, Head, LevelCounts, Measure, Probe, ToCount, ToTime
from dpaudit.sampling.executors import Drawer
from dpaudit.stats.betting import Beliefs

if TYPE_CHECKING:
    from dpaudit.auditing.divergence_bets import WitnessBets

# Indices of the stages of a pair. Each chunk of draws has a random stream of its own, selected by
# (index of the pair, index of the stage, index of the chunk).
LEARNING, CERTIFYING, CONFIRMING, PROBING, REDRAWING, COUNTING, DOUBTING, TIMING, PACING = range(9)
_STREAMS = {"learning": COUNTING, "certification": CERTIFYING, "confirmation": CONFIRMING}
# The rule of a run without an exact test: one level for each guess, d1, d2 and none.
_NO_RULE = FrozenRule("main", 1.0, "", (1, -1, 0))


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a `Ledger` at the end of a block.

    blocks: number of blocks.
    refuted_after: as in `Ledger`.
    divergence_bets: the bets of witnesses; None for a claim that limits no divergence.
    """

    blocks: int
    refuted_after: int | None
    divergence_bets: tuple[DivergenceBet, ...] | None


class Ledger:
    """The draws and bets of one pair, block by block, from which the certificate is computed.

    number: the index of the pair in the audit.
    probe: measurements of the first calls, such as the duration of a draw.
    drawer: makes the draws of chunks, one block each.
    point: the point that is bet against.
    needed: the wealth at which the claim is refuted.
    rounds: the bettors' beliefs, in the order of their use.
    blocks: the tally of each block so far.
    heads: the first draws of each counted block, by which repeated blocks are recognised.
    failures: exceptions among the draws.
    warnings: reasons to doubt the draws so far.
    refuted_after: number of draws after which a bet refuted the claim; None if no bet has.
    checkpoint: the state after the last block; None before the first block. An exception at any
        moment leaves it consistent.
    """

    def __init__(
        self,
        spec: AuditSpec,
        number: int,
        plan: Plan,
        probe: Probe,
        drawer: Drawer,
        notify: Callable[[Ledger], None],
    ) -> None:
        """Begin the ledger of a pair, without draws; `notify` is called after every block."""
        self.spec, self.number, self.plan = spec, number, plan
        self.probe, self.drawer = probe, drawer
        self._notify = notify
        self.set_point(spec.tested.point())
        self.rounds: list[Beliefs] = []
        self.blocks: list[Block] = []
        self.heads: list[Head] = []
        self.failures = Failures()
        self.warnings: list[str] = []
        self.spent = 0
        self._guesses: IntArray | None = None  # of the main rule, by level; None before the freeze
        self.refuted_after: int | None = None
        self.checkpoint: Checkpoint | None = None

    def set_point(self, point: ProfilePoint) -> None:
        """Set the point to bet against, and reset the wealth. Allowed only before the first bet."""
        self.point = point
        share = EARLY_BETTING_SHARE if self.ends_by_bets else BETTING_SHARE
        limits = dict(self.spec.tested.divergences())
        share = share / 2 if limits else share
        self.wealth = Wealth(point, share * self.spec.alpha)
        self.needed = 1 / (share * self.spec.alpha)
        self.divergences: WitnessBets | None = None
        if limits:  # the claim is about a Rényi divergence
            from dpaudit.auditing.divergence_bets import WitnessBets

            self.divergences = WitnessBets(limits, share * self.spec.alpha)

    @property
    def ends_by_bets(self) -> bool:
        """Whether a refutation by bets ends the run without a confirmation by the exact test."""
        return self.plan.limits.ends_by_bets

    @property
    def may_stop(self) -> bool:
        """Whether a bet has refuted the claim and the run may end now. It may not end if the user
        asked for the full budget, or if a confirmation is needed and does not fit in the budget."""
        return self.refuted_after is not None and self._can_confirm(0)

    @property
    def after_learning(self) -> list[Tally]:
        """The tallies of the blocks that were not used for learning."""
        return [block.tally for block in self.blocks if block.stage != "learning"]

    @property
    def left(self) -> int | None:
        """Number of draws still to be made; None if the budget is not known yet."""
        return None if self.target is None else max(0, self.target - self.spent)

    @property
    def target(self) -> int | None:
        """Total number of draws when the run ends, including a confirmation if one is due; None if
        the budget is not known yet."""
        plan, first = self.plan, self.refuted_after
        if first is not None and not self.spec.sampling.full:
            if self.ends_by_bets:
                return self.spent
            if plan.budget - first >= plan.limits.confirming:
                return first + plan.confirming(first)
        return plan.budget if plan.is_final else None

    @property
    def future_draws(self) -> int:
        """Number of draws on which the next rules will be tested: the draws of the confirmation if
        one is due, else the remaining budget."""
        if self.may_stop:
            return self.plan.confirming(self.spent)
        return max(self.plan.budget - self.spent, 1)

    @property
    def largest_wealth(self) -> float:
        """The largest total wealth that the bettors had so far. They begin with wealth 1."""
        largest = self.wealth.log_largest
        if self.divergences is not None:
            largest = max(largest, self.divergences.log_wealth)
        return math.exp(min(largest, 700.0))  # beyond 700, exp would overflow

    def set_beliefs(self, beliefs: Beliefs) -> None:
        beliefs = replace(beliefs, early=self.ends_by_bets)
        self.rounds.append(beliefs)
        self.wealth.believe(beliefs)

    def begin_witnesses(self, learned_rules: Learned, selection: SelectionDraws) -> None:
        """Choose witnesses of a divergence that the claim limits, which bet on all draws from now
        on. Do nothing if the claim limits no divergence, if it is refuted, or if more witnesses are
        not yet due.

        learned_rules: rules from all draws so far.
        """
        bets = self.divergences
        if bets is None or self.refuted_after is not None or not bets.is_due(self.spent):
            return
        expected = learned_rules.expected_by_joint_level(selection)
        if expected is not None:
            bets.begin(learned_rules.portfolio.level, expected, self.spent)

    def bet_and_release(self, fresh: FreshDraws, rule: Portfolio | None) -> SelectionDraws:
        """Bet on a block of draws with `rule`, then return its draws, so that they can be learned
        from. If a bet within the block ends the run, the draws after this bet are not returned. If
        `rule` is None, there are no bets."""
        if rule is None:
            released = fresh.release()
            total = Tally(released.arms[None])
        else:
            stride = look_stride(fresh.size, ends_by_bets=self.ends_by_bets)
            looks = fresh.looks(rule, rule.levels, stride)
            looks = looks[: self._looks_to_refutation(looks)]
            released = fresh.release(len(looks) * stride)
            total = sum(looks, Tally.empty(rule.levels))
        if self.divergences is not None:
            self.divergences.record_draws(released)
        self.record("learning", total, is_bet_on=rule is not None)
        return released

    def _looks_to_refutation(self, looks: Sequence[Tally]) -> int:
        """Return how many looks to keep: up to the first at which the run ends, or all."""
        first = None if self.refuted_after is not None else self.wealth.first_refuting(looks)
        if first is None:
            return len(looks)
        draws = sum(look.draws for look in looks[: first + 1])
        return first + 1 if self._can_confirm(draws) else len(looks)

    def time_draws(self, measure: Measure) -> None:
        """Measure the draws per second with all workers, for the plan.

        These draws are used for nothing else. Their number depends on their durations, which may
        depend on their outputs, so a test that counts them could be biased. Learning blocks cannot
        show the speed: they are small, and each waits until the block before it is evaluated.
        """
        plan = self.plan
        chunks = (
            ToTime((self.number, TIMING, index), size, measure, plan.limits.block, heads=False)
            for index, size in enumerate(plan.timed_sizes(self.spent))
        )
        for counts in self.drawer(chunks):
            if plan.record_timed(counts.tally.draws):
                break

    def draw_and_bet(
        self, stage: Stage, sizes: Iterable[int], measure: Measure, first: int = 0
    ) -> Iterator[LevelCounts]:
        """Draw the blocks of a stage, and yield the counts of each. Each block is bet on, except in
        a confirmation. End early when `may_stop` is true.

        sizes: number of draws of each block.
        measure: what to count, such as the levels of a portfolio.
        first: index of the first block in the stage, which selects the random streams.
        """
        is_bet_on = stage != "confirmation"
        if is_bet_on and self.divergences is not None:
            measure = replace(measure, others=(*measure.others, *self.divergences.counters))
        stream, block = (self.number, _STREAMS[stage]), self.plan.limits.block
        fresh = self.spec.sampling.certification_seed
        seed = () if stage == "learning" or fresh is None else (fresh,)
        if stage == "certification":
            self._guesses = measure.portfolio.guesses
        chunks = (
            ToCount((*stream, index, *seed), size, measure, block)
            for index, size in enumerate(sizes, first)
        )
        for counts in self.drawer(chunks):
            self.failures += counts.failures
            self.heads += counts.heads
            if is_bet_on and self.divergences is not None:
                witnesses = len(self.divergences.counters)
                self.divergences.record(counts.others[len(counts.others) - witnesses :])
            self.record(stage, counts.tally, is_bet_on=is_bet_on)
            yield counts
            if is_bet_on and self.may_stop:
                return

    def record(self, stage: Stage, tally: Tally, *, is_bet_on: bool) -> None:
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
        self.checkpoint = Checkpoint(len(self.blocks), self.refuted_after, bets)
        self._notify(self)

    def _can_confirm(self, future_draws: int) -> bool:
        """Return whether a refutation after `future_draws` more draws would end the run."""
        room = self.plan.budget - self.spent - future_draws
        has_room = self.ends_by_bets or room >= self.plan.limits.confirming
        return has_room and not self.spec.sampling.full

    def fresh_counts(self) -> FreshCounts:
        """Return the guesses of the main rule on the certifying draws, up to the last whole
        block."""
        if self._guesses is None or self.checkpoint is None:
            return FreshCounts(0, 0, 0, False, self.point)
        blocks = self.blocks[: self.checkpoint.blocks]
        tallies = (block.tally for block in blocks if block.stage == "certification")
        game = sum(tallies, Tally.empty(len(self._guesses))).game(self._guesses)
        none = game.draws - game.correct - game.wrong
        return FreshCounts(game.correct, game.wrong, none, game.two_guesses, self.point)

    def evidence(self) -> Evidence:
        """Return the evidence of an interrupted run: the bets up to the last whole block, without
        an exact test. Raise ValueError before the first block.

        The bound on ε from bets is valid at all moments together (docs/method.md §4), so it is
        valid wherever an exception has interrupted the run.
        """
        spec, plan, recorded = self.spec, self.plan, self.checkpoint
        if recorded is None:
            raise ValueError("no block was drawn")
        blocks = tuple(self.blocks[: recorded.blocks])
        rounds = 1 + max((block.round for block in blocks if block.round is not None), default=-1)
        learning_draws = sum(block.draws for block in blocks if block.stage == "learning")
        draws = sum(block.draws for block in blocks)
        return Evidence(
            point=self.point,
            points=several_points(spec.tested),
            alpha=spec.alpha,
            confidence=spec.statistics.confidence,
            budget=max(draws, plan.budget) if plan.is_final else draws,
            limits=plan.limits,
            by_clock=spec.sampling.time is not None,
            stage="interrupted",
            method="game",
            rules=(_NO_RULE,),
            rounds=tuple(self.rounds[:rounds]),
            divergences=tuple(spec.tested.divergences()),
            blocks=blocks,
            counted=max(0, learning_draws - plan.buffer_until),
            refuted_after=recorded.refuted_after,
            divergence_bets=recorded.divergence_bets,
            illustration=Tally.empty(len(_NO_RULE.guesses)),
        )
