"""The Laplace mechanism in floating point: which floats come up says more than which numbers.

What is proved for real numbers does not hold for the floats of the textbook's code (Mironov 2012,
"On significance of the least significant bits for differential privacy"). Adjacency: numbers at
distance of at most 1.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies


def _epsilon(d1: float, d2: float, epsilon: float, bits: int) -> float:
    return abs(d1 - d2) * epsilon


def _cell_probability(output: float, dataset: float, epsilon: float, bits: int) -> float:
    """The probability of one multiple of 2^-bits; there is no end to them."""
    half, distance = 2.0 ** -(bits + 1), abs(output - dataset)
    return _above(distance - half, epsilon) - _above(distance + half, epsilon)


def _above(noise: float, epsilon: float) -> float:
    tail = 0.5 * math.exp(-epsilon * abs(noise))
    return tail if noise > 0 else 1 - tail


@satisfies("none")
def textbook_laplace(
    dataset: float, epsilon: float = 1.0, *, size: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Broken: the number plus a float of Laplace noise of scale 1/ε.

    The sum is rounded to the floats near it, which lie closer together near 0: an output that is
    no multiple of 2⁻⁵³ comes from 0 plus noise in about a quarter of all draws, and from 1 never.
    """
    return dataset + rng.laplace(scale=1 / epsilon, size=size)


@satisfies("none")
def noise_rounded_laplace(
    dataset: float,
    epsilon: float = 1.0,
    decimals: int = 2,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Broken: rounds the noise to a few decimals, but not the output.

    The decimals after those are the input's own.
    """
    return dataset + np.round(rng.laplace(scale=1 / epsilon, size=size), decimals)


@satisfies("pure", epsilon=_epsilon, density=_cell_probability)
def grid_rounded_laplace(
    dataset: float,
    epsilon: float = 1.0,
    bits: int = 10,
    *,
    size: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Correct: rounds the output to a multiple of 2^-bits, much finer than the noise.

    Post-processing of Laplace noise; what is left of its floats are events of probability below
    10⁻¹⁰, far out in the tails.
    """
    noisy = dataset + rng.laplace(scale=1 / epsilon, size=size)
    return np.ldexp(np.rint(np.ldexp(noisy, bits)), -bits)
