"""Shrinkage of the log-ratios of many cells towards their common distribution.

A cell is a group of outcomes; its log-ratio compares its frequency on d1 and on d2. Of many cells
the luckiest looks most telling. So the log-ratio of a cell is taken as a draw from a distribution
on a grid: the distribution that makes the counts of all cells most likely (a nonparametric
maximum-likelihood mixture, Kiefer & Wolfowitz 1956; by EM). Cells whose counts are nearly alike
move far towards each other; a few clear cells move by little. Callers pass counts by cell and input
and get the expected share of d1 in each cell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.limits import LEAST_WEIGHT

# The grid has 0 and, of either sign, 56 log-ratios from 0.002 to 12, geometrically spaced.
_SMALLEST, _LARGEST, _POINTS = 2e-3, 12.0, 56
# Number of EM steps.
_STEPS = 60


def _grid() -> FloatArray:
    positive = np.geomspace(_SMALLEST, _LARGEST, _POINTS)
    return np.concatenate([-positive[::-1], [0.0], positive])


GRID = _grid()
# The log-ratios of the grid that are at least 0.
SIZES = GRID[_POINTS:]
# Distance between neighbouring points of the grid.
GAP = np.gradient(GRID)


@dataclass(frozen=True, slots=True, eq=False)
class Shrunk:
    """Shrunk estimates for cells.

    share: (cells,), expected share of d1 among the draws of each cell.
    variance: (cells,), variance of that share.
    """

    share: FloatArray
    variance: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """The distribution of the log-ratios of cells, on the grid `GRID`.

    weights: (grid,), the probability of each log-ratio.
    even: log-odds of d1 in a cell with log-ratio 0, which differ from 0 if the inputs were drawn
        unequally often.
    """

    weights: FloatArray
    even: float

    @classmethod
    def of(cls, counts: IntArray, arms: NDArray[np.integer]) -> Law:
        """Return the distribution that makes the counts of cells most likely.

        counts: (cells, 2), draws by cell and input.
        arms: (2,), number of all draws of d1 and of d2.
        """
        even = float(np.log((arms[0] + 1) / (arms[1] + 1)))
        alike, many = np.unique(counts, axis=0, return_counts=True)
        likelihood = _likelihood(alike, even)
        weights = np.full(len(GRID), 1 / len(GRID))
        for _ in range(_STEPS if len(counts) else 0):
            weights = weights * ((many / (likelihood @ weights)) @ likelihood) / many.sum()
        return cls(weights, even)

    def expected(self, counts: IntArray) -> Shrunk:
        """Return the shrunk estimates of cells.

        counts: (cells, 2), draws by cell and input.
        """
        alike, place = np.unique(counts, axis=0, return_inverse=True)
        posterior = _likelihood(alike, self.even) * (self.weights + LEAST_WEIGHT)
        posterior /= posterior.sum(axis=1, keepdims=True)
        share = 1 / (1 + np.exp(-GRID - self.even))
        mean = posterior @ share
        variance = np.maximum(posterior @ share**2 - mean**2, 0.0)
        # A cell whose own estimate is more precise than the grid keeps its own estimate.
        draws = alike.sum(axis=1)
        seen = (alike[:, 0] + 0.5) / (draws + 1)
        error = 1 / np.sqrt((draws + 1) * seen * (1 - seen))
        log_ratio = np.log(seen) - np.log1p(-seen) - self.even
        is_known = error < np.interp(log_ratio, GRID, GAP) / 2
        mean = np.where(is_known, seen, mean)
        variance = np.where(is_known, seen * (1 - seen) / (draws + 1), variance)
        return Shrunk(mean[place.ravel()], variance[place.ravel()])


def shrunk(counts: IntArray, arms: NDArray[np.integer]) -> Shrunk:
    """Return the shrunk estimates of cells, by the distribution of the log-ratios of these cells.

    counts: (cells, 2), draws by cell and input.
    arms: (2,), number of all draws of d1 and of d2.
    """
    return Law.of(counts, arms).expected(counts)


def shrunk_to(
    predicted: FloatArray, counts: IntArray, arms: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the expected share of d1 among the draws of each cell, (cells,), shrunk towards
    predictions. The distribution of the deviations from the predictions is learned from the counts
    of all cells.

    predicted: (cells,), predicted log-ratios.
    counts: (cells, 2), draws by cell and input.
    arms: (2,), number of all draws of d1 and of d2.
    """
    even = predicted[:, None] + float(np.log((arms[0] + 1) / (arms[1] + 1)))
    likelihood = _likelihood(counts, even)
    weights = np.full(len(GRID), 1 / len(GRID))
    for _ in range(_STEPS):
        weights = weights * ((1 / (likelihood @ weights)) @ likelihood) / len(counts)
    posterior = likelihood * (weights + LEAST_WEIGHT)
    posterior /= posterior.sum(axis=1, keepdims=True)
    return np.asarray((posterior / (1 + np.exp(-GRID - even))).sum(axis=1))


def _likelihood(counts: IntArray, even: float | FloatArray) -> FloatArray:
    """Return the likelihood of each log-ratio of the grid, given the counts of a cell: (cells,
    grid). The largest likelihood of each cell is 1.

    even: log-odds of d1 in a cell with log-ratio 0; may differ from cell to cell.
    """
    odds = GRID + even
    logs = -counts[:, :1] * np.log1p(np.exp(-odds)) - counts[:, 1:] * np.log1p(np.exp(odds))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedDraws:
    """Expected draws by level (bin of outcomes).

    draws: (levels, 2), of d1 and of d2.
    variance: (levels,), variance of the expected number of draws of d1.
    """

    draws: FloatArray
    variance: FloatArray


def by_level(
    cells: Shrunk, draws: NDArray[np.integer], level: IntArray, levels: int
) -> ExpectedDraws:
    """Return the expected draws by level, where each level is a union of cells.

    cells: estimates for the cells.
    draws: (cells,), number of draws in each cell.
    level: (cells,), the level of each cell.
    levels: number of levels.
    """

    def total(numbers: FloatArray) -> FloatArray:
        return np.asarray(np.bincount(level, weights=numbers, minlength=levels), dtype=float)

    expected = np.stack([total(draws * cells.share), total(draws * (1 - cells.share))], axis=1)
    return ExpectedDraws(expected, total(draws.astype(np.float64) ** 2 * cells.variance))
