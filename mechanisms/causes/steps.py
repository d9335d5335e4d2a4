"""Normal noise that several values share, as in the steps of a training.

Records are numbers from 0 to 1. Adjacency: a record is added or removed. Each step releases a noisy
sum, or weights that it moves. Claim: ρ-zCDP, with the exact ρ = μ²/2 of the correct mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_STEPS, _RATE = 3, 0.1


def _above(data: Sequence[float]) -> int:
    return sum(one > 1 for one in data)


def weights_of_steps_half(data: Sequence[float], rng: np.random.Generator) -> list[float]:
    """Broken: the weights after each of three steps, with half the noise; μ = √3."""
    weight, weights = 0.0, []
    for _ in range(_STEPS):
        weight -= _RATE * (sum(data) + rng.normal(scale=1.0))
        weights.append(weight)
    return weights


def weights_of_steps(data: Sequence[float], rng: np.random.Generator) -> list[float]:
    """Correct: μ = √3/2, since each weight shows one more noisy sum."""
    weight, weights = 0.0, []
    for _ in range(_STEPS):
        weight -= _RATE * (sum(data) + rng.normal(scale=2.0))
        weights.append(weight)
    return weights


def momentum_half(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: the last weight after three steps with momentum 0.9, with half the noise."""
    weight = velocity = 0.0
    for _ in range(_STEPS):
        velocity = 0.9 * velocity + sum(data) + rng.normal(scale=1.0)
        weight -= _RATE * velocity
    return weight


def momentum(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: the noise of the steps has the factors 2.71, 1.9 and 1 in the weight, and a record
    moves it by their sum; μ = 5.61 / (2 √(2.71² + 1.9² + 1)) = 0.811."""
    weight = velocity = 0.0
    for _ in range(_STEPS):
        velocity = 0.9 * velocity + sum(data) + rng.normal(scale=2.0)
        weight -= _RATE * velocity
    return weight


def noise_of_the_last_step(data: Sequence[float], rng: np.random.Generator) -> Floats:
    """Broken: subtracts most of the noise of the first sum from the second one. Each sum has enough
    noise by itself, but both together show the first sum with less noise; μ = 0.673."""
    first, second = rng.normal(scale=2.0, size=2)
    return np.array([sum(data) + first, _above(data) + second - 0.9 * first])


def noise_of_each_step(data: Sequence[float], rng: np.random.Generator) -> Floats:
    """Correct: μ = ½."""
    first, second = rng.normal(scale=2.0, size=2)
    return np.array([sum(data) + first, _above(data) + second])


def seed_for_both_layers(data: Sequence[float], rng: np.random.Generator) -> tuple[float, float]:
    """Broken: both layers get the same noise, so that their difference has none."""
    seed = int(rng.integers(2**62))
    first = sum(data) + np.random.default_rng(seed).normal(scale=2.0)
    return first, _above(data) + np.random.default_rng(seed).normal(scale=2.0)


def seed_for_each_layer(data: Sequence[float], rng: np.random.Generator) -> tuple[float, float]:
    """Correct: μ = ½."""
    seed = int(rng.integers(2**62))
    first = sum(data) + np.random.default_rng(seed).normal(scale=2.0)
    return first, _above(data) + np.random.default_rng(seed + 1).normal(scale=2.0)


def one_noise_in_a_sum(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct, though both numbers get the same noise: only their sum is released; μ = ⅜."""
    noise = rng.normal(scale=4.0)
    one = sum(data) + noise
    other = 2 * sum(data) + noise
    return one + other


def sum_of_gradients_clipped(
    gradients: Sequence[Sequence[float]], rng: np.random.Generator
) -> Floats:
    """Broken: clips the sum of the gradients to norm 1, not each gradient; μ = 1."""
    total = np.sum(gradients, axis=0)
    total = total / max(1.0, float(np.linalg.norm(total)))
    return np.asarray(total + rng.normal(scale=2.0, size=2))


def each_gradient_clipped(gradients: Sequence[Sequence[float]], rng: np.random.Generator) -> Floats:
    """Correct: μ = ½."""
    each = [np.divide(one, max(1.0, float(np.linalg.norm(one)))) for one in gradients]
    return np.asarray(np.sum(each, axis=0) + rng.normal(scale=2.0, size=2))


def momentum_before_noise_half(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: each step adds noise to the velocity, which counts a record of an earlier step again;
    the noise is for half of the sum. μ = 5.61 / (3.24 √3) = 1."""
    weight = velocity = 0.0
    for _ in range(_STEPS):
        velocity = 0.9 * velocity + sum(data)
        weight -= _RATE * (velocity + rng.normal(scale=3.24))
    return weight


def momentum_before_noise(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: a record moves the velocity by 1, 1.9 and 2.71; μ = 5.61 / (6.48 √3) = ½."""
    weight = velocity = 0.0
    for _ in range(_STEPS):
        velocity = 0.9 * velocity + sum(data)
        weight -= _RATE * (velocity + rng.normal(scale=6.48))
    return weight
