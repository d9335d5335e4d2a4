"""Scorers of weighted sums of columns: logistic regression and, for many columns, differences of
means.

They find leaks that columns show only together, such as the difference of two prefix sums. The
matrix products run on one core: threads of BLAS wait for each other for seconds when cores are
busy, and their number changes the rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.features import (
    Above,
    Feature,
    NumberFeature,
    scaled_features,
    with_columns,
    with_sides,
    without_gaps,
)
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, by_score
from dpaudit.levels.cells import listed
from dpaudit.levels.level_map import FOLDS, FloatArray, folds
from dpaudit.levels.limits import (
    MAX_BLAS_PRODUCTS,
    MAX_COLUMNS,
    MAX_DRAWS_SLOW,
    MAX_FLOATS,
    MIN_DRAWS,
    NEWTON_STEPS,
    TINY,
)
from dpaudit.levels.piecewise_logit import probability, softplus
from dpaudit.levels.scores import Scored, most, shares
from dpaudit.outcomes import KIND, Outcomes


def gram(matrix: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Return matrixᵀ · diag(weights) · matrix, computed in pieces to save memory. None: all weights
    are 1."""
    width = matrix.shape[1]
    # The matrix is multiplied in pieces of rows, each so small that BLAS uses one thread: several
    # threads would wait for each other. With more than 128 columns (`MAX_COLUMNS`), such a piece
    # would have at most 12 rows; then one product of the whole matrix is faster.
    rows = MAX_BLAS_PRODUCTS // width**2 if width <= MAX_COLUMNS else max(1, len(matrix))
    total = np.zeros((width, width))
    for start in range(0, len(matrix), rows):
        piece = matrix[start : start + rows]
        weighted = piece if weights is None else piece * weights[start : start + rows, None]
        total += weighted.T @ piece
    return total


def times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Return matrix · vector."""
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def summed(matrix: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the weighted sum of the rows of a matrix: (columns,)."""
    return np.asarray(np.einsum("ij,i->j", matrix, weights))


def solved(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """Solve matrix · x = vector for x, where the matrix is positive definite. A large system is
    solved by conjugate gradients with a diagonal preconditioner (Golub & Van Loan 2013, §11.5)."""
    if len(vector) ** 3 < MAX_BLAS_PRODUCTS:
        return np.asarray(np.linalg.solve(matrix, vector))
    diagonal = np.diag(matrix)
    result = np.zeros(len(vector))
    residual = vector.astype(np.float64)
    step = eased = residual / diagonal
    size = float(np.sum(residual * eased))
    wanted = TINY**2 * size
    for _ in range(len(vector)):  # with exact arithmetic no more are needed
        if size <= wanted:
            break
        image = times(matrix, step)
        length = size / float(np.sum(step * image))
        result += length * step
        residual -= length * image
        eased = residual / diagonal
        previous, size = size, float(np.sum(residual * eased))
        step = eased + size / previous * step
    return result


# Largest number of features of a logistic regression, to limit its time.
MAX_FEATURES = 512


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A score: the log-odds of d1, computed as a weighted sum of features.

    weights: the weight of the constant 1, then of each feature.
    """

    features: tuple[Feature, ...]
    weights: tuple[float, ...]
    columns: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, features: Sequence[Feature], weights: FloatArray, outcomes: Outcomes) -> Linear:
        """Return the score with these weights: of the constant 1, then of each feature. The shares
        in `columns` are proportional to absolute weight times standard deviation of the feature in
        `outcomes`."""
        every = with_columns(features, outcomes)
        spread = np.abs(weights[1:]) * [
            without_gaps(feature(column)).std() for feature, column in every
        ]
        importance = shares([feature.column for feature in features], spread.tolist())
        return cls(tuple(features), tuple(weights.tolist()), importance)

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        total = np.full(outcomes.size, self.weights[0])
        # Terms are added one by one: a matrix product may round a score differently when other
        # outcomes of the batch change.
        every = zip(with_columns(self.features, outcomes), self.weights[1:], strict=True)
        for (feature, column), weight in every:
            total += weight * without_gaps(feature(column))
        return total

    def words(self) -> str:
        count = len({feature.column.removeprefix(KIND) for feature in self.features})
        named = [self._term(name) for name in most(self.columns)]
        what = f"is a weighted sum of {count:,} coordinates"
        return f"{what}, most of all {listed(named, 'and')}" if named else what

    def _term(self, name: str) -> str:
        """Return `weight × name` if its number is the only feature of the column, else its name."""
        pairs = zip(self.features, self.weights[1:], strict=True)
        terms = [
            (feature, weight)
            for feature, weight in pairs
            if feature.column.removeprefix(KIND) == name
        ]
        feature, weight = terms[0]
        if len(terms) > 1 or not isinstance(feature, NumberFeature):
            return name
        return f"{weight / (feature.scale or 1.0):.3g} × {name}"


def design_of(features: Sequence[Feature], outcomes: Outcomes) -> FloatArray:
    """Return the design matrix of a regression: a column of ones, then the features, with 0 in
    place of NaN. Shape (size, 1 + features), in Fortran order."""
    design = np.empty((outcomes.size, 1 + len(features)), order="F")
    design[:, 0] = 1.0
    for index, (feature, column) in enumerate(with_columns(features, outcomes), 1):
        design[:, index] = without_gaps(feature(column))
    return design


NAME = "logistic regression"

# Newton's method stops when a step lowers the loss by less than this number of nats per draw.
_LOSS_TOLERANCE = 1e-6
# A fit without one fold starts from the weights of the features that were fitted to all draws.
# Number of Newton steps that it makes from there, with fewer than 20,000 draws. With more draws, it
# makes 1 step.
_REFIT_STEPS = 3
# Types of features whose weights are shrunk: each weight moves towards the mean weight of its type.
_POOLED = (NumberFeature, Above)


def logistic(selection: SelectionDraws) -> list[Candidate]:
    """Return a list with an order of outcomes by the log-odds of d1. Logistic regression with a
    ridge penalty fits the log-odds as a linear function of features of the columns."""
    columns = selection.outcomes.columns
    if len(columns) < 2 or selection.size < MIN_DRAWS or len(columns) > MAX_FEATURES:
        return []
    features = scaled_features(columns)
    if not 1 < len(features) <= MAX_FEATURES:
        return []
    sides = with_sides(features)
    if not len(features) < len(sides) <= MAX_COLUMNS:
        return [by_score(_fitted(features, selection).scored, selection)]
    # With more than 40,000 draws, the fits to `features` and to `sides` (the features, and for each
    # number whether it is above its median) are compared on the first 20,000 draws.
    is_some = selection.size > 2 * MAX_DRAWS_SLOW
    some = selection.take(slice(MAX_DRAWS_SLOW)) if is_some else selection
    fits = [_fitted(inputs, some) for inputs in (features, sides)]
    is_better = fits[1].loss < fits[0].loss - tuning.GAIN_OF_CHOICE
    result = fits[is_better]
    if is_some:
        result = _fitted(sides if is_better else features, selection, result.weights)
    return [by_score(result.scored, selection)]


@dataclass(frozen=True, slots=True, eq=False)
class _Fitted:
    """A fitted logistic regression.

    loss: negative log-likelihood of held-out draws, in nats.
    weights: the weights of largest likelihood. The score uses them after shrinkage towards the mean
        weight of all features of the same type.
    """

    scored: Scored
    loss: float
    weights: FloatArray


def _fitted(
    features: Sequence[Feature], selection: SelectionDraws, start: FloatArray | None = None
) -> _Fitted:
    """Fit a logistic regression, starting from `start` or 0."""
    design = design_of(features, selection.outcomes)
    target = selection.is_d1.astype(np.float64)
    fitted = min(selection.size, MAX_FLOATS // design.shape[1])
    alike = [
        np.array([False, *(isinstance(feature, kind) for feature in features)]) for kind in _POOLED
    ]
    examined = slice(fitted)
    likeliest = _fit(design[examined], target[examined], start)
    held_out, weights, halves = _cross_fitted(design, target, fitted, alike, likeliest)
    final_score = partial(Linear.of, features, weights, selection.outcomes)
    loss = float(np.sum(softplus(held_out) - target * held_out))
    return _Fitted(Scored(NAME, held_out, final_score, halves), loss, likeliest)


def _cross_fitted(
    design: FloatArray,
    is_d1: FloatArray,
    rows: int,
    alike: Sequence[NDArray[np.bool_]],
    weights: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return held-out log-odds, the final weights, and log-odds by fits to each half."""
    examined, target = design[:rows], is_d1[:rows]
    fold = folds(rows)
    rates = probability(times(examined, weights))
    left = target - rates
    # Use row-major order. A sum over rows then adds its terms in the same order if the rows of a
    # fold are left out and if they have weight 0, so that both sums are the same float.
    by_row = np.ascontiguousarray(examined)
    fold_rows = [slice(first, None, FOLDS) for first in range(FOLDS)]
    parts = [_information(by_row[part_rows], rates[part_rows]) for part_rows in fold_rows]
    slopes = [summed(by_row[part_rows], left[part_rows]) for part_rows in fold_rows]
    total, slope = np.sum(parts, axis=0), np.sum(slopes, axis=0)
    fits = [
        _corrected(
            examined[half], target[half], weights, total / 2, summed(by_row[half], left[half])
        )
        for half in (slice(None, None, 2), slice(1, None, 2))
    ]
    pooled = partial(_pooled, likeliest=weights, halves=fits, alike=alike)
    held_out = times(design, pooled(weights, 1.0))
    for number, (part, part_slope) in enumerate(zip(parts, slopes, strict=True)):
        without = _corrected(
            by_row, target, weights, total - part, slope - part_slope, fold != number
        )
        held_out[:rows][number::FOLDS] = times(
            by_row[number::FOLDS], pooled(without, FOLDS / (FOLDS - 1))
        )
    del by_row
    halves = [times(design, pooled(half, 2.0)) for half in fits]
    return held_out, pooled(weights, 1.0), np.stack(halves)


def _pooled(
    weights: FloatArray,
    times_error: float,
    likeliest: FloatArray,
    halves: Sequence[FloatArray],
    alike: Sequence[NDArray[np.bool_]],
) -> FloatArray:
    """Return weights, each shrunk towards the mean of its type (James & Stein 1961)."""
    # If all columns have noise of one distribution, the true weights are often similar. The weights
    # of the two halves differ by errors alone, which gives the variance of the errors.
    weights = weights.copy()
    for kind in alike:
        if kind.sum() > 3:  # shrinkage of fewer weights towards their mean may raise the error
            error = float(np.mean((halves[0] - halves[1])[kind] ** 2)) / 4
            truth = max(0.0, float(np.var(likeliest[kind])) - error)
            alike_weights = weights[kind]
            share = truth / max(truth + times_error * error, 1e-300)
            weights[kind] = alike_weights.mean() + share * (alike_weights - alike_weights.mean())
    return weights


def _fit(design: FloatArray, target: FloatArray, start: FloatArray | None = None) -> FloatArray:
    """Return the weights with the largest penalised likelihood, by Newton's method."""
    weights: FloatArray = np.zeros(design.shape[1]) if start is None else start
    loss = _loss(design, target, weights)
    for _ in range(NEWTON_STEPS):
        rates = probability(times(design, weights))
        step = _solved(_information(design, rates), _slope(design, target - rates, weights))
        for halving in range(NEWTON_STEPS):
            moved = weights + step / 2**halving
            lower = _loss(design, target, moved)
            if lower <= loss:
                break
        if lower > loss - _LOSS_TOLERANCE * len(target):
            return weights if lower > loss else moved
        weights, loss = moved, lower
    return weights


def _corrected(
    design: FloatArray,
    target: FloatArray,
    weights: FloatArray,
    information: FloatArray,
    slope: FloatArray,
    remaining: NDArray[np.bool_] | None = None,
) -> FloatArray:
    """Return the weights without some draws, by a few Newton steps from those of all draws."""
    # `remaining` sets the residuals of other rows to 0, which is faster than a copy of the
    # remaining rows.
    weights = weights + _solved(information, slope - _ridge(len(weights)) * weights)
    for _ in range(_REFIT_STEPS - 1 if len(target) < MAX_DRAWS_SLOW else 0):
        left = target - probability(times(design, weights))
        if remaining is not None:
            left *= remaining
        weights = weights + _solved(information, _slope(design, left, weights))
    return weights


def _information(design: FloatArray, rates: FloatArray) -> FloatArray:
    return gram(design, rates * (1 - rates))


def _slope(design: FloatArray, left: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the gradient of the penalised log-likelihood; `left` has the residuals."""
    return summed(design, left) - _ridge(len(weights)) * weights


def _solved(information: FloatArray, slope: FloatArray) -> FloatArray:
    return solved(information + np.diag(_ridge(len(slope)) + 1e-9), slope)


def _ridge(width: int) -> FloatArray:
    """Return the ridge penalty of each weight: 0 for the constant, then 1 for each feature."""
    penalty = np.ones(width)
    penalty[0] = 0.0
    return penalty


def _loss(design: FloatArray, target: FloatArray, weights: FloatArray) -> float:
    odds = times(design, weights)
    penalty = float(_ridge(len(weights)) @ weights**2) / 2
    return float(np.sum(softplus(odds) - target * odds)) + penalty


def mean_differences(selection: SelectionDraws) -> list[Candidate]:
    """Return orders of outcomes with more than 512 columns by a weighted sum of their features.

    The weight of a feature is (mean on d1 - mean on d2) / variance, as in a linear discriminant
    (Fisher 1936) with a diagonal covariance. This is best for independent normal noise, as DP-SGD
    adds to gradients.
    """
    is_wide = len(selection.outcomes.columns) > MAX_FEATURES
    return by_mean_differences(selection, pools=False) if is_wide else []


def by_mean_differences(selection: SelectionDraws, *, pools: bool) -> list[Candidate]:
    """Return a list with one order of outcomes, as `mean_differences` does, but for any number of
    columns. The list is empty if there are fewer than two features.

    pools: whether to shrink each weight towards the mean weight, more strongly if weights have
        larger standard errors (James & Stein 1961). This helps if there are few draws.
    """
    features = scaled_features(selection.outcomes.columns)
    if len(features) < 2:
        return []
    design, is_d1 = design_of(features, selection.outcomes), selection.is_d1
    # The variance is taken over the draws of both inputs together. Otherwise it would depend on the
    # inputs of held-out draws, which scores must not use.
    variance = design[:, 1:].var(axis=0) + TINY
    fold = folds(selection.size)
    parts = np.stack(
        [_sums(design[fold == number], is_d1[fold == number]) for number in range(FOLDS)]
    )
    total = parts.sum(axis=0)
    held_out = np.empty(selection.size)
    for number, part in enumerate(parts):
        held_out[fold == number] = times(
            design[fold == number], _weights(total - part, variance, pools=pools)
        )
    weights = _weights(total, variance, pools=pools)
    sums = [_sums(design[half::2], is_d1[half::2]) for half in (0, 1)]
    halves = np.stack([times(design, _weights(half, variance, pools=pools)) for half in sums])
    final_score = partial(Linear.of, features, weights, selection.outcomes)
    return [by_score(Scored("difference of means", held_out, final_score, halves), selection)]


def _sums(design: FloatArray, is_d1: NDArray[np.bool_]) -> FloatArray:
    """Return the number of draws and the sums of features by input: (2, 1 + features)."""
    return np.stack([summed(design, arm.astype(np.float64)) for arm in (is_d1, ~is_d1)])


def _weights(sums: FloatArray, variance: FloatArray, *, pools: bool) -> FloatArray:
    """Return the weight of the constant, then of every feature: (1 + features,)."""
    draws = np.maximum(1.0, sums[:, :1])
    d1, d2 = sums[:, 1:] / draws
    weights = (d1 - d2) / variance
    if pools:
        error = float(np.mean(np.sum(1 / draws) / variance))
        truth = max(0.0, float(np.var(weights)) - error)
        weights = weights.mean() + truth / (truth + error) * (weights - weights.mean())
    return np.append(-np.sum(weights * (d1 + d2)) / 2, weights)
