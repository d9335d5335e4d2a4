"""The Gaussian mechanism for a number, as Gaussian DP (Dong, Roth & Su 2022).

Noise of standard deviation σ = Δ/μ is exactly μ-Gaussian DP between inputs at distance Δ.

Adjacency: numbers at distance of at most Δ, the `sensitivity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies

Deviation = Callable[[float, float], float]


def _calibrated(mu: float, sensitivity: float) -> float:
    return sensitivity / mu


def _variance(mu: float, sensitivity: float) -> float:
    return (sensitivity / mu) ** 2


def _mu(deviation: Deviation) -> Callable[..., float]:
    def stated(d1: float, d2: float, mu: float, sensitivity: float) -> float:
        return abs(d1 - d2) / deviation(mu, sensitivity)

    return stated


def _epsilon(d1: float, d2: float, mu: float, sensitivity: float) -> float:
    """Return the ε of pure DP: none is large enough, since the log-ratio grows without bound."""
    return math.inf if d1 != d2 else 0.0


def _density(deviation: Deviation) -> Callable[..., float]:
    def stated(output: float, dataset: float, mu: float, sensitivity: float) -> float:
        sigma = deviation(mu, sensitivity)
        return math.exp(-(((output - dataset) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))

    return stated


def _delta(mu: float, at: float) -> float:
    below = NormalDist().cdf
    return below(mu / 2 - at / mu) - math.exp(at) * below(-mu / 2 - at / mu)


def _profile(deviation: Deviation) -> Callable[..., float]:
    """δ(ε) = Φ(-ε/μ + μ/2) - e^ε Φ(-ε/μ - μ/2) at the true μ (Balle & Wang 2018)."""

    def stated(d1: float, d2: float, at: float, mu: float, sensitivity: float) -> float:
        true = abs(d1 - d2) / deviation(mu, sensitivity)
        return _delta(true, at) if true else 0.0

    return stated


@satisfies(
    "gaussian",
    epsilon=_epsilon,
    mu=_mu(_calibrated),
    density=_density(_calibrated),
    profile=_profile(_calibrated),
)
def gaussian(
    dataset: float,
    mu: float = 1.0,
    sensitivity: float = 1.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Correct: the number plus normal noise of standard deviation sensitivity/μ; μ-Gaussian DP.

    No pure ε holds.
    """
    return rng.normal(dataset, _calibrated(mu, sensitivity), size)


@satisfies(
    "gaussian",
    epsilon=_epsilon,
    mu=_mu(_variance),
    density=_density(_variance),
    profile=_profile(_variance),
)
def variance_for_deviation(
    dataset: float,
    mu: float = 2.0,
    sensitivity: float = 1.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Broken: passes the variance σ² where the generator takes the standard deviation.

    Where σ = sensitivity/μ < 1 the noise is too small: the true μ is μ²/sensitivity between inputs
    at that distance, at the default 4 instead of 2.
    """
    return rng.normal(dataset, _variance(mu, sensitivity), size)
