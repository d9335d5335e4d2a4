"""The one failure probability of this suite, and how its tests share it.

Seeds are fixed, so that CI repeats itself; whoever changes code that draws gets new draws, and then
a sound suite still fails once in 1 / `SUITE_FAILURE_PROBABILITY` times. Each comparison of a
simulated with a stated number takes an equal share of it, as a two-sided exact interval. Nothing is
retried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.whole_audits import equal_counts_have_equal_bounds as equal_counts_have_equal_bounds
from tests.whole_audits import new_processes as new_processes
from tests.whole_audits import no_new_processes as no_new_processes
from tests.whole_audits import no_traces as no_traces
from tests.whole_audits import traces as traces

from .deciding import COMPARISONS, Rule, interval, lies_below

Interval = Callable[[int, int], tuple[float, float]]
IsAbove = Callable[[Iterable[bool], int, float], bool]


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

    def counted(occurrences: int, runs: int) -> tuple[float, float]:
        count_comparison()
        return interval(occurrences, runs)

    return counted


@pytest.fixture(scope="session")
def is_above(count_comparison: Callable[[], None]) -> IsAbove:
    """Return a function of (alarms, one for each run; runs; nominal rate) that decides whether the
    rate lies above nominal, by the `Rule` for this number of runs."""

    def decide(alarms: Iterable[bool], runs: int, nominal: float) -> bool:
        count_comparison()
        rule = Rule(runs, nominal)
        found = 0
        for asked, alarm in zip(range(1, runs + 1), alarms, strict=False):
            found += alarm
            verdict = rule.verdict(found, asked)
            if verdict is not None:
                return verdict
        raise AssertionError(f"fewer than {runs} runs")

    return decide


@pytest.fixture(scope="session")
def is_below(count_comparison: Callable[[], None]) -> IsAbove:
    """Return `lies_below`, which takes one share of the suite's failure probability."""

    def decide(successes: Iterable[bool], runs: int, rate: float) -> bool:
        count_comparison()
        return lies_below(successes, runs, rate)

    return decide
