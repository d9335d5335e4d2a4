"""Pearson's χ² of tables of counts: whether their rows depend on their columns."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


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
