"""Shrink the log-ratios of many cells, and divide the cells into levels.

Among many cells, the most extreme log-ratios are partly luck, so log-ratios are shrunk towards
values that the cells have in common. Two models are fitted by EM to the counts of all cells:

* `Law`: log-ratios are draws from the distribution on a grid that makes the counts most likely (a
  nonparametric maximum-likelihood mixture, Kiefer & Wolfowitz 1956).
* *Clusters* (`averaged`): few clusters, each with one size of log-ratio and either sign, as in
  k-ary randomised response. The estimate is the mean over models with different numbers of
  clusters, each weighted by its likelihood and by e^-1 for each cluster. Cells that counts cannot
  distinguish get equal estimates, so that an event contains all of them or none.

`merged` joins cells with similar estimates into levels (docs/method.md §5, *Unordered cells*).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels import tuning
from dpaudit.levels.level_map import FloatArray, IntArray, even_odds
from dpaudit.levels.limits import DECISIVE_NATS, MAX_LEVELS, MAX_STEP, MIN_WEIGHT, TINY

# The grid of log-ratios: 0, 56 positive values from 0.002 to 12, geometrically spaced, and the same
# values with a negative sign.
_MIN_LOG_RATIO, _MAX_LOG_RATIO, _GRID_POINTS = 2e-3, 12.0, 56
# Number of EM steps (expectation-maximisation) that fit a distribution of log-ratios.
_EM_STEPS = 60


def _grid() -> FloatArray:
    positive = np.geomspace(_MIN_LOG_RATIO, _MAX_LOG_RATIO, _GRID_POINTS)
    return np.concatenate([-positive[::-1], [0.0], positive])


GRID = _grid()
# The log-ratios of `GRID` that are not negative: the possible absolute values of a log-ratio.
SIZES = GRID[_GRID_POINTS:]
# For each log-ratio of `GRID`, the mean distance to its neighbours on the grid (at either end: the
# distance to the only neighbour).
GAP = np.gradient(GRID)


@dataclass(frozen=True, slots=True, eq=False)
class Law:
    """The distribution of the log-ratios of cells, on the grid `GRID`.

    weights: (grid,), the probability of each log-ratio.
    even: log-odds of d1 in a cell with log-ratio 0; not 0 if the inputs were drawn unequally often.
    """

    weights: FloatArray
    even: float

    @classmethod
    def of(cls, counts: IntArray, arms: NDArray[np.integer]) -> Law:
        """Return the distribution of log-ratios that makes the counts of these cells most
        likely."""
        even = float(even_odds(arms))
        alike, cells = np.unique(counts, axis=0, return_counts=True)
        return cls(_most_likely(_likelihood(alike, even), cells), even)

    def expected(self, counts: IntArray) -> FloatArray:
        """Return the expected share of d1 in each cell, given its counts, and the variance:
        (2, cells)."""
        alike, index = np.unique(counts, axis=0, return_inverse=True)
        posterior = _on_grid(_likelihood(alike, self.even), self.weights)
        share = 1 / (1 + np.exp(-GRID - self.even))
        mean = posterior @ share
        variance = np.maximum(posterior @ share**2 - mean**2, 0.0)
        # A cell with many draws keeps the estimate from its own counts: if the standard error of
        # its log-ratio is smaller than half the distance between neighbouring log-ratios of `GRID`,
        # the grid is too coarse to improve the estimate.
        draws = alike.sum(axis=1)
        observed = (alike[:, 0] + 0.5) / (draws + 1)
        error = 1 / np.sqrt((draws + 1) * observed * (1 - observed))
        log_ratio = np.log(observed) - np.log1p(-observed) - self.even
        is_known = error < np.interp(log_ratio, GRID, GAP) / 2
        mean = np.where(is_known, observed, mean)
        variance = np.where(is_known, observed * (1 - observed) / (draws + 1), variance)
        return np.stack([mean, variance])[:, index.ravel()]


def shrunk(counts: IntArray, arms: NDArray[np.integer]) -> FloatArray:
    """Return the expected share of d1 in each cell, (cells,), by the `Law` fitted to these
    cells."""
    return np.asarray(Law.of(counts, arms).expected(counts)[0])


def shrunk_to(
    predicted: FloatArray, counts: IntArray, arms: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the expected share of d1 in each cell, (cells,), shrunk towards a prediction. The
    counts of all cells decide how strongly.

    predicted: (cells,), the predicted log-ratio of each cell.
    """
    even = predicted[:, None] + float(even_odds(arms))
    likelihood = _likelihood(counts, even)
    posterior = _on_grid(likelihood, _most_likely(likelihood, np.ones(len(counts), dtype=int)))
    return np.asarray((posterior / (1 + np.exp(-GRID - even))).sum(axis=1))


def _likelihood(counts: IntArray, even: float | FloatArray) -> FloatArray:
    """Return the likelihood of each log-ratio given the counts of each cell: (cells, grid), ≤ 1."""
    odds = GRID + even
    logs = -counts[:, :1] * np.log1p(np.exp(-odds)) - counts[:, 1:] * np.log1p(np.exp(odds))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _most_likely(likelihood: FloatArray, cells: NDArray[np.integer]) -> FloatArray:
    """Return the distribution of log-ratios that makes the counts most likely: (grid,)."""
    weights = np.full(len(GRID), 1 / len(GRID))
    for _ in range(_EM_STEPS if len(cells) else 0):
        weights = weights * ((cells / (likelihood @ weights)) @ likelihood) / cells.sum()
    return np.asarray(weights)


def _on_grid(likelihood: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the posterior probability of every log-ratio in every cell: (cells, grid)."""
    posterior = likelihood * (weights + MIN_WEIGHT)
    return np.asarray(posterior / posterior.sum(axis=1, keepdims=True))


@dataclass(frozen=True, slots=True, eq=False)
class ExpectedDraws:
    """Estimated numbers of draws by level.

    draws: (levels, 2).
    variance: (levels,), squared standard error of the estimated draws of d1; None: unknown.
    is_one_fit: whether a single fit gives the estimates of all levels, so that their errors are
        correlated.
    """

    draws: FloatArray
    variance: FloatArray | None = None
    is_one_fit: bool = False


def merged(share: FloatArray, draws: IntArray) -> tuple[IntArray, int]:
    """Join cells with similar shares of d1 into levels. Return the level of every cell, (cells,),
    and the number of levels, at most 63. A cell with a larger share never has a lower level.

    Cells with equal shares have the same level. While there are more than 63 levels, the two
    neighbours whose union loses the least information about the input are joined (Ward 1963).

    share: (cells,), expected share of d1 in each cell.
    draws: (cells,), number of draws in each cell.
    """
    distinct, index = np.unique(share, return_inverse=True)
    mass = np.maximum(np.bincount(index.ravel(), weights=draws), TINY)
    d1_mass = mass * distinct
    cells = len(distinct)
    previous, following = list(range(-1, cells - 1)), list(range(1, cells + 1))
    # For each group of cells, the number of times that it has grown, or -1 after it was joined to
    # another group. The index of a group is the index of its first cell. Heap entries with an
    # outdated age are skipped.
    age = [0] * cells

    def entry(left: int) -> tuple[float, int, int, int, int]:
        right = following[left]
        union = mass[left] + mass[right]
        mean = (d1_mass[left] + d1_mass[right]) / union
        apart = d1_mass[left] / mass[left] - d1_mass[right] / mass[right]
        lost = mass[left] * mass[right] / union * apart**2 / max(mean * (1 - mean), TINY)
        return lost, left, right, age[left], age[right]

    heap = [entry(left) for left in range(cells - 1)]
    heapq.heapify(heap)
    groups = cells
    while groups > MAX_LEVELS - 1:
        _, left, right, *ages = heapq.heappop(heap)
        if [age[left], age[right]] != ages:
            continue
        mass[left] += mass[right]
        d1_mass[left] += d1_mass[right]
        age[left], age[right] = age[left] + 1, -1
        following[left] = following[right]
        groups -= 1
        if following[left] < cells:
            previous[following[left]] = left
            heapq.heappush(heap, entry(left))
        if previous[left] >= 0:
            heapq.heappush(heap, entry(previous[left]))
    level = np.cumsum(np.array(age) >= 0) - 1
    return level[index.ravel()].astype(np.int64), groups


# The two signs of a log-ratio, with shape (2, 1, 1): arrays have the axes sign, cell, size.
_SIGNS = np.array([1.0, -1.0])[:, None, None]


@dataclass(frozen=True, slots=True, eq=False)
class _CountPairs:
    """The distinct pairs (draws of d1, draws of d2) that occur among cells.

    d1_draws, d2_draws: (pairs, 1), draws of d1 and of d2, as floats.
    frequencies: (pairs,), number of cells with this pair.
    even: log-odds of d1 in a cell with log-ratio 0.
    """

    d1_draws: FloatArray
    d2_draws: FloatArray
    frequencies: NDArray[np.integer]
    even: float

    @classmethod
    def of(cls, counts: IntArray, frequencies: NDArray[np.integer], even: float) -> _CountPairs:
        d1_draws, d2_draws = counts[:, :1].astype(np.float64), counts[:, 1:].astype(np.float64)
        return cls(d1_draws, d2_draws, frequencies, even)


@dataclass(frozen=True, slots=True, eq=False)
class _Model:
    """A model of clusters. All cells of a cluster have the log-ratio +s or -s for its size s.

    sizes, weights: (clusters,), size of each cluster, and its share of the cells.
    worth: log-likelihood minus `COST_OF_PARAMETER` nats for each cluster. The first model has a
        cluster at every point of a grid; there only local maxima of `weights` are counted.
    """

    sizes: FloatArray
    weights: FloatArray
    worth: float


@dataclass(frozen=True, slots=True, eq=False)
class _Likelihood:
    """The likelihood of each possible log-ratio, of any size and either sign, given the counts of a
    cell.

    relative: (2, cells, sizes), the likelihood divided by the largest likelihood of the cell;
        positive log-ratios first, then negative ones.
    log_largest: (1, cells, 1), log of the largest likelihood of each cell.
    share: (2, 1, sizes), the share of d1 at each log-ratio.
    """

    relative: FloatArray
    log_largest: FloatArray
    share: FloatArray

    @classmethod
    def of(cls, cells: _CountPairs, sizes: FloatArray) -> _Likelihood:
        odds = cells.even + _SIGNS * sizes
        against = np.exp(-odds)
        logs = -cells.d1_draws * np.log1p(against) - cells.d2_draws * np.log1p(np.exp(odds))
        largest = np.maximum.reduce(logs, axis=(0, 2), keepdims=True)
        return cls(np.exp(logs - largest), largest, 1 / (1 + against))

    def blame(self, weights: FloatArray) -> FloatArray:
        """Return the posterior probability of every log-ratio: (2, cells, sizes)."""
        blame = self.relative * (weights / 2)
        blame /= np.add.reduce(blame, axis=(0, 2), keepdims=True)
        return blame

    def logs(self, weights: FloatArray) -> FloatArray:
        """Return the log of the mean likelihood of each cell over log-ratios, by their `weights`:
        (cells,)."""
        total = (self.relative * (weights / 2)).sum(axis=(0, 2), keepdims=True)
        return np.asarray(np.log(total) + self.log_largest)[0, :, 0]


def averaged(counts: IntArray, arms: NDArray[np.integer]) -> FloatArray:
    """Return the share of d1 in every cell, (cells,), averaged over models of clusters by their
    posterior probabilities.

    A cell whose observed share is more than four standard errors from this average keeps its
    observed share.
    """
    alike, index, frequencies = np.unique(counts, axis=0, return_inverse=True, return_counts=True)
    cells = _CountPairs.of(alike, frequencies, float(even_odds(arms)))
    models = _models(cells)
    worth = np.array([model.worth for model in models])
    weights = np.exp(worth - worth.max())
    weights[worth < worth.max() - DECISIVE_NATS] = 0.0
    expected = np.zeros(len(alike))
    for model, weight in zip(models, weights / weights.sum(), strict=True):
        if weight > 0:
            blame, share = _posterior(cells, model)
            expected += weight * (blame * share).sum(axis=(0, 2))
    draws = alike.sum(axis=1)
    observed = (alike[:, 0] + 0.5) / (draws + 1)
    error = np.sqrt(observed * (1 - observed) / (draws + 1))
    is_apart = np.abs(observed - expected) > tuning.DEVIATIONS_BEYOND_LUCK * error
    return np.asarray(np.where(is_apart, observed, expected)[index.ravel()])


def _models(cells: _CountPairs) -> list[_Model]:
    """Return models with ever fewer clusters, until one is far less likely than the best."""
    grid, even_weights = SIZES, np.full(len(SIZES), 1 / len(SIZES))
    _, weights, likelihood = _fitted(cells, grid, even_weights, _EM_STEPS, moves=False)
    beside = np.concatenate([[0.0], weights, [0.0]])
    peaks = np.flatnonzero((weights >= beside[:-2]) & (weights > beside[2:]) & (weights > 1e-5))
    result = [_Model(grid, weights, likelihood - tuning.COST_OF_PARAMETER * len(peaks))]
    nearest = np.argmin(np.abs(np.arange(len(grid))[:, None] - peaks), axis=1)
    sizes = grid[peaks]
    weights = np.bincount(nearest, weights=weights).astype(np.float64)
    fit = _fitted(cells, sizes, weights, _EM_STEPS, moves=True)
    # So far, each local maximum of the weights on the grid is a cluster. Two clusters with similar
    # log-ratios may have only one maximum. So up to three more clusters are tried, each kept only
    # if it raises the likelihood enough.
    on_grid = _Likelihood.of(cells, grid)
    for _ in range(3):
        further = _one_more(cells, on_grid, *fit[:2])
        if further is None or further[-1] - fit[-1] <= tuning.COST_OF_PARAMETER:
            break
        fit = further
    while True:
        sizes, weights, likelihood = fit
        worth = likelihood - tuning.COST_OF_PARAMETER * len(sizes)
        result.append(_Model(sizes, weights, worth))
        if len(sizes) == 1 or worth < max(model.worth for model in result) - DECISIVE_NATS:
            return result
        joined = [_joined(cells, sizes, weights, index) for index in range(len(sizes) - 1)]
        fit = max(joined, key=lambda candidate: candidate[-1])


def _one_more(
    cells: _CountPairs, on_grid: _Likelihood, sizes: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, float] | None:
    """Add the cluster that raises the likelihood fastest, and fit again; None if none raises it."""
    logs = _Likelihood.of(cells, sizes).logs(weights)[:, None]
    # The exponent is limited: for a cell that no cluster explains it would overflow.
    odds = on_grid.relative * np.exp(np.minimum(on_grid.log_largest - logs, 300.0))
    rise = cells.frequencies @ odds.sum(axis=0) / 2 - cells.frequencies.sum()
    index = int(np.argmax(rise))
    if rise[index] <= tuning.COST_OF_PARAMETER:
        return None
    beside = int(np.argmin(np.abs(sizes - SIZES[index])))
    weights = weights.copy()
    weights[beside] /= 2
    sizes, weights = np.append(sizes, SIZES[index]), np.append(weights, weights[beside])
    return _fitted(cells, sizes, weights, _EM_STEPS // 3, moves=True)


def _joined(
    cells: _CountPairs, sizes: FloatArray, weights: FloatArray, index: int
) -> tuple[FloatArray, FloatArray, float]:
    """Join the clusters at `index` and `index` + 1, sorted by size, and fit again."""
    order = np.argsort(sizes, kind="stable")
    sizes, weights = sizes[order], weights[order]
    pair = slice(index, index + 2)
    weight = weights[pair].sum()
    size = sizes[pair] @ weights[pair] / weight
    sizes = np.concatenate([sizes[:index], [size], sizes[index + 2 :]])
    weights = np.concatenate([weights[:index], [weight], weights[index + 2 :]])
    return _fitted(cells, sizes, weights, _EM_STEPS // 3, moves=True)


def _fitted(
    cells: _CountPairs, sizes: FloatArray, weights: FloatArray, steps: int, *, moves: bool
) -> tuple[FloatArray, FloatArray, float]:
    """Fit weights of clusters by EM; with `moves`, each step also moves their sizes (Newton)."""
    d1_draws, draws = cells.d1_draws, cells.d1_draws + cells.d2_draws
    frequencies = cells.frequencies[:, None]
    everything = cells.frequencies.sum()
    likelihood = _Likelihood.of(cells, sizes)
    for _ in range(steps):
        # In this inner loop of learning, `np.add.reduce` is used: on small arrays it is faster than
        # the method `sum`.
        blame = likelihood.blame(weights)
        blame *= frequencies
        weights = np.add.reduce(blame, axis=(0, 1)) / everything
        if moves:
            share = likelihood.share
            slope = np.add.reduce(blame * (d1_draws - draws * share), axis=1)
            bend = np.add.reduce(blame * draws, axis=1) * share[:, 0] * (1 - share[:, 0])
            step = (slope[0] - slope[1]) / (1e-9 + bend[0] + bend[1])
            step = np.minimum(np.maximum(step, -MAX_STEP), MAX_STEP)
            sizes = np.minimum(np.maximum(sizes + step, 0.0), SIZES[-1])
            likelihood = _Likelihood.of(cells, sizes)
    return sizes, weights, float(cells.frequencies @ likelihood.logs(weights))


def _posterior(cells: _CountPairs, model: _Model) -> tuple[FloatArray, FloatArray]:
    """Return (posterior probability, share of d1) of each log-ratio of clusters and grid."""
    sizes = np.concatenate([model.sizes, SIZES])
    weights = np.concatenate([model.weights, np.full(len(SIZES), MIN_WEIGHT)])
    likelihood = _Likelihood.of(cells, sizes)
    return likelihood.blame(weights), likelihood.share
