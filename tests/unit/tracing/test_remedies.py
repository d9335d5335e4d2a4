"""Remedies fit what leaks, and their numbers suffice."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest

from dpaudit.certificates.traced import Finding
from dpaudit.claims import ApproximateDP, PrivacyClaim, PureDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.findings.detectors import FOR_PAIR, rounded_up
from dpaudit.tracing.mechanism_trace import trace_pair

CLAIM = ApproximateDP(1.0, 1e-5)


def cause(function: Any, d1: Any, d2: Any, claim: PrivacyClaim | None = None) -> Finding:
    target = CallableTarget(function=function)
    (leak,) = trace_pair(target, d1, d2, claim or PureDP(1.0)).causes
    return leak


def histogram(rows: Any, rng: Any) -> Any:
    return {key: many + rng.laplace(scale=1) for key, many in sorted(Counter(rows).items())}


def fixed(rows: Any, rng: Any) -> Any:
    return {key: rows.count(key) + rng.laplace(scale=4) for key in "abc"}


def bare(rows: Any, rng: Any) -> Any:
    return {key: rows.count(key) for key in "abc"}


@pytest.mark.parametrize(("d1", "d2"), [("abb", "acc"), ("acd", "abb")])
def test_keys_of_the_data_leak_though_their_counts_have_noise_and_fixed_keys_do_not(
    d1: str, d2: str
) -> None:
    leak = cause(histogram, list(d1), list(d2))
    assert leak.kind == "no-noise"
    assert leak.remedy != cause(bare, list(d1), list(d2)).remedy
    assert not findings(fixed, list(d1), list(d2), PureDP(1.0))


def findings(function: Any, d1: Any, d2: Any, claim: PrivacyClaim = CLAIM, **params: Any) -> Any:
    target = CallableTarget(function=function, params=params)
    return trace_pair(target, d1, d2, claim).findings


def momentum(rows: Any, rng: Any, scale: float = 1.0) -> Any:
    weight = velocity = 0.0
    for _ in range(3):
        velocity = 0.9 * velocity + sum(rows)
        weight -= 0.1 * (velocity + rng.normal(scale=scale))
    return weight


def scaled_later(rows: Any, rng: Any, scale: float = 1.0) -> Any:
    return sum(rows) + 0.5 * rng.normal(scale=scale, size=1)


def two_columns(rows: Any, rng: Any, scale: float = 1.0) -> Any:
    return np.array([sum(rows), 2 * sum(rows)]) + 0.5 * rng.normal(scale=scale, size=2)


@pytest.mark.parametrize("function", [momentum, scaled_later, two_columns])
def test_the_scale_of_the_call_that_would_do_would(function: Any) -> None:
    (leak,) = findings(function, [1, 1], [1])
    scale = float(leak.remedy.partition("(scale=")[2].partition(" in the call)")[0])
    assert not any(f.is_cause for f in findings(function, [1, 1], [1], scale=scale))
    (leak,) = findings(function, [1, 1], [1], scale=0.99 * scale)
    assert leak.is_cause


@pytest.mark.parametrize("epsilon", [0.03, 7.0])
def test_a_scale_that_would_do_would(epsilon: float) -> None:
    def scaled(rows: Any, rng: Any, scale: float = 1e-3) -> Any:
        return sum(rows) + rng.laplace(scale=scale)

    leak = cause(scaled, [1.0], [0.0], PureDP(epsilon))
    assert FOR_PAIR in leak.remedy
    scale = float(leak.remedy.split()[3])
    assert 1 / epsilon <= scale <= 1.001 / epsilon
    assert not findings(scaled, [1.0], [0.0], PureDP(epsilon), scale=scale)


def test_a_scale_leaves_what_another_line_costs() -> None:
    def both(rows: Any, rng: Any, scale: float = 0.8) -> Any:
        return sum(rows) + rng.laplace(scale=2), len(rows) + rng.laplace(scale=scale)

    assert cause(both, [1.0], []).remedy == f"a scale of 2 {FOR_PAIR}"


def test_rounding_up_never_falls_below() -> None:
    for value in np.random.default_rng(0).lognormal(sigma=8, size=2_000).tolist():
        assert value * (1 - 1e-8) <= float(rounded_up(value)) <= value * 1.002


@pytest.mark.parametrize("large", [1e200, math.inf])
def test_a_sum_whose_norm_no_float_can_hold_is_traced(large: float) -> None:
    def total(rows: Any, rng: Any) -> Any:
        return np.sum(rows, axis=0) + rng.normal(size=2)

    assert findings(total, [[large, 1.5], [1.0, 0.5]], [[1.0, 0.5]])[0].is_cause
