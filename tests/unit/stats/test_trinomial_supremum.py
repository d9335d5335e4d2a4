"""The supremum over w against thousands of points, most of all where few draws abstain."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from dpaudit.stats import trinomial
from dpaudit.stats.binomial import clopper_pearson_interval
from dpaudit.stats.trinomial import ScoreTest

FloatArray = NDArray[np.float64]

# No groups, which would round p up.
ALL_TERMS = 10**6


def fine_points(low: float, high: float, ratio: float, spared: float, each: int) -> FloatArray:
    """Points that are even in w, in √w and in the root of the probability to abstain."""
    cap = (1 - spared) / (1 + ratio)
    low, high = min(low, cap), min(high, cap)
    roots = np.linspace(math.sqrt(low), math.sqrt(high), each)
    rest = np.linspace(math.sqrt(cap - low), math.sqrt(cap - high), each)
    points = np.concatenate([np.linspace(low, high, each), roots**2, cap - rest**2])
    return np.unique(np.clip(points, low, high))


def tails(
    points: FloatArray, correct: int, wrong: int, draws: int, epsilon: float, spared: float
) -> FloatArray:
    """Pr[score ≥ observed] for every w, by the sum over W that the test is defined by."""
    ratio = math.exp(epsilon)
    observed = ScoreTest(correct, wrong, draws, 1e-4).score(epsilon, spared)
    last = int(binom.isf(1e-14, draws, points[-1]))
    counts = np.arange(int(binom.ppf(1e-14, draws, points[0])), last + 1)
    critical = trinomial._critical_correct(counts, draws, ratio, spared, observed)
    share = np.minimum((ratio * points + spared) / (1 - points), 1.0)[:, None]
    mass = binom.pmf(counts, draws, points[:, None])
    return np.asarray(np.sum(mass * binom.sf(critical - 1, draws - counts, share), axis=1))


def fine_supremum(
    counts: tuple[int, int, int], epsilon: float, spared: float, gamma: float, each: int
) -> float:
    correct, wrong, draws = counts
    interval = clopper_pearson_interval(wrong, draws, gamma)
    points = fine_points(*interval, math.exp(epsilon), spared, each)
    return float(np.max(tails(points, correct, wrong, draws, epsilon, spared)))


# In brackets: by how much 65 even points fall short. Where they do not, fewer points are compared.
NAMED = {
    "few abstain": ((1_255, 66, 1_451), 2.664, 7.27e-4, 5e-4),  # (3 %)
    "few abstain and very few are wrong": ((15_663, 13, 18_841), 6.108, 0.018, 6e-4),  # (8 %)
    "large δ": ((470, 72, 607), 1.454, 0.016, 2.6e-6),  # (2 %)
    "one is wrong": ((2_795, 1, 142_817), 6.6015, 0.01049, 1.7e-5),  # (0.1 %)
    "none abstains": ((5_360, 2_546, 7_906), 0.6575, 3.9e-6, 2e-6),  # (nothing)
    "many abstain": ((941, 146, 2_945), 1.4516, 0.065, 6e-6),  # (nothing)
}


@pytest.mark.parametrize(("counts", "epsilon", "spared", "gamma"), NAMED.values(), ids=NAMED.keys())
def test_p_is_no_smaller_than_on_many_points_and_hardly_larger(
    counts: tuple[int, int, int], epsilon: float, spared: float, gamma: float
) -> None:
    each = 200 if counts in (NAMED["none abstains"][0], NAMED["many abstain"][0]) else 1_350
    fine = fine_supremum(counts, epsilon, spared, gamma, each)
    actual = ScoreTest(*counts, gamma, ALL_TERMS).p_value(epsilon, spared) - gamma
    assert fine <= actual <= fine * 1.0012


def test_even_points_of_w_would_not_do() -> None:
    """What the first of these cases was found by."""
    (correct, wrong, draws), epsilon, spared, gamma = NAMED["few abstain"]
    cap = (1 - spared) / (1 + math.exp(epsilon))
    low, high = clopper_pearson_interval(wrong, draws, gamma)
    even = tails(np.linspace(low, min(high, cap), 65), correct, wrong, draws, epsilon, spared)
    assert np.max(even) < 0.97 * fine_supremum((correct, wrong, draws), epsilon, spared, gamma, 400)


def test_random_counts() -> None:
    """From none to all abstaining, from tiny to large s: p is a supremum, to a thousandth."""
    rng = np.random.default_rng(5)
    compared = 0
    for _ in range(40):
        draws = round(math.exp(rng.uniform(math.log(20), math.log(1_500))))
        epsilon, spared = rng.uniform(0, 5), math.exp(rng.uniform(math.log(1e-6), math.log(0.4)))
        abstain = min(0.95, math.exp(rng.uniform(math.log(0.1 / draws), 0)))
        w = max(0.0, 1 - abstain - spared) / (1 + math.exp(epsilon))
        correct, wrong, _ = rng.multinomial(draws, [1 - abstain - w, w, abstain])
        moved = int(rng.integers(0, 1 + wrong // 4))
        counts = int(correct) + moved, int(wrong) - moved, draws
        gamma = 10 ** rng.uniform(-6, -3)
        actual = ScoreTest(*counts, gamma, ALL_TERMS).p_value(epsilon, spared) - gamma
        if 1e-7 < actual < 0.7:
            fine = fine_supremum(counts, epsilon, spared, gamma, 300)
            assert fine * (1 - 1e-9) <= actual <= fine * 1.003, (counts, epsilon, spared, gamma)
            compared += 1
    assert compared > 20
