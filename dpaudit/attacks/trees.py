"""The scorer for interactions of columns: gradient-boosted trees (scikit-learn's histogram
version).

Trees get the columns, and the scores of the cheaper scorers, as inputs. Importing scikit-learn
alone takes a second. So trees are fitted only if two columns together tell more about the input
than the best other score explains: enough to raise its gain by 2 %. They are kept only if their
gain is larger by 2 %, or if their predicted bound is the best.
"""

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
from dpaudit.attacks.objective import Objective, best_predicted, rank_key
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate, by_score
from dpaudit.levels.cells import equal_mass_groups, listed
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.limits import (
    MAX_DRAWS_SLOW,
    MAX_FLOATS,
    MAX_TREE_COLUMNS,
    MIN_DRAWS_TO_RANK,
    MIN_EXPECTED_DRAWS,
    PAIR_TEST_ALPHA,
    SMALL_SHARE,
    VALUE_GROUPS,
)
from dpaudit.levels.portfolio import TREES, Tried
from dpaudit.levels.scores import Score, Scored, cross_fitted, most, shares
from dpaudit.outcomes import KIND, Outcomes
from dpaudit.wording import install_command

NAME = TREES

# Settings that differ from scikit-learn's defaults. Outcomes are noisy, so the settings make trees
# smaller.
_SETTINGS: dict[str, Any] = {
    "max_leaf_nodes": 15,
    "min_samples_leaf": 30,
    "l2_regularization": 1.0,
    "early_stopping": True,
    "n_iter_no_change": 8,
    "validation_fraction": 0.15,
    "random_state": 0,
}


def is_installed() -> bool:
    """Return whether scikit-learn is installed, without importing it."""
    return importlib.util.find_spec("sklearn") is not None


def propose_trees(
    selection: SelectionDraws,
    objective: Objective,
    candidates: Sequence[Candidate],
) -> tuple[list[Candidate], list[Tried]]:
    """Return (candidates, skipped): the candidate of trees, or else the reason why trees are left
    out. For fewer than 2,000 draws both lists are empty. `candidates` are those of all other
    scorers."""
    if selection.size < MIN_DRAWS_TO_RANK:
        return [], []
    best = max(candidates, key=lambda candidate: rank_key(candidate, objective))
    base = _most_explaining(candidates, best)
    reason = _why_no_trees(selection, objective, best, base)
    if reason is None:
        scores = [candidate.scored for candidate in candidates if candidate.scored]
        (result,) = trees(selection, scores)
        is_better = rank_key(result, objective) > rank_key(best, objective)
        if is_better or result.smoothed.log_likelihood > _wanted_likelihood(base, selection.size):
            return [result], []
        reason = f"they explain no more than {base.attack}"
    return [], [Tried(NAME, None, reason)]


def trees(selection: SelectionDraws, scores: Sequence[Scored]) -> list[Candidate]:
    """Return a list with one order of outcomes, by boosted trees whose inputs are the columns and
    the scores of other scorers."""
    features = tuple(raw_features(selection.outcomes.columns))
    table = matrix(features, selection.outcomes, [scored.held_out for scored in scores])
    held_out, model, halves = cross_fitted(
        selection.size,
        MAX_DRAWS_SLOW,
        lambda rows: _fitted(table[rows], selection.is_d1[rows], features),
        lambda model, rows: _odds(model, table[rows]),
    )
    final_score = partial(_final_score, features, scores, model, table[-MIN_DRAWS_TO_RANK:].copy())
    return [by_score(Scored(NAME, held_out, final_score, halves), selection)]


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
    """The score that is the log-odds of d1 by boosted trees.

    features, scores: inputs of the model, in this order.
    """

    features: tuple[Feature, ...]
    scores: tuple[Score, ...]
    model: Any
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        if outcomes.size == 0:
            return np.empty(0)
        table = matrix(self.features, outcomes, [score(outcomes) for score in self.scores])
        return _odds(self.model, table)

    def words(self) -> str:
        count = len({feature.column.removeprefix(KIND) for feature in self.features})
        named = most(self.columns)
        what = f"is the log-odds by boosted trees over {count:,} coordinates"
        return f"{what}, most of it from {listed(named, 'and')}" if named else what


def has_interplay(selection: SelectionDraws, candidate: Candidate) -> bool:
    """Return whether trees are worth fitting: whether, for some two columns, their values together
    tell more about the input than a candidate does. The difference must be significant by a χ²
    test, and large enough to raise the candidate's gain by 2 %."""
    columns = selection.outcomes.columns
    pairs = len(columns) * (len(columns) - 1) // 2
    # With many pairs of columns, fewer draws are used to save time.
    rows = min(selection.size, MAX_DRAWS_SLOW, max(MIN_DRAWS_TO_RANK, MAX_FLOATS // pairs))
    share = _predicted_shares(candidate, selection)[:rows]
    surprise, variance = selection.is_d1[:rows] - share, share * (1 - share)
    groups = np.stack(
        [equal_mass_groups(column.take(slice(rows)), VALUE_GROUPS) for column in columns]
    )
    # `known` is the gain in log-likelihood, in nats, of the candidate's predictions over the
    # prediction ½ for both inputs. Trees are worth fitting if two columns together may add 2 %
    # (`SMALL_SHARE`) of it.
    known = max(0.0, float(np.log(2 * (1 - np.abs(surprise))).sum()))
    least = SMALL_SHARE * known
    return any(
        _is_striking(
            first, groups[index + 1 :], (surprise, variance), PAIR_TEST_ALPHA / pairs, least
        )
        for index, first in enumerate(groups[:-1])
    )


def _is_striking(
    first: NDArray[np.intp],
    groups: NDArray[np.intp],
    moments: tuple[FloatArray, FloatArray],
    luck: float,
    least: float,
) -> bool:
    """Return whether a column and some other one together show a large enough difference."""
    table = np.arange(len(groups))[:, None] * VALUE_GROUPS
    cell = ((table + groups) * VALUE_GROUPS + first).ravel()
    shape = len(groups), VALUE_GROUPS**2
    sums, noise = (
        np.bincount(cell, np.tile(moment, len(groups)), math.prod(shape)).reshape(shape)
        for moment in moments
    )
    counted = noise > MIN_EXPECTED_DRAWS
    squares = np.where(counted, sums**2 / np.maximum(noise, MIN_EXPECTED_DRAWS), 0.0).sum(axis=1)
    freedom = np.maximum(counted.sum(axis=1), 1)
    return bool(np.any((chdtrc(freedom, squares) < luck) & (squares - freedom > 2 * least)))


def _predicted_shares(candidate: Candidate, selection: SelectionDraws) -> FloatArray:
    """Return the probability of d1 that a candidate predicts for every draw: (draws,)."""
    mean = selection.is_d1.mean()
    if not candidate.is_smooth:
        return np.full(selection.size, mean)
    draws = candidate.smoothed.draws + 0.5
    share = np.append(draws[:, 0] / draws.sum(axis=1), mean)
    scored = candidate.scored
    level = candidate.level_map()(selection.outcomes) if scored is None else scored.levels
    return np.asarray(share[level])


def _most_explaining(candidates: Sequence[Candidate], best: Candidate) -> Candidate:
    """Return the smooth candidate of largest likelihood, of those with a score and `best`."""
    known = [
        candidate
        for candidate in candidates
        if candidate.is_smooth and (candidate is best or candidate.has_score)
    ]
    return max(known, key=lambda candidate: candidate.smoothed.log_likelihood, default=best)


def _wanted_likelihood(base: Candidate, draws: int) -> float:
    """Return the log-likelihood that trees must exceed."""
    if not base.is_smooth:
        return -math.inf
    known = base.smoothed.log_likelihood + draws * math.log(2)
    return base.smoothed.log_likelihood + SMALL_SHARE * max(0.0, known)


def _why_no_trees(
    selection: SelectionDraws,
    objective: Objective,
    best: Candidate,
    base: Candidate,
) -> str | None:
    """Return the reason for not fitting trees, in words; None if they are worth a try."""
    columns = len(selection.outcomes.columns)
    if columns > MAX_TREE_COLUMNS:
        return f"{columns:,} columns are too many, more than {MAX_TREE_COLUMNS}"
    arms = int(selection.is_d1.sum()), int((~selection.is_d1).sum())
    perfect = objective.perfect_bound(arms)
    if best_predicted(best, objective) >= (1 - SMALL_SHARE) * perfect:
        return f"{best.attack} promises nearly the largest bound that this number of draws allows"
    # Check candidates until one uses all that columns show together. `best` (largest `rank_key`)
    # comes first, since checking `base` (largest likelihood) takes longer.
    known = [best, base] if best.is_smooth else [base]
    enough = next(
        (
            candidate
            for candidate in dict.fromkeys(known)
            if not has_interplay(selection, candidate)
        ),
        None,
    )
    if enough is not None:
        return f"no two columns show more together than {enough.attack} uses"
    return None if is_installed() else f"scikit-learn is not there: {install_command('learned')}"


def _fitted(table: FloatArray, is_d1: np.ndarray[Any, Any], features: Sequence[Feature]) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    names = [index for index, feature in enumerate(features) if isinstance(feature, Category)]
    model = HistGradientBoostingClassifier(categorical_features=names or None, **_SETTINGS)
    with _one_thread():
        return model.fit(_bounded(table), is_d1)


def _odds(model: Any, table: FloatArray) -> FloatArray:
    """Return the log-odds of d1 for every row of a table, computed in pieces to save memory."""
    pieces = (
        table[start : start + MAX_DRAWS_SLOW] for start in range(0, len(table), MAX_DRAWS_SLOW)
    )
    with _one_thread():
        return np.concatenate([model.decision_function(_bounded(piece)) for piece in pieces])


def _bounded(table: FloatArray) -> FloatArray:
    """Return the table with the largest floats for infinities, which scikit-learn refuses."""
    largest = np.finfo(np.float64).max
    return np.clip(table, -largest, largest)


def _one_thread() -> AbstractContextManager[Any]:
    """Return a context with one OpenMP thread, since threads of several workers compete."""
    return cast("AbstractContextManager[Any]", _thread_pools().limit(limits=1, user_api="openmp"))


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _final_score(
    features: tuple[Feature, ...], scores: Sequence[Scored], model: Any, sample: FloatArray
) -> Trees:
    inputs = tuple(scored.final_score() for scored in scores)
    moved = _importances(model, sample)
    importances = [
        (feature.column, weight) for feature, weight in zip(features, moved, strict=False)
    ]
    # The importance of a score is divided among the columns that the score depends on.
    for score, weight in zip(inputs, moved[len(features) :], strict=True):
        importances += [(name, weight * share) for name, share in score.columns]
    names, weights = zip(*importances, strict=True)
    return Trees(features, inputs, model, shares(names, weights))


def _importances(model: Any, sample: FloatArray) -> list[float]:
    """Return the root mean square change of the log-odds after each input is shuffled."""
    rng, plain, result = np.random.default_rng(0), _odds(model, sample), []
    for column in range(sample.shape[1]):
        shuffled = sample.copy()
        shuffled[:, column] = rng.permutation(sample[:, column])
        result.append(float(np.sqrt(np.mean((_odds(model, shuffled) - plain) ** 2))))
    return result
