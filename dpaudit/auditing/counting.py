"""The record of a pair's draws and bets, and learning from draws that are counted but not kept.

pair_audit.py records every block of draws in a `Ledger`. When the sample buffer is full,
`learn_by_counting` continues to learn: it counts further draws by the levels of several candidates
(a candidate assigns outputs to levels) and by input, `RareStore` keeps the draws with rare outputs,
and rules are refitted. A rule guesses d1 or d2, or abstains, at each level; bettors stake wealth on
its guesses (docs/method.md §4, §5). A tally is the (levels, 2) array of counts of draws by level
and input. recorded.py uses `Counts`, too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from operator import add
from typing import TYPE_CHECKING

import numpy as np

from dpaudit.attacks import learning
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.auditing.schedule import Plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.evidence import BETTING_SHARE, EARLY_BETTING_SHARE
from dpaudit.certificates.records import Block, Stage
from dpaudit.certificates.wealth import Wealth, block_of
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, Tally, by_arm, pool
from dpaudit.levels.candidates import Candidate, Counting
from dpaudit.levels.level_map import CellCounter, IntArray
from dpaudit.levels.portfolio import Learned, Portfolio
from dpaudit.levels.rare_filter import OFTEN, RareFilter
from dpaudit.sampling.chunks import Counted, Failures, Head, Measure, Rare, ToCount
from dpaudit.sampling.executors import Drawer
from dpaudit.stats.betting import Beliefs
from dpaudit.wording import counted

if TYPE_CHECKING:
    from dpaudit.auditing.divergence_bets import DivergenceBets

# Indices of the stages of a pair. Each chunk of draws has a random stream of its own, selected by
# (index of the pair, index of the stage, index of the chunk).
LEARNING, CERTIFYING, CONFIRMING, PROBING, REDRAWING, COUNTING, DOUBTING, TIMING = range(8)
_STREAMS = {"learning": COUNTING, "certification": CERTIFYING, "confirmation": CONFIRMING}


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
        self.settle(spec.tested.point())
        self.rounds: list[Beliefs] = []
        self.blocks: list[Block] = []
        self.heads: list[Head] = []
        self.failures = Failures()
        self.spent = 0
        self.refuted_after: int | None = None

    def settle(self, point: ProfilePoint) -> None:
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
        return self.plan.limits.bets

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
        if self.may_stop and self.ends_by_bets:
            return 0
        if self.may_stop:
            return self.plan.confirming(self.spent)
        return self.plan.budget - self.spent if self.plan.is_final else None

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
        run, or all of them if none ends it. A tally ends the run if the bets on it refute the
        claim, and the budget has room for a confirmation.

        looks: tallies of consecutive parts of a block of draws.
        """
        first = None if self.refuted_after is not None else self.wealth.first_refuting(looks)
        if first is None:
            return len(looks)
        draws = sum(look.draws for look in looks[: first + 1])
        return first + 1 if self._can_confirm(draws) else len(looks)

    def count(
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
                bets = len(self.divergences.counters)
                self.divergences.record(drawn.others[len(drawn.others) - bets :])
            self.write(stage, drawn.tally, is_bet_on=is_bet_on)
            yield drawn
            if is_bet_on and self.may_stop:
                return

    def write(self, stage: Stage, tally: Tally, *, is_bet_on: bool) -> None:
        """Record the tally of a block, bet on it if `is_bet_on`, and report the progress."""
        if is_bet_on:
            self.wealth.record([tally])
        self.blocks.append(block_of(stage, len(self.rounds) - 1 if is_bet_on else None, tally))
        self.spent += tally.draws
        is_refuted = self.wealth.refuted or (
            self.divergences is not None and self.divergences.refuted
        )
        if self.refuted_after is None and is_refuted:
            self.refuted_after = self.spent
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


# Largest number of draws with rare outputs that are kept in memory.
MOST_KEPT = 16_384


class RareStore:
    """The draws with rare outputs, and the filter that selects rare outputs.

    When memory is full, the filter is narrowed: the most frequent of the rare outputs are evicted,
    and later draws with these outputs are only counted. The draws that remain are exactly the draws
    that the narrower filter would have selected from the start. So no draw with their outputs is
    missing, and the frequency of an output is its number of draws divided by `arms`.

    arms: (2,), number of draws of d1 and of d2, rare or not, among which the filter selected the
        rare draws.
    """

    def __init__(self, rare_filter: RareFilter, selection: SelectionDraws) -> None:
        """Keep the rare draws of the sample buffer: the draws that `rare_filter` selects.

        rare_filter: the filter of rare outputs.
        selection: the draws in the sample buffer.
        """
        self.rare_filter = rare_filter
        rows = np.flatnonzero(rare_filter.is_rare(selection.outcomes))
        self.arms: IntArray = by_arm(np.zeros(selection.size, np.intp), 1, selection.is_d1)[0]
        self._parts = [selection.take(rows)]
        # Examples of outputs that were evicted (removed from memory): one draw for each rare value,
        # label (text) or key (name of a field) that was evicted.
        self._evicted: list[SelectionDraws] = []
        self._evicted_draws = self._lost_draws = 0
        self._is_full = False

    @property
    def kept(self) -> SelectionDraws:
        """The draws with rare outputs that are in memory."""
        self._parts = [pool(self._parts)]
        return self._parts[0]

    @property
    def seen(self) -> list[SelectionDraws]:
        """The rare draws (draws with rare outputs) in memory, followed by examples: when draws were
        removed from memory to make room, one draw of each removed rare output was kept."""
        return [part for part in (self.kept, *self._evicted) if part.size]

    @property
    def size(self) -> int:
        return sum(part.size for part in self._parts)

    def add(self, rare: Rare) -> None:
        """Add all rare draws of a further block or, if memory is full, none of them. If only some
        were added, the frequencies of rare outputs would be unknown.

        rare: the rare draws of the block, and the number of rare draws that the worker did not
            keep.
        """
        self._is_full = self._is_full or self.size + rare.kept.size > MOST_KEPT
        self._lost_draws += rare.lost
        if self._is_full:
            self._lost_draws += rare.kept.size
            return
        self._parts.append(rare.kept)
        self.arms = self.arms + np.array(rare.arms, dtype=np.int64)

    def has_room(self, coming: int) -> bool:
        """Return whether memory has room for the draws with rare outputs that are expected among
        `coming` further draws."""
        return not self._is_full and self._fits(self.size, coming)

    def make_room(self, coming: int, spared: frozenset[str]) -> None:
        """Make room in memory for the rare outputs among the coming draws: evict the kept rare
        outputs that occur most often, until the expected number of rare outputs fits.

        Evicts about as few outputs as possible, and no output if no output repeats.

        coming: number of draws until the next refit.
        spared: names of columns from which nothing is evicted.
        """
        kept = self.kept

        def size_without(frequency: int) -> int:
            rare_filter, _ = self.rare_filter.narrowed(kept.outcomes, frequency, spared)
            return int(np.count_nonzero(rare_filter.is_rare(kept.outcomes)))

        # Possible limits, in draws: an entry that occurs in at least this number of the kept draws
        # is no longer rare, and outputs without any other rare entry are evicted.
        limits = range(OFTEN, MOST_KEPT // 2)
        place = bisect_left(limits, True, key=lambda n: not self._fits(size_without(n), coming))
        limit = limits[max(0, place - 1)]
        if place > 0 or 2 * size_without(limit) <= kept.size:
            self.rare_filter, firsts = self.rare_filter.narrowed(kept.outcomes, limit, spared)
            rows = np.flatnonzero(self.rare_filter.is_rare(kept.outcomes))
            self._parts = [kept.take(rows)]
            self._evicted.append(kept.take(firsts))
            self._evicted_draws += kept.size - self.size
            self._is_full = False
        self._is_full = self._is_full and not self._fits(self.size, coming)

    def _fits(self, size: int, coming: int) -> bool:
        expected = size * coming / max(1, int(self.arms.sum()))
        return size + expected <= MOST_KEPT

    def dropped(self) -> list[str]:
        """Return remarks for the report on rare draws that are not in memory, since they were
        evicted or did not fit.
        """
        remarks = []
        if self._evicted_draws:
            rare = counted(self._evicted_draws, "rare output")
            remarks.append(f"{rare} that came up more often than others")
        if self._lost_draws:
            rare = counted(self._lost_draws, "rare output")
            remarks.append(f"{rare} for which there was no room")
        return remarks


class Counts:
    """The counts of all learning draws: the sample buffer, and later draws that are not kept.

    The leading candidates (orders of outputs with the best predicted bounds) count later draws.
    Later draws with rare outputs are kept in `rare`.
    """

    def __init__(self, selection: SelectionDraws, learned: Learned) -> None:
        """Begin to count.

        selection: the draws in the sample buffer.
        learned: the rules and candidates learned from these draws.
        """
        # A rare rule in `learned` has a filter of its own. The same filter must select the later
        # rare draws, so that they can be added to the counts of this rule.
        rare_filter = learned.rare_filter or RareFilter.of(selection)
        self._candidates: Sequence[Counting] = learned.leading
        self.selection = selection
        self.rare = RareStore(rare_filter, selection)
        # Table of the frequent outputs that only one input gives. It is made from the sample buffer
        # alone, since a frequent output occurs there already; later draws are not added.
        self._frequent = RareTable.frequent(selection, rare_filter)

    @property
    def counters(self) -> tuple[CellCounter, ...]:
        """The counters of the leading candidates (orders of outputs). A counter maps an output to a
        cell (group of outputs), and counts draws by cell.
        """
        return tuple(candidate.counter for candidate in self._candidates)

    def add(self, tallies: Sequence[Tally]) -> None:
        """Add the counts of a block of draws to the candidates.

        tallies: the counts of the block by each counter in `counters`.
        """
        self._candidates = [
            candidate.add(tally.counts)
            for candidate, tally in zip(self._candidates, tallies, strict=True)
        ]

    def candidates(self) -> tuple[list[Candidate], list[RareTable]]:
        """Return the candidates (orders of outputs) with the counts of all draws, and two tables.

        The first table counts the outputs that the filter selects as rare. The second counts
        frequent outputs that only one input gives.
        """
        table = self._table()
        return [*self._candidates, *table.order()], [table, self._frequent]

    def make_room(self, spent: int, coming: int, objective: Objective) -> None:
        """If the rare outputs expected in `coming` further draws do not fit in memory, evict rare
        outputs that occur more often than others.

        An output is not evicted if it is rare by its entry in a column whose rare outputs may
        refute the claim.

        spent: number of draws so far.
        coming: number of draws until the next refit.
        objective: predicts bounds, by which these columns are chosen.
        """
        if self.rare.has_room(coming):
            return
        table = self._table()
        # `coming`, the number of draws to come, is otherwise the remaining budget, which may depend
        # on the clock. The outputs that are evicted from memory must be the same in a repeated
        # audit, so `coming` is set to the number of draws so far.
        objective = replace(objective, coming=spent)
        spared = learning.columns_worth_counting(
            table.by_column(), table, self._candidates, objective
        )
        self.rare.make_room(coming, spared)

    def kept(self) -> SelectionDraws:
        """Return the draws in memory: the sample buffer, the draws with rare outputs, and one
        example draw of each rare output that was evicted."""
        return pool([self.selection, *self.rare.seen])

    def _table(self) -> RareTable:
        return RareTable(self.rare.rare_filter, self.rare.kept, self.rare.arms)


def is_enough(candidates: list[Candidate], spent: int, plan: Plan, objective: Objective) -> bool:
    """Return whether to freeze the rules now. Further learning may give better rules, but leaves
    fewer draws to certify them.

    candidates: orders of outputs from which rules are made, with the counts of all draws.
    spent: number of draws so far.
    plan: the budget and the schedule of the pair of inputs.
    objective: predicts the bound that a rule will certify; rules are chosen by it.
    """
    if spent < plan.freeze_at and not (
        plan.may_freeze_early(spent) and learning.may_freeze_early(candidates, objective)
    ):
        return False
    if not plan.may_double(spent):
        return True
    return not (
        learning.no_bound_predicted(candidates, objective)
        or learning.gains_by_doubling(candidates, objective)
    )


def learn_by_counting(
    ledger: Ledger,
    counts: Counts,
    learned: Learned,
    objective: Callable[[], Objective],
    check: Callable[[Sequence[Tally], Portfolio], None],
) -> Learned:
    """Go on learning after the sample buffer is full: count further draws, bet on them, and refit
    the rules from time to time. Return the rules to freeze.

    ledger: records draws and bets.
    counts: the counts of learning draws so far, to which the new draws are added.
    learned: rules learned from the sample buffer (the draws that are in memory).
    objective: called without arguments at each refit; returns the present `Objective`, which
        predicts the bound that a rule will certify. Rules are chosen by this bound.
    check: called at each refit with the counts of each block of draws since the last refit, and
        with the rules by which these blocks were counted.
    """
    plan, blocks = ledger.plan, 0
    until = plan.next_freeze_check(ledger.spent)
    while True:
        ledger.bet_with(learned.beliefs)
        ledger.begin_witnesses(learned, counts.selection)
        measure = Measure(
            learned.portfolio, others=counts.counters, rare_filter=counts.rare.rare_filter
        )
        refit_at = plan.next_refit(ledger.spent, until, ledger.point.delta)
        sizes = plan.counting_sizes(ledger.spent, refit_at)
        tallies: list[Tally] = []
        others: Sequence[Tally] = ()
        for drawn in ledger.count("learning", sizes, measure, first=blocks):
            tallies.append(drawn.tally)
            if drawn.rare is not None:
                counts.rare.add(drawn.rare)
            own = drawn.others[: len(counts.counters)]
            others = list(map(add, others, own)) if others else own
        blocks += len(tallies)
        check(tallies, measure.portfolio)
        counts.add(others)
        plan.plan_again(ledger.spent)
        candidates, tables = counts.candidates()
        now, is_last = objective(), ledger.may_stop
        is_due, next_until = ledger.spent >= until, plan.next_freeze_check(ledger.spent)
        if is_due and not is_last:
            is_last = is_enough(candidates, ledger.spent, plan, now)
        # `until` is the number of draws after which the audit next decides whether to freeze the
        # rules. With a time limit, the budget may have become smaller; then this decision is due
        # after fewer draws than planned before.
        until = next_until if is_due else min(until, next_until)
        learned = learning.learn_again(candidates, now, tables, to_bet=not is_last)
        if is_last:
            return learned
        coming = plan.most_until_refit(ledger.spent, ledger.point.delta)
        counts.make_room(ledger.spent, coming, now)
