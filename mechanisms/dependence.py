"""Draws that depend on each other: what an audit cannot judge, and has to notice.

Each adds Laplace noise of scale 1, but its draws are not independent, so that counting them proves
nothing. Adjacency: numbers at distance of at most 1.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies

_SHORT, _NOISE = 701, 0.6180339887498949


@satisfies("none")
def fixed_seed(dataset: float, size: int) -> NDArray[np.float64]:
    """Dependent draws: seeds its generator again in every call, so that the noise repeats."""
    return dataset + np.random.default_rng(2_024).laplace(size=size)


class _OwnGenerator:
    """A generator of its own making, as a library's native code has, out of reach of any seed."""

    def __init__(self) -> None:
        self.state = 88_172_645_463_325_252

    def uniform(self) -> float:
        """Return the next number in (0, 1) (Marsaglia's xorshift)."""
        self.state ^= (self.state << 13) & (2**64 - 1)
        self.state ^= self.state >> 7
        self.state ^= (self.state << 17) & (2**64 - 1)
        return (self.state + 0.5) / 2**64


@satisfies("none")
def restarted(dataset: float, size: int) -> list[float]:
    """Dependent draws: every task starts from the same state of the generator."""
    source = _OwnGenerator()
    return [dataset + _laplace(source.uniform()) for _ in range(size)]


_source = _OwnGenerator()


@satisfies("none")
def copied(dataset: float) -> float:
    """Independent in one process; of several, each begins with a copy of the same state, as after
    a fork."""
    return dataset + _laplace(_source.uniform())


@satisfies("none")
@cache
def cached(dataset: float) -> float:
    """Returns again what it returned before."""
    return dataset + float(np.random.default_rng().laplace())


class _Pool:
    """Noise drawn once, of which every call takes the next; after the last comes the first."""

    def __init__(self, size: int) -> None:
        self.noise: list[float] = np.random.default_rng(7).laplace(size=size).tolist()
        self.place = 0

    def __call__(self) -> float:
        """Return the next piece of noise."""
        self.place = (self.place + 1) % len(self.noise)
        return self.noise[self.place]


_pool, _computed = _Pool(_SHORT), dict[float, float]()


@satisfies("none")
def depleted(dataset: float) -> float:
    """Dependent draws: takes its noise from a list, and starts again at its end."""
    return dataset + _pool()


@satisfies("none")
def computed_once(dataset: float) -> float:
    """Dependent draws: caches the result of each dataset."""
    if dataset not in _computed:
        _computed[dataset] = dataset + float(np.random.default_rng().laplace())
    return _computed[dataset]


_calls = [0]


@satisfies("none")
def counted(dataset: float) -> float:
    """Dependent draws: the noise is a function of the call number, evenly spread and not random."""
    _calls[0] += 1
    return dataset + _laplace(_calls[0] * _NOISE % 1)


def _laplace(uniform: float) -> float:
    """Return the quantile of Laplace's law."""
    uniform = min(max(uniform, 1e-12), 1 - 1e-12)
    return math.copysign(-math.log1p(-2 * abs(uniform - 0.5)), uniform - 0.5)
