"""The difference of means: the weighted sum of columns too many for logistic regression.

A gradient has thousands of entries, each of which may tell a little. Noise of its own in each, and
normal, makes the log-ratio a sum in which each has for a weight the difference of its means over
its variance (Fisher 1936, with a diagonal covariance).
"""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.linear.features import scaled_features
from dpaudit.attacks.linear.products import summed, times
from dpaudit.attacks.linear.weighted import MOST_FEATURES, Linear, design_of
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidate import Candidate, by_score
from dpaudit.levels.level_map import FOLDS, FloatArray, folds
from dpaudit.levels.scores import Scored

_TINY = 1e-9


def mean_differences(selection: SelectionDraws) -> list[Candidate]:
    """Order outcomes with too many columns for logistic regression by their means."""
    columns = selection.outcomes.columns
    if len(columns) <= MOST_FEATURES:
        return []
    features = scaled_features(columns)
    if len(features) < 2:
        return []
    design, is_d1 = design_of(features, selection.outcomes), selection.is_d1
    # Both inputs together: held-out draws may have a part in it.
    variance = design[:, 1:].var(axis=0) + _TINY
    fold = folds(selection.size)
    parts = np.stack([_sums(design[fold == one], is_d1[fold == one]) for one in range(FOLDS)])
    total = parts.sum(axis=0)
    held_out = np.empty(selection.size)
    for one, part in enumerate(parts):
        held_out[fold == one] = times(design[fold == one], _weights(total - part, variance))
    weights = _weights(total, variance)
    both = [_sums(design[half::2], is_d1[half::2]) for half in (0, 1)]
    halves = np.stack([times(design, _weights(half, variance)) for half in both])
    freeze = partial(Linear.of, features, weights, selection.outcomes)
    return [by_score(Scored("difference of means", held_out, freeze, halves), selection)]


def _sums(design: FloatArray, is_d1: NDArray[np.bool_]) -> FloatArray:
    """Return the sums of features by arm, (2, 1 + features); the first are the draws of each."""
    return np.stack([summed(design, arm.astype(np.float64)) for arm in (is_d1, ~is_d1)])


def _weights(sums: FloatArray, variance: FloatArray) -> FloatArray:
    """Return the weights of 1 and of every feature."""
    d1, d2 = sums[:, 1:] / np.maximum(1.0, sums[:, :1])
    weights = (d1 - d2) / variance
    return np.append(-np.sum(weights * (d1 + d2)) / 2, weights)
