"""Isotonic regression of the share of d1, by pooling adjacent violators."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def pooled_counts(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return counts, (cells, 2), pooled over neighbours until (first + ½) / (second + ½) rises.

    Each cell gets the counts of its block; cells without draws join a neighbour. Without the ½ the
    shares would be the maximum likelihood fit under a rising order (Ayer et al. 1955); with it, the
    smoothed log-ratios of small blocks at the ends keep the order too.
    """
    if len(counts) == 0:
        return np.empty((0, 2))
    starts: list[int] = []
    firsts: list[float] = []
    seconds: list[float] = []
    # The learner's inner loop: the last block stands in variables, with ½ added to both counts.
    pairs = iter((counts + 0.5).tolist())
    start, (first, second) = 0, next(pairs)
    for cell, (one, other) in enumerate(pairs, 1):
        if first * other < one * second and first + second > 1 and one + other > 1:
            starts.append(start)
            firsts.append(first)
            seconds.append(second)
            start, first, second = cell, one, other
            continue
        first, second = first + one - 0.5, second + other - 0.5
        while starts and firsts[-1] * second >= first * seconds[-1]:
            start = starts.pop()
            first, second = first + firsts.pop() - 0.5, second + seconds.pop() - 0.5
    blocks = np.array([[*firsts, first], [*seconds, second]]).T - 0.5
    return np.repeat(blocks, np.diff([*starts, start, len(counts)]), axis=0)
