"""The Laplace mechanism for a number of sensitivity 1, and one with the wrong density.

Adjacency: numbers at distance of at most 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies

Scale = Callable[[float], float]


def _one_over(epsilon: float) -> float:
    return 1 / epsilon


def _itself(epsilon: float) -> float:
    return epsilon


def _epsilon(scale: Scale) -> Callable[..., float]:
    def stated(d1: float, d2: float, epsilon: float) -> float:
        return abs(d1 - d2) / scale(epsilon)

    return stated


def _density(scale: Scale) -> Callable[..., float]:
    def stated(output: float, dataset: float, epsilon: float) -> float:
        return math.exp(-abs(output - dataset) / scale(epsilon)) / (2 * scale(epsilon))

    return stated


def _profile(scale: Scale) -> Callable[..., float]:
    """δ(ε) = 1 - e^{(ε - ε₁)/2} below the true ε₁ (Balle et al. 2020), 0 from there on."""

    def stated(d1: float, d2: float, at: float, epsilon: float) -> float:
        return max(0.0, -math.expm1((at - abs(d1 - d2) / scale(epsilon)) / 2))

    return stated


@satisfies(
    "pure", epsilon=_epsilon(_one_over), density=_density(_one_over), profile=_profile(_one_over)
)
def laplace(
    dataset: float, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Correct: the number plus Laplace noise of scale 1/ε, `size` outputs at once."""
    return rng.laplace(dataset, 1 / epsilon, size)


@satisfies(
    "pure", epsilon=_epsilon(_one_over), density=_density(_one_over), profile=_profile(_one_over)
)
def laplace_scalar(
    dataset: float, epsilon: float = 1.0, rng: np.random.Generator | None = None
) -> float:
    """Correct: the number plus Laplace noise of scale 1/ε, one output a call."""
    rng = np.random.default_rng() if rng is None else rng
    return dataset + rng.laplace(0.0, 1 / epsilon)


@satisfies("pure", epsilon=_epsilon(_itself), density=_density(_itself), profile=_profile(_itself))
def wrong_density(
    dataset: float, epsilon: float = 0.5, *, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Broken: noise of density (1/2ε)·e^{-|y|/ε}, that is of scale ε instead of 1/ε.

    The true ε is 1/ε: at the default, 2 instead of 0.5.
    """
    return rng.laplace(dataset, epsilon, size)
