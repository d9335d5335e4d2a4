"""Means of numbers between 0 and 1, and a variance.

Adjacency: replace, where the number of records is public; add-remove where it says so.
"""

from __future__ import annotations

import math

import numpy as np

from mechanisms.neighbours.values import FloatArray, Records, clipped, is_missing, noisy, number


def clamps_one_side(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: the mean of values that are clamped from above only; noise of scale 1/(nε).

    A record that is replaced by one at -10 moves a sum by 10 + its value: of three records at ½,
    one of which becomes -10, the true ε is 10.5ε. Harmless: values of at least 0.
    """
    records = max(len(dataset), 1)
    total = sum(min(number(value), 1.0) for value in dataset)
    return noisy(total / records, 1 / (records * epsilon), size, rng)


def clamps_both_sides(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: the mean of values that are clamped to [0, 1], with noise of scale 1/(nε)."""
    records = max(len(dataset), 1)
    total = math.fsum(clipped(value, 0.0, 1.0) for value in dataset)
    return noisy(total / records, 1 / (records * epsilon), size, rng)


def scale_of_all_records(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: the mean of those that are present, with noise of scale 1/(nε) for all n records.

    The denominator counts the missing values, the numerator does not: the one value that is present
    among three moves the mean by 1 rather than by 1/3, and the true ε is 3ε. Harmless: no value is
    missing.
    """
    present = [clipped(value, 0.0, 1.0) for value in dataset if not is_missing(value)]
    mean = math.fsum(present) / len(present) if present else 0.5
    return noisy(mean, 1 / (max(len(dataset), 1) * epsilon), size, rng)


def missing_counts_as_half(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: what is missing counts as ½, so that every record moves the mean by at most 1/n."""
    values = [0.5 if is_missing(value) else clipped(value, 0.0, 1.0) for value in dataset]
    records = max(len(values), 1)
    return noisy(math.fsum(values) / records, 1 / (records * epsilon), size, rng)


def empty_is_exact(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: noisy sum by noisy count, but NaN when there is no record. Adjacency: add-remove.

    Nothing else gives NaN, so for empty beside one record the true ε is ∞. Harmless: any pair of
    which none is empty.
    """
    if not len(dataset):
        return np.full(size, math.nan)
    return sum_by_count(dataset, epsilon, size=size, rng=rng)


def sum_by_count(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: noisy sum by noisy count, each for half of ε, also of no record.

    Adjacency: add-remove.
    """
    total = math.fsum(clipped(value, 0.0, 1.0) for value in dataset)
    drawn = noisy([total, len(dataset)], 2 / epsilon, size, rng)
    mean: FloatArray = np.clip(drawn[:, 0] / np.maximum(drawn[:, 1], 1.0), 0.0, 1.0)
    return mean


def _squares(dataset: Records) -> float:
    """Return Σ(x - x̄)² of the clipped values; replacing one moves it by at most (n - 1)/n.

    With the n - 1 others at a mean of m it is constant + (n - 1)/n · (x - m)².
    """
    values = [clipped(value, 0.0, 1.0) for value in dataset]
    mean = math.fsum(values) / max(len(values), 1)
    return math.fsum((value - mean) ** 2 for value in values)


def variance_of_a_sample(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: divides by n - 1, with noise for the variance that divides by n: (n - 1)/n².

    The sensitivity is 1/n. The true ε of [0, 0] and [0, 1] is (1/2)/(1/4)·ε = 2ε, and of n records
    at most n/(n - 1)·ε, hardly more than claimed where there are many. Harmless: one
    of many values at ½ moves to a bound.
    """
    records = max(len(dataset), 2)
    scale = (records - 1) / (records**2 * epsilon)
    return noisy(_squares(dataset) / (records - 1), scale, size, rng)


def variance_of_all(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: divides by n, with noise for a sensitivity of (n - 1)/n²; 0 for a single record."""
    records = max(len(dataset), 2)
    scale = (records - 1) / (records**2 * epsilon)
    return noisy(_squares(dataset) / records, scale, size, rng)
