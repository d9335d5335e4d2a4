"""Noise of NumPy whose loss dp-accounting computes, for `make watch`.

dp-accounting draws nothing: it states the loss of a mechanism that an event describes. Each
function here draws from the mechanism of one event, which the documentation of its class defines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from dp_accounting import dp_event, gaussian_mechanism, pld

Floats = np.ndarray[Any, np.dtype[np.float64]]
_GAUSSIAN = dp_event.GaussianDpEvent(1.0)


Mechanism = Callable[..., Any]


def _described_by(event: Any) -> Callable[[Mechanism], Mechanism]:
    def named(mechanism: Mechanism) -> Mechanism:
        mechanism.claim_source = event  # type: ignore[attr-defined]  # an attribute of a function
        return mechanism

    return named


@_described_by(_GAUSSIAN)
def gaussian(value: float, size: int, rng: np.random.Generator) -> Floats:
    """Add normal noise of standard deviation 1."""
    return value + rng.normal(size=size)


@_described_by(dp_event.LaplaceDpEvent(1.0))
def laplace(value: float, size: int, rng: np.random.Generator) -> Floats:
    """Add Laplace noise of scale 1."""
    return value + rng.laplace(size=size)


@_described_by(dp_event.DiscreteLaplaceDpEvent(1.0, 1))
def discrete_laplace(value: int, size: int, rng: np.random.Generator) -> Any:
    """Add the difference of two geometric numbers, with P(x) in proportion to e^(-|x|)."""
    first, second = rng.geometric(1 - np.exp(-1.0), (2, size))
    return value + first - second


@_described_by(dp_event.SelfComposedDpEvent(_GAUSSIAN, 3))
def three_gaussians(value: float, size: int, rng: np.random.Generator) -> Floats:
    """Add normal noise three times, each time to the same value."""
    return value + rng.normal(size=(size, 3))


@_described_by(dp_event.ComposedDpEvent([_GAUSSIAN, dp_event.LaplaceDpEvent(2.0)]))
def gaussian_and_laplace(value: float, size: int, rng: np.random.Generator) -> Floats:
    """Release the value with normal noise, and with Laplace noise of scale 2."""
    return value + np.column_stack([rng.normal(size=size), rng.laplace(scale=2.0, size=size)])


@_described_by(dp_event.PoissonSampledDpEvent(0.5, _GAUSSIAN))
def sampled_gaussian(records: Sequence[float], size: int, rng: np.random.Generator) -> Floats:
    """Add normal noise to the sum of a sample; each record is in it with probability 1/2."""
    chosen = rng.random((size, len(records))) < 0.5
    sums: Floats = chosen @ np.asarray(records, dtype=float)
    return sums + rng.normal(size=size)


def _loss_of_mixture() -> Any:
    """Return the PLD accountant of `mixture`, on a grid of losses with steps of 0.01.

    With its usual steps of 0.0001, the library computes for minutes. Both grids round losses up.
    """
    event = dp_event.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.5, 0.25, 0.25])
    return pld.PLDAccountant(value_discretization_interval=0.01).compose(event)


@_described_by(_loss_of_mixture)
def mixture(is_present: int, size: int, rng: np.random.Generator) -> Floats:
    """Add normal noise to 0; for the input 1 to 0, 1 or 2."""
    moved = is_present * rng.choice([0.0, 1.0, 2.0], size=size, p=[0.5, 0.25, 0.25])
    return moved + rng.normal(size=size)


def calibrated_gaussian(value: float, size: int, rng: np.random.Generator) -> Any:
    """Add normal noise of the deviation that the library computes for ε = 1 and δ = 0.01."""
    return value + gaussian_mechanism.get_sigma_gaussian(1.0, 0.01) * rng.normal(size=size)
