"""The additive scorer: a score that adds up one log-ratio for each column.

Each column is cut into cells (`levels/cells.py`). The sum of the log-ratios is the best score if
columns are independent given the input, as in histograms and repeated releases. For outputs that
are lists of independent runs (`exchangeable`), all runs share one table of log-ratios. `blocks.py`
and `whitened.py` use `summed` and `fitted_sum` to score some of the columns.
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
from dpaudit.levels.candidates import Candidate, by_score
from dpaudit.levels.cells import Cells, make_cells
from dpaudit.levels.level_map import (
    FOLDS,
    FloatArray,
    IntArray,
    by_fold,
    even_odds,
    folds,
    larger_for_d1,
    log_ratio,
    training_counts,
)
from dpaudit.levels.limits import MAX_COLUMNS, MAX_LEVELS, MAX_SUM_CELLS
from dpaudit.levels.piecewise_logit import log_odds
from dpaudit.levels.rule_tables import pooled_counts
from dpaudit.levels.scores import Scored, aligned, shares, with_most
from dpaudit.outcomes import ABSENT, KIND, Column, Outcomes
from dpaudit.outcomes.columns import join

# Number of Newton steps in `scale_of`, which finds the factor that makes log-ratios predict inputs
# best.
_NEWTON_STEPS = 4


def additive(selection: SelectionDraws, columns: Sequence[Column] | None = None) -> list[Candidate]:
    """Return a list with one order of outcomes: by the sum of the log-ratios of some columns.

    columns: the columns to use; None: all columns. For fewer than two, the list is empty.
    """
    columns = selection.outcomes.columns if columns is None else columns
    return [by_score(summed(selection, columns), selection)] if len(columns) > 1 else []


def summed(selection: SelectionDraws, columns: Sequence[Column]) -> Scored:
    """Return the score that sums the log-ratios of the given columns, at least one, fitted to the
    draws."""
    terms = [Term.of(make_cells(column, MAX_SUM_CELLS), column) for column in columns]
    tables, spread, held_out, halves = fitted_sum(terms, selection.is_d1)
    importance = shares([table.name for table in tables], spread)
    text = with_most(f"adds up {len(tables):,} coordinates", importance)
    final_score = partial(
        Additive, tuple((table, table.name) for table in tables), importance, text
    )
    return Scored("sum over coordinates", held_out, final_score, halves)


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """The score that sums the log-ratios of columns.

    tables: for each term of the sum, (cells, name of the column); the value of a cell is its
        log-ratio.
    text: the score in words.
    """

    tables: tuple[tuple[Cells, str], ...]
    columns: tuple[tuple[str, float], ...]
    text: str

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total = np.zeros(outcomes.size)
        used = [(table, name) for table, name in self.tables if table.says_something]
        columns = outcomes.named(name for _, name in used)
        for (table, _), column in zip(used, columns, strict=True):
            total += table(column)
        return total

    def words(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A term of the score: a column, or several columns that share a table of log-ratios, since
    they have the same distribution.

    indices: for each column, (draws,), the index of the cell of every draw.
    """

    cells: Cells
    indices: list[NDArray[np.int32]]

    @classmethod
    def of(cls, cells: Cells, *columns: Column) -> Term:
        return cls(cells, [cells(column).astype(np.int32) for column in columns])

    def tally(self, is_d1: NDArray[np.bool_]) -> IntArray:
        """Return the counts by fold: (folds, cells, 2). `is_d1`, (draws,), tells the inputs.

        A draw that has no entry in the column, such as a list that is too short, is not counted. It
        is counted only in a column of types.
        """
        labels, intervals = self.cells.labels, self.cells.intervals
        every = [by_fold(index, intervals + len(labels) + 1, is_d1) for index in self.indices]
        counts: IntArray = np.sum(every, axis=0)
        # Some outputs have no entry here, such as a list that is too short. Count none of them, so
        # that absence gets log-ratio 0: the column with the lengths of outputs, or with the types
        # of entries (its name begins with `KIND`), already counts the same evidence.
        if ABSENT in labels and not self.cells.name.startswith(KIND):
            counts[:, intervals + labels.index(ABSENT)] = 0
        return counts


def fitted_sum(
    terms: Sequence[Term], is_d1: NDArray[np.bool_]
) -> tuple[tuple[Cells, ...], list[float], FloatArray, FloatArray]:
    """Fit log-ratios to every term and sum them over the terms. Return four results:

    tables: for every term, its cells, with log-ratios as values. The values are 0 if the term's
        differences between d1 and d2 may be noise.
    spread: for every term, the standard deviation of its log-ratio over the draws.
    held_out: (draws,), the held-out sums, on the scale of the fit to all draws.
    halves: (2, draws), the sums by the fits to two halves of the draws.
    """
    size, fold = len(is_d1), folds(len(is_d1))
    tables, spread, halves = [], [], np.zeros((2, size))
    held_out, final = np.zeros(size), np.zeros(size)
    fits = _fitted(terms, is_d1)
    have_signal = _with_signal([gain for _, gain in fits])
    for term, (fit, _), has_signal in zip(terms, fits, have_signal, strict=True):
        total, weights = np.zeros(size), fit[FOLDS]
        for small in term.indices if has_signal else ():
            # Indices of type `intp` make `take` several times faster than other types of index or a
            # pair of indices.
            index = small.astype(np.intp)
            total += fit.take(fold * len(weights) + index)
            final += weights.take(index)
            for half, table in zip(halves, fit[-2:], strict=True):
                half += table.take(index)
        held_out += total
        spread.append(float(total.std()))
        tables.append(term.cells.with_values(has_signal * weights))
    return tuple(tables), spread, aligned(held_out, fold, final), halves


@dataclass(frozen=True, slots=True, eq=False)
class _TermCounts:
    """The counts to which the log-ratios of one term are fitted.

    intervals: number of cells that are intervals of numbers; the cells after them are labels.
    held_out: (folds, cells, 2), the counts of each fold.
    train: (fits, cells, 2), the counts from which each fit is made.
    free: (fits, cells), the log-ratio of every cell from its own counts alone.
    """

    intervals: int
    held_out: IntArray
    train: IntArray
    free: FloatArray

    @property
    def has_order(self) -> bool:
        """Whether the column has at least 3 intervals of numbers. With fewer, only one way to fit
        is tried."""
        return self.intervals > 2

    @property
    def numbers(self) -> IntArray:
        """Training counts of the intervals, (fits, intervals, 2), in the order in which evidence
        for d1 rises."""
        return self.train[:, : self.intervals][:, :: self.step]

    @property
    def step(self) -> int:
        """1 if numbers drawn on d1 are mostly larger than numbers drawn on d2, else -1."""
        return 1 if larger_for_d1(self.train[FOLDS, : self.intervals]) else -1

    def with_numbers(self, log_ratios: FloatArray) -> FloatArray:
        """Return log-ratios of all cells, (fits, cells): `log_ratios` for intervals, `free` for
        labels."""
        result = self.free.copy()
        result[:, : self.intervals] = log_ratios
        return result


# The fits of one term, as (log_ratios, gain). log_ratios: (fits, cells), the log-ratio of each cell
# by each fit; every fit uses another part of the draws. gain: the log-likelihood of the inputs of
# held-out draws minus their log-likelihood at even odds, in nats.
_Fit = tuple[FloatArray, float]


def _fitted(terms: Sequence[Term], is_d1: NDArray[np.bool_]) -> list[_Fit]:
    """Return the fits of each term; only the 128 of largest gain get piecewise linear fits."""
    columns = []
    for term in terms:
        counts = term.tally(is_d1)
        train = training_counts(counts)
        columns.append(_TermCounts(term.cells.intervals, counts, train, _shrunk(train)))
    if len(columns) <= MAX_COLUMNS:
        return _closely(columns)
    fits = [_best(column, _in_order(column)) for column in columns]
    some = np.argsort([-gain for _, gain in fits], kind="stable")[:MAX_COLUMNS].tolist()
    for index, fit in zip(some, _closely([columns[index] for index in some]), strict=True):
        fits[index] = fit
    return fits


def _with_signal(gains: Sequence[float]) -> NDArray[np.bool_]:
    """Return a mask of the columns with a signal, at a false discovery rate of 10 %."""
    # Benjamini & Hochberg 1995. The gain, in nats, of a column without a signal is taken to be χ²
    # with one degree of freedom. This is twice the gain that independent fits would have: each fold
    # helps to fit the score of every other fold, so that chance agreement of two folds counts
    # twice.
    p = np.array([math.erfc(math.sqrt(gain / 2)) if gain > 0 else 1.0 for gain in gains])
    allowed = tuning.FALSE_DISCOVERY_RATE * np.arange(1, len(p) + 1) / max(1, len(p))
    passes = np.flatnonzero(np.sort(p) <= allowed)
    return p <= (np.sort(p)[passes[-1]] if len(passes) else -1.0)


def _best(column: _TermCounts, fits: Sequence[FloatArray]) -> _Fit:
    """Return the best scaled fit by held-out inputs; log-ratios of 0 if none gains a nat."""
    # `fits` are listed from simple to complex; a fit replaces a simpler one only if it gains a nat
    # more.
    best, most_gained = np.zeros_like(fits[0]), 0.0
    for fit in fits:
        scaled = scale_of(fit[:FOLDS], column.held_out) * fit
        gained = _gain(scaled[:FOLDS], column.held_out)
        if gained > most_gained + tuning.COST_OF_PARAMETER:
            best, most_gained = scaled, gained
    return best, most_gained


def _closely(columns: Sequence[_TermCounts]) -> list[_Fit]:
    """Return the best of three fits of each column: piecewise linear, monotone, and free."""
    # Piecewise linear fits of columns with the same number of intervals are made together, which is
    # many times faster.
    fits = [_in_order(column) for column in columns]
    for intervals in {column.intervals for column in columns if column.has_order}:
        indices = [index for index, column in enumerate(columns) if column.intervals == intervals]
        every = log_odds(np.stack([columns[index].numbers for index in indices]))
        for index, odds in zip(indices, every, strict=True):
            column, arms = columns[index], columns[index].train.sum(axis=1)
            even = even_odds(arms)[:, None]
            fits[index].insert(0, column.with_numbers(odds[:, :: column.step] - even))
    return [_best(column, column_fits) for column, column_fits in zip(columns, fits, strict=True)]


def _in_order(column: _TermCounts) -> list[FloatArray]:
    """Return the two quick fits of a column, monotone and free, each (fits, cells)."""
    if not column.has_order:
        return [column.free]
    ordered = np.stack([pooled_counts(counts) for counts in column.numbers])[:, :: column.step]
    monotone = log_ratio(ordered, column.train.sum(axis=1, keepdims=True))
    return [column.with_numbers(monotone), column.free]


def _shrunk(counts: IntArray) -> FloatArray:
    """Return log-ratios, (fits, cells), shrunk to zero where draws are few; 0 for unseen cells."""
    arms = counts.sum(axis=1, keepdims=True)
    expected = arms / np.maximum(1, arms.sum(axis=2, keepdims=True)) * 2
    log_counts = np.log(counts + tuning.PRIOR_DRAWS * expected + 0.5)
    log_arms = np.log(arms + 1)
    ratio = (log_counts[..., 0] - log_counts[..., 1]) - (log_arms[..., 0] - log_arms[..., 1])
    return np.where(counts.sum(axis=2) > 0, ratio, 0.0)


def scale_of(fit: FloatArray, counts: IntArray | FloatArray) -> float:
    """Return the factor by which log-ratios must be multiplied to predict held-out inputs best, by
    logistic regression. It is below 1 for noisy log-ratios, and 0 if they are only noise.

    fit: log-ratios by fold and cell, (folds, cells).
    counts: held-out draws, (folds, cells, 2).
    """
    scale, draws = 0.0, counts.sum(axis=2).astype(np.float64)
    d1_draws, spread = counts[..., 0].astype(np.float64), fit**2 * draws
    for _ in range(_NEWTON_STEPS):
        share = 1 / (1 + np.exp(-scale * fit))
        slope = np.sum(fit * (d1_draws - draws * share))
        bend = np.sum(spread * share * (1 - share))
        if bend <= 0:
            return 0.0
        scale = min(max(scale + float(slope / bend), 0.0), tuning.MAX_COLUMN_SCALE)
    return scale


def _gain(fit: FloatArray, counts: IntArray) -> float:
    """Return the log-likelihood of held-out inputs minus that for equal probabilities, in nats."""
    lost = np.log1p(np.exp(np.stack([-fit, fit], axis=-1)))
    return float(np.sum(counts * (math.log(2) - lost)))


# Matches the number of the run in a column's name: `output[3]` in `output[3].mean`.
_RUN = re.compile(r"\boutput\[\d+\]")
# If outputs are lists of independent runs of a mechanism, this text replaces the index of the run
# in a column's name: `output[3].mean` becomes `output[*].mean`.
_EVERY = "output[*]"


def exchangeable(selection: SelectionDraws) -> list[Candidate]:
    """Return orders of outcomes that are lists of independent runs of a mechanism, by the sum of
    the log-ratios of all entries of all runs.

    All runs on one input have the same distribution, so the log-ratio of an entry is learned from
    all runs together. If each run has a single entry, the score is the log-likelihood ratio of the
    outcome, which is the best score.
    """
    groups = _alike(selection.outcomes.columns)
    if not groups:
        return []
    terms = []
    for name, columns in groups.items():
        # Each run has a column for this entry. These columns are joined to one long column. It has
        # many values, so it is cut into 64 intervals (`MAX_LEVELS`) instead of 32
        # (`MAX_SUM_CELLS`).
        cells = make_cells(join([replace(column, name=name) for column in columns]), MAX_LEVELS)
        terms.append(Term.of(cells, *columns))
    tables, spread, held_out, halves = fitted_sum(terms, selection.is_d1)
    importance = shares(list(groups), spread)
    what = f"adds up {max(map(len, groups.values())):,} runs"
    text = with_most(what, importance) if len(importance) > 1 else what
    columns_of_tables = zip(tables, groups.values(), strict=True)
    pairs = tuple(
        (table, column.name) for table, columns in columns_of_tables for column in columns
    )
    final_score = partial(Additive, pairs, importance, text)
    return [by_score(Scored("sum over runs", held_out, final_score, halves), selection)]


def _alike(columns: Sequence[Column]) -> dict[str, list[Column]]:
    """Group columns by their name without the number of the run, such as `output[*].mean`."""
    result: dict[str, list[Column]] = {}
    for column in columns:
        name, replaced = _RUN.subn(_EVERY, column.name, count=1)
        if replaced:
            result.setdefault(name, []).append(column)
    return result
