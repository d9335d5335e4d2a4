"""The benchmark of rare leaks: what its mechanisms leak, and what its tables print."""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import pytest

from benchmarks.rare_leaks import PURE_KINDS

DRAWS = 2_000
TWO_SIDED = ("both", "column")
# Outputs without a leak: the values of randomized response, or less than 40 in absolute value,
# which Laplace noise of scale 1 exceeds with probability e^-39.
NOISE_RANGE = 40


def drawn(name: str, dataset: int, p: float) -> list[Any]:
    """Return `DRAWS` outputs of a kind of the pure table, "raised" for an exception."""
    function, rng = PURE_KINDS[name], np.random.default_rng(5)
    if "size" in inspect.signature(function).parameters:
        return list(function(dataset, size=DRAWS, rng=rng, p=p, epsilon=1.0))
    outputs: list[Any] = []
    for _ in range(DRAWS):
        try:
            outputs.append(function(dataset, rng=rng, p=p, epsilon=1.0))
        except ValueError:
            outputs.append("raised")
    return outputs


def is_leak(name: str, output: Any) -> bool:
    if name == "category":
        return bool(output[7] == 9)
    if isinstance(output, str):
        return True
    if isinstance(output, dict):
        return output.keys() not in ({"answer"}, {"answer", "other"})
    if name == "random_value":
        return output not in (0.0, 1.0)
    return bool(np.abs(output).max() > NOISE_RANGE)


@pytest.mark.parametrize("name", PURE_KINDS)
def test_leak_has_the_stated_probability_and_the_stated_inputs(name: str) -> None:
    p = 0.1
    for dataset in (0, 1):
        expected = p if dataset == 1 or name in TWO_SIDED else 0.0
        count = sum(is_leak(name, output) for output in drawn(name, dataset, p))
        assert abs(count - DRAWS * expected) <= 5 * math.sqrt(DRAWS * expected)


@pytest.mark.parametrize("name", ["value", "exception"])
def test_randomized_response_attains_the_claim(name: str) -> None:
    correct = sum(output == 1 for output in drawn(name, 1, 0.0)) / DRAWS
    expected = 1 / (1 + math.exp(-1))
    assert correct == pytest.approx(expected, abs=5 * math.sqrt(expected / DRAWS))
