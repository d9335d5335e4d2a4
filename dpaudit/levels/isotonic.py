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
    starts: list[int] = []
    blocks: list[tuple[int, int]] = []
    for cell, (first, second) in enumerate(counts.tolist()):
        start = cell
        while blocks:
            # Written out here, and not as a function, since this is the learner's inner loop.
            before, behind = blocks[-1]
            rises = (before + 0.5) * (second + 0.5) < (first + 0.5) * (behind + 0.5)
            if rises and before + behind and first + second:
                break
            del blocks[-1]
            start = starts.pop()
            first, second = first + before, second + behind
        starts.append(start)
        blocks.append((first, second))
    lengths = np.diff([*starts, len(counts)])
    return np.repeat(np.array(blocks, dtype=np.float64).reshape(-1, 2), lengths, axis=0)
