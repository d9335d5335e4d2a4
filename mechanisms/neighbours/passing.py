"""Values that pass without noise in a part of the draws.

Two releases are clamped to [0, 1] after the noise, and the noise is calibrated for records at the
bounds: a record that passes at a bound looks like noise that was clamped, and costs exactly ε.
Adjacency: replace for these, add-remove for the sum.
"""

from __future__ import annotations

import math

import numpy as np

from mechanisms.neighbours.values import FloatArray, Records, clipped, noisy

_RARELY, _OFTEN = 0.01, 0.25
# Largest number of records whose sum always gets noise.
_FEW = 20


def largest_rarely_passes(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: the largest value in [0, 1]; one draw in 100 has no noise.

    On [0] and [1], P(1) is (1 + p)/2 and (1 - p) e^{-1/scale}/2, whose log-ratio is ε. A value
    inside the bounds appears with probability p = 0.01 if it is the largest, and never otherwise.
    Harmless: records at the bounds.
    """
    return _clamped(dataset, _RARELY, epsilon, size, rng)


def largest_often_passes(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: like `largest_rarely_passes`, and one draw in four has no noise.

    Harmless: records at the bounds.
    """
    return _clamped(dataset, _OFTEN, epsilon, size, rng)


def largest_never_passes(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: the largest value in [0, 1]; each draw has noise of scale 1/ε, and is clamped."""
    return _clamped(dataset, 0.0, epsilon, size, rng)


def _clamped(
    dataset: Records, share: float, epsilon: float, size: int, rng: np.random.Generator
) -> FloatArray:
    largest = max((clipped(value, 0.0, 1.0) for value in dataset), default=0.0)
    scale = 1 / (epsilon - math.log((1 + share) / (1 - share)))
    drawn = noisy(largest, scale, size, rng)
    return np.clip(np.where(rng.random(size) < share, largest, drawn), 0.0, 1.0)


def many_rarely_pass(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Broken: the sum of values in [0, 1]; of more than 20 records, one draw in 100 has no noise.

    Such a sum appears with probability 0.01, and never for the neighbour, whose sum is another one,
    unless both lie on the grid of the noise. Harmless: at most 20 records, which use all of ε.
    """
    total = math.fsum(clipped(value, 0.0, 1.0) for value in dataset)
    drawn = noisy(total, 1 / epsilon, size, rng)
    passes = rng.random(size) < _RARELY * (len(dataset) > _FEW)
    return np.where(passes, total, drawn)


def many_never_pass(
    dataset: Records, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> FloatArray:
    """Correct: the sum of values in [0, 1], with noise of scale 1/ε."""
    total = math.fsum(clipped(value, 0.0, 1.0) for value in dataset)
    return noisy(total, 1 / epsilon, size, rng)
