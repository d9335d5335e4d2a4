"""Level maps: fixed functions from outcomes to levels, and helpers that count and cut.

Scorers in `attacks/` make level maps; certification counts draws with them. The helpers divide
draws into folds, compute log-ratios of counts, and cut an order of cells into levels.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import LevelArray, by_arm
from dpaudit.levels.limits import CACHE_FLOATS, MANY_DRAWS, MAX_LEVELS
from dpaudit.outcomes import Outcomes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Number of folds for cross-fitting: the draws of each fold are scored by a fit to the others.
FOLDS = 5
# Number of folds that form the first half of the draws; the other folds form the second half.
HALF = FOLDS // 2


class CellCounter(Protocol):
    """A fixed counter of outcomes by cell. An outcome may be in several cells. It can be pickled.

    levels: number of cells.
    """

    @property
    def levels(self) -> int: ...

    def tally(self, outcomes: Outcomes) -> IntArray:
        """Return the number of outcomes in each cell: (levels,)."""
        ...


class LevelMap(CellCounter, Protocol):
    """A fixed map from outcomes to levels; it can be pickled.

    levels: number of levels, the last one included.
    """

    @property
    def levels(self) -> int: ...

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        """Return the level of every outcome: (size,)."""
        ...

    def tally(self, outcomes: Outcomes) -> IntArray:
        """Return the number of outcomes at each level: (levels,). The outcomes are mapped in pieces
        that fit into the processor's cache."""
        counts = np.zeros(self.levels, dtype=np.int64)
        for piece in pieces(outcomes):
            counts += np.bincount(self(piece), minlength=self.levels)
        return counts

    def words(self, chosen: NDArray[np.bool_]) -> str:
        """Return the event that an outcome has a chosen level, in words. `chosen`: mask,
        (levels,)."""
        ...

    def alternatives(self, chosen: NDArray[np.bool_]) -> tuple[int, int] | None:
        """Return (values, intervals): of how many single values, and of how many intervals, the
        event of the chosen levels consists. Return None if the event is not about a number or
        label: of the output, or of one coordinate."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class GroupedLevels(LevelMap):
    """A level map whose levels are unions of levels of another map, `cells`.

    group: (cells.levels,), the new level of each level of `cells`.
    """

    cells: LevelMap
    group: LevelArray

    @property
    def levels(self) -> int:
        return int(self.group.max()) + 1

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return np.asarray(self.group[self.cells(outcomes)])

    def tally(self, outcomes: Outcomes) -> IntArray:
        result = np.bincount(self.group, weights=self.cells.tally(outcomes), minlength=self.levels)
        return np.asarray(result, dtype=np.int64)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.cells.words(chosen[self.group])

    def alternatives(self, chosen: NDArray[np.bool_]) -> tuple[int, int] | None:
        return self.cells.alternatives(chosen[self.group])


def pieces(outcomes: Outcomes) -> Iterator[Outcomes]:
    """Yield the outcomes in pieces of 65,536 consecutive outcomes; the last piece may be smaller.
    Arrays of this size stay in the processor's cache."""
    for start in range(0, outcomes.size, CACHE_FLOATS):
        yield outcomes.take(slice(start, start + CACHE_FLOATS))


def by_input(counter: CellCounter, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> IntArray:
    """Count outcomes by cell and input: (cells, 2). `is_d1`, (size,), tells which outcomes are of
    d1."""
    tallies = (counter.tally(outcomes.take(np.flatnonzero(arm))) for arm in (is_d1, ~is_d1))
    return np.stack(list(tallies), axis=1)


def is_continuous(numbers: FloatArray) -> bool:
    """Return whether more than half of the first 2,000 numbers are distinct."""
    some = numbers[:2_000]
    return len(np.unique(some)) > len(some) / 2


@functools.lru_cache(maxsize=4)
def folds(size: int) -> IntArray:
    """Return the fold of each of `size` draws: 0, 1, 2, 3, 4, 0, 1, …"""
    result = np.arange(size) % FOLDS
    # Read-only, since the array is cached and shared by all callers.
    result.flags.writeable = False
    return result


def by_fold(indices: NDArray[np.integer], size: int, is_d1: NDArray[np.bool_]) -> IntArray:
    """Count draws by fold, index and input: (folds, size, 2).

    indices: (draws,), an index of each draw in range(size), such as the number of its cell.
    """
    counts = by_arm(folds(len(indices)) * size + indices, FOLDS * size, is_d1)
    return counts.reshape(FOLDS, size, 2)


def training_counts(counts: IntArray) -> IntArray:
    """Return the counts from which each fit is made, (fits, …). `counts` are by fold,
    (folds, …)."""
    total = counts.sum(axis=0)
    halves = counts[:HALF].sum(axis=0), counts[HALF:].sum(axis=0)
    return np.stack([*(total - counts), total, *halves])


def log_ratio(counts: NDArray[np.floating | np.integer], arms: IntArray | FloatArray) -> FloatArray:
    """Return the log-ratio of each pair of counts, after ½ was added to each count: (…). `counts`
    and `arms` are (…, 2)."""
    log_counts = np.log(counts + 0.5)
    return np.asarray(log_counts[..., 0] - log_counts[..., 1] - even_odds(arms), dtype=float)


def larger_for_d1(counts: IntArray) -> bool:
    """Return whether numbers on d1 are mostly larger than on d2, by the Mann-Whitney statistic.

    counts: (intervals, 2), by interval of numbers, in rising order.
    """
    below = np.cumsum(counts, axis=0) - counts
    d1_larger, d2_larger = (counts * below[:, ::-1]).sum(axis=0)
    return bool(d1_larger > d2_larger)


def by_group(
    draws: FloatArray | IntArray, group: NDArray[np.integer], groups: int = 0
) -> FloatArray:
    """Return the sums of draws in each group of cells, by input: (groups, 2).

    draws: (cells, 2).
    group: (cells,), the group of each cell.
    groups: least number of groups in the result; the last ones may be empty.
    """
    arms = [np.bincount(group, weights=arm, minlength=groups) for arm in draws.T]
    return np.stack(arms, axis=1).astype(np.float64)


def equal_mass_runs(masses: FloatArray | IntArray, runs: int) -> NDArray[np.intp]:
    """Divide ordered cells into runs of neighbouring cells, each with about the same number of
    draws. Return the run of each cell: (cells,), 0 to `runs` - 1. `masses` has the draws of each
    cell."""
    middle = np.cumsum(masses) - masses / 2
    run = np.minimum((middle * runs / max(1, masses.sum())).astype(np.intp), runs - 1)
    return np.asarray(run)


def even_odds(arms: NDArray[np.integer | np.floating]) -> FloatArray:
    """Return the log-odds of d1 in a cell with log-ratio 0. They are not 0 if the inputs were drawn
    unequally often. `arms` is (…, 2); 1 is added to each of its numbers."""
    return np.asarray(np.log((arms[..., 0] + 1) / (arms[..., 1] + 1)), dtype=float)


# Of the 63 edges between levels, each tail has the first number or, with more than 10,000 draws,
# the second. With 16 edges of 100,000 draws, each level in a tail is 1.6 times as wide as the one
# before, so that the rules of `noisy max of 5, value, wrong scale` in benchmarks/efficiency.py cut
# at too large shares of the draws: efficiency 0.15 in place of 0.68 at a million draws.
_TAIL_EDGES, _TAIL_EDGES_OF_MANY = 16, 20


@functools.lru_cache(maxsize=64)
def tail_refined(smallest: float) -> FloatArray:
    """Return the 63 quantiles, as shares, that cut an order into 64 levels. They are evenly spaced
    from 0.05 to 0.95, and geometrically in both tails.

    smallest: the smallest quantile, 4 / number of draws; a larger one than 0.04 is lowered to it.
    """
    edges = _TAIL_EDGES_OF_MANY if smallest < 4 / MANY_DRAWS else _TAIL_EDGES
    low = np.geomspace(min(smallest, 0.04), 0.05, edges)
    inner = np.linspace(0.05, 0.95, MAX_LEVELS - 2 * edges + 1)[1:-1]
    result = np.concatenate([low, inner, 1 - low[::-1]])
    # Read-only, since the array is cached and shared by all callers.
    result.flags.writeable = False
    return result


def cut_by_mass(scores: FloatArray, masses: FloatArray) -> tuple[IntArray, int]:
    """Divide cells into levels by their scores. Return the level of every cell under every fit,
    (fits, cells), and the number of levels.

    Cells with equal scores get the same level. All fits are cut at the same shares of the draws,
    since ranks can be compared between fits, and scores cannot.

    scores: (fits, cells); the fit to all draws, the last, decides where levels are cut.
    masses: (cells,), number of draws in each cell; may be 0 for all.
    """
    starts, ends = _mass_ranges(scores, masses)
    middles = (starts + ends) / 2
    fine = np.searchsorted(tail_refined(4 / max(8.0, masses.sum())), middles[-1])
    order = np.argsort(middles[-1], kind="stable")
    last = np.flatnonzero(np.diff(fine[order]))
    cuts = ends[-1][order[last]]
    return np.searchsorted(cuts, middles).astype(np.int64), len(cuts) + 1


def held_out_tally(level: IntArray, counts: IntArray, levels: int) -> IntArray:
    """Count draws by held-out level and input: (levels + 1, 2). The last level is for unseen
    outcomes.

    level: (folds, cells), for each fold, the level of each cell under the fit to all other folds.
    counts: (folds, cells + 1, 2), draws by fold; the last cell is for unseen outcomes.
    """
    index = np.append(level, np.full((len(level), 1), levels), axis=1).ravel()
    total = np.zeros((levels + 1, 2), dtype=np.int64)
    np.add.at(total, index, counts.reshape(-1, 2))
    return total


def _mass_ranges(scores: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the shares of draws with smaller, and with smaller or equal, scores: (fits, cells)."""
    order = np.argsort(scores, axis=1)
    ordered, upto = np.take_along_axis(scores, order, 1), np.cumsum(masses[order], axis=1)
    apart = ordered[:, 1:] != ordered[:, :-1]
    below, above = np.zeros(scores.shape), upto / np.maximum(1.0, upto[:, -1:])
    # In the sorted order, cells with equal scores form a run. Each cell of a run gets the share of
    # draws before the run, and the share up to its end. Running maxima and minima find both shares
    # without a loop.
    np.maximum.accumulate(np.where(apart, above[:, :-1], 0.0), axis=1, out=below[:, 1:])
    last = np.where(apart, above[:, :-1], np.inf)
    above[:, :-1] = np.minimum.accumulate(
        np.concatenate([last, above[:, -1:]], axis=1)[:, ::-1], axis=1
    )[:, :0:-1]
    starts, ends = np.empty(scores.shape), np.empty(scores.shape)
    np.put_along_axis(starts, order, below, 1)
    np.put_along_axis(ends, order, above, 1)
    return starts, ends
