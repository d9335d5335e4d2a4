"""Of many coins, those that decide one person's answer are found, and cost what they do."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpaudit.claims import PureDP
from dpaudit.targets.target import CallableTarget, ImportedTarget
from dpaudit.tracing.trace import trace_pair

ROUND = 1 + 1e-9


def two_steps(data: list[int], rng: np.random.Generator) -> list[int]:
    """ln 3."""
    return [x if rng.random() < 0.5 else int(rng.integers(2)) for x in data]


def at_once(data: list[int], rng: np.random.Generator) -> Any:
    """ln 3, all coins in two arrays."""
    honest = rng.random(len(data)) < 0.5
    return np.where(honest, data, rng.integers(0, 2, len(data)))


def backwards(data: list[int], rng: np.random.Generator) -> list[int]:
    """ln 3, the random answers first."""
    other = [int(rng.integers(2)) for _ in data]
    return [x if rng.random() < 0.5 else one for x, one in zip(data, other, strict=True)]


def two_masks(data: list[int], rng: np.random.Generator) -> list[int]:
    """ln(0.74/0.26): two coins of 0.8 and 0.9 each turn an answer."""
    return [x ^ int(rng.random() < 0.2) ^ int(rng.random() < 0.1) for x in data]


def of_three(data: list[int], rng: np.random.Generator) -> list[int]:
    """ln 13: the truth with 0.8 + 0.2/3, each of two others with 0.2/3."""
    return [x if rng.random() < 0.8 else int(rng.choice(3)) for x in data]


@pytest.mark.parametrize("many", [3, 12])
@pytest.mark.parametrize(
    ("function", "epsilon"),
    [
        (at_once, math.log(3)),
        (backwards, math.log(3)),
        (two_masks, math.log(0.74 / 0.26)),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_the_cost_is_that_of_one_answer(
    function: Callable[..., Any], epsilon: float, many: int
) -> None:
    d1, d2 = [0] * many, [0] * (many // 2) + [1] + [0] * (many - many // 2 - 1)
    target = CallableTarget(function=function)
    found = trace_pair(target, d1, d2, PureDP(epsilon * ROUND))
    assert not found.causes
    assert found.total == f"ε = {epsilon:.4g}"
    (cause,) = trace_pair(target, d1, d2, PureDP(0.999 * epsilon)).causes
    assert f"ε = {epsilon:.4g}" in cause.words


@pytest.mark.parametrize(
    ("function", "epsilon"), [(two_steps, math.log(3)), (of_three, math.log(13))]
)
def test_coins_that_are_tossed_for_some_alone(function: Callable[..., Any], epsilon: float) -> None:
    target = CallableTarget(function=function)
    few = trace_pair(target, [0, 0, 0], [0, 1, 0], PureDP(epsilon * ROUND))
    assert few.total == f"ε = {epsilon:.4g}"
    assert not few.causes
    # Of many, how often the second one is tossed moves those of all who come later.
    many = trace_pair(target, [0] * 9, [0] * 4 + [1] + [0] * 4, PureDP(0.1))
    assert many.total is None
    assert not many.causes


def counted(data: list[int], rng: np.random.Generator) -> int:
    """The sum of the answers hides each of them no less than the answers do."""
    return sum(two_steps(data, rng))


def shuffled(data: list[int], rng: np.random.Generator) -> list[int]:
    return sorted(two_steps(data, rng))


def counted_masks(data: list[int], rng: np.random.Generator) -> int:
    return sum(two_masks(data, rng))


def masked_in_a_loop(data: list[int], rng: np.random.Generator) -> list[int]:
    """ln(0.68/0.32): two coins of 0.8 on one line."""
    found = []
    for x in data:
        for _ in range(2):
            x ^= int(rng.random() < 0.2)
        found.append(x)
    return found


def counted_in_a_loop(data: list[int], rng: np.random.Generator) -> int:
    return sum(masked_in_a_loop(data, rng))


@pytest.mark.parametrize(
    ("function", "epsilon"),
    [
        (counted, math.log(3)),
        (shuffled, math.log(3)),
        (counted_masks, math.log(0.74 / 0.26)),
        (masked_in_a_loop, math.log(0.68 / 0.32)),
        (counted_in_a_loop, math.log(0.68 / 0.32)),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
@pytest.mark.parametrize("many", [9, 40])
def test_no_more_than_the_answers_cost_is_a_cause(
    function: Callable[..., Any], epsilon: float, many: int
) -> None:
    d1, d2 = [0, 1] * (many // 2) + [0], [0, 1] * (many // 2) + [1]
    target = CallableTarget(function=function)
    assert not trace_pair(target, d1, d2, PureDP(epsilon * ROUND)).causes


def test_a_poll_of_twenty() -> None:
    target = ImportedTarget(path="mechanisms.poll:poll", params={"p": 0.9})
    found = trace_pair(target, [0] * 20, [0] * 19 + [1], PureDP(1.0))
    assert found.total == f"ε = {math.log(19):.4g}"
    assert "randomized_response.py" in found.causes[0].line.file
