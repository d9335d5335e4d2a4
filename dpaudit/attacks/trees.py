"""Whether pairs of columns tell more together than a score makes of them: a quick look before a
learner that costs much."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from dpaudit.attacks.features import Category, Feature, matrix, raw_features
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, by_score
from dpaudit.levels.cells import listed, make_cells
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.scores import MOST_ROWS, Score, Scored, cross_fitted, most, shares
from dpaudit.outcomes import KIND, Column, Outcomes

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


NAME = "gradient-boosted trees"

_SHUFFLED_ROWS = 2_000
_DEALT_TOGETHER = 8
_SETTINGS: dict[str, Any] = {
    "learning_rate": 0.1,
    "max_iter": 100,
    "max_leaf_nodes": 15,
    "min_samples_leaf": 30,
    "l2_regularization": 1.0,
    "early_stopping": True,
    "n_iter_no_change": 8,
    "validation_fraction": 0.15,
    "random_state": 0,
}


def is_installed() -> bool:
    """Return whether scikit-learn is there; does not import it."""
    return importlib.util.find_spec("sklearn") is not None


def trees(selection: SelectionDraws, scores: Sequence[Scored]) -> list[Candidate]:
    """Order outcomes by boosted trees over their columns and the scores of other attacks."""
    features = tuple(raw_features(selection.outcomes.columns))
    table = matrix(features, selection.outcomes, [one.held_out for one in scores])
    held_out, model, halves = cross_fitted(
        selection.size,
        MOST_ROWS,
        lambda rows: _fitted(table[rows], selection.is_d1[rows], features),
        lambda one, rows: _odds_at(one, table, rows),
    )
    freeze = partial(_frozen, features, scores, model, table[-_SHUFFLED_ROWS:].copy())
    return [by_score(Scored(NAME, held_out, freeze, halves), selection)]


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """The log-odds of d1 by boosted trees. scores: further inputs, after the features."""

    features: tuple[Feature, ...]
    scores: tuple[Score, ...]
    model: Any
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        if outcomes.size == 0:
            return np.empty(0)
        table = matrix(self.features, outcomes, [one(outcomes) for one in self.scores])
        return _odds(self.model, table)

    def words(self) -> str:
        count = len({one.column.removeprefix(KIND) for one in self.features})
        named = most(self.columns)
        what = f"is the log-odds by boosted trees over {count} coordinates"
        return f"{what}, most of it from {listed(named, 'and')}" if named else what


def _fitted(table: FloatArray, is_d1: np.ndarray[Any, Any], features: Sequence[Feature]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    names = [place for place, one in enumerate(features) if isinstance(one, Category)]
    model = HistGradientBoostingClassifier(categorical_features=names or None, **_SETTINGS)
    with _one_thread():
        return model.fit(_bounded(table), is_d1)


def _odds(model: Any, table: FloatArray) -> FloatArray:
    with _one_thread():
        return np.asarray(model.decision_function(_bounded(table)), dtype=np.float64)


def _odds_at(model: Any, table: FloatArray, rows: IntArray) -> FloatArray:
    """Return the log-odds at some rows, of which copies are made piece by piece."""
    found = np.empty(len(rows))
    for start in range(0, len(rows), MOST_ROWS):
        piece = slice(start, start + MOST_ROWS)
        found[piece] = _odds(model, table[rows[piece]])
    return found


def _bounded(table: FloatArray) -> FloatArray:
    """Return the table without infinities, which the trees refuse."""
    largest = np.finfo(np.float64).max
    return np.clip(table, -largest, largest)


def _one_thread() -> AbstractContextManager[Any]:
    """Several workers each with several threads would stand in each other's way."""
    return cast("AbstractContextManager[Any]", _thread_pools().limit(limits=1, user_api="openmp"))


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _frozen(
    features: tuple[Feature, ...], scores: Sequence[Scored], model: Any, sample: FloatArray
) -> Trees:
    inputs = tuple(one.freeze() for one in scores)
    moved = _moved(model, sample)
    own = [(one.column, weight) for one, weight in zip(features, moved, strict=False)]
    # What moves a score counts for the columns that the score depends on.
    for score, weight in zip(inputs, moved[len(features) :], strict=True):
        own += [(name, weight * share) for name, share in score.columns]
    names, weights = zip(*own, strict=True)
    return Trees(features, inputs, model, shares(names, weights))


def _moved(model: Any, sample: FloatArray) -> list[float]:
    """Return for every input how far the log-odds move when its entries are dealt out anew."""
    rng = np.random.default_rng(0)
    plain, found = _odds(model, sample), []
    # Several inputs at a time: a call takes as long as to follow a thousand rows.
    for start in range(0, sample.shape[1], _DEALT_TOGETHER):
        places = range(start, min(start + _DEALT_TOGETHER, sample.shape[1]))
        dealt = np.repeat(sample[None], len(places), axis=0)
        for one, place in zip(dealt, places, strict=True):
            one[:, place] = rng.permutation(one[:, place])
        odds = _odds(model, dealt.reshape(-1, sample.shape[1])).reshape(len(places), -1)
        found += [float(np.sqrt(np.mean((one - plain) ** 2))) for one in odds]
    return found
