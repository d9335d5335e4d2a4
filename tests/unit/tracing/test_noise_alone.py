"""Noise that the output also shows without the value that it hides is named, with the entry."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import ApproximateDP
from dpaudit.targets.target import CallableTarget
from dpaudit.tracing.mechanism_trace import trace_pair

CLAIM = ApproximateDP(1.0, 1e-5)


def causes(function: Any, d1: Any = (1, 1), d2: Any = (1,)) -> Any:
    return trace_pair(CallableTarget(function=function), list(d1), list(d2), CLAIM).causes


def alone(rows: Any, rng: Any) -> Any:
    noise = rng.normal(scale=4.0)
    return noise, len(rows) + noise


def of_an_array(rows: Any, rng: Any) -> Any:
    noise = rng.normal(scale=40.0, size=3)
    return {"noisy": np.array([sum(rows), 0, 1]) + noise, "noise": noise[0]}


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (alone, "output[0]"),
        (of_an_array, "output['noise']"),
    ],
)
def test_noise_next_to_the_value_that_it_hides_is_named(function: Any, name: str) -> None:
    (cause,) = causes(function)
    assert (cause.kind, cause.cost) == ("noise-used-twice", math.inf)
    assert "rng.normal(" in cause.line.code
    assert f" and {name} depends on " in cause.words


def test_of_two_lines_the_one_whose_noise_is_alone_is_named() -> None:
    def two(rows: Any, rng: Any) -> Any:
        first = rng.laplace(scale=4.0)
        second = rng.laplace(scale=5.0)
        return len(rows) + first, len(rows) + second, second

    (cause,) = causes(two)
    assert cause.line.code == "rng.laplace(scale=5.0)"


def hidden_by_other_noise(rows: Any, rng: Any) -> Any:
    first, second = rng.normal(scale=4.0, size=2)
    return len(rows) + first, first + second, np.sign(first) * np.sign(second)


def of_another_value(rows: Any, rng: Any) -> Any:
    noise = rng.normal(scale=4.0, size=2)
    return np.array([len(rows), 3]) + noise, float(noise[1]), np.exp(noise[1])


def computed_from_the_noisy_value(rows: Any, rng: Any) -> Any:
    noisy = 1e9 + len(rows) + rng.normal(scale=4.0)
    return noisy, noisy % 1, round(noisy), math.sqrt(noisy), f"{noisy:.12f}", noisy > 1e9


def masked(rows: Any, rng: Any) -> Any:
    mask = rng.normal(scale=1e4)
    return mask, len(rows) + mask + rng.normal(scale=4.0)


def not_released(rows: Any, rng: Any) -> Any:
    noise = rng.normal(scale=4.0)
    _ = len(rows) + noise
    return noise


@pytest.mark.parametrize(
    "function",
    [
        *(hidden_by_other_noise, of_another_value, computed_from_the_noisy_value),
        *(masked, not_released),
    ],
)
def test_other_noise_and_noisy_values_next_to_a_noisy_value_are_no_cause(function: Any) -> None:
    assert not causes(function)


def bounded(rows: Any, rng: Any) -> Any:
    tries = 1
    while abs(noise := rng.normal(scale=4.0)) > 1.5:
        tries += 1
    return len(rows) + noise, tries


def with_a_root(rows: Any, rng: Any) -> Any:
    noise = rng.exponential(scale=1.0)
    _ = math.sqrt(noise)
    return "count", len(rows) + noise


@pytest.mark.parametrize(
    ("function", "d1", "d2"), [(bounded, [1, 1], [1]), (with_a_root, [1], [1, 1])]
)
def test_noise_that_the_program_draws_again_or_refuses_is_not_moved(
    function: Any, d1: Any, d2: Any
) -> None:
    claim = ApproximateDP(1.0, 0.7)  # both inputs share at least 0.36 of the outputs
    assert not trace_pair(CallableTarget(function=function), d1, d2, claim).causes
