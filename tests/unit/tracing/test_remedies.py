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

FIXED = "release the same values for every input, from a fixed list of keys"
CLAIM = ApproximateDP(1.0, 1e-5)
PURE = f"{FIXED}; or claim a δ above 0, and leave out noisy counts below a threshold"


def cause(function: Any, d1: Any, d2: Any, claim: PrivacyClaim | None = None) -> Finding:
    target = CallableTarget(function=function)
    (found,) = trace_pair(target, d1, d2, claim or PureDP(1.0)).causes
    return found


def histogram(rows: Any, rng: Any) -> Any:
    return {key: many + rng.laplace(scale=1) for key, many in sorted(Counter(rows).items())}


def fixed(rows: Any, rng: Any) -> Any:
    return {key: rows.count(key) + rng.laplace(scale=2) for key in "abc"}


def bare(rows: Any, rng: Any) -> Any:
    return {key: rows.count(key) for key in "abc"}


def test_keys_of_the_data_leak_though_their_counts_have_noise() -> None:
    found = cause(histogram, ["a", "b", "b"], ["a", "c", "c"])
    assert (found.kind, found.words[:15]) == ("no-noise", "output['b'] is ")
    assert found.remedy == PURE
    found = cause(histogram, ["a", "c", "d"], ["a", "b", "b"])
    assert found.words.startswith("`rng.laplace(scale=1)` draws 3 times for d1 and twice for d2")
    assert found.remedy == PURE


def test_values_without_noise_of_fixed_keys_need_noise() -> None:
    assert cause(bare, ["a", "b"], ["a", "c"]).remedy.startswith("add noise ")
    assert not trace_pair(
        CallableTarget(function=fixed), ["a", "b"], ["a", "c"], PureDP(1.0)
    ).causes


def findings(function: Any, d1: Any, d2: Any, claim: PrivacyClaim = CLAIM, **params: Any) -> Any:
    target = CallableTarget(function=function, params=params)
    return trace_pair(target, d1, d2, claim).findings


def momentum(rows: Any, rng: Any, scale: float = 1.0) -> Any:
    weight = velocity = 0.0
    for _ in range(3):
        velocity = 0.9 * velocity + sum(rows)
        weight -= 0.1 * (velocity + rng.normal(scale=scale))
    return weight


def weights(rows: Any, rng: Any, scale: float = 1.0) -> Any:
    weight, every = 0.0, []
    for _ in range(3):
        weight -= 0.1 * (sum(rows) + rng.normal(0.0, scale))
        every.append(weight)
    return every


def scaled_later(rows: Any, rng: Any, scale: float = 1.0) -> Any:
    return sum(rows) + 0.5 * rng.normal(scale=scale, size=1)


def located_at_0(rows: Any, rng: Any, scale: float = 1.0) -> Any:
    return (sum(rows) + 0.5 * rng.normal(0.0, scale)) / 10


def two_columns(rows: Any, rng: Any, scale: float = 1.0) -> Any:
    return np.array([sum(rows), 2 * sum(rows)]) + 0.5 * rng.normal(scale=scale, size=2)


@pytest.mark.parametrize("function", [momentum, weights, scaled_later, located_at_0, two_columns])
def test_the_scale_of_the_call_that_would_do_would(function: Any) -> None:
    (found,) = findings(function, [1, 1], [1])
    scale = float(found.remedy.partition("(scale=")[2].partition(" in the call)")[0])
    assert not [one for one in findings(function, [1, 1], [1], scale=scale) if one.is_cause]
    (still,) = findings(function, [1, 1], [1], scale=0.99 * scale)
    assert still.is_cause


@pytest.mark.parametrize("epsilon", [0.03, 0.3, 1.0, 7.0])
def test_a_scale_that_would_do_would(epsilon: float) -> None:
    def scaled(rows: Any, rng: Any, scale: float = 1e-3) -> Any:
        return sum(rows) + rng.laplace(scale=scale)

    found = cause(scaled, [1.0], [0.0], PureDP(epsilon))
    scale = float(found.remedy.split()[3])
    assert 1 / epsilon <= scale <= 1.001 / epsilon
    target = CallableTarget(function=scaled, params={"scale": scale})
    assert not trace_pair(target, [1.0], [0.0], PureDP(epsilon)).causes


def test_a_scale_leaves_what_another_line_costs() -> None:
    def both(rows: Any, rng: Any, scale: float = 0.8) -> Any:
        return sum(rows) + rng.laplace(scale=2), len(rows) + rng.laplace(scale=scale)

    found = cause(both, [1.0], [])
    assert found.remedy == f"a scale of 2 {FOR_PAIR}"
    target = CallableTarget(function=both, params={"scale": 2.0})
    trace = trace_pair(target, [1.0], [], PureDP(1.0))
    assert trace.total == "ε = 1"
    assert not trace.causes


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (100 / 3, "33.34"),
        (10 * (1 + 1e-12), "10"),
        (0.1 + 0.2, "0.3"),
        (123456.7, "1.235e+05"),
        (float("inf"), "∞"),
        (0.0, "0"),
    ],
)
def test_scales_are_rounded_up(value: float, text: str) -> None:
    assert rounded_up(value) == text


def test_rounding_up_never_falls_below() -> None:
    for value in np.random.default_rng(0).lognormal(sigma=8, size=2_000).tolist():
        assert value * (1 - 1e-8) <= float(rounded_up(value)) <= value * 1.002


@pytest.mark.parametrize("large", [1e200, math.inf])
def test_a_sum_whose_norm_no_float_can_hold_is_traced(large: float) -> None:
    def total(rows: Any, rng: Any) -> Any:
        return np.sum(rows, axis=0) + rng.normal(size=2)

    found = findings(total, [[large, 1.5], [1.0, 0.5]], [[1.0, 0.5]])
    assert found
    assert found[0].is_cause
