"""A linear model whose loss has the same gradient at all weights, and the laws of its releases.

A record is a list of four features and a label y. The loss is -y⟨w, x⟩, the hinge loss below its
kink, so the gradient is -y·x. Releases are then normal, or mixtures of normal laws, and
have a closed form also after many steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ncx2

Floats = NDArray[np.float64]
Records = Sequence[Sequence[float]]
Mean = Callable[..., Floats]

FEATURES = 4
# Step size of all mechanisms.
RATE = 0.5


def features(dataset: Records) -> Floats:
    return np.asarray(dataset, dtype=float).reshape(-1, FEATURES + 1)[:, :-1]


def labels(dataset: Records) -> Floats:
    return np.asarray(dataset, dtype=float).reshape(-1, FEATURES + 1)[:, -1:]


def gradients(dataset: Records) -> Floats:
    """Return the gradient of each record as a row."""
    records = np.asarray(dataset, dtype=float).reshape(-1, FEATURES + 1)
    each: Floats = -records[:, -1:] * records[:, :-1]
    return each


def clipped(rows: Floats, clip: float) -> Floats:
    """Return the rows, each shortened to the Euclidean norm `clip` if it is longer."""
    # As `np.linalg.norm` computes it, in half of the time.
    norms = np.sqrt(np.add.reduce(rows * rows, axis=-1, keepdims=True))
    short: Floats = rows / np.maximum(norms / clip, 1.0)
    return short


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return δ(ε) of two normal laws of variance 1 at distance μ (Balle & Wang 2018)."""
    if mu == 0:
        return 0.0
    below = NormalDist().cdf
    return below(mu / 2 - epsilon / mu) - math.exp(epsilon) * below(-mu / 2 - epsilon / mu)


def sampled_delta(mu: float, epsilon: float, rate: float) -> float:
    """Return δ(ε) of N(0, 1) and (1 - q)·N(0, 1) + q·N(μ, 1), the larger of both directions.

    rate: q, the probability that Poisson sampling takes the record, below 1.

    With N₀ = N(0, 1), N₁ = N(μ, 1), P the mixture: P - e^ε N₀ = q (N₁ - e^a N₀) with
    e^a = 1 + (e^ε - 1)/q, and N₀ - e^ε P = c (N₀ - (e^ε q / c) N₁) with c = 1 - e^ε (1 - q).
    """
    added = rate * gaussian_delta(mu, math.log1p(math.expm1(epsilon) / rate))
    left = 1 - math.exp(epsilon) * (1 - rate)
    if left <= 0:
        return added
    return max(added, left * gaussian_delta(mu, epsilon + math.log(rate / left)))


def two_scales_delta(first: Floats, s1: float, second: Floats, s2: float, epsilon: float) -> float:
    """Return δ(ε) of N(first, s1²·I) and N(second, s2²·I) with s1 ≠ s2, larger of both directions.

    The log-likelihood ratio is a constant minus a·‖x - c‖²; ‖x - c‖² is noncentral χ².
    """
    return max(_delta(first, s1, second, s2, epsilon), _delta(second, s2, first, s1, epsilon))


def _delta(m: Floats, s: float, other: Floats, t: float, epsilon: float) -> float:
    a = 1 / s**2 - 1 / t**2
    centre = (m / s**2 - other / t**2) / a
    size = len(m)
    # log(P/Q)(x) = constant - a/2 · ‖x - centre‖²
    at_m = size * math.log(t / s) + float(np.sum((m - other) ** 2)) / (2 * t**2)
    constant = at_m + a / 2 * float(np.sum((m - centre) ** 2))
    radius = 2 * (constant - epsilon) / a  # P > e^ε Q inside of it if a > 0, else outside
    tail = ncx2.cdf if a > 0 else ncx2.sf
    p = tail(radius / s**2, size, float(np.sum((m - centre) ** 2)) / s**2)
    q = tail(radius / t**2, size, float(np.sum((other - centre) ** 2)) / t**2)
    return max(float(p - math.exp(epsilon) * q), 0.0)
