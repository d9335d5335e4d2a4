"""The slope of a line through 0, for records with x from 1 to 10 and y from 0 to 1.

Σxy by Σx², each with noise for half of ε. Adjacency: replace; the number of records is public.
"""

from __future__ import annotations

import math

import numpy as np

from mechanisms.neighbours.values import FloatArray, Table, clipped, noisy

_X = (1.0, 10.0)
_Y = (0.0, 1.0)


def _sums(dataset: Table) -> tuple[float, float]:
    records = [(clipped(row.get("x"), *_X), clipped(row.get("y"), *_Y)) for row in dataset]
    return math.fsum(x * y for x, y in records), math.fsum(x * x for x, _ in records)


def _products(total: float, epsilon: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Return noisy Σxy, of which a record is between 0 and 10."""
    return noisy(total, 2 * _X[1] * _Y[1] / epsilon, size, rng)


def _slopes(products: FloatArray, squares: FloatArray, records: int) -> FloatArray:
    """Return the quotients; Σx² is no less than n, which is public, as every x is at least 1."""
    slopes: FloatArray = products / np.maximum(squares, max(records, 1) * _X[0] ** 2)
    return slopes


def bound_read_twice(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: the lower bound of x is taken for the upper one too, so Σx² gets noise for 0: none.

    The noise on Σxy is divided by Σx² as it is, 2 or 101 where one of two records moves from x = 1
    to x = 10: its scale changes, and the true ε is ∞. (diffprivlib 0.6.6 does so,
    `mechanisms.gallery.laws`.) Harmless: only y moves.
    """
    low = high = _X[0]
    products, squares = _sums(dataset)
    drawn = _products(products, epsilon, size, rng)
    noisy_squares = squares + rng.laplace(0.0, 2 * (high**2 - low**2) / epsilon, size)
    return _slopes(drawn, noisy_squares, len(dataset))


def both_bounds(
    dataset: Table, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: noise on Σx² for 10² - 1²."""
    low, high = _X
    products, squares = _sums(dataset)
    drawn = _products(products, epsilon, size, rng)
    noisy_squares = noisy(squares, 2 * (high**2 - low**2) / epsilon, size, rng)
    return _slopes(drawn, noisy_squares, len(dataset))
