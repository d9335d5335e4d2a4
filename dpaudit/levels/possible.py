"""What the truth about many cells may be, as far as their counts tell: to see what more would tell.

Cells of one cluster (`clusters.py`) have one log-ratio, or differ by a little more than counts show
yet. That they are equal is taken to be as likely beforehand as that they differ from each other by
normal numbers of half of their size; their counts say which of both is likelier.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels.clusters import Clusters
from dpaudit.levels.level_map import FloatArray

# By how much cells of a cluster may differ: the standard deviation, as a share of its log-ratio.
_APART = 0.5


def possible_shares(clusters: Clusters, rng: np.random.Generator) -> FloatArray:
    """Return a share of d1 among the draws of every cell that may be the true one, (cells,): a draw
    from the posterior, in normal approximation."""
    ratios = clusters.assigned(rng)
    counts = clusters.counts + 0.5
    found = np.log(counts[:, 0] / counts[:, 1]) - clusters.even
    variance = (1 / counts).sum(axis=1)
    for size in np.unique(np.abs(ratios[ratios != 0])):
        own = np.flatnonzero(np.abs(ratios) == size)
        sign = np.sign(ratios[own])
        ratios[own] = sign * _cluster(sign * found[own], variance[own], _APART * size, rng)
    return np.asarray(1 / (1 + np.exp(-ratios - clusters.even)))


def _cluster(
    found: FloatArray, variance: FloatArray, apart: float, rng: np.random.Generator
) -> FloatArray:
    """Return log-ratios that the cells of a cluster may have. found, variance: (cells,), what was
    found, and of its error.  apart: the standard deviation, if they differ."""
    (alike, together), (differing, spread) = (
        _fitted(found, variance + more) for more in (0.0, apart**2)
    )
    even_odds = rng.random() < 1 / (1 + np.exp(np.clip(together[1] - spread[1], -700, 700)))
    if not even_odds:
        return np.full(len(found), rng.normal(alike, together[0]))
    middle = rng.normal(differing, spread[0])
    precision = 1 / variance + 1 / apart**2
    mean = (found / variance + middle / apart**2) / precision
    return np.asarray(rng.normal(mean, 1 / np.sqrt(precision)))


def _fitted(found: FloatArray, variance: NDArray[np.float64]) -> tuple[float, tuple[float, float]]:
    """Return the mean that normal numbers have in common, its error, and their log-likelihood with
    all means that they may have."""
    weight = 1 / variance
    total = float(weight.sum())
    mean = float(weight @ found) / total
    log_likelihood = float(np.log(weight).sum() - weight @ (found - mean) ** 2 - np.log(total)) / 2
    return mean, (total**-0.5, log_likelihood)
