"""The additive attack: the sum over columns of binned log-ratios.

Optimal when the coordinates are independent given the input: histograms, repeated releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.cells import Cells, make_cells
from dpaudit.attacks.isotonic import pooled_counts
from dpaudit.attacks.levels import FOLDS, Candidate, FloatArray, IntArray, folds, log_ratio
from dpaudit.attacks.one_dimensional import larger_for_d1
from dpaudit.attacks.scores import Scored, most, shares
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import ABSENT, BEYOND, KIND, Outcomes

_CELLS = 32
# Log-ratios of cells move towards zero as if each had this many more draws of either input.
_PRIOR = 4.0
# Nats that a fit must predict the input better by than a simpler one.
_LEAST_GAIN = 1.0
_LARGEST_SCALE = 1.5
_NEWTON_STEPS = 4


def additive(selection: SelectionDraws) -> list[Candidate]:
    """Order vectors by the sum of what each coordinate says by itself."""
    columns = selection.outcomes.columns
    if len(columns) < 2:
        return []
    tables, spread, total = [], [], np.zeros(selection.size)
    fold = folds(selection.size)
    for column in columns:
        cells = make_cells(column, _CELLS)
        place = cells(column).astype(np.int64)
        weights, held_out = cell_weights(cells, place, fold, selection.is_d1)
        tables.append(cells.with_values(weights))
        spread.append(float(held_out.std()))
        total += held_out
    freeze = partial(Additive, tuple(tables), shares([one.name for one in columns], spread))
    return [Scored("sum over coordinates", total, freeze).candidate(selection)]


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """The score that adds up what every column says. tables: cell to score, by column."""

    tables: tuple[Cells, ...]
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total = np.zeros(outcomes.size)
        columns = outcomes.named(table.name for table in self.tables)
        for table, column in zip(self.tables, columns, strict=True):
            total += table(column)
        return total

    def words(self) -> str:
        named = most(self.columns)
        what = f"adds up {len(self.tables)} coordinates"
        return f"{what}, most of all {', '.join(named)}" if named else what


def cell_weights(
    cells: Cells, place: IntArray, fold: IntArray, is_d1: NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the log-ratio of every cell, and for every draw that of its cell without its fold.

    Of fits from simple to free the one is kept that predicts the input best on held-out draws, by
    a multiple of it that does; a column that predicts nothing weighs nothing.
    """
    count = cells.intervals + len(cells.labels) + 1
    index = (fold * count + place) * 2 + ~is_d1
    counts = np.bincount(index, minlength=FOLDS * count * 2).reshape(FOLDS, count, 2)
    # That an entry is not there says nothing of its own: the kind or a length has said it.
    for cell, label in enumerate(cells.labels, cells.intervals):
        if label == BEYOND or (label == ABSENT and not cells.name.startswith(KIND)):
            counts[:, cell] = 0
    everything = counts.sum(axis=0)
    train = np.concatenate([everything - counts, everything[None]])
    best, most_gained = np.zeros((FOLDS + 1, count)), 0.0
    for fit in _fits(train, cells.intervals):
        scaled = _scale(fit[:-1], counts) * fit
        gained = _gain(scaled[:-1], counts)
        if gained > most_gained + _LEAST_GAIN:
            best, most_gained = scaled, gained
    return best[-1], best[fold, place]


def _fits(train: IntArray, intervals: int) -> Sequence[FloatArray]:
    """Return log-ratios of every cell, each (folds + 1, cells): in order of size, and any."""
    free = np.stack([_shrunk(one) for one in train])
    if intervals < 3:
        return [free]
    step = 1 if larger_for_d1(train[-1, :intervals]) else -1
    ordered = free.copy()
    for fit, one in zip(ordered, train, strict=True):
        pooled = pooled_counts(one[:intervals][::step])[::step]
        fit[:intervals] = log_ratio(pooled, one.sum(axis=0))
    return [ordered, free]


def _shrunk(counts: IntArray) -> FloatArray:
    """Return log-ratios, nearer to zero where there are few draws; unseen cells say nothing."""
    arms = counts.sum(axis=0)
    expected = arms / max(1, arms.sum()) * 2
    return np.where(counts.sum(axis=1) > 0, log_ratio(counts + _PRIOR * expected, arms), 0.0)


def _scale(fit: FloatArray, counts: IntArray) -> float:
    """Return the multiple of held-out log-ratios that predicts the input best (logistic regression
    by Newton's method): noise has to be taken down, and what is all noise to nothing."""
    scale, draws = 0.0, counts.sum(axis=2)
    for _ in range(_NEWTON_STEPS):
        share = 1 / (1 + np.exp(-scale * fit))
        slope = np.sum(fit * (counts[..., 0] - draws * share))
        bend = np.sum(fit**2 * draws * share * (1 - share))
        if bend <= 0:
            return 0.0
        scale += float(slope / bend)
    return min(max(scale, 0.0), _LARGEST_SCALE)


def _gain(fit: FloatArray, counts: IntArray) -> float:
    """Return by how many nats held-out log-ratios predict the input better than even odds do."""
    lost = np.log1p(np.exp(np.stack([-fit, fit], axis=-1)))
    return float(np.sum(counts * (math.log(2) - lost)))
