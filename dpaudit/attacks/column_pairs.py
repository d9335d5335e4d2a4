"""Whether pairs of columns tell more together than a score makes of them: a quick look before a
learner that costs much."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.cells import make_cells
from dpaudit.levels.isotonic import pooled_counts
from dpaudit.levels.level_map import FloatArray
from dpaudit.outcomes import Column

_GROUPS = 8
_MOST_DRAWS, _LEAST_DRAWS = 50_000, 2_000
# Draws times pairs of columns.
_MOST_WORK = 20_000_000


def has_interplay(selection: SelectionDraws, candidate: Candidate) -> bool:
    """Return whether the inputs differ in some table of two columns by more than the candidate's
    score explains."""
    columns = selection.outcomes.columns
    pairs = len(columns) * (len(columns) - 1) // 2
    rows = min(selection.size, _MOST_DRAWS, max(_LEAST_DRAWS, _MOST_WORK // pairs))
    share = _believed(candidate, selection)[:rows]
    surprise, variance = selection.is_d1[:rows] - share, share * (1 - share)
    groups = np.stack([_grouped(one.take(slice(rows))) for one in columns])
    striking = tuning.ERRORS_OF_PAIR + math.sqrt(2 * math.log(pairs))
    return any(
        _excess(first, groups[place + 1 :], surprise, variance) > striking
        for place, first in enumerate(groups[:-1])
    )


def _excess(
    first: NDArray[np.intp], others: NDArray[np.intp], surprise: FloatArray, variance: FloatArray
) -> float:
    """Return by how many standard errors one column with each of some others, (others, rows),
    surprises; of these the largest."""
    table = np.arange(len(others))[:, None] * _GROUPS
    cell = ((table + others) * _GROUPS + first).ravel()
    shape = len(others), _GROUPS**2
    cells = math.prod(shape)
    sums = np.bincount(cell, np.tile(surprise, len(others)), cells).reshape(shape)
    noise = np.bincount(cell, np.tile(variance, len(others)), cells).reshape(shape)
    least = tuning.INFORMATION_OF_CELL
    counted = noise > least
    squares = np.where(counted, sums**2 / np.maximum(noise, least), 0.0).sum(axis=1)
    freedom = np.maximum(counted.sum(axis=1), 1)
    return float(np.max((squares - freedom) / np.sqrt(2 * freedom)))


def _believed(candidate: Candidate, selection: SelectionDraws) -> FloatArray:
    """Return Pr[d1] of every draw by its held-out level; the share of d1 without a score."""
    mean = selection.is_d1.mean()
    if candidate.scored is None:
        return np.full(selection.size, mean)
    pooled = pooled_counts(candidate.held_out[:-1]) + 0.5
    share = np.append(pooled[:, 0] / pooled.sum(axis=1), mean)
    return np.asarray(share[candidate.scored.levels])


def _grouped(column: Column) -> NDArray[np.intp]:
    """Return the group of every entry: neighbouring cells of about equal mass together."""
    cell = make_cells(column, _GROUPS)(column).astype(np.intp)
    masses = np.bincount(cell)
    middle = (np.cumsum(masses) - masses / 2) / len(cell)
    return np.minimum((middle * _GROUPS).astype(np.intp), _GROUPS - 1)[cell]
