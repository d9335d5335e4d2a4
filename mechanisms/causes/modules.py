"""Noise of `random`, of older functions of `numpy.random`, of scipy.stats, pandas, OpenDP and PyDP,
and of functions that add noise themselves.

Records are 0, 1 or 2. Adjacency: a record is added or removed, unless a docstring says more. Claim:
1-DP, unless a docstring says more.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import opendp.prelude as dp
import pandas as pd
import pydp.algorithms.numerical_mechanisms as pydp_mechanisms
import pydp.distributions as pydp_distributions
from scipy import stats

dp.enable_features("contrib", "honest-but-curious")


def dice_too_honest(answer: int) -> tuple[int, int, int]:
    """Broken: gives the answer three times, each wrong with the smallest chance of a die: ln 19 +
    ln 19 + ln 7. Claim: 1.2-DP.
    """
    return (
        answer if random.randint(1, 20) > 1 else 1 - answer,
        answer if random.randrange(20) > 0 else 1 - answer,
        answer if random.getrandbits(3) > 0 else 1 - answer,
    )


def dice(answer: int) -> tuple[int, int, int]:
    """Correct: ln (12/8) + ln (11/9) + ln (5/3) = 1.12."""
    return (
        answer if random.randint(1, 20) > 8 else 1 - answer,
        answer if random.randrange(20) > 8 else 1 - answer,
        answer if random.getrandbits(3) > 2 else 1 - answer,
    )


def three_rare_dice(answer: int) -> list[int]:
    """Correct for claims of at least 3 ln 19 = 8.84: each answer is wrong once in 20 draws."""
    return [answer if random.randint(1, 20) > 1 else 1 - answer for _ in range(3)]


def rare_dice_after_coins(answer: int) -> list[int]:
    """Correct for claims of at least 4 ln 63 = 16.58: each answer is wrong once in 64 draws. The
    coins come first, and say nothing.
    """
    coins = [random.random() < 0.5 for _ in range(40)]
    return [*coins, *(answer if random.randint(1, 64) > 1 else 1 - answer for _ in range(4))]


def answer_unless_two_coins(answer: int) -> int:
    """Correct for claims of at least ln 399 = 5.99: wrong if both rare coins agree."""
    both = [random.random() < 0.05, random.random() < 0.05]
    return 1 - answer if all(both) else answer


def picks_the_truth_too_often(answer: int) -> int:
    """Broken: is honest for nine of ten items of a list; ln 9 = 2.2-DP."""
    if random.choice([True] * 9 + [False]):
        return answer
    return 1 - answer


def picks_the_truth(answer: int) -> int:
    """Correct: for seven of ten."""
    if random.choice([True] * 7 + [False] * 3):
        return answer
    return 1 - answer


def picks_by_weights(scores: Sequence[float]) -> int:
    """Broken: weights e^{2·score} for scores that move by 1 each, in `random.choices`; 4-DP."""
    law = [math.exp(2.0 * (score - max(scores))) for score in scores]
    return random.choices(range(len(scores)), law)[0]


def picks_by_half_weights(scores: Sequence[float]) -> int:
    """Correct: the exponential mechanism."""
    law = [math.exp((score - max(scores)) / 2) for score in scores]
    return random.choices(range(len(scores)), law)[0]


def permutes_and_flips(scores: Sequence[float], rng: np.random.Generator) -> int:
    """Broken: permute and flip with coins of e^{2·score}, for scores that move by 1 each."""
    best, order = max(scores), list(range(len(scores)))
    rng.shuffle(order)
    for place in order:
        if rng.random() < math.exp(2.0 * (scores[place] - best)):
            return place
    raise AssertionError("the largest score has a coin that always holds")


def permutes_and_flips_half(scores: Sequence[float], rng: np.random.Generator) -> int:
    """Correct: coins of e^{score/2} (McKenna & Sheldon 2020, Alg. 1)."""
    best = max(scores)
    for place in rng.permutation(len(scores)):
        if rng.random() < math.exp((scores[place] - best) / 2):
            return int(place)
    raise AssertionError("the largest score has a coin that always holds")


def quantiles_of_scipy_half(data: Sequence[int]) -> float:
    """Broken: Laplace noise of scale ½ by its quantiles."""
    u = float(stats.uniform.rvs(-0.5, 1.0))
    return len(data) - 0.5 * math.copysign(1.0, u) * math.log(1 - 2 * abs(u))


def quantiles_of_scipy(data: Sequence[int]) -> float:
    """Correct: of scale 1."""
    u = float(stats.uniform.rvs(-0.5, 1.0))
    return len(data) - math.copysign(1.0, u) * math.log(1 - 2 * abs(u))


def quantiles_of_random_half(data: Sequence[int]) -> float:
    """Broken: the same with `random.uniform`."""
    u = random.uniform(-0.5, 0.5)
    return len(data) - 0.5 * math.copysign(1.0, u) * math.log(1 - 2 * abs(u))


def integer_noise_half(data: Sequence[int]) -> int:
    """Broken: discrete Laplace noise that decays as e^-2."""
    return len(data) + int(stats.dlaplace.rvs(2.0))


def integer_noise(data: Sequence[int]) -> int:
    """Correct: as e^-1."""
    return len(data) + int(stats.dlaplace.rvs(1.0))


def geometric_of_scipy_half(data: Sequence[int]) -> int:
    """Broken: the difference of two geometric numbers; the noise decays as e^-2."""
    p = -math.expm1(-2.0)
    return int(len(data) + (stats.geom.rvs(p) - stats.geom.rvs(p)))


def seeded_state(data: Sequence[int]) -> float:
    """Broken: a generator of the old kind, with a seed."""
    rng = np.random.RandomState(7)
    return len(data) + rng.laplace()


def seeded_numpy(data: Sequence[int]) -> float:
    """Broken: seeds the global generator of NumPy in every call."""
    np.random.seed(11)
    return len(data) + np.random.laplace()


def seeded_random(data: Sequence[int]) -> float:
    """Broken: a generator of `random`, with a seed. Claim: (1, 10⁻⁵)-DP."""
    rng = random.Random(5)
    return len(data) + rng.gauss(0.0, 3.74)


def series_half(data: Sequence[int]) -> list[float]:
    """Broken: noise of scale ½ on a Series of counts."""
    counts = pd.Series(np.bincount(data, minlength=3), dtype=float)
    return list(counts + np.random.laplace(scale=0.5, size=3))


def series(data: Sequence[int]) -> list[float]:
    """Correct: one count moves by 1."""
    counts = pd.Series(np.bincount(data, minlength=3), dtype=float)
    return list(counts + np.random.laplace(scale=1.0, size=3))


_ROWS = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
_COUNT = _ROWS >> dp.t.then_count()
_COUNTS = dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int)


def opendp_half(data: Sequence[int]) -> int:
    """Broken: a count of OpenDP with noise of scale ½."""
    measurement = _COUNT >> dp.m.then_laplace(scale=0.5) >> (lambda count: max(0, count))
    return int(measurement(list(data)))


def opendp_whole(data: Sequence[int]) -> int:
    """Correct."""
    measurement = _COUNT >> dp.m.then_laplace(scale=1.0) >> (lambda count: max(0, count))
    return int(measurement(list(data)))


def opendp_counts_half(data: Sequence[int]) -> list[int]:
    """Broken: noise of scale ½ on three counts in a list."""
    noisy = (_COUNTS >> dp.m.then_laplace(scale=0.5))(np.bincount(data, minlength=3).tolist())
    return list(noisy)


def opendp_counts(data: Sequence[int]) -> list[int]:
    """Correct: one count moves by 1."""
    noisy = (_COUNTS >> dp.m.then_laplace(scale=1.0))(np.bincount(data, minlength=3).tolist())
    return list(noisy)


def opendp_twice(data: Sequence[int]) -> list[int]:
    """Broken: OpenDP composes two counts, each of which spends the whole budget."""
    each = _COUNT >> dp.m.then_laplace(scale=1.0)
    return list(dp.c.make_composition([each, each])(list(data)))


def opendp_shared(data: Sequence[int]) -> list[int]:
    """Correct: half of it for each."""
    each = _COUNT >> dp.m.then_laplace(scale=2.0)
    return list(dp.c.make_composition([each, each])(list(data)))


def opendp_response_too_honest(answer: int) -> bool:
    """Broken: randomized response of OpenDP, true with probability 0.9; ln 9 = 2.2-DP."""
    return bool(dp.m.make_randomized_response_bool(prob=0.9)(answer == 1))


def opendp_response(answer: int) -> bool:
    """Correct: with probability 0.7."""
    return bool(dp.m.make_randomized_response_bool(prob=0.7)(answer == 1))


def opendp_own_half(data: Sequence[int]) -> float:
    """Broken: a measurement of OpenDP whose function is the user's own, with noise of scale ½."""
    return float(_own(0.5)(len(data)))


def opendp_own(data: Sequence[int]) -> float:
    """Correct."""
    return float(_own(1.0)(len(data)))


def _own(scale: float) -> Any:
    return dp.m.make_user_measurement(
        *(dp.atom_domain(T=int), dp.absolute_distance(T=int), dp.max_divergence()),
        function=lambda count: count + np.random.laplace(scale=scale),
        privacy_map=lambda distance: distance / scale,
        TO=float,
    )


def pydp_half(data: Sequence[int]) -> float:
    """Broken: a mechanism of PyDP for ε = 2."""
    return float(pydp_mechanisms.LaplaceMechanism(2.0, 1.0).add_noise(float(len(data))))


def pydp_whole(data: Sequence[int]) -> float:
    """Correct: for ε = 1."""
    return float(pydp_mechanisms.LaplaceMechanism(1.0, 1.0).add_noise(float(len(data))))


def pydp_distribution_half(data: Sequence[int]) -> float:
    """Broken: adds noise of a distribution of PyDP, for ε = 2."""
    return len(data) + float(pydp_distributions.LaplaceDistribution(2.0, 1.0).sample())


def pydp_distribution(data: Sequence[int]) -> float:
    """Correct: for ε = 1."""
    return len(data) + float(pydp_distributions.LaplaceDistribution(1.0, 1.0).sample())


_system = random.SystemRandom()


def add_noise(value: float, epsilon: float) -> float:
    """Return a value with Laplace noise for ε. A trace sees this noise by its attributes."""
    sign = 1 if _system.getrandbits(1) else -1
    return value + sign * -math.log(1 - _system.random()) / epsilon


add_noise.law = "laplace"  # type: ignore[attr-defined]
add_noise.scale = lambda value, epsilon: 1 / epsilon  # type: ignore[attr-defined]


def add_noise_within(value: float, b: float, end: float) -> float:
    """Return a value with Laplace noise of scale b, clamped to numbers from 0 to an end."""
    return min(max(0.0, add_noise(value, 1 / b)), end)


add_noise_within.bounds = lambda value, b, end: (0.0, end)  # type: ignore[attr-defined]


class Noise:
    """Normal noise. A trace sees `add` by the name of its argument."""

    def add(self, value: float, sigma: float) -> float:
        return value + _system.gauss(0.0, sigma)


def own_function_half(data: Sequence[int]) -> float:
    """Broken: a function that adds noise itself, for ε = 2."""
    return add_noise(len(data), 2.0)


def own_function(data: Sequence[int]) -> float:
    """Correct: for ε = 1."""
    return add_noise(len(data), 1.0)


def ends_at_the_size(data: Sequence[int]) -> float:
    """Broken: outputs end at the private number of records."""
    return add_noise_within(len(data), 1.0, len(data))


def ends_at_ten(data: Sequence[int]) -> float:
    """Correct."""
    return add_noise_within(len(data), 1.0, 10.0)


def own_method_half(data: Sequence[int]) -> float:
    """Broken: a method that adds noise, of half the standard deviation. Claim: (1, 10⁻⁵)-DP."""
    return Noise().add(len(data), sigma=1.87)


def own_method(data: Sequence[int]) -> float:
    """Correct."""
    return Noise().add(len(data), sigma=3.74)


def shuffles_and_flips(scores: Sequence[float]) -> int:
    """Broken: permute and flip with `random`, and with coins of e^{2·score}."""
    best, order = max(scores), list(range(len(scores)))
    random.shuffle(order)
    for place in order:
        if random.random() < math.exp(2.0 * (scores[place] - best)):
            return place
    raise AssertionError("the largest score has a coin that always holds")


def shuffles_and_flips_half(scores: Sequence[float]) -> int:
    """Correct: coins of e^{score/2}."""
    best, order = max(scores), list(range(len(scores)))
    random.shuffle(order)
    for place in order:
        if random.random() < math.exp((scores[place] - best) / 2):
            return place
    raise AssertionError("the largest score has a coin that always holds")


def old_normal_half(data: Sequence[int]) -> list[float]:
    """Broken: half the standard deviation, by `np.random.randn`. Claim: (1, 10⁻⁵)-DP."""
    return list(np.bincount(data, minlength=3) + 1.87 * np.random.randn(3))


def old_normal(data: Sequence[int]) -> list[float]:
    """Correct."""
    return list(np.bincount(data, minlength=3) + 3.74 * np.random.randn(3))


def table_half(data: Sequence[int], rng: np.random.Generator) -> Any:
    """Broken: noise of scale ½ for a table of counts, with the noise turned and in single
    precision."""
    counts = np.outer(np.bincount(data, minlength=3), [1.0, 0.0])
    noise = np.negative(rng.laplace(scale=0.5, size=(2, 3))).T.astype(np.float32)
    return (counts + noise).tolist()


def table(data: Sequence[int], rng: np.random.Generator) -> Any:
    """Correct: one count moves by 1."""
    counts = np.outer(np.bincount(data, minlength=3), [1.0, 0.0])
    noise = np.negative(rng.laplace(scale=1.0, size=(2, 3))).T.astype(np.float32)
    return (counts + noise).tolist()
