"""Sums, alone and with the sum of squares. Adjacency: add-remove."""

from __future__ import annotations

import math

import numpy as np

from mechanisms.neighbours.values import FloatArray, Records, clipped, is_missing, noisy, number

_LOW, _HIGH = 10.0, 30.0
_MOST = 20_000


def width_for_sensitivity(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: the sum of values in [10, 30], with noise for |hi - lo| = 20.

    That is the sensitivity where one record is replaced. A record more moves the sum by up to
    max(|lo|, |hi|) = 30, so the true ε is 1.5ε for one at the upper bound. Harmless: one of at most
    20, the middle.
    """
    total = math.fsum(clipped(value, _LOW, _HIGH) for value in dataset)
    return noisy(total, (_HIGH - _LOW) / epsilon, size, rng)


def largest_for_sensitivity(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: the sum of values in [10, 30], with noise for max(|lo|, |hi|) = 30."""
    total = math.fsum(clipped(value, _LOW, _HIGH) for value in dataset)
    return noisy(total, max(abs(_LOW), abs(_HIGH)) / epsilon, size, rng)


def overflows(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: a sum of integers up to 20,000 in 16 bits, the smallest type that holds each of them.

    `np.dot` keeps the type. 20,000 twice is 40,000 - 65,536 = -25,536, which is 45,536 away from
    20,000 once, and the true ε is 45,536/20,000 = 2.2768 times ε. Harmless: sums below 32,768.
    """
    values = np.array([clipped(value, 0, _MOST) for value in dataset]).astype(np.int16)
    total = np.dot(values, np.ones(len(values), dtype=np.int16))
    return noisy(float(total), _MOST / epsilon, size, rng)


def in_64_bits(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: the sum of integers up to 20,000 in 64 bits, which no such list overflows."""
    values = np.array([clipped(value, 0, _MOST) for value in dataset]).astype(np.int64)
    return noisy(float(values.sum()), _MOST / epsilon, size, rng)


def squares_unclipped(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: (Σx, Σx²) of values in [0, 1]; the squares are those of the values as they came.

    A record more at 10 moves them by 1 and 100 where the noise, of scale 2/ε, hides 1 and 1: the
    true ε is 50.5ε. Harmless: values within the bounds.
    """
    inside = [clipped(value, 0.0, 1.0) for value in dataset]
    squares = sum(number(value) * number(value) for value in dataset)
    return noisy([math.fsum(inside), squares], 2 / epsilon, size, rng)


def squares_clipped(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: (Σx, Σx²) of the clipped values, each with half of ε."""
    inside = [clipped(value, 0.0, 1.0) for value in dataset]
    squares = math.fsum(value * value for value in inside)
    return noisy([math.fsum(inside), squares], 2 / epsilon, size, rng)


def raises_for_nan(dataset: Records, epsilon: float = 1.0, *, rng: np.random.Generator) -> float:
    """Broken: a sum of hundredths, rounded after clipping, which NaN passes unchanged.

    `round(nan)` raises ValueError and nothing else does: the true ε of a record more that is NaN
    is ∞. Harmless: any other value. One output a call, so that the exception is an outcome.
    """
    values = [value if isinstance(value, float) else number(value) for value in dataset]
    total = sum(round(100 * min(max(value, 0.0), 1.0)) for value in values)
    return _hundredths(total, epsilon, rng)


def nan_counts_as_zero(
    dataset: Records, epsilon: float = 1.0, *, rng: np.random.Generator
) -> float:
    """Correct: a sum of hundredths; what is no number counts as 0. One output a call."""
    total = sum(round(100 * clipped(value, 0.0, 1.0)) for value in dataset)
    return _hundredths(total, epsilon, rng)


def _hundredths(total: int, epsilon: float, rng: np.random.Generator) -> float:
    return float(round(total + rng.laplace(0.0, 100 / epsilon)))


def mean_for_missing(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: the sum of values in [0, 1], where the mean of the others stands for a missing one.

    One value then moves every missing one as well: a 1 beside two missing values moves the sum from
    0 to 3, and the true ε is 3ε. Harmless: no value is missing.
    """
    present = [clipped(value, 0.0, 1.0) for value in dataset if not is_missing(value)]
    mean = math.fsum(present) / len(present) if present else 0.0
    total = math.fsum(present) + (len(dataset) - len(present)) * mean
    return noisy(total, 1 / epsilon, size, rng)


def half_for_missing(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: the sum of values in [0, 1], where ½ stands for a missing one."""
    values = [0.5 if is_missing(value) else clipped(value, 0.0, 1.0) for value in dataset]
    return noisy(math.fsum(values), 1 / epsilon, size, rng)
