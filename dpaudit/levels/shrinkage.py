"""What counts say of many cells at once, shrunk by what all of them say together.

Of many cells the luckiest looks most telling. How far cells differ is learned from the counts of
all of them: the log-ratio of a cell is taken to be drawn from a law on a grid that makes the counts
most likely (a nonparametric maximum-likelihood mixture, Kiefer & Wolfowitz 1956; found by EM). Many
cells that hardly differ are moved far towards each other, a few clear ones hardly at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels.level_map import FloatArray, IntArray

# Log-ratios on the grid: 0, and geometrically spaced ones of either sign.
_SMALLEST, _LARGEST, _POINTS = 2e-3, 12.0, 56
_STEPS = 60


def _grid() -> FloatArray:
    positive = np.geomspace(_SMALLEST, _LARGEST, _POINTS)
    return np.concatenate([-positive[::-1], [0.0], positive])


_GRID = _grid()
_GAP = np.gradient(_GRID)


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk:
    """share: (cells,), the expected share of d1 among a cell's draws; variance: of that share."""

    share: FloatArray
    variance: FloatArray


def shrunk(counts: IntArray, arms: NDArray[np.integer]) -> Shrunk:
    """Return what is to be expected of cells after so many draws.

    counts: (cells, 2), draws by cell and arm. arms: (2,), all draws of d1 and of d2.
    """
    alike, place, many = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
    first, second = alike[:, :1].astype(np.float64), alike[:, 1:].astype(np.float64)
    # The log-odds of d1 in a cell that tells nothing.
    even = float(np.log((arms[0] + 1) / (arms[1] + 1)))
    odds = _GRID + even
    share = 1 / (1 + np.exp(-odds))
    log_likelihood = -first * np.log1p(np.exp(-odds)) - second * np.log1p(np.exp(odds))
    likelihood = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    law = np.full(len(_GRID), 1 / len(_GRID))
    for _ in range(_STEPS):
        law = law * ((many / (likelihood @ law)) @ likelihood) / many.sum()
    posterior = likelihood * law
    posterior /= posterior.sum(axis=1, keepdims=True)
    mean = posterior @ share
    variance = np.maximum(posterior @ share**2 - mean**2, 0.0)
    # Cells that are known better than the grid is fine are taken as they are.
    draws = (first + second).ravel()
    seen = (first.ravel() + 0.5) / (draws + 1)
    error = 1 / np.sqrt((draws + 1) * seen * (1 - seen))
    log_ratio = np.log(seen) - np.log1p(-seen) - even
    is_known = error < np.interp(log_ratio, _GRID, _GAP) / 2
    mean = np.where(is_known, seen, mean)
    variance = np.where(is_known, seen * (1 - seen) / (draws + 1), variance)
    return Shrunk(mean[place.ravel()], variance[place.ravel()])
