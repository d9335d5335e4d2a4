"""Holm's step-down procedure (Holm 1979): one error probability for many hypotheses together."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


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


def levels(p_values: ArrayLike, alpha: float, size: int) -> list[float]:
    """Return the level that Holm's procedure compares each p-value with: it rejects where p is at
    most that.

    size: how many hypotheses there are, at least as many as p-values.

    >>> [round(one, 4) for one in levels([0.01, 0.04, 0.03], 0.05, 3)]
    [0.0167, 0.025, 0.025]
    """
    p = np.asarray(p_values, dtype=float)
    rejected = int(holm(p, alpha, size).sum())
    found = np.full(len(p), alpha / max(1, size - rejected))
    order = np.argsort(p, kind="stable")[:rejected]
    found[order] = alpha / np.arange(size, size - rejected, -1)
    return [float(one) for one in found]
