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
ROWS: Any = ([0.2, 0.9, 0.4], [0.2, 0.9, 0.4, 1.0]), ([], [1.0]), ([5.0, 0.5], [0.5])
WORDS: Any = (["a", "b", "a"], ["a", "b", "a", "c"]), ([], ["b"])
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
def bounded_sum(data: Any, rng: Any) -> Any:
    return sum(min(max(x, 0), 1) for x in data) + rng.laplace(0, 1)


@correct(ROWS)
def sum_clipped_by_numpy(data: Any, rng: Any) -> Any:
    return float(np.clip(np.array(data, dtype=float), 0, 1).sum() + rng.laplace(scale=1))


@correct(ROWS)
def mean_of_two_noised(data: Any, rng: Any) -> Any:
    total = np.clip(data, 0, 1).sum() + rng.laplace(0, 2)
    return total / max(1.0, len(data) + rng.laplace(0, 2))


@correct(ROWS)
def variance_of_three(data: Any, rng: Any) -> Any:
    x = np.clip(data, 0, 1)
    n = max(1.0, len(x) + rng.laplace(0, 3))
    first, second = x.sum() + rng.laplace(0, 3), (x**2).sum() + rng.laplace(0, 3)
    return max(0.0, second / n - (first / n) ** 2)


@correct(ROWS)
def count_rounded(data: Any, rng: Any) -> Any:
    return max(0, round(len(data) + rng.laplace(0, 1)))


@correct(ROWS)
def clamped_after(data: Any, rng: Any) -> Any:
    return float(np.clip(len(data) + rng.laplace(0, 1), 0, 10))


@correct(ROWS)
def shuffled_first(data: Any, rng: Any) -> Any:
    x = np.clip(data, 0, 1)
    rng.shuffle(x)
    return x.sum() + rng.laplace(0, 1)


@correct(ROWS)
def retried_until_positive(data: Any, rng: Any) -> Any:
    while True:
        noised = len(data) + rng.laplace(0, 0.5 * 4)
        if noised > -1e9:
            return noised


@correct(ROWS)
def pandas_sum(data: Any, rng: Any) -> Any:
    return pd.Series(data, dtype=float).clip(0, 1).sum() + rng.laplace(0, 1)


@correct(ROWS)
def inverse_cdf_laplace(data: Any, rng: Any) -> Any:
    u = rng.random() - 0.5
    return len(data) - math.copysign(1.0, u) * math.log(1 - 2 * abs(u))


@correct(ROWS)
def difference_of_geometrics(data: Any, rng: Any) -> Any:
    p = 1 - math.exp(-1)
    return len(data) + int(rng.geometric(p)) - int(rng.geometric(p))


@correct(ROWS)
def difference_of_exponentials(data: Any, rng: Any) -> Any:
    return len(data) + rng.exponential(1) - rng.exponential(1)


@correct(ROWS)
def standard_laplace_scaled(data: Any) -> Any:
    return len(data) + random.choice([-1, 1]) * random.expovariate(1.0)


@correct(ROWS, ApproximateDP(1.0, 1e-5))
def gaussian(data: Any, rng: Any) -> Any:
    sigma = math.sqrt(2 * math.log(1.25 / 1e-5))
    return len(data) + rng.normal(0, sigma)


@correct(ROWS, ZeroConcentratedDP(0.5))
def concentrated(data: Any, rng: Any) -> Any:
    return np.clip(data, 0, 1).sum() + rng.normal(0, 1)


@correct(ROWS, ApproximateDP(1.0, 1e-5))
def box_muller(data: Any, rng: Any) -> Any:
    u, v = rng.random(), rng.random()
    z = math.sqrt(-2 * math.log(1 - u)) * math.cos(2 * math.pi * v)
    return len(data) + 5 * z


@correct(ROWS)
def budget_split(data: Any, rng: Any) -> Any:
    out = []
    for share in (0.2, 0.3, 0.5):
        out.append(len(data) + rng.laplace(0, 1 / share))
    return out


@correct(ROWS)
def adaptive_split(data: Any, rng: Any) -> Any:
    n = len(data) + rng.laplace(0, 2)
    top = 1.0 if n > 2 else 0.5
    return n, np.clip(data, 0, top).sum() + rng.laplace(0, 2 * top)


@lru_cache
def _scale(epsilon: Any) -> Any:
    return 1 / epsilon


@correct(ROWS)
def cached_scale(data: Any, rng: Any) -> Any:
    return len(data) + rng.laplace(0, _scale(1.0))


class Counting:
    def __init__(self) -> None:
        self.spent = 0.0

    def count(self, data: Any, rng: Any) -> Any:
        self.spent += 1.0
        return len(data) + rng.laplace(0, 1 / self.spent)


@correct(ROWS)
def state_of_one_call(data: Any, rng: Any) -> Any:
    return Counting().count(data, rng)


@correct(ROWS)
def system_random(data: Any) -> Any:
    u = random.SystemRandom().random() - 0.5
    return len(data) - math.copysign(1.0, u) * math.log(1 - 2 * abs(u))


@correct(WORDS)
def histogram_comprehension(data: Any, rng: Any) -> Any:
    return {key: data.count(key) + rng.laplace(0, 1) for key in KEYS}


@correct(WORDS)
def histogram_counter(data: Any, rng: Any) -> Any:
    counts = Counter(data)
    return [counts[key] + rng.laplace(0, 1) for key in KEYS]


@correct(WORDS)
def histogram_loop(data: Any, rng: Any) -> Any:
    counts = dict.fromkeys(KEYS, 0.0)
    for one in data:
        if one in counts:
            counts[one] += 1
    for key in counts:
        counts[key] += rng.laplace(0, 1)
    return counts


@correct(WORDS)
def histogram_normalised(data: Any, rng: Any) -> Any:
    noised = np.array([max(0.0, data.count(key) + rng.laplace(0, 1)) for key in KEYS])
    return (noised / max(1e-9, noised.sum())).tolist()


@correct(WORDS, ApproximateDP(1.0, 1e-5))
def stable_histogram(data: Any, rng: Any) -> Any:
    out = {}
    for key, count in Counter(data).items():
        noised = count + rng.laplace(0, 1)
        if noised > 1 + math.log(1 / (2 * 1e-5)):
            out[key] = noised
    return out


@correct(SCORES)
def noisy_max_laplace(data: Any, rng: Any) -> Any:
    return int(np.argmax(np.array(data) + rng.laplace(0, 2, len(data))))


@correct(SCORES)
def noisy_max_exponential(data: Any, rng: Any) -> Any:
    return int(np.argmax([one + rng.exponential(2) for one in data]))


@correct(SCORES)
def noisy_max_gumbel(data: Any, rng: Any) -> Any:
    return int(np.argmax(np.array(data) + rng.gumbel(0, 2, len(data))))


@correct(SCORES)
def noisy_max_loop(data: Any, rng: Any) -> Any:
    best, which = -math.inf, -1
    for number, one in enumerate(data):
        noised = one + rng.laplace(0, 2)
        if noised > best:
            best, which = noised, number
    return which


@correct(SCORES)
def exponential_mechanism(data: Any, rng: Any) -> Any:
    weights = np.exp((np.array(data) - max(data)) / 2)
    return int(rng.choice(len(data), p=weights / weights.sum()))


@correct(SCORES)
def exponential_by_inverse_cdf(data: Any, rng: Any) -> Any:
    weights = np.exp((np.array(data) - max(data)) / 2)
    return int(np.searchsorted(np.cumsum(weights / weights.sum()), rng.random()))


@correct(SCORES)
def permute_and_flip(data: Any, rng: Any) -> Any:
    for one in rng.permutation(len(data)):
        if rng.random() <= math.exp((data[one] - max(data)) / 2):
            return int(one)
    return None


@correct(SCORES)
def sparse_vector(data: Any, rng: Any) -> Any:
    threshold = 1.5 + rng.laplace(0, 2)
    out = []
    for one in data:
        if one + rng.laplace(0, 4) >= threshold:
            out.append(True)
            return out
        out.append(False)
    return out


@correct(BITS, PureDP(math.log(3)))
def response_one_coin(data: Any, rng: Any) -> Any:
    return data if rng.random() < 0.75 else 1 - data


@correct(BITS, PureDP(math.log(3)))
def response_two_coins(data: Any, rng: Any) -> Any:
    if rng.random() < 0.5:
        return data
    return int(rng.random() < 0.5)


@correct(KINDS, PureDP(math.log(4)))
def response_of_three(data: Any, rng: Any) -> Any:
    if rng.random() < 0.5:
        return data
    return int(rng.integers(3))


@correct(VECTORS, PureDP(3 * math.log(3)))
def response_bits(data: Any, rng: Any) -> Any:
    flips = rng.random(len(data)) < 0.25
    return np.where(flips, 1 - np.array(data), data).tolist()


@correct(VECTORS, PureDP(3 * math.log(3)))
def response_list(data: Any, rng: Any) -> Any:
    return [one if rng.random() < 0.75 else 1 - one for one in data]


@correct(KINDS, PureDP(2 * math.log(3)))
def unary_encoding(data: Any, rng: Any) -> Any:
    bits = [int(number == data) for number in range(3)]
    return [one if rng.random() < 0.75 else 1 - one for one in bits]


@correct(WORDS)
def histogram_array(data: Any, rng: Any) -> Any:
    counts = np.array([data.count(key) for key in KEYS], dtype=float)
    return counts + rng.laplace(0, 1, size=len(KEYS))


@correct(WORDS)
def histogram_pandas(data: Any, rng: Any) -> Any:
    counts = pd.Series(data, dtype=object).value_counts().reindex(list(KEYS), fill_value=0)
    return (counts + rng.laplace(0, 1, len(KEYS))).tolist()


@correct(ROWS)
def smooth_sensitivity(data: Any, rng: Any) -> Any:
    clipped = sorted(min(max(one, 0.0), 1.0) for one in data) or [0.5]
    median = clipped[len(clipped) // 2]
    return median + 20.0 * rng.standard_cauchy()


@correct(BITS)
def local_laplace(data: Any, rng: Any) -> Any:
    return data + rng.laplace(0, 1)


@correct((([0.5, 2.0], [0.5]), ([], [3.0])), ApproximateDP(1.0, 1e-5))
def clipped_gradient(data: Any, rng: Any) -> Any:
    total = sum(one * min(1.0, 1 / abs(one)) for one in data)
    return 0.1 * (total + rng.normal(0, 5)) / 10


@correct(ROWS)
def poisson_sampled(data: Any, rng: Any) -> Any:
    return sum(min(max(x, 0), 1) for x in data if rng.random() < 0.5) + rng.laplace(0, 1)


@correct((([1, 0, 1, 0], [1, 0, 0, 0]),))
def tree_counter(data: Any, rng: Any) -> Any:
    out = {}
    for width in (1, 2, 4):
        for start in range(0, 4, width):
            out[start, width] = sum(data[start : start + width]) + rng.laplace(0, 3)
    return [out[0, 1], out[0, 2], out[0, 2] + out[2, 1], out[0, 4]]


@correct(ROWS, ApproximateDP(1.0, 1e-5))
def propose_test_release(data: Any, rng: Any) -> Any:
    distance = abs(len(data) - 100)
    if distance + rng.laplace(0, 2) <= 2 * math.log(1 / 1e-5):
        return None
    return len(data) + rng.laplace(0, 2)
