"""Histograms: of weights, of numbers, of categories. Adjacency: add-remove."""

from __future__ import annotations

import math

import numpy as np

from mechanisms.neighbours.values import FloatArray, Records, Table, clipped, noisy

_ANSWERS = ("yes", "no")
_MOST_WEIGHT = 10.0
_HIGH = 100.0
_BINS = 4
_COLOURS = ("red", "green", "blue")


def _weighted(dataset: Table, weights: list[float]) -> list[float]:
    """Return the sum of the weights of each answer; other answers are left out."""
    answers = [row.get("answer") for row in dataset]
    return [
        math.fsum(
            weight for answer, weight in zip(answers, weights, strict=True) if answer == wanted
        )
        for wanted in _ANSWERS
    ]


def weights_of_mean_one(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: weights are divided by their mean, so that they look like counts; noise for 1.

    A heavy record makes all others lighter: of (yes, 1), and (no, 10) as a record more, the answers
    move from (1, 0) to (2/11, 20/11), and the true ε is 29/11 = 2.64 times ε. Harmless: equal
    weights.
    """
    weights = [clipped(row.get("weight"), 0.0, _MOST_WEIGHT) for row in dataset]
    mean = math.fsum(weights) / max(len(weights), 1) or 1.0
    return noisy(_weighted(dataset, [one / mean for one in weights]), 1 / epsilon, size, rng)


def weights_as_they_are(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: sums of weights clipped to [0, 10], with noise for 10."""
    weights = [clipped(row.get("weight"), 0.0, _MOST_WEIGHT) for row in dataset]
    return noisy(_weighted(dataset, weights), _MOST_WEIGHT / epsilon, size, rng)


def bins_of_the_data(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: four bins between the smallest and the largest value, as in `numpy.histogram`.

    A value outside of them moves all the others. A single one at 50 lies in the third bin of [49.5,
    50.5]; with 51 beside it, they are in the first and the last: three counts change by 1, and the
    true ε is 3ε. Harmless: a record more between the smallest and the largest.
    """
    values = np.array([clipped(value, 0.0, _HIGH) for value in dataset])
    low, high = (values.min(), values.max()) if len(values) else (0.0, _HIGH)
    if low == high:
        low, high = low - 0.5, high + 0.5
    places = np.minimum((values - low) / (high - low) * _BINS, _BINS - 1).astype(np.int64)
    return noisy(np.bincount(places, minlength=_BINS), 1 / epsilon, size, rng)


def bins_of_the_bounds(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: four bins between the bounds, 0 and 100."""
    values = [clipped(value, 0.0, _HIGH) for value in dataset]
    counts, _ = np.histogram(values, bins=_BINS, range=(0.0, _HIGH))
    return noisy(counts, 1 / epsilon, size, rng)


def only_what_was_seen(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: noisy counts of the categories in the data, without their names.

    How many counts there are tells how many categories: with a record more that brings a new one,
    the true ε is ∞. Harmless: a record more of a category that is there.
    """
    values = [value for value in dataset if isinstance(value, str)]
    return noisy([values.count(one) for one in sorted(set(values))], 1 / epsilon, size, rng)


def all_that_are_known(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: noisy counts of red, green and blue, which are known; others do not count."""
    values = [value for value in dataset if isinstance(value, str)]
    return noisy([values.count(one) for one in _COLOURS], 1 / epsilon, size, rng)
