"""The log-ratio log P(s)/Q(s) of single outputs, many at once: what an oracle sees.

Every function takes first what is known of the mechanism, and last a batch of its outputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from benchmarks import known_laws as laws
from benchmarks.oracle import CERTAIN

FloatArray = NDArray[np.float64]


def laplace_ratio(d1: ArrayLike, d2: ArrayLike, scale: float, outputs: ArrayLike) -> FloatArray:
    """Laplace noise of a scale, discrete or not, on a number or on every coordinate."""
    farther = np.abs(np.subtract(outputs, d2)) - np.abs(np.subtract(outputs, d1))
    return _summed(farther / scale)


def gaussian_ratio(
    d1: ArrayLike, d2: ArrayLike, deviation: float, outputs: ArrayLike
) -> FloatArray:
    """Normal noise of a standard deviation, on a number or on every coordinate."""
    farther = np.subtract(outputs, d2) ** 2 - np.subtract(outputs, d1) ** 2
    return _summed(farther / (2 * deviation**2))


def prefix_sums_ratio(
    d1: ArrayLike, d2: ArrayLike, scale: float, outputs: FloatArray
) -> FloatArray:
    """Sums of numbers with Laplace noise each: the differences are these numbers."""
    return laplace_ratio(d1, d2, scale, np.diff(outputs, axis=1, prepend=0.0))


def maximum_ratio(answers: int, distance: float, scale: float, outputs: FloatArray) -> FloatArray:
    """The largest of some answers, 0 or all of them `distance`, with Laplace noise of a scale."""
    from_d1, from_d2 = outputs / scale, (outputs - distance) / scale
    others = _log_below(from_d1) - _log_below(from_d2)
    return np.asarray(np.abs(from_d2) - np.abs(from_d1) + (answers - 1) * others)


def sparse_vector_ratio(
    d1: Sequence[float],
    d2: Sequence[float],
    epsilon: float,
    stops_after: int,
    outputs: NDArray[np.int64],
) -> FloatArray:
    """The sparse vector technique on answers that are equal in either half."""
    kinds = laws.sparse_vector_kinds(outputs)
    # Of some millions of outputs, numbers are put in order faster than rows are.
    number = kinds @ (outputs.shape[1] + 1) ** np.arange(kinds.shape[1])
    _, first, place = np.unique(number, return_index=True, return_inverse=True)
    p, q = laws.sparse_vector_masses(d1, d2, epsilon, stops_after, kinds[first]).T
    return np.asarray((np.log(p) - np.log(q))[place])


def two_bits_ratio(epsilon: float, outputs: NDArray[np.int64]) -> FloatArray:
    """RAPPOR on the values 0 and 1, ε in all."""
    return np.asarray(epsilon * (outputs[:, 0] - outputs[:, 1]), dtype=float)


def censored_ratio(food: str, votes: int, outputs: Sequence[Mapping[str, float]]) -> FloatArray:
    """A histogram with one vote more for a food than `votes`, with Laplace noise of scale 1; what
    is not released lies below `votes`."""
    counts = np.array([output.get(food, -math.inf) for output in outputs])
    return np.asarray(2 * np.clip(counts, votes, votes + 1) - (2 * votes + 1))


def presence_ratio(food: str, without: float, outputs: Sequence[Mapping[str, float]]) -> FloatArray:
    """A food that d1 alone may show; the log-ratio `without` it."""
    return np.array([CERTAIN if food in output else without for output in outputs])


def table_ratio(p: Mapping[Any, float], q: Mapping[Any, float], outputs: ArrayLike) -> FloatArray:
    """A discrete output, from its probabilities."""
    distinct, place = np.unique(np.asarray(outputs), return_inverse=True)
    ratios = [_log_ratio(p.get(atom, 0.0), q.get(atom, 0.0)) for atom in distinct.tolist()]
    return np.array(ratios)[place]


def _log_ratio(p: float, q: float) -> float:
    if p == 0 or q == 0:
        return CERTAIN if p else -CERTAIN
    return math.log(p / q)


def _summed(parts: FloatArray) -> FloatArray:
    return np.asarray(parts.sum(axis=1) if parts.ndim > 1 else parts)


def _log_below(x: FloatArray) -> FloatArray:
    """Return the log of the distribution function of Laplace noise of scale 1."""
    return np.where(x < 0, x - math.log(2), np.log1p(-np.exp(-np.maximum(x, 0.0)) / 2))
