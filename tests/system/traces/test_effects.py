"""Noise that is made of one uniform number by an inverse distribution function costs what it costs,
to enough digits that a scale that just suffices is no cause."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import PureDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.mechanism_trace import trace_pair


def by_the_global_generator(rows: Any, scale: float = 1.0, base: float = 0.0) -> Any:
    u = random.random() - 0.5
    return base + sum(rows) - scale * math.copysign(1, u) * math.log(1 - 2 * abs(u))


def laplace(rows: Any, rng: Any, scale: float = 1.0, base: float = 0.0) -> Any:
    u = rng.random() - 0.5
    return base + sum(rows) - scale * math.copysign(1, u) * math.log(1 - 2 * abs(u))


def logistic(rows: Any, rng: Any, scale: float = 1.0, base: float = 0.0) -> Any:
    u = rng.random()
    return base + sum(rows) + scale * math.log(u / (1 - u))


def of_a_sign(rows: Any, rng: Any, scale: float = 1.0) -> Any:
    u = rng.random() - 0.5
    return sum(rows) - scale * (1 if u > 0 else -1) * math.log(1 - 2 * abs(u))


def from_a_wider_range(rows: Any, scale: float = 1.0) -> Any:
    v = 2 * random.random() - 1
    return sum(rows) - scale * (1 if v > 0 else -1) * math.log(1 - abs(v))


def traced(function: Any, scale: float, epsilon: float, seeds: int = 3) -> Any:
    target = CallableTarget(function=function, params={"scale": scale})
    return trace_pair(target, [1, 1], [1, 1, 1], PureDP(epsilon), seeds=seeds)


@pytest.mark.parametrize(("function", "epsilon"), [(of_a_sign, 0.05), (from_a_wider_range, 6.0)])
def test_a_number_that_is_compared_for_its_sign_is_no_released_one(
    function: Any, epsilon: float
) -> None:
    assert traced(function, 1 / epsilon, epsilon).causes == ()
    (cause,) = traced(function, 0.5 / epsilon, epsilon, seeds=1).causes
    assert cause.kind == "too-little-noise"


# Large numbers that the noise is added to lose its last digits, whichever generator it is of.
@pytest.mark.parametrize(
    ("function", "base", "epsilon"),
    [(by_the_global_generator, 0.0, 1.0), (laplace, 1e9, 6.0), (logistic, 1e6, 0.05)],
)
def test_a_scale_that_suffices_is_no_cause(function: Any, epsilon: float, base: float) -> None:
    target = CallableTarget(function=function, params={"scale": 1 / epsilon, "base": base})
    # A trace also runs the pair in the other order.
    assert not trace_pair(target, [0], [1], PureDP(epsilon)).causes


@pytest.mark.parametrize(
    ("function", "base", "epsilon"),
    [(by_the_global_generator, 1e3, 0.05), (laplace, 0.0, 1.0), (logistic, 1e3, 6.0)],
)
def test_half_of_the_noise_is_a_cause(function: Any, epsilon: float, base: float) -> None:
    target = CallableTarget(function=function, params={"scale": 0.5 / epsilon, "base": base})
    trace = trace_pair(target, [0], [1], PureDP(epsilon))
    (cause,) = trace.causes
    assert cause.kind == "too-little-noise"
    assert "random()" in cause.line.code
    cost = trace.sites[0].cost
    assert cost is not None
    assert epsilon < cost <= 2 * epsilon * (1 + 1e-6)


def quantile(p: Any, scale: float) -> Any:
    return scale * math.log(2 * p) if p < 0.5 else -scale * math.log(2 - 2 * p)


def by_the_quantile(rows: Any, scale: float) -> Any:
    return sum(rows) + quantile(np.random.uniform(), scale)


def element_by_element(rows: Any, scale: float) -> Any:
    noise = np.random.uniform(size=2)
    for k in range(len(noise)):
        noise[k] = quantile(noise[k], scale)
    return list(np.array([float(sum(rows)), 3.0 * len(rows)]) + noise)


def one_call_each(rows: Any, scale: float) -> Any:
    return [value + quantile(random.random(), scale) for value in (sum(rows), 3 * len(rows))]


# With what a record of 30 costs at a scale of 1. It is hidden by uniform numbers 1e-13 from an end
# of their range.
@pytest.mark.usefixtures("shared_runs")
@pytest.mark.parametrize(
    ("function", "code", "cost"),
    [
        (by_the_quantile, "np.random.uniform()", 30.0),
        (element_by_element, "np.random.uniform(size=2)", 33.0),
        (one_call_each, "random.random()", 33.0),
    ],
)
def test_the_line_of_inverse_cdf_noise_is_named_in_all_its_forms(
    function: Any, code: str, cost: float
) -> None:
    target = CallableTarget(function=function, params={"scale": 1.0})
    (cause,) = trace_pair(target, [1, 30], [1], PureDP(1.0), seeds=1).causes
    assert cause.kind == "too-little-noise"
    assert cause.line.code == code
    assert cause.cost == pytest.approx(cost, rel=1e-3)
    assert trace_pair(target, [1, 30], [1], PureDP(cost), seeds=1).causes == ()


def two_uniform_numbers(rows: Any) -> Any:
    """Box–Muller: the law of the output is a mixture over the other number."""
    u, v = np.random.uniform(), np.random.uniform()
    return sum(rows) + 100 * math.sqrt(-2 * math.log(u)) * math.cos(2 * math.pi * v)


def test_one_of_two_uniform_numbers_is_no_certain_cause() -> None:
    target = CallableTarget(function=two_uniform_numbers)
    assert trace_pair(target, [1, 10], [1], PureDP(0.001)).causes == ()


def rounded_first(rows: Any, rng: Any) -> Any:
    for _ in rows:
        rng.random()
    return len(rows) + rng.uniform(-5.0, 5.0)


@pytest.mark.parametrize("pair", [([1, 1], [1]), ([1], [1, 1])])
def test_uniform_noise_is_a_cause_if_one_input_draws_more_numbers_before(pair: Any) -> None:
    target = CallableTarget(function=rounded_first)
    (cause,) = trace_pair(target, pair[0], pair[1], PureDP(1.0)).causes
    assert (cause.kind, cause.cost) == ("too-little-noise", math.inf)
