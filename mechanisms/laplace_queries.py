"""The Laplace mechanism scaled to the sensitivity of a query: a mean, and several sums at once.

Adjacency: replace one record. Records hold numbers in [0, 1], so that one of them moves a mean of n
by at most 1/n, and the vector of k column sums by at most k in L1 (but only 1 in L∞).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import Statement, satisfies

Records = Sequence[float] | Sequence[Sequence[float]]
Query = Callable[[Records], NDArray[np.float64]]
# Of the dataset and, but for one of them, ε.
Scale = Callable[..., float]


def _mean(dataset: Records) -> NDArray[np.float64]:
    return np.atleast_1d(np.mean(dataset, axis=0, dtype=np.float64))


def _sums(dataset: Records) -> NDArray[np.float64]:
    return np.atleast_1d(np.sum(dataset, axis=0, dtype=np.float64))


def _one_over_n(dataset: Records, epsilon: float) -> float:
    return 1 / (len(dataset) * epsilon)


def _l1(dataset: Records, epsilon: float) -> float:
    return len(_sums(dataset)) / epsilon


def _linf(dataset: Records, epsilon: float) -> float:
    return 1 / epsilon


def _half(dataset: Records) -> float:
    return len(_sums(dataset)) / 2


def _epsilon(query: Query, scale: Scale) -> Statement:
    """The L1 distance of the answers over the scale: attained where every output is below both."""

    def stated(d1: Records, d2: Records, **params: float) -> float:
        return float(np.abs(query(d1) - query(d2)).sum()) / scale(d1, **params)

    return stated


def _density(query: Query, scale: Scale) -> Statement:
    def stated(output: Sequence[float], dataset: Records, **params: float) -> float:
        spread = scale(dataset, **params)
        distances = np.abs(np.subtract(output, query(dataset))) / spread
        return float(np.prod(np.exp(-distances) / (2 * spread)))

    return stated


def _profile(d1: Records, d2: Records, at: float, epsilon: float) -> float:
    """δ(ε) = 1 - e^{(ε - ε₁)/2} below the true ε₁ (Balle et al. 2020), of one number."""
    return max(0.0, -math.expm1((at - _epsilon(_mean, _one_over_n)(d1, d2, epsilon=epsilon)) / 2))


@satisfies(
    "pure",
    epsilon=_epsilon(_mean, _one_over_n),
    density=_density(_mean, _one_over_n),
    profile=_profile,
)
def mean(
    dataset: Sequence[float], epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Correct: the mean of n numbers in [0, 1] plus Laplace noise of scale 1/(nε); ε-DP."""
    return rng.laplace(_mean(dataset)[0], _one_over_n(dataset, epsilon), size)


@satisfies("pure", epsilon=_epsilon(_sums, _l1), density=_density(_sums, _l1))
def column_sums(
    dataset: Sequence[Sequence[float]],
    epsilon: float = 1.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Correct: the sums of k columns plus Laplace noise of scale Δ₁/ε, Δ₁ = k; ε-DP.

    Returns an array of shape (size, k).
    """
    return _noisy(_sums(dataset), _l1(dataset, epsilon), size, rng)


@satisfies("pure", epsilon=_epsilon(_sums, _linf), density=_density(_sums, _linf))
def column_sums_linf(
    dataset: Sequence[Sequence[float]],
    epsilon: float = 1.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Broken: uses the sensitivity of a single sum, Δ∞ = 1, for all k sums.

    The true ε is ε times the L1 distance of the sums, up to kε.
    """
    return _noisy(_sums(dataset), _linf(dataset, epsilon), size, rng)


@satisfies("pure", epsilon=_epsilon(_sums, _half), density=_density(_sums, _half))
def column_sums_half(
    dataset: Sequence[Sequence[float]], *, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Broken: noise of scale Δ₁/2, a misprint in lecture notes for Δ₁/ε.

    The true ε is 2 where records differ in every column, whatever is claimed.
    """
    return _noisy(_sums(dataset), _half(dataset), size, rng)


def _noisy(
    answers: NDArray[np.float64], scale: float, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    return answers + rng.laplace(0.0, scale, (size, len(answers)))
