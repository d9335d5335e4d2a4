"""Learning from counts: further draws are counted, and only rare outcomes are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dpaudit.attacks.choosing.aim import Aim
from dpaudit.attacks.choosing.going_on import (
    gains_by_more,
    is_clear,
    learn_again,
    promises_nothing,
    that_may_tell,
)
from dpaudit.attacks.rare import RareTable
from dpaudit.auditing.checks import DrawChecks
from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.rare_store import RareStore
from dpaudit.auditing.schedule import Plan
from dpaudit.draws import SelectionDraws, pool
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.distinguisher import Learned
from dpaudit.levels.level_map import CellCounter
from dpaudit.levels.sieve import Sieve
from dpaudit.sampling.chunks import Counted, Measure, Rare, ToCount
from dpaudit.sampling.executors import Drawer
from dpaudit.tally import Tally


class Counts:
    """What draws that are counted have shown so far, beside those that were kept."""

    def __init__(self, selection: SelectionDraws, learned: Learned) -> None:
        """selection: draws that were kept.  learned: from these."""
        # The rare rule goes on with the sieve that found it.
        sieve = learned.sieve or Sieve.of(selection)
        self._orders: Sequence[Candidate] = learned.leading
        self._selection = selection
        self._rare = RareStore(sieve, selection)
        # Made from the draws that were kept: frequent outputs of one input need no further draws.
        self._frequent = RareTable.frequent(selection, sieve)

    @property
    def counters(self) -> tuple[CellCounter, ...]:
        """What to count draws by that come next."""
        return tuple(one.counter for one in self._orders)

    @property
    def sieve(self) -> Sieve:
        """What lets rare outputs through; another one when room has been made."""
        return self._rare.sieve

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
        table = RareTable(rare.sieve, rare.kept, rare.arms)
        return [*self._orders, *table.order()], [table, self._frequent]

    def make_room(self, spent: int, coming: int, aim: Aim) -> None:
        """Evict the most frequent rare outputs until the forecast for the draws to come fits in
        memory, except those of columns that may refute the claim."""
        rare = self._rare
        if rare.has_room(coming):
            return
        table = RareTable(rare.sieve, rare.kept, rare.arms)
        # What is left of the budget may depend on the clock, and what is evicted must not.
        aim = replace(aim, coming=spent)
        rare.make_room(coming, that_may_tell(table.by_column(), table, self._orders, aim))

    def kept(self) -> SelectionDraws:
        """Return all draws that are still there to look at."""
        return pool([self._selection, *self._rare.seen])

    def dropped(self) -> list[str]:
        """Return what there was no room for."""
        return self._rare.dropped()


def is_enough(found: list[Candidate], spent: int, plan: Plan, aim: Aim) -> bool:
    """Return whether to freeze after so many draws: what is left of the budget is worth more than
    learning is."""
    if spent < plan.freeze_at and not (plan.may_freeze(spent) and is_clear(found, aim)):
        return False
    if not plan.may_count_on(spent):
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
        aim: Callable[[], Aim],
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
        until = plan.counting_until(ledger.spent)
        while True:
            ledger.believe(learned.beliefs)
            measure = Measure(learned.distinguisher, others=counts.counters, sieve=counts.sieve)
            sooner = plan.betting_until(ledger.spent, until, ledger.point.delta)
            counts.add(self._count(measure, sooner, draws).others)
            plan.goes_on(ledger.spent)
            (found, tables), aim, is_last = counts.found(), self._aim(), ledger.may_stop
            is_due, due = ledger.spent >= until, plan.counting_until(ledger.spent)
            if is_due and not is_last:
                is_last = is_enough(found, ledger.spent, plan, aim)
            # By the clock what is left of the budget may have become less.
            until = due if is_due else min(until, due)
            learned = learn_again(found, aim, tables, to_bet=not is_last)
            if is_last:
                return learned
            coming = plan.counting_next(ledger.spent, ledger.point.delta)
            counts.make_room(ledger.spent, coming, aim)

    def _count(self, measure: Measure, until: int, draws: Drawer) -> Counted:
        """Return what was counted until so many draws were made; what is rare of it is kept."""
        total: Counted | None = None
        tallies: list[Tally] = []
        for counted in draws(self._to_count(measure, until)):
            self._chunks += 1
            tallies.append(counted.tally)
            self._ledger.count("learning", counted, is_bet_on=True)
            if counted.rare is not None:
                self._counts.keep(counted.rare)
                counted = replace(counted, rare=None)
            total = counted if total is None else total + counted
            if self._ledger.may_stop:
                break
        if total is None:
            raise RuntimeError("no draws were left to count")
        self.draws += total.tally.draws
        self.warnings += self._checks.learned_again(tallies, measure.distinguisher)
        return total

    def _to_count(self, measure: Measure, until: int) -> Iterator[ToCount]:
        sizes = self._plan.counting_sizes(self._ledger.spent, until)
        for place, size in enumerate(sizes, self._chunks):
            yield ToCount((*self._stream, place), size, measure, self._plan.limits.block)
