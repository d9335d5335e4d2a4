"""The intervals of simulated rates, and whether a rate lies above nominal: what the interval of all
runs says, mostly after a part of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from scipy.special import bdtr, bdtrc

from dpaudit.stats.binomial import clopper_pearson_interval

SUITE_FAILURE_PROBABILITY = 1e-3
# An upper limit for the number of comparisons in the suite, which share it.
COMPARISONS = 200
# A simulation ends as not above nominal when so few alarms have a probability of at most _MISSED at
# the rate that all runs find with probability _FOUND.
_FOUND, _MISSED = 0.99, 1e-5


def interval(occurrences: int, runs: int) -> tuple[float, float]:
    return clopper_pearson_interval(occurrences, runs, SUITE_FAILURE_PROBABILITY / COMPARISONS)


def lies_below(successes: Iterable[bool], runs: int, rate: float) -> bool:
    """Return whether the interval of a simulated rate lies below `rate`. Stop once the other runs
    cannot change this.

    successes: whether each run is a success, in order.
    runs: the number of runs.
    """
    # The interval rises with the count; the interval of the largest count ends at 1.
    least = next(count for count in range(runs + 1) if interval(count, runs)[1] >= rate)
    found = 0
    for asked, success in zip(range(1, runs + 1), successes, strict=False):
        found += success
        if found >= least or found + runs - asked < least:
            return found < least
    raise AssertionError(f"fewer than {runs} runs")


class Rule:
    """When to stop, and with which decision.

    A rate is called above nominal where the interval of all runs says so, and nowhere else: the
    probability of a false alarm is at most that of the interval. A simulation stops once the result
    of all runs is certain, or nearly certain: when so few alarms have a probability of at most 1e-5
    at a rate that all runs find with probability 0.99.

    runs: that there are at most.
    """

    def __init__(self, runs: int, nominal: float) -> None:
        self._runs = runs
        # The interval moves up with the count.
        self.least = bisect_left(
            range(runs + 1), True, key=lambda count: interval(count, runs)[0] > nominal
        )
        rates = range(10_000)
        found = bisect_left(
            rates, True, key=lambda rate: bool(bdtrc(self.least - 1, runs, rate / 10_000) >= _FOUND)
        )
        self._rate = found / 10_000

    def verdict(self, found: int, asked: int) -> bool | None:
        """Return whether the rate is above nominal, by the alarms found in the runs that were asked
        for; None where more runs are to tell."""
        if found >= self.least:
            return True
        is_over = found + self._runs - asked < self.least
        return False if is_over or float(bdtr(found, asked, self._rate)) <= _MISSED else None
