"""Noise of the wrong size, added to a number.

Records are finite numbers. Adjacency: a record is added or removed, unless a docstring says more.
Claim: 1-DP, or (1, 10⁻⁵)-DP where noise is normal.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]
# The normal noise for Δ = 1 at (1, 10⁻⁵) has this standard deviation, rounded up.
_DEVIATION = 3.74


def half_the_noise(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: noise of scale ½ for a sum that moves by up to 1; 2-DP."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    return total + rng.laplace(scale=0.5)


def whole_noise(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    return total + rng.laplace(scale=1.0)


def half_of_the_noise(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: halves the noise after it is drawn; 2-DP."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    return total + 0.5 * rng.laplace(scale=1.0)


def half_of_twice_the_noise(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct."""
    total = sum(min(max(one, 0.0), 1.0) for one in data)
    return total + 0.5 * rng.laplace(scale=2.0)


def total_clipped(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: clips the sum, so that one record may move it by 10."""
    total = min(max(math.fsum(data), 0.0), 10.0)
    return total + rng.laplace(scale=1.0)


def not_clipped(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: clips nothing, so that one record moves the sum by as much as it likes."""
    total = math.fsum(data)
    return total + rng.laplace(0.0, 1.0)


def clipped(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: records lie in [0, 1] after clipping."""
    total = math.fsum(min(max(one, 0.0), 1.0) for one in data)
    return total + rng.laplace(0.0, 1.0)


def scale_of_the_largest(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: takes the largest record for a bound, so the scale itself tells the inputs apart."""
    bound = max(data, default=1.0)
    return sum(data) + rng.laplace(scale=bound)


def scale_of_a_bound(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: the bound is 10, and records are clipped to it."""
    total = sum(min(max(one, 0.0), 10.0) for one in data)
    return total + rng.laplace(scale=10.0)


def variance_for_deviation(data: Sequence[float]) -> float:
    """Broken: gives the square root of σ to a function that takes σ."""
    return len(data) + random.gauss(0.0, math.sqrt(_DEVIATION))


def deviation(data: Sequence[float]) -> float:
    """Correct."""
    return len(data) + random.gauss(0.0, _DEVIATION)


def normal_for_pure(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken where a pure ε is claimed: normal noise has none."""
    return len(data) + float(rng.normal(0.0, _DEVIATION))


def legacy_half(data: Sequence[int]) -> Floats:
    """Broken: a record counts once in each of two columns, and the noise is for one of them."""
    counts = np.array([len(data), sum(one > 0 for one in data)], dtype=float)
    return counts + np.random.laplace(size=2)


def legacy_whole(data: Sequence[int]) -> Floats:
    """Correct."""
    counts = np.array([len(data), sum(one > 0 for one in data)], dtype=float)
    return counts + np.random.laplace(scale=2.0, size=2)


def frozen_half(data: Sequence[int]) -> float:
    """Broken: a frozen law of the scale that a claim of 2 would need."""
    noise = stats.laplace(scale=0.5)
    return len(data) + float(noise.rvs())


def frozen_whole(data: Sequence[int]) -> float:
    """Correct."""
    noise = stats.laplace(scale=1.0)
    return len(data) + float(noise.rvs())


def discrete_half(data: Sequence[int], rng: np.random.Generator) -> int:
    """Broken: a difference of two geometric numbers that decay as e^-2."""
    p = 1 - math.exp(-2.0)
    return len(data) + int(rng.geometric(p) - rng.geometric(p))


def discrete_whole(data: Sequence[int], rng: np.random.Generator) -> int:
    """Correct: they decay as e^-1."""
    p = 1 - math.exp(-1.0)
    return len(data) + int(rng.geometric(p) - rng.geometric(p))


def budget_for_each(data: Sequence[float], rng: np.random.Generator) -> dict[str, float]:
    """Broken: each of three answers spends the whole budget, in a loop; 3-DP."""
    answers = {
        "records": len(data),
        "positive": sum(x > 0 for x in data),
        "large": sum(x > 5 for x in data),
    }
    return {name: answer + rng.laplace(scale=1.0) for name, answer in answers.items()}


def budget_split(data: Sequence[float], rng: np.random.Generator) -> dict[str, float]:
    """Correct: a third of it for each."""
    answers = {
        "records": len(data),
        "positive": sum(x > 0 for x in data),
        "large": sum(x > 5 for x in data),
    }
    return {name: answer + rng.laplace(scale=3.0) for name, answer in answers.items()}


def clipped_after_the_sum(gradients: Sequence[Sequence[float]], rng: np.random.Generator) -> Floats:
    """Broken: clips the sum of all gradients, and not each; records are replaced: Δ₂ = 2 is for
    gradients of norm 1.

    Claim: (1, 10⁻⁵)-DP.
    """
    total = np.sum(gradients, axis=0)
    total = total / max(1.0, float(np.linalg.norm(total)) / 100.0)
    noise = rng.standard_normal(total.shape)
    released: Floats = total + 2 * _DEVIATION * noise
    return released


def each_clipped(gradients: Sequence[Sequence[float]], rng: np.random.Generator) -> Floats:
    """Correct."""
    each = [np.divide(one, max(1.0, float(np.linalg.norm(one)))) for one in gradients]
    total = np.sum(each, axis=0)
    noise = rng.standard_normal(total.shape)
    released: Floats = total + 2 * _DEVIATION * noise
    return released


def by_quantiles_half(data: Sequence[int], rng: np.random.Generator) -> float:
    """Broken: Laplace noise by its quantiles, of scale ½."""
    u = rng.random() - 0.5
    noise = -0.5 * math.copysign(1.0, u) * math.log(1 - 2 * abs(u))
    return len(data) + noise


def by_quantiles(data: Sequence[int], rng: np.random.Generator) -> float:
    """Correct: of scale 1."""
    u = rng.random() - 0.5
    noise = -math.copysign(1.0, u) * math.log(1 - 2 * abs(u))
    return len(data) + noise


def sensitivity_of_the_mean(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: the number of records is public and one is replaced, but noise is for n = 100."""
    mean = math.fsum(min(max(one, 0.0), 1.0) for one in data) / len(data)
    return mean + rng.laplace(scale=0.01)


def mean_of_n(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: scale 1/n."""
    mean = math.fsum(min(max(one, 0.0), 1.0) for one in data) / len(data)
    return mean + rng.laplace(scale=1 / len(data))


def weights_forgotten(data: Sequence[Mapping[str, float]], rng: np.random.Generator) -> float:
    """Broken: noise for weights of at most 1, and they go up to 5."""
    total = sum(min(max(one["weight"], 0.0), 5.0) for one in data)
    return round(total + rng.laplace(scale=1.0), 3)


def weights_counted(data: Sequence[Mapping[str, float]], rng: np.random.Generator) -> float:
    """Correct."""
    total = sum(min(max(one["weight"], 0.0), 5.0) for one in data)
    return round(total + rng.laplace(scale=5.0), 3)


def normal_half(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: normal noise of half the standard deviation. Claim: ⅛-zCDP."""
    return len(data) + float(rng.normal(0.0, 1.0))


def normal_whole(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: ρ = 1/(2σ²)."""
    return len(data) + float(rng.normal(0.0, 2.0))


def laplace_for_concentrated(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: Laplace noise of scale ½. Claim: ⅛-zCDP."""
    return len(data) + float(rng.laplace(scale=0.5))


def laplace_of_half(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: ½-DP is ⅛-zCDP (Bun & Steinke 2016, Prop. 1.4)."""
    return len(data) + float(rng.laplace(scale=2.0))


def deviation_of_the_data(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: the standard deviation of the noise depends on the largest record. Claim: ⅛-zCDP."""
    return len(data) + float(rng.normal(0.0, 2.0 + max(data, default=0.0)))


def even_noise(data: Sequence[int], rng: np.random.Generator) -> float:
    """Broken: uniform noise of width 10; (0, 1/10)-DP. Claim: (1, 0.01)-DP."""
    return len(data) + rng.uniform(-5.0, 5.0)


def even_noise_of_200(data: Sequence[int], rng: np.random.Generator) -> float:
    """Correct: of width 200."""
    return len(data) + rng.uniform(-100.0, 100.0)


def one_sided_noise(data: Sequence[int], rng: np.random.Generator) -> float:
    """Broken: exponential noise only adds, so that small outputs rule out the larger input.

    Claim: (1, 0.01)-DP.
    """
    return len(data) + rng.exponential(1.0)


def one_sided_integers(data: Sequence[int], rng: np.random.Generator) -> int:
    """Broken: the same for geometric noise."""
    return len(data) + int(rng.geometric(1 - math.exp(-1.0)))


def logarithm_of_the_sum(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: the logarithm of an empty sum is -∞, which no noise hides."""
    with np.errstate(divide="ignore"):
        total = float(np.log(sum(min(max(one, 0.0), 1.0) for one in data)))
    return total + rng.laplace(scale=1.0)


def logarithm_of_one_more(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct: moves by at most ln 2."""
    total = math.log1p(sum(min(max(one, 0.0), 1.0) for one in data))
    return total + rng.laplace(scale=1.0)


def spread_around_the_mean_half(
    data: Sequence[float], rng: np.random.Generator
) -> tuple[float, float]:
    """Broken: the squares around a noisy mean have noise for half their size. The number of records
    is public, and one is replaced.
    """
    mean = math.fsum(min(max(one, 0.0), 1.0) for one in data) / len(data)
    center = min(max(mean + rng.laplace(scale=2 / len(data)), 0.0), 1.0)
    squares = sum((min(max(one, 0.0), 1.0) - center) ** 2 for one in data)
    return center, squares + rng.laplace(scale=0.5)


def spread_around_the_mean(data: Sequence[float], rng: np.random.Generator) -> tuple[float, float]:
    """Correct: half of the budget for each; a square moves by at most 1."""
    mean = math.fsum(min(max(one, 0.0), 1.0) for one in data) / len(data)
    center = min(max(mean + rng.laplace(scale=2 / len(data)), 0.0), 1.0)
    squares = sum((min(max(one, 0.0), 1.0) - center) ** 2 for one in data)
    return center, squares + rng.laplace(scale=2.0)


def divided_by_the_count(data: Sequence[float], rng: np.random.Generator) -> list[float]:
    """Broken: divides noise alone by the number of records; ε = ∞."""
    noise = rng.normal(scale=4.0, size=3)
    return [float(one) for one in noise / len(data)]


def divided_by_a_constant(data: Sequence[float], rng: np.random.Generator) -> list[float]:
    """Correct: the output does not depend on the data."""
    noise = rng.normal(scale=4.0, size=3)
    return [float(one) for one in noise / 7]


def random_sign_half(data: Sequence[float]) -> float:
    """Broken: Laplace noise of scale 1, as a random sign times a logarithm, at ε = ½; 1-DP."""
    return len(data) + random.choice([-1, 1]) * 1.0 * math.log(random.random())


def random_sign(data: Sequence[float]) -> float:
    """Correct at ε = ½."""
    return len(data) + random.choice([-1, 1]) * 2.0 * math.log(random.random())


def tossed_sign_half(data: Sequence[float], rng: np.random.Generator) -> float:
    """Broken: as `random_sign_half`, with the sign of a coin."""
    sign = 1 if rng.random() < 0.5 else -1
    return len(data) + sign * math.log(1 - rng.random())


def tossed_sign(data: Sequence[float], rng: np.random.Generator) -> float:
    """Correct at ε = ½."""
    sign = 1 if rng.random() < 0.5 else -1
    return len(data) + 2 * sign * math.log(1 - rng.random())
