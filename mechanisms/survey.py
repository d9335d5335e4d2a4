"""The drug survey: two coins decide between the truth and a random answer (Warner 1965).

Heads: the truth. Tails: a second coin answers, Yes for heads. `mechanisms.poll.Estimator` gives the
share of users from the answers: 4,000 Yes of 10,000 give an estimate of 30 %.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies


def _pmf(dataset: str, heads: float) -> dict[str, float]:
    other = "No" if dataset == "Yes" else "Yes"
    return {dataset: (1 + heads) / 2, other: (1 - heads) / 2}


def _epsilon(d1: str, d2: str, heads: float) -> float:
    return math.log((1 + heads) / (1 - heads)) if d1 != d2 else 0.0


@satisfies("pure", epsilon=_epsilon, pmf=_pmf)
def survey(
    dataset: str, heads: float = 0.5, *, size: int, rng: np.random.Generator
) -> NDArray[np.str_]:
    """Correct: answers Yes or No; at the default, 75 % and 25 %, ε = ln 3.

    heads: how often the first coin shows heads. ε = ln((1 + heads)/(1 - heads)): ln 5/3 for more
    privacy (25 %), ln 7 for less noise (75 %). Adjacency: replace.
    """
    first = rng.random(size) < heads
    second = rng.random(size) < 0.5
    return np.where(first, dataset, np.where(second, "Yes", "No"))
