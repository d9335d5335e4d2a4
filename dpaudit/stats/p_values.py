"""Functions for p-values: the smallest alpha that refutes, Holm's procedure, and Pearson's χ²."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray


def bisect_interval(
    holds: Callable[[float], bool], low: float, high: float, times: int = 60
) -> tuple[float, float]:
    """Return an interval (low, high) in which a condition changes from false to true, after `times`
    bisections. The condition must be false at the given `low` and true at the given `high`; neither
    is checked."""
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def smallest_alpha(refuted: Callable[[float], bool]) -> float:
    """Return the p-value of a test: the smallest alpha at which it refutes, rounded up. The result
    is at least e^-700, and 1 if the test refutes at no alpha. A test that refutes at some alpha
    must refute at every larger one."""
    if not refuted(math.exp(-1e-9)):
        return 1.0
    return math.exp(bisect_interval(lambda log_alpha: refuted(math.exp(log_alpha)), -700.0, 0.0)[1])


def holm(p_values: ArrayLike, alpha: float) -> NDArray[np.bool_]:
    """Return, for each p-value, whether Holm's step-down procedure rejects its hypothesis. The
    probability that any true hypothesis is rejected is at most alpha, however the p-values depend
    on each other. Source: Holm 1979.

    Batches of audits use statsmodels (auditing/familywise.py), whose import takes longer than a
    single audit.

    >>> holm([0.01, 0.04, 0.03], 0.05).tolist()
    [True, False, False]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    rejected = np.empty(len(p), dtype=bool)
    rejected[order] = np.logical_and.accumulate(p[order] <= alpha / np.arange(len(p), 0, -1))
    return rejected


def chi_squared(
    tables: Iterable[NDArray[np.integer]], least_expected: float = 0.0
) -> tuple[float, int]:
    """Return (χ², degrees of freedom): Pearson's statistic of independence and its degrees of
    freedom, each summed over contingency tables of counts. Rows and columns without counts are
    dropped.

    least_expected: cells with a smaller expected count add nothing to χ². Their degrees of freedom
        still count, which makes the test conservative.

    >>> chi_squared([np.array([[50, 50], [50, 50]]), np.array([[80, 20], [20, 80]])])
    (72.0, 2)
    """
    total, freedom = 0.0, 0
    for table in tables:
        counts = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0].astype(np.float64)
        if min(counts.shape, default=0) < 2:
            continue
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
        is_summed = expected >= least_expected
        total += float(((counts - expected) ** 2 / expected)[is_summed].sum())
        freedom += (counts.shape[0] - 1) * (counts.shape[1] - 1)
    return total, freedom
