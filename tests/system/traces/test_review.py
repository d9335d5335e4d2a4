"""Correct mechanisms as people write them, of which no cause may be named."""

from __future__ import annotations

import random
import secrets
from typing import Any

import numpy as np
import pytest

import dpaudit

pytestmark = pytest.mark.usefixtures("shared_runs")
ROWS = [0.0, 0.5, 1.0], [0.0, 0.5, 0.0]


def causes(mechanism: Any, pair: tuple[Any, Any], epsilon: float) -> list[str]:
    trace = dpaudit.trace(mechanism, *pair, dpaudit.PureDP(epsilon))
    assert not any("raised" in note for note in trace.notes)
    return [f"{cause.kind}: {cause.words}" for cause in trace.causes]


# Adaptive composition: what was noised once is a plain number for what comes later.


def count_below(rows: list[float], rng: Any) -> tuple[float, float]:
    top = sum(rows) + rng.laplace(scale=1)
    return top, sum(1 for x in rows if x < top) + rng.laplace(scale=1)


def descent(rows: list[float], rng: Any) -> float:
    w = 0.0
    for _ in range(3):
        gradient = sum(max(-1, min(1, w - x)) for x in rows)
        w = w - 0.1 * (gradient + rng.laplace(scale=1.5))
    return w


def centres(rows: list[float], rng: Any) -> list[float]:
    points = [0.2, 0.8]
    for _ in range(2):
        sums, counts = [0.0, 0.0], [0, 0]
        for x in rows:
            nearest = min((0, 1), key=lambda k: abs(x - points[k]))
            sums[nearest] += x
            counts[nearest] += 1
        points = [
            (sums[k] + rng.laplace(scale=6)) / max(1, counts[k] + rng.laplace(scale=6))
            for k in (0, 1)
        ]
    return points


@pytest.mark.parametrize("mechanism", [count_below, centres])
def test_what_was_noised_may_meet_the_data_again(mechanism: Any) -> None:
    assert causes(mechanism, ROWS, 2.0) == []


def test_adaptive_costs_are_those_of_each_step() -> None:
    trace = dpaudit.trace(descent, *ROWS, dpaudit.PureDP(2.0))
    assert (trace.causes, trace.total) == ((), "ε = 2")


def around_the_mean(rows: list[float], rng: Any) -> list[float]:
    mean = sum(rows) / len(rows) + rng.laplace(scale=1)
    return [mean, *(x - mean for x in rows)]


def above_a_noisy_threshold(rows: list[float], rng: Any) -> list[bool]:
    threshold = 0.5 + rng.laplace(scale=1)
    return [x > threshold for x in rows]


@pytest.mark.parametrize("mechanism", [around_the_mean, above_a_noisy_threshold])
def test_data_around_a_noised_value_without_noise_of_their_own_are_found(mechanism: Any) -> None:
    assert causes(mechanism, ROWS, 0.5)


# Uniform numbers pick outcomes, and the way to an output is not the output.


def square_wave(x: float, rng: Any) -> float:
    if rng.random() < 0.5:
        return float(x + rng.uniform(-0.3, 0.3))
    u = rng.uniform(0, 1)
    return float(u - 0.3 if u < x else u + 0.3)


def median_of_intervals(rows: list[float], rng: Any) -> float:
    ends = np.sort(np.r_[0, np.clip(rows, 0, 1), 1])
    utility = -np.abs(np.arange(len(ends) - 1) - len(rows) / 2)
    weights = np.diff(ends) * np.exp(0.5 * utility)
    k = rng.choice(len(weights), p=weights / weights.sum())
    return float(rng.uniform(ends[k], ends[k + 1]))


def median_by_gumbel(rows: list[float], rng: Any) -> float:
    ends = np.sort(np.r_[0, np.clip(rows, 0, 1), 1])
    utility = -np.abs(np.arange(len(ends) - 1) - len(rows) / 2)
    weights = np.log(np.diff(ends)) + 0.5 * utility
    k = int(np.argmax(weights + rng.gumbel(size=len(weights))))
    return float(ends[k] + (ends[k + 1] - ends[k]) * rng.random())


def discrete_noise(x: int, rng: Any) -> int:
    while True:
        is_negative, number = rng.random() < 0.5, 0
        while rng.random() < np.exp(-1):
            number += 1
        if not (is_negative and number == 0):
            return x - number if is_negative else x + number


def rotated(x: float, rng: Any) -> float:
    return float((x + rng.random()) % 1.0)


def rotated_by_hand(x: float, rng: Any) -> float:
    y = x + rng.uniform(0, 1)
    return float(y - 1 if y >= 1 else y)


VALUES = [0.2, 0.5, 0.9, 0.7], [0.2, 0.5, 0.9, 0.1]


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (square_wave, (0.2, 0.3)),
        (median_of_intervals, VALUES),
        (median_by_gumbel, VALUES),
        (discrete_noise, (3, 4)),
        (rotated, (0.0, 0.99)),
        (rotated_by_hand, (0.01, 0.02)),
    ],
)
def test_uniform_numbers_that_pick_are_no_cause(mechanism: Any, pair: Any) -> None:
    assert causes(mechanism, pair, 1.1) == []


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda x, rng: x + (1 if rng.random() < 0.5 else -1) * rng.exponential(2.0),
        lambda x: x + random.choice([-1, 1]) * random.expovariate(0.5),
    ],
)
def test_one_sided_noise_with_a_sign_by_chance_has_no_known_cost(mechanism: Any) -> None:
    trace = dpaudit.trace(mechanism, 0.0, 1.0, dpaudit.PureDP(0.5))
    assert not trace.findings
    assert [(site.law, site.cost) for site in trace.sites] == [("exponential", None)]


# Laws that are mixtures.


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda x, rng: x + np.sqrt(2 * rng.exponential()) * rng.normal(),  # Laplace noise
        lambda x, rng: x + rng.normal(0, np.sqrt(2 * rng.exponential())),
        lambda x, rng: x + rng.normal() * rng.normal() + rng.normal() * rng.normal(),  # Laplace
    ],
)
def test_the_law_of_a_piece_is_not_that_of_a_mixture(mechanism: Any) -> None:
    assert causes(mechanism, (0.0, 1.0), 1.01) == []


def test_a_scale_that_is_drawn_hides_no_scale_of_the_data() -> None:
    def mixture(rows: list[float], rng: Any) -> float:
        return float(sum(rows) + max(rows) * np.sqrt(2 * rng.exponential()) * rng.normal())

    assert causes(mixture, ([1.0, 5.0], [1.0, 2.0]), 1.0)


# Coins that are picked.

TEN = [True] * 9 + [False]


@pytest.mark.parametrize(
    "mechanism",
    [
        lambda x, rng: [x if coin else 1 - x for coin in rng.choice(np.array(TEN), size=1)],
        lambda x: x if secrets.choice(TEN) else 1 - x,
        lambda x, rng: x if rng.integers(100) < 90 else 1 - x,
    ],
)
def test_which_of_several_equal_things_is_picked_tells_nothing(mechanism: Any) -> None:
    trace = dpaudit.trace(mechanism, 0, 1, dpaudit.PureDP(2.0))
    assert [site.cost for site in trace.sites] == [pytest.approx(np.log(9))]
    assert len(trace.causes) == 1
    assert not dpaudit.trace(mechanism, 0, 1, dpaudit.PureDP(2.2)).causes


def test_records_that_are_picked_are_no_coin_of_a_mechanism() -> None:
    def resampled(rows: list[bool], rng: Any) -> float:
        picked = rng.choice(rows, size=len(rows))
        return float(np.sum(picked) + rng.laplace(scale=len(rows)))

    assert causes(resampled, ([True, True, True], [True, True, False]), 1.1) == []
    with_random = ([True, True, True], [True, True, False])
    assert causes(lambda rows: random.choice(rows) + random.gauss(0, 9), with_random, 1.1) == []


# Arrays.


def test_noise_that_entries_share_may_be_summed() -> None:
    def mean(rows: Any, rng: Any) -> Any:
        return (rows + rng.laplace(scale=1, size=2)).mean(axis=0)

    rows = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    other = rows.copy()
    other[2] = 0
    assert causes(mean, (rows, other), 2.0) == []
    assert causes(lambda rows, rng: rows + rng.laplace(scale=1, size=2), (rows, other), 2.0)


def test_noised_arrays_are_sorted_and_copied() -> None:
    def several(x: Any, rng: Any) -> Any:
        noised = np.asarray(x) + rng.laplace(scale=1, size=2)
        same = noised.copy(order="C")
        same.sort()
        return noised, same, np.sort(noised), noised.ravel(order="F")

    assert causes(several, ([3, 1], [2, 1]), 2.0) == []


def poll_of_arrays(rows: list[int], rng: Any) -> Any:
    return np.where(rng.random(len(rows)) < 0.75, rows, 1 - np.asarray(rows))


def counted(rows: list[int], rng: Any) -> int:
    return sum(x if rng.random() < 0.75 else 1 - x for x in rows)


@pytest.mark.parametrize(
    ("mechanism", "index"),
    # The halves are of the coins, whatever is made of them.
    [(poll_of_arrays, 77), (counted, 139)],
)
def test_one_of_many_coins_is_found_by_halves(mechanism: Any, index: int) -> None:
    calls = []

    def called(rows: list[int], rng: Any) -> Any:
        calls.append(1)
        return mechanism(rows, rng)

    pair = [0] * 140, [int(k == index) for k in range(140)]
    assert causes(called, pair, 1.2) == []
    # Two runs for each of six pairs, one for state, and those that look for the coin.
    assert len(calls) < 80
    calls.clear()
    (cause,) = causes(called, pair, 1.0)
    assert cause.endswith("the inputs: ε = 1.099")
