"""The joint cost of values that share normal noise, against the distance by the covariance."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import GaussianDP, PureDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.mechanism_trace import trace_pair

Factors = Sequence[Sequence[float]]


def mechanism(factors: Factors, deviations: Sequence[float]) -> Callable[..., list[Any]]:
    """Values of the input plus linear combinations of normal noise, term by term."""

    def released(data: Sequence[float], rng: np.random.Generator) -> list[Any]:
        noise = [rng.normal(scale=deviation) for deviation in deviations]
        values: list[Any] = []
        for number, row in zip(data, factors, strict=True):
            value: Any = number
            for factor, term in zip(row, noise, strict=True):
                value = value + factor * term
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
        ([[1, 0.25, 0.25], [1, 1, 0.25], [1, 1, 1]], [1, 2, 3], [1, 2, 3]),
        ([[2, 1], [1, 2]], [1, 1], [1, 1]),
    ],
)
def test_the_total_is_that_of_the_joint_distribution(
    factors: Factors, deviations: Sequence[float], change: Sequence[float]
) -> None:
    target = CallableTarget(function=mechanism(factors, deviations))
    exact = distance(factors, deviations, change)
    zero = [0.0] * len(change)
    for share, is_refuted in ((1.001, False), (0.999, True)):
        trace = trace_pair(target, list(change), zero, GaussianDP(share * exact), seeds=1)
        assert bool(trace.causes) is is_refuted
        assert trace.exceeds is is_refuted
    assert trace.sites[0].total == pytest.approx(exact, rel=1e-6)


def test_a_change_in_a_direction_without_noise_is_a_cause() -> None:
    target = CallableTarget(function=mechanism([[1, 1], [2, 2]], [1, 1]))
    for change, kinds in (([1.0, 1.0], ["noise-used-twice"]), ([1.0, 2.0], [])):
        trace = trace_pair(target, change, [0.0, 0.0], GaussianDP(2.0), seeds=1)
        assert [cause.kind for cause in trace.causes] == kinds
        assert (trace.total is None) is bool(kinds)


@pytest.mark.parametrize(("law", "deviation"), [("normal", 3.0), ("laplace", 2.0)])
def test_equal_seeds_give_the_same_noise(law: str, deviation: float) -> None:
    def released(data: Sequence[float], rng: np.random.Generator) -> list[Any]:
        seeds = [int(rng.integers(2**62))] * 2 if data[2] else rng.integers(2**62, size=2).tolist()
        draws = [getattr(np.random.default_rng(seed), law) for seed in seeds]
        return [data[0] + draws[0](scale=2.0), data[1] + draws[1](scale=deviation)]

    target = CallableTarget(function=released)
    for change, same, kinds in (
        ([1.0, 0.0], True, ["noise-used-twice"]),
        ([1.0, deviation / 2], True, []),  # both move with their noise
        ([1.0, 0.0], False, []),
    ):
        d1, d2 = [*change, same], [0.0, 0.0, same]
        trace = trace_pair(target, d1, d2, GaussianDP(2.0), seeds=1)
        assert [cause.kind for cause in trace.causes] == kinds


def causes_of(function: Callable[..., Any], d1: Any, d2: Any, mu: float) -> list[str]:
    trace = trace_pair(CallableTarget(function=function), d1, d2, GaussianDP(mu), seeds=1)
    return [cause.kind for cause in trace.causes]


def test_values_that_are_also_added_up_are_judged_by_themselves() -> None:
    def rounded(data: Sequence[float], rng: np.random.Generator) -> list[int]:
        counts = [value + rng.normal(scale=0.3) for value in data]
        return [*map(round, counts), round(sum(counts[1:], counts[0]))]

    assert causes_of(rounded, [1.0, 0.0], [0.0, 0.0], 1.0) == ["too-little-noise"]
    assert causes_of(rounded, [1.0, 0.0], [0.0, 0.0], 5.0) == []


def test_a_scale_of_the_data_is_a_cause_where_values_share_noise() -> None:
    def released(data: float, rng: np.random.Generator) -> list[Any]:
        first, second = rng.normal(scale=2 + 3 * data), rng.normal(scale=9)
        return [data + first, data + first + second]

    assert causes_of(released, 1.0, 0.0, 3.0) == ["data-dependent-scale"]


def test_the_cost_of_one_value_is_a_cause_by_itself() -> None:
    def released(data: float, rng: np.random.Generator) -> list[Any]:
        first = rng.normal(scale=1)
        second = rng.normal(scale=1 / 0.9)
        return [data + first + second, data + second]

    assert causes_of(released, 1.0, 0.0, 0.8) == ["too-little-noise"]
    assert causes_of(released, 1.0, 0.0, 1.4) == []


def test_what_is_not_released_is_no_cause() -> None:
    def released(data: Sequence[float], rng: np.random.Generator) -> Any:
        first, second = rng.normal(scale=10), rng.normal(scale=1)
        unused = data[1] + first
        return data[0] + first + second if unused is not None else 0.0

    assert causes_of(released, [1.0, 0.0], [0.0, 0.0], 0.5) == []


@pytest.mark.parametrize(("kind", "factor"), [(bool, 1), (np.uint8, 1), (int, 10**25)])
def test_operands_of_any_type(kind: Any, factor: int) -> None:
    def released(data: int, rng: np.random.Generator) -> Any:
        number = kind(data) if factor == 1 else data * factor
        return number + rng.normal(scale=3 * factor) + rng.normal(scale=4 * factor)

    assert causes_of(released, 0, 1, 0.21) == []
    assert causes_of(released, 0, 1, 0.19) == ["too-little-noise"]


def test_the_joint_cost_of_very_many_values_is_unknown() -> None:
    def released(data: float, rng: np.random.Generator) -> list[Any]:
        total, values = data, []
        for _ in range(501):
            total = total + rng.normal(scale=2)
            values.append(total)
        return values

    trace = trace_pair(CallableTarget(function=released), 1.0, 0.0, GaussianDP(0.6), seeds=1)
    assert not trace.causes
    assert trace.total is None


def test_laplace_noise_that_cancels_hides_nothing() -> None:
    def released(data: float, rng: np.random.Generator) -> Any:
        seed = int(rng.integers(2**62))
        first, second = (np.random.default_rng(seed).laplace(scale=2) for _ in range(2))
        return data + first - second

    trace = trace_pair(CallableTarget(function=released), 1.0, 0.0, PureDP(1.0), seeds=1)
    assert [f.is_cause for f in trace.findings if f.cost == math.inf] == [True]


@pytest.mark.parametrize(
    ("kind", "d1", "d2"),
    [(np.float64, 1234567123.89, 1234567123.12), (np.float32, 1000.7, 1000.37)],
)
def test_rounding_is_no_change_without_noise(kind: Any, d1: float, d2: float) -> None:
    def released(data: float, rng: np.random.Generator) -> list[Any]:
        first, second = (kind(1) * rng.normal(scale=2, size=1).astype(kind) for _ in range(2))
        return [
            kind(data) + (first + second),
            kind(data) / kind(7) + (first / kind(7) + second / kind(7)),
        ]

    assert causes_of(released, d1, d2, 0.5) == []
