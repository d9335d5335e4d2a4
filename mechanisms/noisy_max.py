"""Report noisy max: which disease is most prevalent, and how not to answer that.

Adjacency: replace one diagnosis (one count goes up, another one down), or for answers to general
queries every answer moves by at most 1 (`linf:1`). Source: Dwork & Roth 2014, §3.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import Statement, satisfies

FloatArray = NDArray[np.float64]

# Between two centres the law is a sum of exponentials, of which a piece that is one scale wide is
# integrated to the last digits by this rule.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)


def prevalence(diagnoses: Sequence[int], diseases: int) -> NDArray[np.int64]:
    """Return how often each disease 0 … diseases - 1 is diagnosed."""
    return np.bincount(np.asarray(diagnoses, dtype=np.int64), minlength=diseases)


def winning_law(answers: Sequence[float], scale: float) -> dict[int, float]:
    """Return the exact law of the index of the largest answer, each plus Laplace noise of `scale`.

    Pr[i] = ∫ f_i(x) Π_{j≠i} F_j(x) dx: in closed form below all answers, by Gauss-Legendre above,
    scale by scale between them and, as a polynomial of e^{-x}, beyond. Absolute error < 10⁻¹².
    """
    centres = np.asarray(answers, dtype=np.float64)
    points, weights = _quadrature(centres, scale)
    log_pdf, log_cdf = _log_laws(points, centres, scale)
    integrand = np.exp(log_pdf - log_cdf + log_cdf.sum(axis=0))
    below = math.exp((centres.min() - centres).sum() / scale) / (len(centres) * 2 ** len(centres))
    return dict(enumerate((integrand @ weights + below).tolist()))


def _quadrature(centres: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """Return points and weights for an integral from the smallest centre to infinity."""
    ordered = np.unique(centres)
    pieces = [
        np.linspace(low, high, math.ceil((high - low) / scale), endpoint=False)
        for low, high in pairwise(ordered)
    ]
    edges = np.concatenate([*pieces, ordered[-1:]])
    half = np.diff(edges)[:, None] / 2
    inner = edges[:-1, None] + half * (1 + _NODES)
    # Beyond the largest centre with u = e^{-(x - high)/scale}, from 0 to 1.
    u = (1 + _NODES) / 2
    outer = ordered[-1] - scale * np.log(u)
    weights = [(half * _WEIGHTS).ravel(), _WEIGHTS / 2 * scale / u]
    return np.concatenate([inner.ravel(), outer]), np.concatenate(weights)


def _log_laws(
    points: FloatArray, centres: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Return log density and log distribution function, one row for each centre."""
    distances = (points - centres[:, None]) / scale
    log_pdf = -np.abs(distances) - math.log(2 * scale)
    above = np.log1p(-0.5 * np.exp(-np.maximum(distances, 0)))
    return log_pdf, np.where(distances < 0, distances - math.log(2), above)


def _index_pmf(noise: float) -> Statement:
    """The law of the index under noise of scale `noise`/ε."""

    def stated(dataset: Sequence[int], epsilon: float, diseases: int) -> dict[int, float]:
        return winning_law(prevalence(dataset, diseases).tolist(), noise / epsilon)

    return stated


@satisfies("pure", pmf=_index_pmf(2))
def noisy_max(
    dataset: Sequence[int],
    epsilon: float = 1.0,
    diseases: int = 3,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Correct: the index of the largest count plus Laplace noise of scale 2/ε; at most ε-DP.

    dataset: diagnoses, each in 0 … diseases - 1. A pair of datasets reaches ε in the limit only.
    """
    return _noisy_index(prevalence(dataset, diseases), 2 / epsilon, size, rng)


@satisfies("pure", pmf=_index_pmf(1))
def noisy_max_half(
    dataset: Sequence[int],
    epsilon: float = 1.0,
    diseases: int = 3,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Broken: noise of scale 1/ε, half of what replacing a diagnosis requires; up to 2ε-DP.

    Where a diagnosis is added or removed all counts move the same way, and it is at most ε-DP
    (Dwork & Roth 2014, Claim 3.9).
    """
    return _noisy_index(prevalence(dataset, diseases), 1 / epsilon, size, rng)


def _value_epsilon(d1: Sequence[float], d2: Sequence[float], epsilon: float) -> float:
    """Σ|q - q'| ε/2 where all answers move the same way; ValueError otherwise.

    No function of the noisy answers tells more than they do all together, which is this much;
    and below all answers the density of the maximum is proportional to e^{-Σq ε/2}.
    """
    moves = np.subtract(d2, d1)
    if moves.min() < 0 < moves.max():
        raise ValueError("the exact ε is known only for answers that all move the same way")
    return float(np.abs(moves).sum()) * epsilon / 2


def _value_density(output: float, dataset: Sequence[float], epsilon: float) -> float:
    centres = np.asarray(dataset, dtype=np.float64)
    log_pdf, log_cdf = _log_laws(np.array([output]), centres, 2 / epsilon)
    return float(np.exp(log_pdf - log_cdf + log_cdf.sum(axis=0)).sum())


@satisfies("pure", epsilon=_value_epsilon, density=_value_density)
def noisy_max_value(
    dataset: Sequence[float], epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: returns the largest noisy answer itself; only its index is ε-DP.

    dataset: answers to queries that may all move by 1. The true ε of k answers that all do is
    kε/2: the maximum is small only if all of the k noises are.
    """
    noise = rng.laplace(0.0, 2 / epsilon, (size, len(dataset)))
    largest: FloatArray = (np.asarray(dataset) + noise).max(axis=1)
    return largest


def _noisy_index(
    counts: NDArray[np.int64], scale: float, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    noisy: FloatArray = counts + rng.laplace(0.0, scale, (size, len(counts)))
    winners: NDArray[np.int64] = noisy.argmax(axis=1)
    return winners
