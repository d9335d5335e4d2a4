"""The additive scorer: the sum over columns of binned log-ratios.

It is optimal when the columns are independent given the input: histograms, repeated releases.
For repeated runs, one log-ratio is learned from all runs together.
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

_CELLS = 32
# Columns, at most, that get a close fit; the others get a quick one.
_CLOSELY = 128
_NEWTON_STEPS = 4
# Intervals from which on piecewise linear and monotone fits differ from free ones.
_LEAST_INTERVALS = 3


def additive(
    selection: SelectionDraws, columns: Sequence[Column] | None = None
) -> list[OrderedBins]:
    """Order vectors by the sum of the evidence of some columns (default: all)."""
    columns = selection.outcomes.columns if columns is None else columns
    return [by_score(summed(selection, columns), selection)] if len(columns) > 1 else []


def summed(selection: SelectionDraws, columns: Sequence[Column]) -> Scored:
    """Return the sum of the evidence of some columns, at least one."""
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
    """The score that adds up the evidence of columns.

    tables: for each term, the score of every cell and the name of the column.
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
    """The sum of the evidence of columns, scored for every selection draw by a fit to other
    folds."""

    def __init__(self, selection: SelectionDraws) -> None:
        self._is_d1, self._fold = selection.is_d1, folds(selection.size)
        self._columns: list[_Divided] = []

    def add(self, cells: Cells, *places: NDArray[np.integer]) -> None:
        """Add a column, or several columns with one distribution.

        places: for each column, the cell of every draw.
        """
        count = cells.intervals + len(cells.labels) + 1
        small = [place.astype(np.int32) for place in places]
        counts = np.sum([by_fold(place, count, self._is_d1) for place in small], axis=0)
        # An absent entry adds nothing: its type or a length has counted it already.
        for cell, label in enumerate(cells.labels, cells.intervals):
            if label == ABSENT and not cells.name.startswith(KIND):
                counts[:, cell] = 0
        self._columns.append(_Divided(cells, small, counts))

    def settle(self) -> tuple[tuple[Cells, ...], list[float], FloatArray, FloatArray]:
        """Return the fitted sum.

        The parts are the cells of every column with their log-ratios; the standard deviation of
        each term; the score of every draw by a fit to the other folds, on the scale of the fit
        to all draws; and the scores by fits to two halves, (2, draws). Columns that may be noise
        have weight 0.
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
                    # `take` with another type of index, or with two, is several times slower.
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
        """Return the fit of each column. A close fit takes milliseconds, so of many columns only
        the most telling ones get it."""
        if len(self._columns) <= _CLOSELY:
            return _closely(self._columns)
        fits = [_best(one, _quickly(one)) for one in self._columns]
        some = np.argsort([-fit.gain for fit in fits], kind="stable")[:_CLOSELY].tolist()
        for place, fit in zip(some, _closely([self._columns[at] for at in some]), strict=True):
            fits[place] = fit
        return fits


@dataclass(frozen=True, slots=True, eq=False)
class _Divided:
    """A column: its cells, the cell of every draw, and the counts (folds, cells, 2) without
    absent entries."""

    cells: Cells
    places: list[NDArray[np.int32]]
    counts: IntArray

    @property
    def train(self) -> IntArray:
        """Counts without each fold, of all draws, and of two halves of the folds: (fits, cells,
        2)."""
        total = self.counts.sum(axis=0)
        halves = self.counts[:HALF].sum(axis=0), self.counts[HALF:].sum(axis=0)
        return np.stack([*(total - self.counts), total, *halves])


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """The log-ratios of the cells of a column.

    weights: (cells,), fitted to all draws.
    by_fold: (folds, cells), fitted without each fold.
    halves: (2, cells), fitted to each half of the folds.
    gain: nats by which they predict the inputs of held-out draws better than even odds.
    """

    weights: FloatArray
    by_fold: FloatArray
    halves: FloatArray
    gain: float


def _telling(gains: Sequence[float]) -> NDArray[np.bool_]:
    """Return which columns tell something, at a false discovery rate of a tenth (Benjamini &
    Hochberg 1995): (columns,).

    Without a signal the gain is χ² with one degree of freedom: half of that if folds were
    independent, but each pair of folds counts twice.
    """
    p = np.array([math.erfc(math.sqrt(gain / 2)) if gain > 0 else 1.0 for gain in gains])
    allowed = tuning.NOISE_COLUMNS * np.arange(1, len(p) + 1) / max(1, len(p))
    passes = np.flatnonzero(np.sort(p) <= allowed)
    return p <= (np.sort(p)[passes[-1]] if len(passes) else -1.0)


def _best(column: _Divided, fits: Sequence[FloatArray]) -> _Fit:
    """Return the fit that predicts held-out inputs best, times the factor that predicts them
    best.

    fits: (fits, cells) each, from simple to free. A column that predicts nothing gets weight 0.
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
    """Return two fits that take little time: linear in the normal score of the rank, and free."""
    free, intervals = _shrunk(column.train), column.cells.intervals
    if intervals < _LEAST_INTERVALS:
        return [free]
    along = free.copy()
    along[:, :intervals] = _along(column.train[:, :intervals])
    return [along, free]


def _in_ramps(columns: Sequence[_Divided], trained: Sequence[IntArray]) -> list[list[FloatArray]]:
    """Return the piecewise linear fits of each column, none for columns of few intervals.
    Columns with equally many intervals are fitted together, which is many times faster."""
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
    """Return the monotone fit of a column, if it has enough intervals."""
    intervals = column.cells.intervals
    if intervals < _LEAST_INTERVALS:
        return []
    step, result = _step(train, intervals), _shrunk(train)
    for ordered, one, arms in zip(result, train, train.sum(axis=1), strict=True):
        ordered[:intervals] = log_ratio(pooled_counts(one[:intervals][::step])[::step], arms)
    return [result]


def _step(train: IntArray, intervals: int) -> int:
    """Return 1 if intervals are in the order from d2 to d1, else -1."""
    return 1 if larger_for_d1(train[FOLDS, :intervals]) else -1


def _along(train: IntArray) -> FloatArray:
    """Return log-ratios that are linear in the normal score of the middle rank: (fits,
    intervals), by one Newton step."""
    from scipy.special import ndtri  # which a worker does without, that only scores outputs

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
    """Return log-ratios, shrunk to zero where draws are few: (fits, cells). Unseen cells get 0."""
    arms = counts.sum(axis=1, keepdims=True)
    expected = arms / np.maximum(1, arms.sum(axis=2, keepdims=True)) * 2
    log_counts = np.log(counts + tuning.PRIOR_DRAWS * expected + 0.5)
    log_arms = np.log(arms + 1)
    ratio = (log_counts[..., 0] - log_counts[..., 1]) - (log_arms[..., 0] - log_arms[..., 1])
    return np.where(counts.sum(axis=2) > 0, ratio, 0.0)


def scale_of(fit: FloatArray, counts: IntArray | FloatArray) -> float:
    """Return the factor on held-out log-ratios that predicts the inputs best, by logistic
    regression. The factor shrinks noise; of pure noise it is 0.

    fit: (fits, cells).
    counts: (fits, cells, 2), held-out draws.
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
    """Return the nats by which held-out log-ratios predict the inputs better than even odds."""
    lost = np.log1p(np.exp(np.stack([-fit, fit], axis=-1)))
    return float(np.sum(counts * (math.log(2) - lost)))


_CELLS_OF_RUN = 64
_RUN = re.compile(r"\boutput\[\d+\]")
_EVERY = "output[*]"


def exchangeable(selection: SelectionDraws) -> list[OrderedBins]:
    """Order lists of runs by the sum of the evidence of each run.

    Runs on one input are independent with one law, so the sum is the best score once the
    log-ratio of a run is known; it is learned from all runs together.
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
    """Return the columns of the runs, by their name without the number of the run."""
    result: dict[str, list[Column]] = {}
    for column in columns:
        name, replaced = _RUN.subn(_EVERY, column.name, count=1)
        if replaced:
            result.setdefault(name, []).append(column)
    return result
