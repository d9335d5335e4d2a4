"""Level maps: from outcomes to at most 64 levels, ordered from "surely d2" to "surely d1"."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import LevelArray, by_arm
from dpaudit.levels.limits import CACHED
from dpaudit.levels.piecewise_logit import LEVELS
from dpaudit.outcomes import Outcomes
from dpaudit.outcomes.tables import Table

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FOLDS = 5
# Folds of the first half of the draws.
HALF = FOLDS // 2
_TAIL_LEVELS = 16

_LOOKED_AT = 2_000
# Relative difference between two numbers that may come from the order of a sum.
_ROUNDING = 1e-9


class CellCounter(Protocol):
    """What outcomes are counted by; frozen and picklable.

    levels: number of cells. An outcome may be in several.
    """

    @property
    def levels(self) -> int: ...

    def counts(self, outcomes: Outcomes) -> IntArray:
        """Return the number of outcomes in each cell: (levels,)."""
        ...


class LevelMap(CellCounter, Protocol):
    """A map from outcomes to levels; frozen and picklable.

    levels: number of levels. The last one is for outcomes of a kind that learning never saw, and
        has no place in the order.
    """

    @property
    def levels(self) -> int: ...

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        """Return the level of every outcome."""
        ...

    def counts(self, outcomes: Outcomes) -> IntArray:
        """Return the number of outcomes at each level, in pieces that stay in the cache:
        (levels,)."""
        counts = np.zeros(self.levels, dtype=np.int64)
        for piece in pieces(outcomes):
            counts += np.bincount(self(piece), minlength=self.levels)
        return counts

    def words(self, chosen: NDArray[np.bool_]) -> str:
        """Return in words the event that the level is one of those chosen: (levels,) of bool."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Grouped(LevelMap):
    """Map an outcome to the group of its cell.

    group: (cells,), the group of each level of `cells`.
    """

    cells: LevelMap
    group: LevelArray

    @property
    def levels(self) -> int:
        return int(self.group.max()) + 1

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return np.asarray(self.group[self.cells(outcomes)])

    def counts(self, outcomes: Outcomes) -> IntArray:
        result = np.bincount(self.group, weights=self.cells.counts(outcomes), minlength=self.levels)
        return np.asarray(result, dtype=np.int64)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.cells.words(chosen[self.group])


@dataclass(frozen=True, slots=True, eq=False)
class NearLevels(LevelMap):
    """Map a number to its level, or to that of the known number that it equals up to rounding.

    level: of outcomes that are single numbers.
    known: (numbers,), rising.
    """

    level: LevelMap
    known: FloatArray

    @classmethod
    def of(cls, level: LevelMap, numbers: FloatArray) -> LevelMap:
        """Return the map for the numbers that repeat; `level` itself if none does."""
        values, counts = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
        known = values[counts > 1]
        return cls(level, known) if len(known) else level

    @property
    def levels(self) -> int:
        return self.level.levels

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        if not isinstance(outcomes, Table) or len(outcomes.all_columns) > 1:
            return self.level(outcomes)
        (column,) = outcomes.all_columns
        with np.errstate(invalid="ignore", over="ignore"):
            place = np.searchsorted(self.known, column.numbers)
            both = self.known[np.clip([place - 1, place], 0, len(self.known) - 1)]
            distance = np.abs(both - column.numbers)
            nearest = np.where(distance[0] < distance[1], *both)
            # Equal numbers are left as they are: -0.0 is another output than 0.0.
            least = distance.min(axis=0)
            is_near = (least > 0) & (least <= _ROUNDING * np.abs(nearest))
        numbers = np.where(is_near, nearest, column.numbers)
        return self.level(replace(outcomes, all_columns=(replace(column, numbers=numbers),)))

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.level.words(chosen)


def pieces(outcomes: Outcomes) -> Iterator[Outcomes]:
    """Yield outcomes in pieces that stay in the cache."""
    for start in range(0, outcomes.size, CACHED):
        yield outcomes.take(slice(start, start + CACHED))


def by_input(counter: CellCounter, outcomes: Outcomes, is_d1: NDArray[np.bool_]) -> IntArray:
    """Return the number of outcomes by cell and input: (levels, 2)."""
    each = (counter.counts(outcomes.take(np.flatnonzero(arm))) for arm in (is_d1, ~is_d1))
    return np.stack(list(each), axis=1)


def is_continuous(numbers: FloatArray) -> bool:
    """Return whether numbers hardly ever repeat, by the first 2,000 of them."""
    some = numbers[:_LOOKED_AT]
    return len(np.unique(some)) > len(some) / 2


@functools.lru_cache(maxsize=4)
def folds(size: int) -> IntArray:
    """Return the fold of every selection draw; the order of the draws has no meaning."""
    result = np.arange(size) % FOLDS
    result.flags.writeable = False  # kept for others
    return result


def by_fold(place: NDArray[np.integer], places: int, is_d1: NDArray[np.bool_]) -> IntArray:
    """Return the selection draws at each place: (folds, places, 2)."""
    counts = by_arm(folds(len(place)) * places + place, FOLDS * places, is_d1)
    return counts.reshape(FOLDS, places, 2)


def log_ratio(counts: NDArray[np.floating | np.integer], arms: IntArray | FloatArray) -> FloatArray:
    """Return smoothed log-ratios of counts.

    counts: (…, 2), of d1 and of d2.
    arms: (…, 2), all draws of both inputs.
    """
    log_counts = np.log(counts + 0.5)
    both = np.log((arms[..., 0] + 1) / (arms[..., 1] + 1))
    return np.asarray(log_counts[..., 0] - log_counts[..., 1] - both, dtype=float)


def larger_for_d1(counts: IntArray) -> bool:
    """Return whether the numbers of d1 are mostly larger (Mann-Whitney). counts: (cells, 2)."""
    below = np.cumsum(counts, axis=0) - counts
    d1_larger, d2_larger = (counts * below[:, ::-1]).sum(axis=0)
    return bool(d1_larger > d2_larger)


def by_group(
    draws: FloatArray | IntArray, group: NDArray[np.integer], groups: int = 0
) -> FloatArray:
    """Return the draws of groups of cells: (groups, 2) or more groups."""
    arms = [np.bincount(group, weights=arm, minlength=groups) for arm in draws.T]
    return np.stack(arms, axis=1).astype(np.float64)


@functools.lru_cache(maxsize=64)
def tail_refined(smallest: float) -> FloatArray:
    """Return at most 63 inner quantiles, spaced geometrically in the tails from `smallest` on."""
    middle = LEVELS - 2 * _TAIL_LEVELS
    smallest = min(smallest, 0.04)
    low = np.geomspace(smallest, 0.05, _TAIL_LEVELS)
    inner = np.linspace(0.05, 0.95, middle + 1)[1:-1]
    result = np.concatenate([low, inner, 1 - low[::-1]])
    result.flags.writeable = False  # kept for others
    return result


def cut_by_mass(scores: FloatArray, masses: FloatArray) -> tuple[IntArray, int]:
    """Return the level of every cell under every fit, (fits, cells), and the number of levels.

    scores: (fits, cells); the last fit decides where levels are cut.
    masses: (cells,), the draws of each, which may all be 0.

    Cells of equal score stay together, and a heavy cell stands alone. The other fits are cut at
    the same shares of the mass, so that ranks are compared across fits, not scores.
    """
    starts, ends = _mass_ranges(scores, masses)
    middles = (starts + ends) / 2
    fine = np.searchsorted(tail_refined(4 / max(8.0, masses.sum())), middles[-1])
    order = np.argsort(middles[-1], kind="stable")
    last = np.flatnonzero(np.diff(fine[order]))
    cuts = ends[-1][order[last]]
    return np.searchsorted(cuts, middles).astype(np.int64), len(cuts) + 1


def held_out_tally(level: IntArray, counts: IntArray, levels: int) -> IntArray:
    """Return draws by level and input, the last level for unseen: (levels + 1, 2).

    level: (folds, cells).
    counts: (folds, cells + 1, 2), the last cell for unseen.
    """
    place = np.append(level, np.full((len(level), 1), levels), axis=1).ravel()
    total = np.zeros((levels + 1, 2), dtype=np.int64)
    np.add.at(total, place, counts.reshape(-1, 2))
    return total


def _mass_ranges(scores: FloatArray, masses: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the shares of mass below the score of every cell, and up to it: (fits, cells)."""
    order = np.argsort(scores, axis=1)
    ordered, upto = np.take_along_axis(scores, order, 1), np.cumsum(masses[order], axis=1)
    apart = ordered[:, 1:] != ordered[:, :-1]
    below, above = np.zeros(scores.shape), upto / np.maximum(1.0, upto[:, -1:])
    # Shares rise: of equal scores, all start where the first one does and end where the last does.
    np.maximum.accumulate(np.where(apart, above[:, :-1], 0.0), axis=1, out=below[:, 1:])
    last = np.where(apart, above[:, :-1], np.inf)
    above[:, :-1] = np.minimum.accumulate(
        np.concatenate([last, above[:, -1:]], axis=1)[:, ::-1], axis=1
    )[:, :0:-1]
    starts, ends = np.empty(scores.shape), np.empty(scores.shape)
    np.put_along_axis(starts, order, below, 1)
    np.put_along_axis(ends, order, above, 1)
    return starts, ends
