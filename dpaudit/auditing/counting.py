"""Learning that goes on when no more draws are kept: they are counted, and the rare ones kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dpaudit.attacks.rare import rare as rare_outputs
from dpaudit.attacks.selection import Aim, is_undecided, learn_again
from dpaudit.auditing.checks import DrawChecks
from dpaudit.auditing.ledger import Ledger
from dpaudit.auditing.schedule import Plan
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.distinguisher import Learned
from dpaudit.levels.sieve import Sieve
from dpaudit.sampling.chunks import MOST_KEPT, Counted, Measure, Rare, ToCount
from dpaudit.sampling.executors import Draws
from dpaudit.tally import Tally, by_arm
from dpaudit.wording import counted as counted_words


class CountingStage:
    """Counts draws of one pair by the orders that promised most, and bets on them all the while;
    `learn` once.

    draws: those that were counted.  warnings: of checks.  ignored: what was dropped.
    """

    def __init__(
        self,
        stream: tuple[int, int],
        plan: Plan,
        ledger: Ledger,
        checks: DrawChecks,
        aim: Callable[[], Aim],
    ) -> None:
        """stream: pair and stage that name the random streams.  aim: what a rule is for now."""
        self.draws = 0
        self.warnings: list[str] = []
        self.ignored: list[str] = []
        self._stream, self._plan, self._ledger = stream, plan, ledger
        self._checks, self._aim = checks, aim
        self._chunks = 0

    def learn(self, selection: SelectionDraws, learned: Learned, draws: Draws) -> Learned:
        """Return what is frozen. selection: draws that were kept.  learned: from these."""
        sieve = Sieve.of(selection)
        orders: Sequence[Candidate] = learned.leading
        rare = Rare(selection.take(np.flatnonzero(sieve.strange(selection.outcomes))))
        arms = by_arm(np.zeros(selection.size, np.intp), 1, selection.is_d1)[0]
        counters = tuple(one.counter for one in orders)
        while True:
            self._ledger.believe(learned.beliefs)
            measure = Measure(learned.distinguisher, others=counters, sieve=sieve)
            total, seen = self._count(measure, draws)
            rare, arms = rare + seen, arms + total.tally.counts.sum(axis=0)
            orders = [
                one.counted_on(more.counts) for one, more in zip(orders, total.others, strict=True)
            ]
            found = [*orders, *rare_outputs(sieve, rare.kept, arms)]
            is_last = self._ledger.may_stop or self._is_enough(found)
            learned = learn_again(found, self._aim(), to_bet=not is_last)
            if is_last:
                if rare.lost:
                    lost = counted_words(rare.lost, "rare output")
                    self.ignored.append(f"{lost} beyond {MOST_KEPT:,}")
                return learned

    def _count(self, measure: Measure, draws: Draws) -> tuple[Counted, Rare]:
        """Return what was counted until it is time to learn anew, and the rare outputs of it."""
        total: Counted | None = None
        tallies: list[Tally] = []
        for counted in draws(self._to_count(measure)):
            self._chunks += 1
            tallies.append(counted.tally)
            self._ledger.count("learning", counted, is_bet_on=True)
            total = counted if total is None else total + counted
            if self._ledger.may_stop:
                break
        if total is None or total.rare is None:
            raise RuntimeError("no draws were left to count")
        self.draws += total.tally.draws
        self.warnings += self._checks.learned_again(tallies, measure.distinguisher)
        return total, total.rare

    def _to_count(self, measure: Measure) -> Iterator[ToCount]:
        sizes = self._plan.counting_sizes(self._ledger.spent)
        for place, size in enumerate(sizes, self._chunks):
            yield ToCount((*self._stream, place), size, measure, self._plan.limits.block)

    def _is_enough(self, found: list[Candidate]) -> bool:
        """Whether to freeze: what is left of the budget is worth more than learning is."""
        spent, plan = self._ledger.spent, self._plan
        plan.goes_on(spent)
        if spent < plan.freeze_at:
            return False
        most = plan.budget / 2 / spent
        return not (plan.may_count_on(spent) and is_undecided(found, self._aim(), most))
