"""Small correct mechanisms as engineers write them; none has a cause."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP, ZeroConcentratedDP

KEYS = ("a", "b", "c")
ROWS = ([0.2, 0.9, 0.4], [0.2, 0.9, 0.4, 1.0]), ([], [1.0]), ([5.0, 0.5], [0.5])
WORDS = (["a", "b", "a"], ["a", "b", "a", "c"]), ([], ["b"])
BITS = (0, 1), (1, 0)
VECTORS = (([0, 1, 0], [1, 0, 1]),)
SCORES = ([3, 1, 2], [2, 2, 1]), ([0, 0, 0], [1, 1, 1])
KINDS = (0, 2), (1, 0)


class Correct(NamedTuple):
    run: Callable[..., Any]
    pairs: Any
    claim: PrivacyClaim


CORRECT: dict[str, Correct] = {}


def correct(pairs: Any, claim: PrivacyClaim = PureDP(1.0)) -> Callable[[Any], Any]:  # noqa: B008
    def add(run: Any) -> Any:
        CORRECT[run.__name__] = Correct(run, pairs, claim)
        return run

    return add


@correct(ROWS)
def bounded_sum(data, rng):
    return sum(min(max(x, 0), 1) for x in data) + rng.laplace(0, 1)


@correct(ROWS)
def sum_clipped_by_numpy(data, rng):
    return float(np.clip(np.array(data, dtype=float), 0, 1).sum() + rng.laplace(scale=1))


@correct(ROWS)
def mean_of_two_noised(data, rng):
    total = np.clip(data, 0, 1).sum() + rng.laplace(0, 2)
    return total / max(1.0, len(data) + rng.laplace(0, 2))


@correct(ROWS)
def variance_of_three(data, rng):
    x = np.clip(data, 0, 1)
    n = max(1.0, len(x) + rng.laplace(0, 3))
    first, second = x.sum() + rng.laplace(0, 3), (x**2).sum() + rng.laplace(0, 3)
    return max(0.0, second / n - (first / n) ** 2)


@correct(ROWS)
def count_rounded(data, rng):
    return max(0, round(len(data) + rng.laplace(0, 1)))


@correct(ROWS)
def clamped_after(data, rng):
    return float(np.clip(len(data) + rng.laplace(0, 1), 0, 10))


@correct(ROWS)
def shuffled_first(data, rng):
    x = np.clip(data, 0, 1)
    rng.shuffle(x)
    return x.sum() + rng.laplace(0, 1)


@correct(ROWS)
def retried_until_positive(data, rng):
    while True:
        noised = len(data) + rng.laplace(0, 0.5 * 4)
        if noised > -1e9:
            return noised


@correct(ROWS)
def pandas_sum(data, rng):
    return pd.Series(data, dtype=float).clip(0, 1).sum() + rng.laplace(0, 1)


@correct(ROWS)
def inverse_cdf_laplace(data, rng):
    u = rng.random() - 0.5
    return len(data) - math.copysign(1.0, u) * math.log(1 - 2 * abs(u))


@correct(ROWS)
def difference_of_geometrics(data, rng):
    p = 1 - math.exp(-1)
    return len(data) + int(rng.geometric(p)) - int(rng.geometric(p))


@correct(ROWS)
def difference_of_exponentials(data, rng):
    return len(data) + rng.exponential(1) - rng.exponential(1)


@correct(ROWS)
def standard_laplace_scaled(data):
    return len(data) + random.choice([-1, 1]) * random.expovariate(1.0)


@correct(ROWS, ApproximateDP(1.0, 1e-5))
def gaussian(data, rng):
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5))
    return len(data) + rng.normal(0, sigma)


@correct(ROWS, ZeroConcentratedDP(0.5))
def concentrated(data, rng):
    return np.clip(data, 0, 1).sum() + rng.normal(0, 1)


@correct(ROWS, ApproximateDP(1.0, 1e-5))
def box_muller(data, rng):
    u, v = rng.random(), rng.random()
    z = math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v)
    return len(data) + 5 * z


@correct(ROWS)
def budget_split(data, rng):
    out = []
    for share in (0.2, 0.3, 0.5):
        out.append(len(data) + rng.laplace(0, 1 / share))
    return out


@correct(ROWS)
def adaptive_split(data, rng):
    n = len(data) + rng.laplace(0, 2)
    top = 1.0 if n > 2 else 0.5
    return n, np.clip(data, 0, top).sum() + rng.laplace(0, 2 * top)


@lru_cache
def _scale(epsilon):
    return 1 / epsilon


@correct(ROWS)
def cached_scale(data, rng):
    return len(data) + rng.laplace(0, _scale(1.0))


class Counting:
    def __init__(self):
        self.spent = 0.0

    def count(self, data, rng):
        self.spent += 1.0
        return len(data) + rng.laplace(0, 1 / self.spent)


@correct(ROWS)
def state_of_one_call(data, rng):
    return Counting().count(data, rng)


@correct(ROWS)
def system_random(data):
    u = random.SystemRandom().random() - 0.5
    return len(data) - math.copysign(1.0, u) * math.log(1 - 2 * abs(u))


@correct(WORDS)
def histogram_comprehension(data, rng):
    return {key: data.count(key) + rng.laplace(0, 1) for key in KEYS}


@correct(WORDS)
def histogram_counter(data, rng):
    counts = Counter(data)
    return [counts[key] + rng.laplace(0, 1) for key in KEYS]


@correct(WORDS)
def histogram_loop(data, rng):
    counts = dict.fromkeys(KEYS, 0.0)
    for one in data:
        if one in counts:
            counts[one] += 1
    for key in counts:
        counts[key] += rng.laplace(0, 1)
    return counts


@correct(WORDS)
def histogram_normalised(data, rng):
    noised = np.array([max(0.0, data.count(key) + rng.laplace(0, 1)) for key in KEYS])
    return (noised / max(1e-9, noised.sum())).tolist()


@correct(WORDS, ApproximateDP(1.0, 1e-5))
def stable_histogram(data, rng):
    out = {}
    for key, count in Counter(data).items():
        noised = count + rng.laplace(0, 1)
        if noised > 1 + math.log(1 / (2 * 1e-5)):
            out[key] = noised
    return out


@correct(SCORES)
def noisy_max_laplace(data, rng):
    return int(np.argmax(np.array(data) + rng.laplace(0, 2, len(data))))


@correct(SCORES)
def noisy_max_exponential(data, rng):
    return int(np.argmax([one + rng.exponential(2) for one in data]))


@correct(SCORES)
def noisy_max_gumbel(data, rng):
    return int(np.argmax(np.array(data) + rng.gumbel(0, 2, len(data))))


@correct(SCORES)
def noisy_max_loop(data, rng):
    best, which = -math.inf, -1
    for number, one in enumerate(data):
        noised = one + rng.laplace(0, 2)
        if noised > best:
            best, which = noised, number
    return which


@correct(SCORES)
def exponential_mechanism(data, rng):
    weights = np.exp((np.array(data) - max(data)) / 2)
    return int(rng.choice(len(data), p=weights / weights.sum()))


@correct(SCORES)
def exponential_by_inverse_cdf(data, rng):
    weights = np.exp((np.array(data) - max(data)) / 2)
    return int(np.searchsorted(np.cumsum(weights / weights.sum()), rng.random()))


@correct(SCORES)
def permute_and_flip(data, rng):
    for one in rng.permutation(len(data)):
        if rng.random() <= math.exp((data[one] - max(data)) / 2):
            return int(one)
    return None


@correct(SCORES)
def sparse_vector(data, rng):
    threshold = 1.5 + rng.laplace(0, 2)
    out = []
    for one in data:
        if one + rng.laplace(0, 4) >= threshold:
            out.append(True)
            return out
        out.append(False)
    return out


@correct(BITS, PureDP(math.log(3)))
def response_one_coin(data, rng):
    return data if rng.random() < 0.75 else 1 - data


@correct(BITS, PureDP(math.log(3)))
def response_two_coins(data, rng):
    if rng.random() < 0.5:
        return data
    return int(rng.random() < 0.5)


@correct(KINDS, PureDP(math.log(4)))
def response_of_three(data, rng):
    if rng.random() < 0.5:
        return data
    return int(rng.integers(3))


@correct(VECTORS, PureDP(3 * math.log(3)))
def response_bits(data, rng):
    flips = rng.random(len(data)) < 0.25
    return np.where(flips, 1 - np.array(data), data).tolist()


@correct(VECTORS, PureDP(3 * math.log(3)))
def response_list(data, rng):
    return [one if rng.random() < 0.75 else 1 - one for one in data]


@correct(KINDS, PureDP(2 * math.log(3)))
def unary_encoding(data, rng):
    bits = [int(number == data) for number in range(3)]
    return [one if rng.random() < 0.75 else 1 - one for one in bits]


@correct(BITS)
def local_laplace(data, rng):
    return data + rng.laplace(0, 1)


@correct((([0.5, 2.0], [0.5]), ([], [3.0])), ApproximateDP(1.0, 1e-5))
def clipped_gradient(data, rng):
    total = sum(one * min(1.0, 1 / abs(one)) for one in data)
    return 0.1 * (total + rng.normal(0, 5)) / 10


@correct(ROWS)
def poisson_sampled(data, rng):
    return sum(min(max(x, 0), 1) for x in data if rng.random() < 0.5) + rng.laplace(0, 1)


@correct((([1, 0, 1, 0], [1, 0, 0, 0]),))
def tree_counter(data, rng):
    out = {}
    for width in (1, 2, 4):
        for start in range(0, 4, width):
            out[start, width] = sum(data[start : start + width]) + rng.laplace(0, 3)
    return [out[0, 1], out[0, 2], out[0, 2] + out[2, 1], out[0, 4]]


@correct(ROWS, ApproximateDP(1.0, 1e-5))
def propose_test_release(data, rng):
    distance = abs(len(data) - 100)
    if distance + rng.laplace(0, 2) <= 2 * math.log(1 / 1e-5):
        return None
    return len(data) + rng.laplace(0, 2)
