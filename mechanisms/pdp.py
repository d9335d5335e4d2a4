"""Probabilistic DP is not closed under post-processing: the counterexample (Meiser 2018).

K draws from {0, 1, 2, 3} and is (ε, δ)-probabilistically DP. T merges 0 and 1 into 4. T∘K is not:
4 is too likely for input 0, and by far not rare. It still is (ε, δ)-DP, exactly tight.

Adjacency: the datasets are 0 and 1, neighbours of each other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies


def _pmf(dataset: int, epsilon: float, delta: float) -> dict[int, float]:
    likely = math.exp(epsilon) / (1 + math.exp(epsilon)) * (1 - delta)
    unlikely = 1 / (1 + math.exp(epsilon)) * (1 - delta)
    if dataset == 0:
        return {0: delta, 1: likely, 2: unlikely, 3: 0.0}
    return {0: 0.0, 1: unlikely, 2: likely, 3: delta}


def _epsilon(d1: int, d2: int, epsilon: float, delta: float) -> float:
    return epsilon if d1 != d2 else 0.0


def _delta(d1: int, d2: int, epsilon: float, delta: float) -> float:
    return delta if d1 != d2 else 0.0


@satisfies("probabilistic", epsilon=_epsilon, delta=_delta, pmf=_pmf)
def counterexample(
    dataset: int,
    epsilon: float = 1.0,
    delta: float = 0.1,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """K: (ε, δ)-probabilistically DP and (ε, δ)-DP on the inputs 0 and 1; tight in both."""
    law = _pmf(dataset, epsilon, delta)
    return rng.choice(list(law), size=size, p=list(law.values()))


def merge(output: int) -> int:
    """T: makes 4 of 0 and 1, and leaves 2 and 3 as they are."""
    return 4 if output in (0, 1) else output
