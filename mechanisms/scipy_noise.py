"""Laplace and discrete Laplace noise from scipy.stats on a vector.

The code of a tutorial, with its indentation and imports restored, a generator that is handed over,
and many outputs in one call. Adjacency: vectors at L1 distance of at most `sensitivity`.
Over the reals both are ε-DP; the floats that the first one returns are not (Mironov 2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies


def _epsilon(d1: Sequence[float], d2: Sequence[float], sensitivity: float, epsilon: float) -> float:
    return float(np.abs(np.subtract(d1, d2)).sum()) * epsilon / sensitivity


def _laplace_density(
    output: Sequence[float], dataset: Sequence[float], sensitivity: float, epsilon: float
) -> float:
    rate = epsilon / sensitivity
    distance = float(np.abs(np.subtract(output, dataset)).sum())
    return (rate / 2) ** len(dataset) * math.exp(-rate * distance)


def _discrete_density(
    output: Sequence[int], dataset: Sequence[int], sensitivity: float, epsilon: float
) -> float:
    """The probability of one vector of integers; there is no end to them."""
    rate = epsilon / sensitivity
    distance = int(np.abs(np.subtract(output, dataset)).sum())
    return math.tanh(rate / 2) ** len(dataset) * math.exp(-rate * distance)


@satisfies("pure", epsilon=_epsilon, density=_laplace_density)
def laplace_mech(
    dataset: Sequence[float],
    sensitivity: float = 1.0,
    epsilon: float = 1.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Correct: a vector plus Laplace noise of scale Δ/ε; ε-DP over the reals, not in floats.

    dataset: d numbers. Returns an array of shape (size, d).
    """
    from scipy import stats

    v: Any = np.array(dataset)
    shape = (size, len(v))
    return np.asarray(
        stats.laplace.rvs(loc=v, scale=sensitivity / epsilon, size=shape, random_state=rng)
    )


@satisfies("pure", epsilon=_epsilon, density=_discrete_density)
def discrete_laplace_mech(
    dataset: Sequence[int],
    sensitivity: float = 1.0,
    epsilon: float = 1.0,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Correct: a vector of integers plus discrete Laplace noise, a = ε/Δ; exactly ε-DP.

    dataset: d integers. Returns an array of shape (size, d).
    """
    from scipy import stats

    v: Any = np.array(dataset)
    shape = (size, len(v))
    return np.asarray(
        stats.dlaplace.rvs(loc=v, a=epsilon / sensitivity, size=shape, random_state=rng)
    )


def finer_than_2_to_minus_53(output: Sequence[float]) -> bool:
    """Return whether some coordinate is no multiple of 2⁻⁵³: post-processing.

    1 plus noise of scale 1 never is finer in floats, exact or rounded; 0 plus noise is in a quarter
    of all draws. Over the reals both would be, always.
    """
    return any(math.fmod(number, 2.0**-53) != 0 for number in output)
