"""The additive attack: the sum over columns of binned log-ratios.

Optimal when the coordinates are independent given the input: histograms, repeated releases.
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
# So many columns are fitted in every way; of more, those that a quick look finds to tell most.
_CLOSELY = 128
_NEWTON_STEPS = 4
# Of fewer, ramps and orders say nothing that free cells do not.
_LEAST_INTERVALS = 3


def additive(
    selection: SelectionDraws, columns: Sequence[Column] | None = None
) -> list[OrderedBins]:
    """Order vectors by the sum of the evidence of each of these columns, or of all."""
    columns = selection.outcomes.columns if columns is None else columns
    return [by_score(summed(selection, columns), selection)] if len(columns) > 1 else []


def summed(selection: SelectionDraws, columns: Sequence[Column]) -> Scored:
    """Return the sum of the evidence of each of these columns, one at least."""
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
    """The score that adds up what columns say. tables: cell to score, and the column's name."""

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
    """The sum of what columns say of the selection draws, by fits that had not seen them."""

    def __init__(self, selection: SelectionDraws) -> None:
        self._is_d1, self._fold = selection.is_d1, folds(selection.size)
        self._columns: list[_Divided] = []

    def add(self, cells: Cells, *places: NDArray[np.integer]) -> None:
        """Add a column, or several that are alike: every draw's cell in each."""
        count = cells.intervals + len(cells.labels) + 1
        small = [place.astype(np.int32) for place in places]
        counts = np.sum([by_fold(place, count, self._is_d1) for place in small], axis=0)
        # That an entry is absent says nothing of its own: the kind or a length has said it.
        for cell, label in enumerate(cells.labels, cells.intervals):
            if label == ABSENT and not cells.name.startswith(KIND):
                counts[:, cell] = 0
        self._columns.append(_Divided(cells, small, counts))

    def settle(self) -> tuple[tuple[Cells, ...], list[float], FloatArray, FloatArray]:
        """Return the cells of every column with their log-ratios, how far each column moves the
        sum, the score of every draw by a fit to the other folds, on the scale of the one that is
        kept, and by fits to two halves. Columns that may be noise weigh nothing."""
        tables, spread, halves = [], [], np.zeros((2, len(self._fold)))
        held_out, kept = np.zeros(len(self._fold)), np.zeros(len(self._fold))
        fitted = self._fitted()
        telling = _telling([one.gain for one in fitted])
        for column, fit, is_telling in zip(self._columns, fitted, telling, strict=True):
            said = np.zeros(len(self._fold))
            if is_telling:
                first = self._fold * len(fit.weights)
                for small in column.places:
                    # To take by any other type of index, or by two, takes several times as long.
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
        """Return what each column says. A look at one in every way takes milliseconds."""
        if len(self._columns) <= _CLOSELY:
            return _closely(self._columns)
        fits = [_best(one, _quickly(one)) for one in self._columns]
        some = np.argsort([-fit.gain for fit in fits], kind="stable")[:_CLOSELY].tolist()
        for place, fit in zip(some, _closely([self._columns[at] for at in some]), strict=True):
            fits[place] = fit
        return fits


@dataclass(frozen=True, slots=True, eq=False)
class _Divided:
    """A column: its cells, every draw's place in them, and the draws that say something, (folds,
    cells, 2)."""

    cells: Cells
    places: list[NDArray[np.int32]]
    counts: IntArray

    @property
    def train(self) -> IntArray:
        """The draws of all other folds, by fold, all draws, and those of two halves of the folds:
        (fits, cells, 2)."""
        total = self.counts.sum(axis=0)
        halves = self.counts[:HALF].sum(axis=0), self.counts[HALF:].sum(axis=0)
        return np.stack([*(total - self.counts), total, *halves])


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """The log-ratios of a column's cells by the fit to all draws, (cells,), by those without a
    fold, (folds, cells), and to two halves, (2, cells); and what is gained on held-out draws."""

    weights: FloatArray
    by_fold: FloatArray
    halves: FloatArray
    gain: float


def _telling(gains: Sequence[float]) -> NDArray[np.bool_]:
    """Return which columns tell something; of those, a tenth may be expected to be noise.

    A column that tells nothing gains χ² with one degree of freedom by its scale: half of that, were
    its folds independent, but each pair of them counts twice. Benjamini & Hochberg 1995: many
    columns that tell a little are kept, and one of many that looks as if it did is not.
    """
    p = np.array([math.erfc(math.sqrt(gain / 2)) if gain > 0 else 1.0 for gain in gains])
    allowed = tuning.NOISE_COLUMNS * np.arange(1, len(p) + 1) / max(1, len(p))
    passes = np.flatnonzero(np.sort(p) <= allowed)
    return p <= (np.sort(p)[passes[-1]] if len(passes) else -1.0)


def _best(column: _Divided, fits: Sequence[FloatArray]) -> _Fit:
    """Return the log-ratio of every cell by one of some fits, each (fits, cells).

    Of fits from simple to free the one is kept that predicts the input best on held-out draws, by
    a multiple of it that does; a column that predicts nothing weighs nothing.
    """
    best, most_gained = np.zeros_like(fits[0]), 0.0
    for fit in fits:
        scaled = scale_of(fit[:FOLDS], column.counts) * fit
        gained = _gain(scaled[:FOLDS], column.counts)
        if gained > most_gained + tuning.GAIN_OF_FIT:
            best, most_gained = scaled, gained
    return _Fit(best[FOLDS], best[:FOLDS], best[-2:], most_gained)


def _closely(columns: Sequence[_Divided]) -> list[_Fit]:
    """Return the best fits of columns: in a few ramps, in any order of size, or free."""
    trained = [one.train for one in columns]
    every = zip(columns, trained, _in_ramps(columns, trained), strict=True)
    return [
        _best(column, [*in_ramps, *_in_order(column, train), _shrunk(train)])
        for column, train, in_ramps in every
    ]


def _quickly(column: _Divided) -> list[FloatArray]:
    """Return two fits that take no time: along with the rank, and free."""
    free, intervals = _shrunk(column.train), column.cells.intervals
    if intervals < _LEAST_INTERVALS:
        return [free]
    along = free.copy()
    along[:, :intervals] = _along(column.train[:, :intervals])
    return [along, free]


def _in_ramps(columns: Sequence[_Divided], trained: Sequence[IntArray]) -> list[list[FloatArray]]:
    """Return the fits by ramps, one for each column that has any: those of as many intervals
    together, since one after the other takes many times as long."""
    found: list[list[FloatArray]] = [[] for _ in columns]
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
            found[at] = [fit]
    return found


def _in_order(column: _Divided, train: IntArray) -> list[FloatArray]:
    """Return the fit by a log-ratio that rises or falls, of a column of enough intervals."""
    intervals = column.cells.intervals
    if intervals < _LEAST_INTERVALS:
        return []
    step, found = _step(train, intervals), _shrunk(train)
    for ordered, one, arms in zip(found, train, train.sum(axis=1), strict=True):
        ordered[:intervals] = log_ratio(pooled_counts(one[:intervals][::step])[::step], arms)
    return [found]


def _step(train: IntArray, intervals: int) -> int:
    """Return 1 if intervals are in the order from d2 to d1, -1 if the other way round."""
    return 1 if larger_for_d1(train[FOLDS, :intervals]) else -1


def _along(train: IntArray) -> FloatArray:
    """Return log-ratios of intervals that are a multiple of the normal score of their middle ranks:
    (fits, intervals), by one step of Newton's method."""
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
    """Return (fits, cells) log-ratios of (fits, cells, 2) counts, nearer to zero where there are
    few draws; unseen cells say nothing."""
    arms = counts.sum(axis=1, keepdims=True)
    expected = arms / np.maximum(1, arms.sum(axis=2, keepdims=True)) * 2
    log_counts = np.log(counts + tuning.PRIOR_DRAWS * expected + 0.5)
    log_arms = np.log(arms + 1)
    ratio = (log_counts[..., 0] - log_counts[..., 1]) - (log_arms[..., 0] - log_arms[..., 1])
    return np.where(counts.sum(axis=2) > 0, ratio, 0.0)


def scale_of(fit: FloatArray, counts: IntArray | FloatArray) -> float:
    """Return the multiple of held-out log-ratios that predicts the input best (logistic regression
    by Newton's method): noise has to be taken down, and what is all noise to nothing.

    fit: (fits, cells).  counts: (fits, cells, 2), the held-out draws of each.
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
    """Return by how many nats held-out log-ratios predict the input better than even odds do."""
    lost = np.log1p(np.exp(np.stack([-fit, fit], axis=-1)))
    return float(np.sum(counts * (math.log(2) - lost)))


_CELLS_OF_RUN = 64
_RUN = re.compile(r"\boutput\[\d+\]")
_EVERY = "output[*]"


def exchangeable(selection: SelectionDraws) -> list[OrderedBins]:
    """Order lists of runs by the sum of the evidence of each run."""
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
    """Return the columns of runs, by what they are of every run."""
    found: dict[str, list[Column]] = {}
    for column in columns:
        name, replaced = _RUN.subn(_EVERY, column.name, count=1)
        if replaced:
            found.setdefault(name, []).append(column)
    return found
