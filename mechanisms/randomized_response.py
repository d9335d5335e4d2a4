"""Randomized response: the truth with probability p, else a fair coin (Warner 1965).

Adjacency: replace, the dataset is one answer, 0 or 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies


def _pmf(dataset: int, p: float) -> dict[int, float]:
    return {dataset: (1 + p) / 2, 1 - dataset: (1 - p) / 2}


def _epsilon(d1: int, d2: int, p: float) -> float:
    return math.log1p(2 * p / (1 - p)) if d1 != d2 else 0.0


@satisfies("pure", epsilon=_epsilon, pmf=_pmf)
def randomized_response(
    dataset: int, p: float = 0.5, *, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Correct: answers 0 or 1, ln(1 + 2p/(1 - p))-DP; at the default p = ½, ε = ln 3."""
    is_truth = rng.random(size) < p
    return np.where(is_truth, dataset, rng.integers(0, 2, size))
