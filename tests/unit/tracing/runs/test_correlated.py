"""The joint cost of values that share normal noise, against the distance by the covariance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import GaussianDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.trace import trace_pair

Factors = Sequence[Sequence[float]]


def mechanism(factors: Factors, deviations: Sequence[float]) -> Callable[..., list[Any]]:
    """Values of the input plus linear combinations of normal noise, term by term."""

    def released(data: Sequence[float], rng: np.random.Generator) -> list[Any]:
        noise = [rng.normal(scale=one) for one in deviations]
        values: list[Any] = []
        for number, row in zip(data, factors, strict=True):
            value: Any = number
            for factor, one in zip(row, noise, strict=True):
                value = value + factor * one
            values.append(value)
        return values

    return released


def distance(factors: Factors, deviations: Sequence[float], change: Sequence[float]) -> float:
    """μ of two normal distributions with this covariance, whose means differ by `change`."""
    rows = np.array(factors) * np.array(deviations)
    return math.sqrt(np.array(change) @ np.linalg.solve(rows @ rows.T, np.array(change)))


@pytest.mark.parametrize(
    ("factors", "deviations", "change"),
    [
        ([[1, 0.5], [-0.5, 1]], [2, 3], [1, 0]),
        ([[1, 0.5], [-0.5, 1]], [2, 3], [0, 1]),
        ([[1, 0.25, 0.25], [1, 1, 0.25], [1, 1, 1]], [1, 2, 3], [1, 2, 3]),
        ([[2, 1], [1, 2]], [1, 1], [1, 1]),
        ([[1, 0.25], [1, -0.25]], [3, 1], [-1, 1]),
    ],
)
def test_the_total_is_that_of_the_joint_distribution(
    factors: Factors, deviations: Sequence[float], change: Sequence[float]
) -> None:
    target = CallableTarget(function=mechanism(factors, deviations))
    exact = distance(factors, deviations, change)
    zero = [0.0] * len(change)
    for share, is_refuted in ((1.001, False), (0.999, True)):
        found = trace_pair(target, list(change), zero, GaussianDP(share * exact), seeds=1)
        assert bool(found.causes) is is_refuted
        assert found.exceeds is is_refuted
    assert found.sites[0].total == pytest.approx(exact, rel=1e-6)


def test_a_change_in_a_direction_without_noise_is_a_cause() -> None:
    target = CallableTarget(function=mechanism([[1, 1], [2, 2]], [1, 1]))
    for change, kinds in (([1.0, 1.0], ["noise-used-twice"]), ([1.0, 2.0], [])):
        found = trace_pair(target, change, [0.0, 0.0], GaussianDP(2.0), seeds=1)
        assert [one.kind for one in found.causes] == kinds
        assert (found.total is None) is bool(kinds)


@pytest.mark.parametrize("deviation", [2.0, 3.0])
@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_equal_seeds_give_the_same_noise(law: str, deviation: float) -> None:
    def released(data: Sequence[float], rng: np.random.Generator) -> list[Any]:
        seeds = [int(rng.integers(2**62))] * 2 if data[2] else rng.integers(2**62, size=2).tolist()
        draws = [getattr(np.random.default_rng(one), law) for one in seeds]
        return [data[0] + draws[0](scale=2.0), data[1] + draws[1](scale=deviation)]

    target = CallableTarget(function=released)
    for change, same, kinds in (
        ([1.0, 0.0], True, ["noise-used-twice"]),
        ([1.0, deviation / 2], True, []),  # both move with their noise
        ([1.0, 0.0], False, []),
    ):
        d1, d2 = [*change, same], [0.0, 0.0, same]
        found = trace_pair(target, d1, d2, GaussianDP(2.0), seeds=1)
        assert [one.kind for one in found.causes] == kinds
