"""Logistic regression: the best weighted sum of the columns.

What columns that hang together say only together: the difference of two prefix sums, where each
alone says next to nothing. Fitted by Newton's method with a ridge (the columns are on one scale).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.linear.features import Above, Feature, Number, scaled_features, with_sides
from dpaudit.attacks.linear.products import solved, summed, times, weighted_gram
from dpaudit.attacks.linear.weighted import MOST_FEATURES, Linear, design_of
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate, by_score
from dpaudit.levels.level_map import FOLDS, FloatArray, folds
from dpaudit.levels.logits import probability, softplus
from dpaudit.levels.scores import Scored

NAME = "logistic regression"

_LEAST_DRAWS = 300
_MOST_WITH_SIDES = 128
# Draws times features that one fit looks at.
_MOST_ENTRIES = 5_000_000
_NEWTON_STEPS = 20
_HALVINGS = 8
_CLOSE = 1e-6
# Steps from the weights of all draws to those without some; of many draws these are so near to each
# other that the first step leads there.
_CORRECTIONS, _MANY_DRAWS = 3, 20_000
_ENOUGH_TO_COMPARE = 20_000
# Kinds of features whose weights are pooled, where there are so many.
_POOLED = (Number, Above)
_FEWEST_POOLED = 4


def logistic(selection: SelectionDraws) -> list[Candidate]:
    """Order outcomes by the linear log-odds of d1."""
    columns = selection.outcomes.columns
    if len(columns) < 2 or selection.size < _LEAST_DRAWS or len(columns) > MOST_FEATURES:
        return []
    features = scaled_features(columns)
    if not 1 < len(features) <= MOST_FEATURES:
        return []
    sides = with_sides(features)
    if not len(features) < len(sides) <= _MOST_WITH_SIDES:
        return [by_score(_fitted(features, selection).scored, selection)]
    # Of many draws some are enough to see which features to take.
    is_some = selection.size > 2 * _ENOUGH_TO_COMPARE
    some = selection.take(slice(_ENOUGH_TO_COMPARE)) if is_some else selection
    fits = [_fitted(one, some) for one in (features, sides)]
    is_better = fits[1].loss < fits[0].loss - tuning.GAIN_OF_FEATURES
    found = fits[is_better]
    if is_some:
        found = _fitted(sides if is_better else features, selection, found.weights)
    return [by_score(found.scored, selection)]


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """A score, its loss on held-out draws, in nats, and the weights of the largest likelihood."""

    scored: Scored
    loss: float
    weights: FloatArray


def _fitted(
    features: Sequence[Feature], selection: SelectionDraws, start: FloatArray | None = None
) -> _Fitted:
    """Return the score by these features. start: weights that were fitted to some of the draws."""
    design = design_of(features, selection.outcomes)
    target = selection.is_d1.astype(np.float64)
    fitted = min(selection.size, _MOST_ENTRIES // design.shape[1])
    kinds = np.array(
        [-1, *(_POOLED.index(type(one)) if type(one) in _POOLED else -1 for one in features)]
    )
    seen = slice(fitted)
    likeliest = _fit(design[seen], target[seen], start)
    held_out, weights, halves = _cross_fitted(design, target, fitted, kinds, likeliest)
    freeze = partial(Linear.of, features, weights, selection.outcomes)
    loss = float(np.sum(softplus(held_out) - target * held_out))
    return _Fitted(Scored(NAME, held_out, freeze, halves), loss, likeliest)


def _cross_fitted(
    design: FloatArray,
    is_d1: FloatArray,
    rows: int,
    kinds: NDArray[np.intp],
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log-odds of every draw by weights that it had no part in; the weights of the first
    `rows` draws, pooled; and the log-odds by those of two halves of them, (2, draws).

    kinds: by feature the kind that it is of, among which weights are pooled; -1 for none.
    weights: of the first `rows` draws.
    """
    seen, target = design[:rows], is_d1[:rows]
    fold = folds(rows)
    rates = probability(times(seen, weights))
    left = target - rates
    # By row in memory, of which the rows of a fold may weigh 0 without another order of rounding.
    by_row = np.ascontiguousarray(seen)
    each = [slice(one, None, FOLDS) for one in range(FOLDS)]
    parts = [_information(by_row[one], rates[one]) for one in each]
    slopes = [summed(by_row[one], left[one]) for one in each]
    total, slope = np.sum(parts, axis=0), np.sum(slopes, axis=0)
    both = [
        _corrected(seen[half], target[half], weights, total / 2, summed(by_row[half], left[half]))
        for half in (slice(None, None, 2), slice(1, None, 2))
    ]
    pooled = partial(_pooled, spreads=_spreads(weights, both, kinds))
    held_out = times(design, pooled(weights, 1.0))
    for one, (part, own) in enumerate(zip(parts, slopes, strict=True)):
        without = _corrected(by_row, target, weights, total - part, slope - own, fold != one)
        held_out[:rows][one::FOLDS] = times(
            by_row[one::FOLDS], pooled(without, FOLDS / (FOLDS - 1))
        )
    del by_row
    halves = [times(design, pooled(half, 2.0)) for half in both]
    return held_out, pooled(weights, 1.0), np.stack(halves)


@dataclass(frozen=True, slots=True, eq=False)
class _Spread:
    """The weights of one kind: the variance of what is true of them, and that of their errors."""

    of_kind: NDArray[np.bool_]
    truth: float
    error: float


def _spreads(
    weights: FloatArray, halves: list[FloatArray], kinds: NDArray[np.intp]
) -> list[_Spread]:
    """Return how far weights of a kind differ, and how much of it are errors: those of two halves
    of the draws differ by nothing else."""
    found = []
    for kind in range(len(_POOLED)):
        of_kind = kinds == kind
        if of_kind.sum() >= _FEWEST_POOLED:
            error = float(np.mean((halves[0] - halves[1])[of_kind] ** 2)) / 4
            truth = max(0.0, float(np.var(weights[of_kind])) - error)
            found.append(_Spread(of_kind, truth, error))
    return found


def _pooled(weights: FloatArray, times_error: float, spreads: list[_Spread]) -> FloatArray:
    """Return weights nearer to the mean of their kind, the more of what they differ by are errors
    (James & Stein 1961, towards the mean): noise that is alike in all columns weighs them alike."""
    weights = weights.copy()
    for one in spreads:
        own = weights[one.of_kind]
        kept = one.truth / max(one.truth + times_error * one.error, 1e-300)
        weights[one.of_kind] = own.mean() + kept * (own - own.mean())
    return weights


def _fit(design: FloatArray, target: FloatArray, start: FloatArray | None = None) -> FloatArray:
    """Return the weights of the largest penalised likelihood, by Newton's method from a start."""
    weights: FloatArray = np.zeros(design.shape[1]) if start is None else start
    loss = _loss(design, target, weights)
    for _ in range(_NEWTON_STEPS):
        rates = probability(times(design, weights))
        step = _solved(_information(design, rates), _slope(design, target - rates, weights))
        moved, lower = _shortened(design, target, weights, step, loss)
        if lower > loss - _CLOSE * len(target):
            return weights if lower > loss else moved
        weights, loss = moved, lower
    return weights


def _shortened(
    design: FloatArray, target: FloatArray, weights: FloatArray, step: FloatArray, loss: float
) -> tuple[FloatArray, float]:
    """Return where the step leads and the loss there; halved while that would be larger."""
    for halving in range(_HALVINGS):
        moved = weights + step / 2**halving
        lower = _loss(design, target, moved)
        if lower <= loss:
            break
    return moved, lower


def _corrected(
    design: FloatArray,
    target: FloatArray,
    weights: FloatArray,
    information: FloatArray,
    slope: FloatArray,
    kept: NDArray[np.bool_] | None = None,
) -> FloatArray:
    """Return the weights without a fold, from those with it: Newton steps whose matrix, that of the
    rest of the draws, is kept.

    slope: of the rest of the draws at the weights with the fold, without the penalty.  kept: which
    draws these are; None: all. The others weigh 0, which takes less than a copy.
    """
    weights = weights + _solved(information, slope - _ridge(len(weights)) * weights)
    for _ in range(_CORRECTIONS - 1 if len(target) < _MANY_DRAWS else 0):
        left = target - probability(times(design, weights))
        if kept is not None:
            left *= kept
        weights = weights + _solved(information, _slope(design, left, weights))
    return weights


def _information(design: FloatArray, rates: FloatArray) -> FloatArray:
    return weighted_gram(design, rates * (1 - rates))


def _slope(design: FloatArray, left: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the slope of the likelihood. left: what the weights leave of the target."""
    return summed(design, left) - _ridge(len(weights)) * weights


def _solved(information: FloatArray, slope: FloatArray) -> FloatArray:
    return solved(information + np.diag(_ridge(len(slope)) + 1e-9), slope)


def _ridge(width: int) -> FloatArray:
    """Return the penalty by weight; none on the constant."""
    penalty = np.full(width, tuning.RIDGE)
    penalty[0] = 0.0
    return penalty


def _loss(design: FloatArray, target: FloatArray, weights: FloatArray) -> float:
    odds = times(design, weights)
    penalty = float(_ridge(len(weights)) @ weights**2) / 2
    return float(np.sum(softplus(odds) - target * odds)) + penalty
