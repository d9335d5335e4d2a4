"""One step of DP-SGD on a sampled batch, released as new weights.

Adjacency: a record is added or removed. With Poisson sampling, each record takes part with
probability q, independently. If d1 has one record more than d2, and its gradient is orthogonal to
those of the other records, then their gradients and the component along its gradient are
independent. So the truth is that of N(0, 1) and (1 - q)·N(0, 1) + q·N(μ, 1).
"""

from __future__ import annotations

import math

import numpy as np

from mechanisms.training.model import (
    FEATURES,
    RATE,
    Floats,
    Records,
    clipped,
    gaussian_delta,
    gradients,
    sampled_delta,
)
from mechanisms.truth import satisfies

START = np.zeros(FEATURES)


def _infinite(d1: Records, d2: Records, **_: float) -> float:
    """Return the ε of pure DP: none is large enough for normal noise."""
    return math.inf


def _poisson_profile(
    d1: Records,
    d2: Records,
    at: float,
    noise_multiplier: float,
    clip: float,
    sample_rate: float,
    **_: float,
) -> float:
    """Return δ(ε) for a pair whose longer dataset ends with the additional record."""
    longer = max(d1, d2, key=len)
    norm = float(np.linalg.norm(clipped(gradients(longer[-1:]), clip)))
    return sampled_delta(norm / (noise_multiplier * clip), at, sample_rate)


@satisfies("approximate", epsilon=_infinite, profile=_poisson_profile)
def poisson_step(
    dataset: Records,
    noise_multiplier: float = 1.0,
    clip: float = 1.0,
    sample_rate: float = 0.1,
    records: int = 10,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Correct for the accountant's q: takes each record with probability q = `sample_rate`.

    records: public number of records; the expected batch size is q · records.
    """
    taken = rng.random(len(dataset)) < sample_rate
    batch = [record for record, is_taken in zip(dataset, taken, strict=True) if is_taken]
    total = clipped(gradients(batch), clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * total / (sample_rate * records)
    return weights


def _first_profile(
    d1: Records,
    d2: Records,
    at: float,
    noise_multiplier: float,
    clip: float,
    sample_rate: float,
    records: int,
) -> float:
    size = round(sample_rate * records)
    first, second = (clipped(gradients(data[:size]), clip).sum(axis=0) for data in (d1, d2))
    mu = float(np.linalg.norm(first - second)) / (noise_multiplier * clip)
    return gaussian_delta(mu, at)


@satisfies("approximate", epsilon=_infinite, profile=_first_profile)
def batch_in_order(
    dataset: Records,
    noise_multiplier: float = 1.0,
    clip: float = 1.0,
    sample_rate: float = 0.1,
    records: int = 10,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Broken: takes the first batch of a loader that does not sample, with the claim of sampling.

    Its records take part for certain: μ = 1/σ, and up to 2/σ if another record moves up.
    """
    batch = dataset[: round(sample_rate * records)]
    total = clipped(gradients(batch), clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * total / (sample_rate * records)
    return weights
