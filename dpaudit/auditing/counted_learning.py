"""Learning from draws that are counted but not kept.

When the sample buffer is full, `learn_by_counting` counts further draws by the levels of several
candidates, `RareStore` keeps the draws with rare outputs, and rules are refitted (docs/method.md
§5). recorded_outputs.py uses `CountedLearning`, too.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import add

import numpy as np

from dpaudit.attacks import learning
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.safeguards.protocol import CountedBlocks
from dpaudit.auditing.schedule import Plan
from dpaudit.draws import SelectionDraws, Tally, pool
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.level_map import CellCounter, IntArray
from dpaudit.levels.portfolio import Learned, Portfolio
from dpaudit.levels.rare_filter import USUAL_DRAWS, RareFilter
from dpaudit.sampling.chunks import Measure, Rare
from dpaudit.wording import counted

# Largest number of draws with rare outputs that are kept in memory.
MAX_KEPT_DRAWS = 16_384


class RareStore:
    """The draws with rare outputs, and the filter that selects them.

    When memory is full, the most frequent rare outputs are evicted, and the filter selects them no
    more. The draws that remain are exactly those that the narrower filter would have selected from
    the start. So the frequency of an output is its number of draws divided by `arms`.

    arms: (2,), number of draws of d1 and of d2, rare or not, that the filter has seen.
    """

    def __init__(self, rare_filter: RareFilter, selection: SelectionDraws) -> None:
        """Keep the rare draws of the sample buffer."""
        self.rare_filter = rare_filter
        rows = np.flatnonzero(rare_filter.is_rare(selection.outcomes))
        self.arms: IntArray = selection.arms
        self._parts = [selection.take(rows)]
        # Examples of outputs that were evicted (removed from memory): one draw for each rare value,
        # label (text) or key (name of a field) that was evicted.
        self._evicted: list[SelectionDraws] = []
        self._evicted_draws = self._lost_draws = 0
        self._is_full = False

    def pool_kept(self) -> SelectionDraws:
        """Return the draws with rare outputs that are in memory, joined to one table."""
        self._parts = [pool(self._parts)]
        return self._parts[0]

    @property
    def seen(self) -> list[SelectionDraws]:
        """The rare draws in memory, followed by one draw of each evicted output."""
        return [part for part in (self.pool_kept(), *self._evicted) if part.size]

    @property
    def size(self) -> int:
        return sum(part.size for part in self._parts)

    def add(self, rare: Rare) -> None:
        """Add the rare draws of a further block. If they do not all fit in memory, add none of
        them: otherwise the frequencies of rare outputs would be unknown."""
        self._is_full = self._is_full or self.size + rare.kept.size > MAX_KEPT_DRAWS
        self._lost_draws += rare.lost
        if self._is_full:
            self._lost_draws += rare.kept.size
            return
        self._parts.append(rare.kept)
        self.arms = self.arms + np.array(rare.arms, dtype=np.int64)

    def has_room(self, future_draws: int) -> bool:
        """Return whether the rare draws expected among the next `future_draws` draws fit in
        memory."""
        return not self._is_full and self._fits(self.size, future_draws)

    def make_room(self, future_draws: int, spared: frozenset[str]) -> None:
        """Evict the most frequent rare outputs, about as few as possible, until the rare draws
        expected among the next `future_draws` draws fit in memory. Evict none if no output repeats.

        spared: names of columns from which nothing is evicted.
        """
        pool = self.pool_kept()

        def size_without(frequency: int) -> int:
            rare_filter, _ = self.rare_filter.narrowed(pool.outcomes, frequency, spared)
            return int(np.count_nonzero(rare_filter.is_rare(pool.outcomes)))

        # Possible limits, in draws: an entry that occurs in at least this number of the kept draws
        # is no longer rare, and outputs without any other rare entry are evicted.
        limits = range(USUAL_DRAWS, MAX_KEPT_DRAWS // 2)
        index = bisect_left(
            limits, True, key=lambda n: not self._fits(size_without(n), future_draws)
        )
        limit = limits[max(0, index - 1)]
        if index > 0 or 2 * size_without(limit) <= pool.size:
            self.rare_filter, firsts = self.rare_filter.narrowed(pool.outcomes, limit, spared)
            rows = np.flatnonzero(self.rare_filter.is_rare(pool.outcomes))
            self._parts = [pool.take(rows)]
            self._evicted.append(pool.take(firsts))
            self._evicted_draws += pool.size - self.size
            self._is_full = False
        self._is_full = self._is_full and not self._fits(self.size, future_draws)

    def _fits(self, size: int, future_draws: int) -> bool:
        expected = size * future_draws / max(1, int(self.arms.sum()))
        return size + expected <= MAX_KEPT_DRAWS

    def dropped(self) -> list[str]:
        """Return remarks for the report on rare draws that were evicted or did not fit."""
        remarks = []
        if self._evicted_draws:
            rare = counted(self._evicted_draws, "rare output")
            remarks.append(f"{rare} that came up more often than others")
        if self._lost_draws:
            rare = counted(self._lost_draws, "rare output")
            remarks.append(f"{rare} for which there was no room")
        return remarks


class CountedLearning:
    """The counts of all learning draws: of the sample buffer, and of later draws, by the cells of
    the leading candidates. Later draws with rare outputs are kept in `rare`."""

    def __init__(self, selection: SelectionDraws, learned_rules: Learned) -> None:
        """Begin with the sample buffer, and with what was learned from it."""
        # A rare rule in `learned_rules` has a filter of its own. The same filter must select the
        # later rare draws, so that they can be added to the counts of this rule.
        rare_filter = learned_rules.rare_filter or RareFilter.of(selection)
        self._candidates: Sequence[Candidate] = learned_rules.leading
        self.selection = selection
        self.rare = RareStore(rare_filter, selection)
        # Table of the frequent outputs that only one input gives. It is made from the sample buffer
        # alone, since a frequent output occurs there already; later draws are not added.
        self._frequent = RareTable.frequent(selection, rare_filter)

    @property
    def counters(self) -> tuple[CellCounter, ...]:
        """The counters of the leading candidates."""
        return tuple(candidate.counter for candidate in self._candidates)

    def measure(self, portfolio: Portfolio) -> Measure:
        """Return what to measure in further draws: counts by the levels of `portfolio` and by the
        cells of the leading candidates, and the rare outputs."""
        return Measure(portfolio, others=self.counters, rare_filter=self.rare.rare_filter)

    def add(self, tallies: Sequence[Tally]) -> None:
        """Add the counts of a block of draws, one tally for each of `counters`."""
        self._candidates = [
            candidate.add(tally.counts)
            for candidate, tally in zip(self._candidates, tallies, strict=True)
        ]

    def candidates(self) -> tuple[list[Candidate], list[RareTable]]:
        """Return the candidates with the counts of all draws, and two tables: one of rare outputs,
        and one of frequent outputs that only one input gives."""
        table = self._table()
        return [*self._candidates, *table.order()], [table, self._frequent]

    def make_room(self, spent: int, future_draws: int, objective: Objective) -> None:
        """Evict frequent outputs from the rare draws in memory, if the rare draws expected up to
        the next refit do not fit. Outputs are kept that are rare in a column whose rare outputs may
        refute the claim, as `objective` predicts.

        future_draws: number of draws up to the next refit.
        """
        if self.rare.has_room(future_draws):
            return
        table = self._table()
        # `future_draws`, the number of draws to come, is otherwise the remaining budget, which may
        # depend on the clock. The outputs that are evicted from memory must be the same in a
        # repeated audit, so `future_draws` is set to the number of draws so far.
        objective = replace(objective, future_draws=spent)
        spared = learning.columns_worth_counting(
            table.by_column(), table, self._candidates, objective
        )
        self.rare.make_room(future_draws, spared)

    def kept(self) -> SelectionDraws:
        """Return the draws in memory: the sample buffer, the rare draws, and one example of each
        evicted output."""
        return pool([self.selection, *self.rare.seen])

    def _table(self) -> RareTable:
        return RareTable(self.rare.rare_filter, self.rare.pool_kept(), self.rare.arms)


def may_end_learning(
    candidates: list[Candidate], spent: int, plan: Plan, objective: Objective
) -> bool:
    """Return whether to freeze the rules now. Further learning may give better rules, but leaves
    fewer draws to certify them.

    candidates: the candidates, with the counts of all draws.
    """
    if spent < plan.freeze_at and not (
        plan.may_freeze_early(spent) and learning.may_freeze_early(candidates, objective)
    ):
        return False
    return not (plan.may_double(spent) and learning.no_bound_predicted(candidates, objective))


def learn_by_counting(
    ledger: Ledger,
    counted_learning: CountedLearning,
    learned_rules: Learned,
    objective: Objective,
    observe: Callable[[CountedBlocks], None],
) -> Learned:
    """Go on learning after the sample buffer is full: count further draws, bet on them, and refit
    the rules from time to time. Return the rules to freeze.

    counted_learning: the counts so far, to which those of the new draws are added.
    learned_rules: rules learned from the sample buffer.
    observe: called with the counts of the blocks between two refits.
    """
    plan, blocks = ledger.plan, 0
    until = plan.next_freeze_check(ledger.spent)
    while True:
        ledger.set_beliefs(learned_rules.beliefs)
        ledger.begin_witnesses(learned_rules, counted_learning.selection)
        measure = counted_learning.measure(learned_rules.portfolio)
        refit_at = plan.next_refit(ledger.spent, until, ledger.point.delta)
        sizes = plan.counting_sizes(ledger.spent, refit_at)
        tallies: list[Tally] = []
        totals: Sequence[Tally] = ()
        for counts in ledger.draw_and_bet("learning", sizes, measure, first=blocks):
            tallies.append(counts.tally)
            if counts.rare is not None:
                counted_learning.rare.add(counts.rare)
            addends = counts.others[: len(counted_learning.counters)]
            totals = list(map(add, totals, addends)) if totals else addends
        blocks += len(tallies)
        rule = measure.portfolio
        observe(CountedBlocks("learning", rule, rule.guesses, tallies))
        counted_learning.add(totals)
        plan.plan_again(ledger.spent)
        candidates, tables = counted_learning.candidates()
        now, is_last = replace(objective, future_draws=ledger.future_draws), ledger.may_stop
        is_due, next_until = ledger.spent >= until, plan.next_freeze_check(ledger.spent)
        is_last = is_last or (is_due and may_end_learning(candidates, ledger.spent, plan, now))
        # `until` is the number of draws after which the audit next decides whether to freeze the
        # rules. With a time limit, the budget may have become smaller; then this decision is due
        # after fewer draws than planned before.
        until = next_until if is_due else min(until, next_until)
        learned_rules = learning.relearn(candidates, now, tables)
        if is_last:
            return learned_rules
        future_draws = plan.most_until_refit(ledger.spent, ledger.point.delta)
        counted_learning.make_room(ledger.spent, future_draws, now)
