"""p-values: of a test that has levels, of several hypotheses (Holm), and of tables (χ²)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray


def bisect_interval(
    holds: Callable[[float], bool], low: float, high: float, times: int = 60
) -> tuple[float, float]:
    """Return what is left of an interval: the condition holds at its upper end, not at its lower.

    That this is so of the interval given is taken for granted.
    """
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def smallest_alpha(refuted: Callable[[float], bool]) -> float:
    """Return the p-value of a test: the smallest alpha at which it refutes, rounded up.

    It is sought down to e^-700, and 1 where the test never refutes. What is refuted at one alpha
    must be so at every larger one.
    """
    if not refuted(math.exp(-1e-9)):
        return 1.0
    return math.exp(bisect_interval(lambda log_alpha: refuted(math.exp(log_alpha)), -700.0, 0.0)[1])


def holm(p_values: ArrayLike, alpha: float, size: int | None = None) -> NDArray[np.bool_]:
    """Return which hypotheses Holm's step-down procedure rejects at family-wise level alpha.

    size: how many hypotheses there are, where p-values of some are not known: these stand.
    Source: Holm 1979. Valid under any dependence.

    >>> holm([0.01, 0.04, 0.03], 0.05).tolist()
    [True, False, False]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    whole = len(p) if size is None else size
    left = np.arange(whole, whole - len(p), -1)  # of what is known, however many there are
    rejected = np.empty(len(p), dtype=bool)
    rejected[order] = np.logical_and.accumulate(p[order] <= alpha / left)
    return rejected


def holm_levels(p_values: ArrayLike, alpha: float, size: int) -> list[float]:
    """Return the level that Holm's procedure compares each p-value with: it rejects where p is at
    most that.

    size: how many hypotheses there are, at least as many as p-values.

    >>> [round(one, 4) for one in holm_levels([0.01, 0.04, 0.03], 0.05, 3)]
    [0.0167, 0.025, 0.025]
    """
    p = np.asarray(p_values, dtype=float)
    rejected = int(holm(p, alpha, size).sum())
    found = np.full(len(p), alpha / max(1, size - rejected))
    order = np.argsort(p, kind="stable")[:rejected]
    found[order] = alpha / np.arange(size, size - rejected, -1)
    return [float(one) for one in found]


def chi_squared(
    tables: Iterable[NDArray[np.integer]], least_expected: float = 0.0
) -> tuple[float, int]:
    """Return χ² of all tables together, each (rows, columns), and its degrees of freedom; rows and
    columns without counts count for none.

    least_expected: cells of which less is expected add nothing to χ², which makes it too small.

    >>> chi_squared([np.array([[50, 50], [50, 50]]), np.array([[80, 20], [20, 80]])])
    (72.0, 2)
    """
    total, freedom = 0.0, 0
    for table in tables:
        some = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0].astype(np.float64)
        if min(some.shape, default=0) < 2:
            continue
        by_luck = np.outer(some.sum(axis=1), some.sum(axis=0)) / some.sum()
        kept = by_luck >= least_expected
        total += float(((some - by_luck) ** 2 / by_luck)[kept].sum())
        freedom += (some.shape[0] - 1) * (some.shape[1] - 1)
    return total, freedom
