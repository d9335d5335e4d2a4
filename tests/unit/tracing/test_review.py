"""Correct mechanisms as people write them, of which no cause may be named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit

ROWS = [0.0, 0.5, 1.0], [0.0, 0.5, 0.0]


def causes(mechanism: Any, pair: tuple[Any, Any], epsilon: float) -> list[str]:
    found = dpaudit.trace(mechanism, *pair, dpaudit.PureDP(epsilon))
    assert not any("raised" in note for note in found.notes)
    return [f"{one.kind}: {one.words}" for one in found.causes]


# Adaptive composition: what was noised once is a plain number for what comes later.


def variance(rows: list[float], rng: Any) -> tuple[float, float]:
    n = len(rows)
    mean = sum(rows) / n + rng.laplace(scale=1 / n)
    return mean, sum(min((x - mean) ** 2, 1.0) for x in rows) / n + rng.laplace(scale=1 / n)


def variance_of_arrays(rows: list[float], rng: Any) -> tuple[float, float]:
    x = np.asarray(rows)
    mean = x.mean() + rng.laplace(scale=1 / len(x))
    return mean, np.clip((x - mean) ** 2, 0, 1).mean() + rng.laplace(scale=1 / len(x))


def count_below(rows: list[float], rng: Any) -> tuple[float, float]:
    top = sum(rows) + rng.laplace(scale=1)
    return top, sum(1 for x in rows if x < top) + rng.laplace(scale=1)


def descent(rows: list[float], rng: Any) -> float:
    w = 0.0
    for _ in range(3):
        gradient = sum(max(-1, min(1, w - x)) for x in rows)
        w = w - 0.1 * (gradient + rng.laplace(scale=1.5))
    return w


def descent_with_products(rows: list[float], rng: Any) -> float:
    w = 0.1
    for _ in range(2):
        gradient = sum(max(-0.5, min(0.5, (w * x - 0.5) * x)) for x in rows)
        w -= 0.1 * (gradient + rng.laplace(scale=1))
    return w


def centres(rows: list[float], rng: Any) -> list[float]:
    found = [0.2, 0.8]
    for _ in range(2):
        sums, counts = [0.0, 0.0], [0, 0]
        for x in rows:
            nearest = min((0, 1), key=lambda place: abs(x - found[place]))
            sums[nearest] += x
            counts[nearest] += 1
        found = [
            (sums[k] + rng.laplace(scale=6)) / max(1, counts[k] + rng.laplace(scale=6))
            for k in (0, 1)
        ]
    return found


@pytest.mark.parametrize(
    "mechanism",
    [variance, variance_of_arrays, count_below, descent, descent_with_products, centres],
    ids=lambda one: one.__name__,
)
def test_what_was_noised_may_meet_the_data_again(mechanism: Any) -> None:
    assert causes(mechanism, ROWS, 2.0) == []


def test_adaptive_costs_are_those_of_each_step() -> None:
    found = dpaudit.trace(descent, *ROWS, dpaudit.PureDP(2.0))
    assert found.total == "ε = 2"


def test_data_around_a_noised_value_without_noise_of_their_own_are_found() -> None:
    def leaking(rows: list[float], rng: Any) -> list[float]:
        mean = sum(rows) / len(rows) + rng.laplace(scale=1)
        return [mean, *(x - mean for x in rows)]

    assert causes(leaking, ROWS, 2.0)


def test_a_threshold_that_alone_is_noised_is_found() -> None:
    def leaking(rows: list[float], rng: Any) -> list[bool]:
        threshold = 0.5 + rng.laplace(scale=1)
        return [x > threshold for x in rows]

    assert causes(leaking, ROWS, 0.5)
