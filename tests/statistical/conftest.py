"""The one failure probability of this suite, and how its tests share it.

Seeds are fixed, so that CI repeats itself; whoever changes code that draws gets new draws, and then
a sound suite still fails once in 1 / `SUITE_FAILURE_PROBABILITY` times. Each comparison of a
simulated with a stated number takes an equal share of it, as a two-sided exact interval. Nothing is
retried.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

import pytest

from dpaudit.stats.binomial import clopper_pearson_interval

SUITE_FAILURE_PROBABILITY = 1e-3
# An upper limit for the number of comparisons in the suite; `share` refuses more.
COMPARISONS = 100

Interval = Callable[[int, int], tuple[float, float]]
IsAbove = Callable[[Iterable[bool], int, float], bool]


def _interval(occurrences: int, runs: int) -> tuple[float, float]:
    return clopper_pearson_interval(occurrences, runs, SUITE_FAILURE_PROBABILITY / COMPARISONS)


@pytest.fixture(scope="session")
def count_comparison() -> Callable[[], None]:
    """Return the function to call before each comparison."""
    used = 0

    def count() -> None:
        nonlocal used
        used += 1
        if used > COMPARISONS:
            pytest.fail(f"more than {COMPARISONS} comparisons share the failure probability")

    return count


@pytest.fixture(scope="session")
def share(count_comparison: Callable[[], None]) -> Interval:
    """Return the function that gives a simulated rate its interval at one share of the suite's
    failure probability: from (occurrences, runs) to (low, high)."""

    def interval(occurrences: int, runs: int) -> tuple[float, float]:
        count_comparison()
        return _interval(occurrences, runs)

    return interval


@pytest.fixture(scope="session")
def is_above(count_comparison: Callable[[], None]) -> IsAbove:
    """Return the function that tells from (alarms, one for each run; runs; nominal rate) whether
    the interval of the rate lies above nominal. It asks for no more runs once it is known what
    all of them would say."""

    def decide(alarms: Iterable[bool], runs: int, nominal: float) -> bool:
        count_comparison()
        # The interval moves up with the count.
        least = bisect_left(
            range(runs + 1), True, key=lambda count: _interval(count, runs)[0] > nominal
        )
        found = 0
        for left, alarm in zip(range(runs - 1, -1, -1), alarms, strict=False):
            found += alarm
            if found >= least or found + left < least:
                return found >= least
        raise AssertionError(f"fewer than {runs} runs")

    return decide
