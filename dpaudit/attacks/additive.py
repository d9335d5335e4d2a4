"""The additive scorer: the sum over columns of log-ratios by cell.

Each column of the outcomes is cut into cells (`levels/cells.py`); the log-ratio of a cell compares
its frequency on d1 and on d2. Their sum is the best score if columns are independent given the
input, as in histograms and repeated releases. For lists of independent runs (`exchangeable`), one
table of log-ratios is learned from all runs together. `learning.py` calls the scorers; other
scorers use `summed` and `Total` for some columns.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import OrderedBins, by_score
from dpaudit.levels.cells import Cells, make_cells
from dpaudit.levels.level_map import (
    FOLDS,
    HALF,
    FloatArray,
    IntArray,
    by_fold,
    folds,
    larger_for_d1,
    log_ratio,
)
from dpaudit.levels.piecewise_logit import log_odds_of_each
from dpaudit.levels.rules import pooled_counts
from dpaudit.levels.scores import Scored, aligned, shares, with_most
from dpaudit.outcomes import ABSENT, KIND, Column, Outcomes
from dpaudit.outcomes.columns import join

# Largest number of intervals that a column is cut into.
_CELLS = 32
# Largest number of columns that get the slow, close fit; other columns get a quick fit.
_CLOSELY = 128
# Number of Newton steps to the factor on the log-ratios of a column.
_NEWTON_STEPS = 4
# Least number of intervals for which a piecewise linear or monotone fit differs from a free fit.
_LEAST_INTERVALS = 3


def additive(
    selection: SelectionDraws, columns: Sequence[Column] | None = None
) -> list[OrderedBins]:
    """Order outcomes by the sum of the log-ratios of some columns (default: all columns)."""
    columns = selection.outcomes.columns if columns is None else columns
    return [by_score(summed(selection, columns), selection)] if len(columns) > 1 else []


def summed(selection: SelectionDraws, columns: Sequence[Column]) -> Scored:
    """Return the score that sums the log-ratios of some columns, at least one."""
    total = Total(selection)
    for column in columns:
        cells = make_cells(column, _CELLS)
        total.add(cells, cells(column))
    tables, spread, held_out, halves = total.settle()
    importance = shares([one.name for one in tables], spread)
    said = with_most(f"adds up {len(tables):,} coordinates", importance)
    freeze = partial(Additive, tuple((one, one.name) for one in tables), importance, said)
    return Scored("sum over coordinates", held_out, freeze, halves)


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """The score that sums the log-ratios of columns.

    tables: for each term of the sum, the log-ratio of every cell, and the name of the column.
    columns: (name, share) of the columns that the score depends on most.
    said: the score in words.
    """

    tables: tuple[tuple[Cells, str], ...]
    columns: tuple[tuple[str, float], ...]
    said: str

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total = np.zeros(outcomes.size)
        telling = [(table, name) for table, name in self.tables if table.says_something]
        columns = outcomes.named(name for _, name in telling)
        for (table, _), column in zip(telling, columns, strict=True):
            total += table(column)
        return total

    def words(self) -> str:
        return self.said


class Total:
    """Fits the sum of the log-ratios of columns. Call `add` for every column, then `settle`
    once."""

    def __init__(self, selection: SelectionDraws) -> None:
        self._is_d1, self._fold = selection.is_d1, folds(selection.size)
        self._columns: list[_Divided] = []

    def add(self, cells: Cells, *places: NDArray[np.integer]) -> None:
        """Add a column, or several columns with one distribution.

        cells: the cells of the column.
        places: for each column, (draws,), the cell of every draw.
        """
        count = cells.intervals + len(cells.labels) + 1
        small = [place.astype(np.int32) for place in places]
        counts = np.sum([by_fold(place, count, self._is_d1) for place in small], axis=0)
        # An absent entry gets log-ratio 0: the column of types or a length has counted it already.
        for cell, label in enumerate(cells.labels, cells.intervals):
            if label == ABSENT and not cells.name.startswith(KIND):
                counts[:, cell] = 0
        self._columns.append(_Divided(cells, small, counts))

    def settle(self) -> tuple[tuple[Cells, ...], list[float], FloatArray, FloatArray]:
        """Return four parts of the fitted sum.

        1. For every column its cells, with their log-ratios as values. Columns that may be noise
           get 0.
        2. For every column the standard deviation of its term over draws.
        3. (draws,), the score of every draw by a fit to other folds, on the scale of the fit to all
           draws.
        4. (2, draws), the scores of all draws by fits to two halves of the draws.
        """
        tables, spread, halves = [], [], np.zeros((2, len(self._fold)))
        held_out, kept = np.zeros(len(self._fold)), np.zeros(len(self._fold))
        fitted = self._fitted()
        telling = _telling([one.gain for one in fitted])
        for column, fit, is_telling in zip(self._columns, fitted, telling, strict=True):
            said = np.zeros(len(self._fold))
            if is_telling:
                first = self._fold * len(fit.weights)
                for small in column.places:
                    # `take` is several times slower with another type of index, or with two
                    # indices.
                    place = small.astype(np.intp)
                    said += fit.by_fold.take(first + place)
                    kept += fit.weights.take(place)
                    for half, table in zip(halves, fit.halves, strict=True):
                        half += table.take(place)
            held_out += said
            spread.append(float(said.std()))
            tables.append(column.cells.with_values(is_telling * fit.weights))
        return tuple(tables), spread, aligned(held_out, self._fold, kept), halves

    def _fitted(self) -> list[_Fit]:
        """Return the fit of each column. A close fit takes milliseconds, so of more than 128
        columns only the 128 with the largest gain get a close fit."""
        if len(self._columns) <= _CLOSELY:
            return _closely(self._columns)
        fits = [_best(one, _quickly(one)) for one in self._columns]
        some = np.argsort([-fit.gain for fit in fits], kind="stable")[:_CLOSELY].tolist()
        for place, fit in zip(some, _closely([self._columns[at] for at in some]), strict=True):
            fits[place] = fit
        return fits


@dataclass(frozen=True, slots=True, eq=False)
class _Divided:
    """A column divided into cells.

    places: the cell of every draw, (draws,); one array for each column with this distribution.
    counts: (folds, cells, 2), draws by fold, cell and input, without absent entries.
    """

    cells: Cells
    places: list[NDArray[np.int32]]
    counts: IntArray

    @property
    def train(self) -> IntArray:
        """Draws that fits are made from, by cell and input: (fits, cells, 2). The fits are, in
        order: without each fold, to all draws, to the first half of the folds, to the second
        half."""
        total = self.counts.sum(axis=0)
        halves = self.counts[:HALF].sum(axis=0), self.counts[HALF:].sum(axis=0)
        return np.stack([*(total - self.counts), total, *halves])


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """The fitted log-ratios of the cells of one column.

    weights: (cells,), fitted to all draws.
    by_fold: (folds, cells), fitted without each fold.
    halves: (2, cells), fitted to each half of the folds.
    gain: log-likelihood of the inputs of held-out draws minus the log-likelihood at even odds, in
        nats.
    """

    weights: FloatArray
    by_fold: FloatArray
    halves: FloatArray
    gain: float


def _telling(gains: Sequence[float]) -> NDArray[np.bool_]:
    """Return which columns have a signal, at a false discovery rate of a tenth (Benjamini &
    Hochberg 1995): (columns,).

    gains: for each column, the gain in held-out log-likelihood, in nats. Without a signal it is χ²
        with one degree of freedom. (It would be half of that if folds were independent, but each
        pair of folds counts twice.)
    """
    p = np.array([math.erfc(math.sqrt(gain / 2)) if gain > 0 else 1.0 for gain in gains])
    allowed = tuning.NOISE_COLUMNS * np.arange(1, len(p) + 1) / max(1, len(p))
    passes = np.flatnonzero(np.sort(p) <= allowed)
    return p <= (np.sort(p)[passes[-1]] if len(passes) else -1.0)


def _best(column: _Divided, fits: Sequence[FloatArray]) -> _Fit:
    """Return the fit with the largest held-out likelihood, multiplied by the constant that
    maximizes this likelihood; zeros if no fit is better than log-odds of 0.

    column: the column as cells, with its draws by fold, cell and input.
    fits: log-odds by cell, each (fits, cells), from simple to complex. A fit replaces a simpler fit
        only if its log-likelihood is larger by more than a nat.
    """
    best, most_gained = np.zeros_like(fits[0]), 0.0
    for fit in fits:
        scaled = scale_of(fit[:FOLDS], column.counts) * fit
        gained = _gain(scaled[:FOLDS], column.counts)
        if gained > most_gained + tuning.COST_OF_PARAMETER:
            best, most_gained = scaled, gained
    return _Fit(best[FOLDS], best[:FOLDS], best[-2:], most_gained)


def _closely(columns: Sequence[_Divided]) -> list[_Fit]:
    """Return the best fit of each column: piecewise linear, monotone, or free."""
    trained = [one.train for one in columns]
    every = zip(columns, trained, _in_ramps(columns, trained), strict=True)
    return [
        _best(column, [*in_ramps, *_in_order(column, train), _shrunk(train)])
        for column, train, in_ramps in every
    ]


def _quickly(column: _Divided) -> list[FloatArray]:
    """Return one or two fits that take little time: log-ratios linear in the normal score of the
    rank, if there are at least 3 intervals; and free log-ratios."""
    free, intervals = _shrunk(column.train), column.cells.intervals
    if intervals < _LEAST_INTERVALS:
        return [free]
    along = free.copy()
    along[:, :intervals] = _along(column.train[:, :intervals])
    return [along, free]


def _in_ramps(columns: Sequence[_Divided], trained: Sequence[IntArray]) -> list[list[FloatArray]]:
    """Return for each column a list of its piecewise linear fit; an empty list if the column has
    fewer than 3 intervals. Columns with equally many intervals are fitted together, which is many
    times faster."""
    result: list[list[FloatArray]] = [[] for _ in columns]
    for intervals in {one.cells.intervals for one in columns}:
        if intervals < _LEAST_INTERVALS:
            continue
        places = [at for at, one in enumerate(columns) if one.cells.intervals == intervals]
        numbers = [trained[at][:, :intervals][:, :: _step(trained[at], intervals)] for at in places]
        for at, odds in zip(places, log_odds_of_each(np.stack(numbers)), strict=True):
            every = trained[at].sum(axis=1)
            even = np.log((every[:, :1] + 1) / (every[:, 1:] + 1))
            fit = _shrunk(trained[at])
            fit[:, :intervals] = odds[:, :: _step(trained[at], intervals)] - even
            result[at] = [fit]
    return result


def _in_order(column: _Divided, train: IntArray) -> list[FloatArray]:
    """Return a list of the monotone fit of a column; an empty list if it has fewer than 3
    intervals."""
    intervals = column.cells.intervals
    if intervals < _LEAST_INTERVALS:
        return []
    step, result = _step(train, intervals), _shrunk(train)
    for ordered, one, arms in zip(result, train, train.sum(axis=1), strict=True):
        ordered[:intervals] = log_ratio(pooled_counts(one[:intervals][::step])[::step], arms)
    return [result]


def _step(train: IntArray, intervals: int) -> int:
    """Return 1 if the numbers of d1 are mostly larger, so that intervals rise from d2 to d1; else
    -1."""
    return 1 if larger_for_d1(train[FOLDS, :intervals]) else -1


def _along(train: IntArray) -> FloatArray:
    """Return log-ratios that are linear in the normal score of the middle rank of an interval,
    (fits, intervals), by one Newton step.

    train: (fits, intervals, 2), draws by interval and input.
    """
    from scipy.special import ndtri  # here, since workers that only score outputs do not need SciPy

    masses = train[FOLDS].sum(axis=1)
    middle = (np.cumsum(masses) - masses / 2 + 0.5) / (masses.sum() + 1)
    score = ndtri(middle)
    score -= (masses @ score) / max(1, masses.sum())
    draws, arms = train.sum(axis=2), train.sum(axis=1, keepdims=True)
    share = (arms[..., 0] + 1) / (arms.sum(axis=2) + 2)
    slope = (train[..., 0] - share * draws) @ score
    bend = (share * (1 - share) * draws) @ score**2
    return np.asarray((slope / np.maximum(bend, 1e-9))[:, None] * score)


def _shrunk(counts: IntArray) -> FloatArray:
    """Return the log-ratio of every cell, shrunk to zero where draws are few: (fits, cells). Unseen
    cells get 0.

    counts: (fits, cells, 2), draws by cell and input.
    """
    arms = counts.sum(axis=1, keepdims=True)
    expected = arms / np.maximum(1, arms.sum(axis=2, keepdims=True)) * 2
    log_counts = np.log(counts + tuning.PRIOR_DRAWS * expected + 0.5)
    log_arms = np.log(arms + 1)
    ratio = (log_counts[..., 0] - log_counts[..., 1]) - (log_arms[..., 0] - log_arms[..., 1])
    return np.where(counts.sum(axis=2) > 0, ratio, 0.0)


def scale_of(fit: FloatArray, counts: IntArray | FloatArray) -> float:
    """Return the factor on log-ratios that best predicts the inputs of held-out draws, by logistic
    regression. It is below 1 for noisy log-ratios, and 0 for pure noise.

    fit: (fits, cells), the log-ratios.
    counts: (fits, cells, 2), held-out draws by cell and input.
    """
    scale, draws = 0.0, counts.sum(axis=2).astype(np.float64)
    ahead, spread = counts[..., 0].astype(np.float64), fit**2 * draws
    for _ in range(_NEWTON_STEPS):
        share = 1 / (1 + np.exp(-scale * fit))
        slope = np.sum(fit * (ahead - draws * share))
        bend = np.sum(spread * share * (1 - share))
        if bend <= 0:
            return 0.0
        scale = min(max(scale + float(slope / bend), 0.0), tuning.LARGEST_SCALE)
    return scale


def _gain(fit: FloatArray, counts: IntArray) -> float:
    """Return the log-likelihood of the inputs of held-out draws, minus that at even odds, in nats.

    fit: (fits, cells), the log-ratios.
    counts: (fits, cells, 2), held-out draws by cell and input.
    """
    lost = np.log1p(np.exp(np.stack([-fit, fit], axis=-1)))
    return float(np.sum(counts * (math.log(2) - lost)))


# Largest number of intervals of an entry, counted over all runs.
_CELLS_OF_RUN = 64
# Matches the number of the run in the name of a column, as in output[3].mean.
_RUN = re.compile(r"\boutput\[\d+\]")
# Replaces the number of the run.
_EVERY = "output[*]"


def exchangeable(selection: SelectionDraws) -> list[OrderedBins]:
    """Order lists of independent runs by the sum over runs of the log-ratios of their entries.

    Runs on one input are independent and have one law, so this sum is the best score for runs of a
    single entry. The log-ratios are learned from all runs together.
    """
    groups = _alike(selection.outcomes.columns)
    if not groups:
        return []
    names, total = [], Total(selection)
    for name, columns in groups.items():
        cells = make_cells(join([replace(one, name=name) for one in columns]), _CELLS_OF_RUN)
        total.add(cells, *(cells(column) for column in columns))
        names.append([column.name for column in columns])
    tables, spread, held_out, halves = total.settle()
    importance = shares(list(groups), spread)
    what = f"adds up {max(map(len, names))} runs"
    said = with_most(what, importance) if len(importance) > 1 else what
    pairs = tuple((one, name) for one, own in zip(tables, names, strict=True) for name in own)
    freeze = partial(Additive, pairs, importance, said)
    return [by_score(Scored("sum over runs", held_out, freeze, halves), selection)]


def _alike(columns: Sequence[Column]) -> dict[str, list[Column]]:
    """Return columns by their name without the number of the run; each list has one column per
    run."""
    result: dict[str, list[Column]] = {}
    for column in columns:
        name, replaced = _RUN.subn(_EVERY, column.name, count=1)
        if replaced:
            result.setdefault(name, []).append(column)
    return result
