"""Whether pairs of columns tell more together than a score makes of them: a quick look before a
learner that costs much."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.cells import make_cells
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.scores import MOST_ROWS
from dpaudit.outcomes import Column

_GROUPS = 8
# The chance that a look finds some pair of columns that tell nothing together.
_LUCK = 0.003
_LEAST_DRAWS = 2_000
# Draws times pairs of columns.
_MOST_WORK = 20_000_000


def has_interplay(selection: SelectionDraws, candidate: Candidate) -> bool:
    """Return whether the inputs differ in some table of two columns by more than the candidate
    explains: beyond luck, and by enough to be worth a search."""
    columns = selection.outcomes.columns
    pairs = len(columns) * (len(columns) - 1) // 2
    # Trees are fitted to no more.
    rows = min(selection.size, MOST_ROWS, max(_LEAST_DRAWS, _MOST_WORK // pairs))
    share = _believed(candidate, selection)[:rows]
    surprise, variance = selection.is_d1[:rows] - share, share * (1 - share)
    groups = np.stack([grouped(one.take(slice(rows)), _GROUPS) for one in columns])
    # Nats: what the candidate tells of the inputs, against which what a pair adds is held.
    known = max(0.0, float(np.log(2 * (1 - np.abs(surprise))).sum()))
    least = tuning.SHARE_OF_PAIR * known
    return any(
        _is_striking(first, groups[place + 1 :], (surprise, variance), _LUCK / pairs, least)
        for place, first in enumerate(groups[:-1])
    )


def _is_striking(
    first: NDArray[np.intp],
    others: NDArray[np.intp],
    moments: tuple[FloatArray, FloatArray],
    luck: float,
    least: float,
) -> bool:
    """Return whether one column with some of others, (others, rows), surprises by more nats than
    so many, and by more than has this chance by luck. moments: by row the surprise, and its
    variance."""
    table = np.arange(len(others))[:, None] * _GROUPS
    cell = ((table + others) * _GROUPS + first).ravel()
    shape = len(others), _GROUPS**2
    sums, noise = (
        np.bincount(cell, np.tile(one, len(others)), math.prod(shape)).reshape(shape)
        for one in moments
    )
    enough = tuning.INFORMATION_OF_CELL
    counted = noise > enough
    squares = np.where(counted, sums**2 / np.maximum(noise, enough), 0.0).sum(axis=1)
    freedom = np.maximum(counted.sum(axis=1), 1)
    return bool(np.any((chdtrc(freedom, squares) < luck) & (squares - freedom > 2 * least)))


def _believed(candidate: Candidate, selection: SelectionDraws) -> FloatArray:
    """Return Pr[d1] of every draw by its level, held out where that is known; the share of d1
    where levels have no order to smooth them by."""
    mean = selection.is_d1.mean()
    if not candidate.is_smooth:
        return np.full(selection.size, mean)
    draws = candidate.smoothed.draws + 0.5
    share = np.append(draws[:, 0] / draws.sum(axis=1), mean)
    scored = candidate.scored
    level = candidate.freeze()(selection.outcomes) if scored is None else scored.levels
    return np.asarray(share[level])


def grouped(column: Column, groups: int) -> NDArray[np.intp]:
    """Return the group of every entry: neighbouring cells of about equal mass together."""
    cell = make_cells(column, groups)(column).astype(np.intp)
    masses = np.bincount(cell)
    middle = (np.cumsum(masses) - masses / 2) / len(cell)
    return np.minimum((middle * groups).astype(np.intp), groups - 1)[cell]
