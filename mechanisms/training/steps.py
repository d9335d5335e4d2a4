"""One step of DP-SGD on all records, or several; each returns the new weights.

Adjacency: a record is added or removed. The correct step adds normal noise of standard deviation
σ·C to the sum of gradients that are clipped to norm C, and divides by a public batch size B. It is
1/σ-Gaussian DP, and k steps are √k/σ-Gaussian DP (Dong, Roth & Su 2022). Every mechanism of this
module releases a normal vector, and states its exact μ for the given pair, except
`noise_by_batch_size`, whose standard deviations differ. The accountant is given
σ = `noise_multiplier` and C = `clip`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mechanisms.training.model import (
    FEATURES,
    RATE,
    Floats,
    Mean,
    Records,
    clipped,
    features,
    gradients,
    labels,
    two_scales_delta,
)
from mechanisms.truth import satisfies

START = np.zeros(FEATURES)


def _moved(mean: Mean, deviation: Callable[..., float]) -> Callable[..., float]:
    """Return the μ of a normal vector: distance of the means by the standard deviation.

    mean, deviation: functions of (dataset, **params) and of **params.
    """

    def stated(d1: Records, d2: Records, **params: float) -> float:
        return float(np.linalg.norm(mean(d1, **params) - mean(d2, **params))) / deviation(**params)

    return stated


def _infinite(d1: Records, d2: Records, **_: float) -> float:
    """Return the ε of pure DP: none is large enough for normal noise."""
    return math.inf


def _clipped_sum(dataset: Records, clip: float, **_: float) -> Floats:
    total: Floats = clipped(gradients(dataset), clip).sum(axis=0)
    return total


def _deviation(noise_multiplier: float, clip: float, **_: float) -> float:
    return noise_multiplier * clip


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_clipped_sum, _deviation))
def step(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Correct: clips the gradient of each record, and adds the noise to their sum."""
    total = clipped(gradients(dataset), clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * total / batch
    return weights


def _plain_sum(dataset: Records, **_: float) -> Floats:
    total: Floats = gradients(dataset).sum(axis=0)
    return total


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_plain_sum, _deviation))
def without_clipping(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Broken: clips no gradient. A record whose gradient has norm 8 has μ = 8/σ."""
    total = gradients(dataset).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * total / batch
    return weights


def _clipped_mean(dataset: Records, clip: float, batch: int, **_: float) -> Floats:
    return clipped(gradients(dataset).sum(axis=0) / batch, clip) * batch


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_clipped_mean, _deviation))
def batch_clipped(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Broken: clips the mean gradient of the batch to norm C, with the noise of clipped records.

    One record moves the clipped mean by up to 2C, not C/B: up to μ = 2B/σ.
    """
    mean = gradients(dataset).sum(axis=0) / batch
    mean = clipped(mean, clip)
    mean = mean + rng.normal(0.0, noise_multiplier * clip / batch, FEATURES)
    weights: Floats = START - RATE * mean
    return weights


def _by_batch(noise_multiplier: float, clip: float, batch: int) -> float:
    return noise_multiplier * clip / batch


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_clipped_sum, _by_batch))
def mean_noise_on_sum(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Broken: adds the noise of a mean, of deviation σC/B, to the sum. True μ: B/σ."""
    total = clipped(gradients(dataset), clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip / batch, FEATURES)
    weights: Floats = START - RATE * total / batch
    return weights


def _times_batch(noise_multiplier: float, clip: float, batch: int) -> float:
    return noise_multiplier * clip * batch


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_clipped_sum, _times_batch))
def sum_noise_on_mean(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Correct, but useless: adds the noise of a sum to the mean. True μ: 1/(Bσ)."""
    mean = clipped(gradients(dataset), clip).sum(axis=0) / batch
    mean = mean + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * mean
    return weights


def _of_microbatches(noise_multiplier: float, clip: float, microbatches: int, **_: float) -> float:
    return noise_multiplier * clip / math.sqrt(microbatches)


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_clipped_sum, _of_microbatches))
def noise_by_microbatches(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    microbatches: int = 32,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Broken: each of m microbatches adds noise of deviation σC/m, together σC/√m. True μ: √m/σ."""
    total = np.zeros(FEATURES)
    for part in range(microbatches):
        total += clipped(gradients(dataset[part::microbatches]), clip).sum(axis=0)
        total += rng.normal(0.0, noise_multiplier * clip / microbatches, FEATURES)
    return START - RATE * total / batch


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_clipped_sum, _deviation))
def microbatches_together(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    microbatches: int = 32,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Correct: sums the clipped gradients of all microbatches, and adds the noise once."""
    total = np.zeros(FEATURES)
    for part in range(microbatches):
        total += clipped(gradients(dataset[part::microbatches]), clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * total / batch
    return weights


def _profile_by_batch_size(
    d1: Records, d2: Records, at: float, noise_multiplier: float, clip: float
) -> float:
    (m1, s1), (m2, s2) = (
        (_clipped_sum(data, clip) / n, noise_multiplier * clip / n)
        for data, n in ((d1, max(len(d1), 1)), (d2, max(len(d2), 1)))
    )
    return two_scales_delta(m1, s1, m2, s2, at)


@satisfies("approximate", epsilon=_infinite, profile=_profile_by_batch_size)
def noise_by_batch_size(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Broken: divides sum and noise by the true number of records, so the deviation reveals it.

    δ(ε) of two normal laws with deviations σC/n and σC/(n - 1) is that of two noncentral χ².
    """
    batch = max(len(dataset), 1)
    total = clipped(gradients(dataset), clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * total / batch
    return weights


def _all_copies(dataset: Records, clip: float, copies: int, **_: float) -> Floats:
    rows = [clipped(factor * gradients(dataset), clip) for factor in _factors(copies)]
    total: Floats = np.sum(rows, axis=(0, 1))
    return total


def _factors(copies: int) -> Floats:
    """Return the brightness of each augmented copy of a record."""
    return np.linspace(0.8, 1.2, copies)


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_all_copies, _deviation))
def copies_clipped(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    copies: int = 6,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Broken: clips the gradient of each of m augmented copies of a record. True μ: up to m/σ."""
    total = np.zeros(FEATURES)
    for factor in _factors(copies):
        total += clipped(factor * gradients(dataset), clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * total / batch
    return weights


def _mean_of_copies(dataset: Records, clip: float, copies: int, **_: float) -> Floats:
    rows = np.mean([factor * gradients(dataset) for factor in _factors(copies)], axis=0)
    total: Floats = clipped(rows, clip).sum(axis=0)
    return total


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_mean_of_copies, _deviation))
def copies_averaged(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    copies: int = 6,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Correct: averages the gradients of the copies of a record, and clips the average."""
    rows = np.zeros((len(dataset), FEATURES))
    for factor in _factors(copies):
        rows += factor * gradients(dataset) / copies
    total = clipped(rows, clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * total / batch
    return weights


def _normalised_sum(dataset: Records, clip: float, **_: float) -> Floats:
    x = features(dataset)
    centred = x - x.mean(axis=0) if len(x) else x
    total: Floats = clipped(-labels(dataset) * centred, clip).sum(axis=0)
    return total


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_normalised_sum, _deviation))
def batch_normalised(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Broken: subtracts the mean of the features over the batch, so one record moves all gradients.

    An outlier turns the clipped gradients of all n other records: up to μ = (2n + 1)/σ.
    """
    x = features(dataset)
    x = x - x.mean(axis=0) if len(x) else x
    total = clipped(-labels(dataset) * x, clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = START - RATE * total / batch
    return weights


def _with_start(dataset: Records, clip: float, batch: int, **_: float) -> Floats:
    """Return minus the mean of the released weights, in units of the sum of gradients."""
    return _clipped_sum(dataset, clip) - _class_means(dataset) * batch / RATE


def _class_means(dataset: Records) -> Floats:
    mean: Floats = -gradients(dataset).mean(axis=0) if len(dataset) else START
    return mean


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_with_start, _deviation))
def start_from_data(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Broken: starts at the mean of y·x over the private records, without noise for it."""
    start = _class_means(dataset)
    total = clipped(gradients(dataset), clip).sum(axis=0)
    total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
    weights: Floats = start - RATE * total / batch
    return weights


def _after_steps(noise_multiplier: float, clip: float, steps: int, **_: float) -> float:
    return noise_multiplier * clip / math.sqrt(steps)


@satisfies("gaussian", epsilon=_infinite, mu=_moved(_clipped_sum, _after_steps))
def steps_on_all(
    dataset: Records,
    noise_multiplier: float = 2.0,
    clip: float = 1.0,
    batch: int = 8,
    steps: int = 32,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Correct if the accountant counts all k steps: √k/σ-Gaussian DP.

    Broken if the accountant counts one epoch as one step. The gradients do not depend on the
    weights, so the last weights reveal as much as all of them.
    """
    weights = START
    for _ in range(steps):
        total = clipped(gradients(dataset), clip).sum(axis=0)
        total = total + rng.normal(0.0, noise_multiplier * clip, FEATURES)
        weights = weights - RATE * total / batch
    return weights
