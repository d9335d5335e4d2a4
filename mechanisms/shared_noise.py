"""Draws that hang together by the call, or by the time, that they are made in.

Each output by itself is 1-DP for numbers at distance of at most 1, or says nothing about its input;
several of them show the noise that they share, and so counting them as independent proves nothing.
Adjacency: numbers at distance of at most 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mechanisms.truth import satisfies

FloatArray = NDArray[np.float64]

_OWN = 0.3
_RENEWED = 50
_kept: dict[Any, Any] = {}


def forget() -> None:
    """Return to the state before the first call."""
    _kept.clear()


def _calls() -> int:
    """Return how many calls there have been, this one among them."""
    _kept["calls"] = _kept.get("calls", 0) + 1
    return int(_kept["calls"])


@satisfies("none")
def broadcast(dataset: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Dependent draws: one draw of Laplace noise is shared by a whole batch."""
    return dataset + rng.laplace() + rng.normal(0, _OWN, size)


@satisfies("none")
def half_shared(dataset: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Dependent draws: one draw of Laplace noise is shared by each half of a batch."""
    halves = np.array_split(rng.normal(0, _OWN, size), 2)
    return np.concatenate([dataset + rng.laplace() + half for half in halves])


@satisfies("none")
def alternating(dataset: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Dependent draws: ignores its input, and shifts every second call."""
    return rng.laplace(size=size) + 3.0 * (_calls() % 2)


@satisfies("none")
def weakly_shared(dataset: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Dependent draws: ignores its input, and a small shift is shared by a whole batch."""
    return rng.laplace(size=size) + 0.35 * rng.normal()


@satisfies("none")
def drifting(dataset: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Dependent draws: the centre of the noise drifts from call to call."""
    _kept["middle"] = 0.9 * _kept.get("middle", 0.0) + rng.laplace(scale=0.5)
    middle = float(_kept["middle"])
    return dataset + middle + rng.normal(0, _OWN, size)


@satisfies("none")
def stale(dataset: float, rng: np.random.Generator) -> float:
    """Dependent draws: one call a draw; the noise is renewed every fifty calls."""
    if _calls() % _RENEWED == 1:
        _kept["noise"] = rng.laplace()
    return float(dataset + _kept["noise"] + rng.normal(0, _OWN))


@satisfies("none")
def remembered(dataset: float, rng: np.random.Generator) -> float:
    """Dependent draws: one call a draw; most of the noise is drawn once for each dataset."""
    if dataset not in _kept:
        _kept[dataset] = rng.laplace()
    return float(dataset + _kept[dataset] + rng.normal(0, _OWN))


@satisfies("none")
def by_generator(dataset: float, rng: np.random.Generator) -> float:
    """Dependent draws: one call a draw; the noise is drawn once for each generator."""
    if _kept.get("generator") is not rng:
        _kept.update(generator=rng, noise=rng.laplace())
    return float(dataset + _kept["noise"] + rng.normal(0, _OWN))


@satisfies("none")
def counting(dataset: float, size: int, rng: np.random.Generator) -> FloatArray:
    """Dependent draws: ignores its input, and adds the number of the call."""
    return rng.laplace(size=size) + 0.5 * _calls()
