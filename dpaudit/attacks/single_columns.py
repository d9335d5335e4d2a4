"""The attack on single columns of wider outcomes: what tells most by itself, in plain words.

A key that is there for one input only, a length, one coordinate of many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.one_dimensional import orders_of
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.cells import make_cells
from dpaudit.outcomes import KIND, Column

IntArray = NDArray[np.intp]

ONE_COLUMN = "one column: "

# So many draws are enough to see which columns are worth a closer look, and so many columns get it.
# Of few draws what is in an entry tells hardly more than of what kind it is.
_DRAWS, _MANY = 20_000, 2_000
_CLOSER = 2
_CELLS = 32


def single_columns(
    selection: SelectionDraws, columns: Sequence[Column] | None = None
) -> list[Candidate]:
    """Order outcomes by one column, for each of the most telling of these columns, or of all."""
    columns = selection.outcomes.columns if columns is None else columns
    return orders_of_telling(selection, columns) if len(columns) > 1 else []


def orders_of_telling(selection: SelectionDraws, columns: Sequence[Column]) -> list[Candidate]:
    """Order outcomes by each of the most telling of some columns."""
    is_d1 = selection.is_d1[:_DRAWS].astype(np.intp)
    telling = np.array([_telling(column.take(slice(_DRAWS)), is_d1) for column in columns])
    # Of equals the first is the plainest: what an output is comes before what is in it.
    best = [columns[int(place)] for place in np.argsort(-telling, kind="stable")]
    worth = best[: int(np.count_nonzero(telling > tuning.ERRORS_OF_COLUMN))]
    found = [
        one for column in _closer(worth, selection.size) for one in orders_of(column, selection)
    ]
    return [replace(one, attack=f"{ONE_COLUMN}{one.attack}") for one in found]


def _closer(columns: Sequence[Column], draws: int) -> list[Column]:
    """Return the first columns; of many draws the first ones of numbers and labels, and as many
    that say of what kind an entry of another one is."""
    if draws < _MANY:
        return list(columns[:_CLOSER])
    kinds = [one.name.startswith(KIND) for one in columns]
    before = [kinds[:place].count(is_kind) for place, is_kind in enumerate(kinds)]
    return [one for one, others in zip(columns, before, strict=True) if others < _CLOSER]


def _telling(column: Column, is_d1: IntArray) -> float:
    """Return how many standard errors the inputs are apart in the cells of a column."""
    cells = make_cells(column, _CELLS)
    count = cells.intervals + len(cells.labels) + 1
    table = np.bincount(cells(column) * 2 + is_d1, minlength=2 * count).reshape(count, 2)
    table = table[table.sum(axis=1) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / max(1, table.sum())
    squares = (table - expected) ** 2 / np.maximum(expected, 1e-9)
    freedom = max(1, len(table) - 1)
    return float((squares.sum() - freedom) / np.sqrt(2 * freedom))
