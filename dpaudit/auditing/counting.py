"""Learning from counts: further draws are counted, and only rare outcomes are kept."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from dpaudit.attacks.continued_learning import (
    columns_that_may_refute,
    gains_by_more,
    is_clear,
    learn_again,
    promises_nothing,
)
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.auditing.checks import DrawChecks
from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.schedule import Plan
from dpaudit.draws import SelectionDraws, Tally, by_arm, pool
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.level_map import CellCounter, IntArray
from dpaudit.levels.portfolio import Learned
from dpaudit.levels.rare_filter import OFTEN, RareFilter
from dpaudit.sampling.chunks import Counted, Measure, Rare, ToCount
from dpaudit.sampling.executors import Drawer
from dpaudit.wording import counted

# Draws that are kept, at most.
MOST_KEPT = 16_384
# How often an output must have come up to be let go is tried in steps of so much.
_MORE_OFTEN = 1.2


class RareStore:
    """Rare draws, and the filter that lets them through.

    arms: (2,), the draws that they are all of, by input.
    """

    def __init__(self, rare_filter: RareFilter, selection: SelectionDraws) -> None:
        """selection: draws to begin with."""
        self.rare_filter = rare_filter
        rows = np.flatnonzero(rare_filter.is_rare(selection.outcomes))
        self.arms: IntArray = by_arm(np.zeros(selection.size, np.intp), 1, selection.is_d1)[0]
        self._parts = [selection.take(rows)]
        # One of every value, label and key that was let go; those, and those without room.
        self._seen: list[SelectionDraws] = []
        self._let_go, self._lost = 0, 0
        self._is_full = False

    @property
    def kept(self) -> SelectionDraws:
        """The rare draws."""
        self._parts = [pool(self._parts)]
        return self._parts[0]

    @property
    def seen(self) -> list[SelectionDraws]:
        """The rare draws, and others that show what else there was."""
        return [one for one in (self.kept, *self._seen) if one.size]

    @property
    def size(self) -> int:
        return sum(one.size for one in self._parts)

    def add(self, rare: Rare) -> None:
        """Add what the filter let through of further draws: all of it or, where that is too much,
        and from then on, nothing, for a part of them would not say how rare they are."""
        self._is_full = self._is_full or self.size + rare.kept.size > MOST_KEPT
        if self._is_full:
            self._lost += rare.kept.size + rare.lost
            return
        self._parts.append(rare.kept)
        self.arms = self.arms + np.array(rare.arms, dtype=np.int64)
        self._lost += rare.lost

    def has_room(self, draws: int) -> bool:
        """Return whether there is room for what is to be expected of so many draws."""
        return not self._is_full and self._is_enough(self.size, draws)

    def make_room(self, draws: int, spared: frozenset[str]) -> None:
        """Let go of what came up most often, but in columns that are spared, and of hardly more
        than it takes to have room for so many draws. Where nothing comes again, all stays."""
        kept = self.kept

        def rest(often: int) -> int:
            rare_filter, _ = self.rare_filter.narrowed(kept.outcomes, often, spared)
            return int(np.count_nonzero(rare_filter.is_rare(kept.outcomes)))

        usual = [OFTEN]
        while usual[-1] < MOST_KEPT // 2:
            usual.append(math.ceil(_MORE_OFTEN * usual[-1]))
        place = bisect_left(usual, True, key=lambda often: not self._is_enough(rest(often), draws))
        often = usual[max(0, place - 1)]
        if place > 0 or 2 * rest(often) <= kept.size:
            self._narrow(often, spared)
        self._is_full = self._is_full and not self._is_enough(self.size, draws)

    def _narrow(self, often: int, spared: frozenset[str]) -> None:
        kept = self.kept
        self.rare_filter, firsts = self.rare_filter.narrowed(kept.outcomes, often, spared)
        is_rare = self.rare_filter.is_rare(kept.outcomes)
        self._parts = [kept.take(np.flatnonzero(is_rare))]
        self._seen.append(kept.take(firsts))
        self._let_go += kept.size - self.size
        self._is_full = False

    def _is_enough(self, size: int, draws: int) -> bool:
        expected = size * draws / max(1, int(self.arms.sum()))
        return size + expected <= MOST_KEPT

    def dropped(self) -> list[str]:
        """Return in words what is kept no more, and what there was no room for."""
        found = []
        if self._let_go:
            found.append(
                f"{counted(self._let_go, 'rare output')} that came up more often than others"
            )
        if self._lost:
            found.append(f"{counted(self._lost, 'rare output')} for which there was no room")
        return found


class Counts:
    """What draws that are counted have shown so far, beside those that were kept."""

    def __init__(self, selection: SelectionDraws, learned: Learned) -> None:
        """selection: draws that were kept.  learned: from these."""
        # The rare rule goes on with the filter that found it.
        rare_filter = learned.rare_filter or RareFilter.of(selection)
        self._orders: Sequence[Candidate] = learned.leading
        self._selection = selection
        self._rare = RareStore(rare_filter, selection)
        # Made from the draws that were kept: frequent outputs of one input need no further draws.
        self._frequent = RareTable.frequent(selection, rare_filter)

    @property
    def counters(self) -> tuple[CellCounter, ...]:
        """What to count draws by that come next."""
        return tuple(one.counter for one in self._orders)

    @property
    def rare_filter(self) -> RareFilter:
        """What lets rare outputs through; another one when room has been made."""
        return self._rare.rare_filter

    def keep(self, rare: Rare) -> None:
        """Keep what is rare of draws that come next."""
        self._rare.add(rare)

    def add(self, counted: Sequence[Tally]) -> None:
        """Add draws. counted: by each counter."""
        self._orders = [
            one.counted_on(more.counts) for one, more in zip(self._orders, counted, strict=True)
        ]

    def found(self) -> tuple[list[Candidate], list[RareTable]]:
        """Return the orders, made from all draws so far, and the tables for the rare rule."""
        rare = self._rare
        table = RareTable(rare.rare_filter, rare.kept, rare.arms)
        return [*self._orders, *table.order()], [table, self._frequent]

    def make_room(self, spent: int, coming: int, aim: Objective) -> None:
        """Evict the most frequent rare outputs until the forecast for the draws to come fits in
        memory, except those of columns that may refute the claim."""
        rare = self._rare
        if rare.has_room(coming):
            return
        table = RareTable(rare.rare_filter, rare.kept, rare.arms)
        # What is left of the budget may depend on the clock, and what is evicted must not.
        aim = replace(aim, coming=spent)
        rare.make_room(coming, columns_that_may_refute(table.by_column(), table, self._orders, aim))

    def kept(self) -> SelectionDraws:
        """Return all draws that are still there to look at."""
        return pool([self._selection, *self._rare.seen])

    def dropped(self) -> list[str]:
        """Return what there was no room for."""
        return self._rare.dropped()


def is_enough(found: list[Candidate], spent: int, plan: Plan, aim: Objective) -> bool:
    """Return whether to freeze after so many draws: what is left of the budget is worth more than
    learning is."""
    if spent < plan.freeze_at and not (plan.may_freeze_early(spent) and is_clear(found, aim)):
        return False
    if not plan.may_double(spent):
        return True
    if promises_nothing(found, aim):
        return False
    return not gains_by_more(found, aim)


class CountingStage:
    """Counts draws of one pair by the orders that promised most, and bets on them all the while;
    `learn` once.

    draws: how many there were.  warnings: of checks.
    """

    def __init__(
        self,
        stream: tuple[int, int],
        plan: Plan,
        ledger: Ledger,
        checks: DrawChecks,
        counts: Counts,
        aim: Callable[[], Objective],
    ) -> None:
        """stream: pair and stage that name the random streams.  aim: what a rule is for now."""
        self.draws = 0
        self.warnings: list[str] = []
        self._stream, self._plan, self._ledger = stream, plan, ledger
        self._checks, self._counts, self._aim = checks, counts, aim
        self._chunks = 0

    def learn(self, learned: Learned, draws: Drawer) -> Learned:
        """Return what is frozen. learned: from draws that were kept."""
        counts, ledger, plan = self._counts, self._ledger, self._plan
        until = plan.next_freeze_check(ledger.spent)
        while True:
            ledger.bet_with(learned.beliefs)
            measure = Measure(
                learned.portfolio, others=counts.counters, rare_filter=counts.rare_filter
            )
            sooner = plan.next_refit(ledger.spent, until, ledger.point.delta)
            counts.add(self._count(measure, sooner, draws).others)
            plan.plan_again(ledger.spent)
            (found, tables), aim, is_last = counts.found(), self._aim(), ledger.may_stop
            is_due, due = ledger.spent >= until, plan.next_freeze_check(ledger.spent)
            if is_due and not is_last:
                is_last = is_enough(found, ledger.spent, plan, aim)
            # By the clock what is left of the budget may have become less.
            until = due if is_due else min(until, due)
            learned = learn_again(found, aim, tables, to_bet=not is_last)
            if is_last:
                return learned
            coming = plan.most_until_refit(ledger.spent, ledger.point.delta)
            counts.make_room(ledger.spent, coming, aim)

    def _count(self, measure: Measure, until: int, draws: Drawer) -> Counted:
        """Return what was counted until so many draws were made; what is rare of it is kept."""
        total: Counted | None = None
        tallies: list[Tally] = []
        for drawn in draws(self._to_count(measure, until)):
            self._chunks += 1
            tallies.append(drawn.tally)
            self._ledger.count("learning", drawn, is_bet_on=True)
            if drawn.rare is not None:
                self._counts.keep(drawn.rare)
                drawn = replace(drawn, rare=None)
            total = drawn if total is None else total + drawn
            if self._ledger.may_stop:
                break
        if total is None:
            raise RuntimeError("no draws were left to count")
        self.draws += total.tally.draws
        self.warnings += self._checks.learned_again(tallies, measure.portfolio)
        return total

    def _to_count(self, measure: Measure, until: int) -> Iterator[ToCount]:
        sizes = self._plan.counting_sizes(self._ledger.spent, until)
        for place, size in enumerate(sizes, self._chunks):
            yield ToCount((*self._stream, place), size, measure, self._plan.limits.block)
