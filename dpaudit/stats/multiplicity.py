"""Several tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def holm(p_values: ArrayLike, alpha: float) -> NDArray[np.bool_]:
    """Return which hypotheses Holm's step-down procedure rejects at family-wise level alpha.

    Source: Holm 1979. Valid under any dependence.

    >>> holm([0.01, 0.04, 0.03], 0.05).tolist()
    [True, False, False]
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p, kind="stable")
    passed = p[order] <= alpha / np.arange(len(p), 0, -1)
    until = len(p) if passed.all() else int(np.argmin(passed))
    rejected = np.zeros(len(p), dtype=bool)
    rejected[order[:until]] = True
    return rejected
