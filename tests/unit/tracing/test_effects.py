"""Noise that is made of one uniform number by an inverse distribution function costs what it costs,
to enough digits that a scale that just suffices is no cause."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from dpaudit.claims import PureDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.trace import trace_pair


def by_the_global_generator(rows: Any, scale: float = 1.0, base: float = 0.0) -> Any:
    u = random.random() - 0.5
    return base + sum(rows) - scale * math.copysign(1, u) * math.log(1 - 2 * abs(u))


def laplace(rows: Any, rng: Any, scale: float = 1.0, base: float = 0.0) -> Any:
    u = rng.random() - 0.5
    return base + sum(rows) - scale * math.copysign(1, u) * math.log(1 - 2 * abs(u))


def logistic(rows: Any, rng: Any, scale: float = 1.0, base: float = 0.0) -> Any:
    u = rng.random()
    return base + sum(rows) + scale * math.log(u / (1 - u))


@pytest.mark.parametrize("base", [0.0, 1e6, 1e9])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("function", [by_the_global_generator, laplace, logistic])
def test_a_scale_that_suffices_is_no_cause(function: Any, epsilon: float, base: float) -> None:
    target = CallableTarget(function=function, params={"scale": 1 / epsilon, "base": base})
    for pair in (([0], [1]), ([1], [0])):
        assert not trace_pair(target, pair[0], pair[1], PureDP(epsilon)).causes


@pytest.mark.parametrize("base", [0.0, 1e3])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
@pytest.mark.parametrize("function", [by_the_global_generator, laplace, logistic])
def test_half_of_the_noise_is_a_cause(function: Any, epsilon: float, base: float) -> None:
    target = CallableTarget(function=function, params={"scale": 0.5 / epsilon, "base": base})
    found = trace_pair(target, [0], [1], PureDP(epsilon))
    (cause,) = found.causes
    assert cause.kind == "too-little-noise"
    assert "random()" in cause.line.code
    most = found.sites[0].cost
    assert most is not None
    assert epsilon < most <= 2 * epsilon * (1 + 1e-6)
