"""The additive attack: the sum over columns of binned log-ratios.

Optimal when the coordinates are independent given the input: histograms, repeated releases.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.cells import Cells, make_cells
from dpaudit.attacks.digitiser import Digitiser
from dpaudit.attacks.levels import (
    FOLDS,
    PENALTY,
    Candidate,
    FloatArray,
    IntArray,
    LevelMap,
    folds,
    log_ratio,
    tail_refined,
)
from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.outcomes import ABSENT, BEYOND, KIND, Outcomes

_CELLS = 32
# Log-ratios of cells move towards zero as if each had this many more draws of either input.
_PRIOR = 4.0
_COLUMNS_NAMED = 4


def additive(selection: SelectionDraws) -> list[Candidate]:
    """Order vectors by the sum of what each coordinate says by itself."""
    if len(selection.outcomes.columns) < 2:
        return []
    tables, spread, total = [], [], np.zeros(selection.size)
    fold = folds(selection.size)
    for column in selection.outcomes.columns:
        cells = make_cells(column, _CELLS)
        weights, held_out = _weights(cells, cells(column).astype(np.int64), fold, selection)
        tables.append(cells.with_values(_finite(weights)))
        spread.append(float(held_out.std()))
        total += held_out
    edges = np.unique(np.quantile(total, tail_refined(4 / selection.size), method="lower"))
    edges = edges[edges > total.min()]
    level = np.searchsorted(edges, total, side="right")
    table = np.bincount(level * 2 + ~selection.is_d1, minlength=(len(edges) + 2) * 2)
    freeze = partial(AdditiveLevels.make, tuple(tables), edges, _most(tables, spread))
    return [
        Candidate("sum over coordinates", table.reshape(-1, 2), PENALTY, freeze, is_plain=False)
    ]


@dataclass(frozen=True, slots=True, eq=False)
class AdditiveLevels(LevelMap):
    """The level of the summed scores of all columns. tables: cell to score, by column; most: the
    columns that move the score most."""

    tables: tuple[Cells, ...]
    digitise: Digitiser
    most: tuple[str, ...]

    @classmethod
    def make(
        cls, tables: tuple[Cells, ...], edges: FloatArray, most: tuple[str, ...]
    ) -> AdditiveLevels:
        return cls(tables, Digitiser(edges, np.arange(len(edges) + 1, dtype=np.intp)), most)

    @property
    def levels(self) -> int:
        return len(self.digitise.edges) + 2

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        total = np.zeros(outcomes.size)
        columns = outcomes.named(table.name for table in self.tables)
        for table, column in zip(self.tables, columns, strict=True):
            total += table(column)
        return np.asarray(self.digitise(total), dtype=np.intp)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        edges = [-np.inf, *self.digitise.edges.tolist(), np.inf]
        inside = np.flatnonzero(chosen[:-1])
        if len(inside) == 0:
            return "score is never as it was seen before"
        low, high = edges[inside[0]], edges[inside[-1] + 1]
        bounds = f"≥ {low:.4g}" if high == np.inf else f"< {high:.4g}"
        if low == -np.inf and high == np.inf:
            bounds = "is any number"
        what = f"the score adds up {len(self.tables)} coordinates"
        most = f", most of all {', '.join(self.most)}" if self.most else ""
        return f"score {bounds}, where {what}{most}"


def _most(tables: list[Cells], spread: list[float]) -> tuple[str, ...]:
    """Return which columns move the score most, leaving out those that hardly do."""
    order = np.argsort(spread)[::-1][:_COLUMNS_NAMED]
    telling = [i for i in order if spread[i] > max(spread) / 4]
    return tuple(dict.fromkeys(tables[i].name.removeprefix(KIND) for i in telling))


def _weights(
    cells: Cells, place: IntArray, fold: IntArray, selection: SelectionDraws
) -> tuple[FloatArray, FloatArray]:
    """Return the log-ratio of every cell, and for every draw that of its cell without its fold."""
    count = cells.intervals + len(cells.labels) + 1
    index = (fold * count + place) * 2 + ~selection.is_d1
    counts = np.bincount(index, minlength=FOLDS * count * 2).reshape(FOLDS, count, 2)
    # That an entry is not there says nothing of its own: the kind or a length has said it.
    for cell, label in enumerate(cells.labels, cells.intervals):
        if label == BEYOND or (label == ABSENT and not cells.name.startswith(KIND)):
            counts[:, cell] = 0
    everything = counts.sum(axis=0)
    by_fold = np.stack([_shrunk(everything - one) for one in counts])
    return _shrunk(everything), by_fold[fold, place]


def _shrunk(counts: IntArray) -> FloatArray:
    """Return log-ratios, nearer to zero where there are few draws; unseen cells say nothing."""
    arms = counts.sum(axis=0)
    expected = arms / max(1, arms.sum()) * 2
    return np.where(counts.sum(axis=1) > 0, log_ratio(counts + _PRIOR * expected, arms), 0.0)


def _finite(weights: FloatArray) -> FloatArray:
    return np.nan_to_num(weights)
