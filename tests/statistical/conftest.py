"""The one failure probability of this suite, and how its tests share it.

Seeds are fixed, so that CI repeats itself; whoever changes code that draws gets new draws, and then
a sound suite still fails once in 1 / `SUITE_FAILURE_PROBABILITY` times. Each comparison of a
simulated with a stated number takes an equal share of it, as a two-sided exact interval. Nothing is
retried.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dpaudit.stats.binomial import clopper_pearson_interval

SUITE_FAILURE_PROBABILITY = 1e-3
# An upper limit for the number of comparisons in the suite; `share` refuses more.
COMPARISONS = 100

Interval = Callable[[int, int], tuple[float, float]]


@pytest.fixture(scope="session")
def share() -> Interval:
    """Return the function that gives a simulated rate its interval at one share of the suite's
    failure probability: from (occurrences, runs) to (low, high)."""
    used = 0

    def interval(occurrences: int, runs: int) -> tuple[float, float]:
        nonlocal used
        used += 1
        if used > COMPARISONS:
            pytest.fail(f"more than {COMPARISONS} comparisons share the failure probability")
        return clopper_pearson_interval(occurrences, runs, SUITE_FAILURE_PROBABILITY / COMPARISONS)

    return interval
