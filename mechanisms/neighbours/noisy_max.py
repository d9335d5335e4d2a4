"""Report noisy max of answers to queries: only the index is released.

Adjacency: `linf:1`, every answer moves by at most 1. Answers are clipped to [0, 10], which moves no
two of them further apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mechanisms.neighbours.values import Records, clipped

_HIGH = 10.0


def _winner(
    dataset: Records, scale: float, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    if not len(dataset):
        return np.full(size, -1)
    answers = [clipped(value, 0.0, _HIGH) for value in dataset]
    drawn = rng.laplace(0.0, scale, (size, len(answers)))
    drawn += answers
    winners: NDArray[np.int64] = np.argmax(drawn, axis=1)
    return winners


def noise_for_one_direction(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Broken: noise of scale 1/ε, which is right for answers that all move the same way (counts).

    One answer that falls while the others rise moves their differences by 2. The true ε of
    [1, 1, 1, 1, 1] and [0, 2, 2, 2, 2] follows from the law of the index
    (`mechanisms.noisy_max.winning_law`): the first one wins with probability 1/5, or 0.0276.
    Harmless: all answers rise, or some do and none falls.
    """
    return _winner(dataset, 1 / epsilon, size, rng)


def noise_for_both_directions(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Correct: noise of scale 2/ε."""
    return _winner(dataset, 2 / epsilon, size, rng)
