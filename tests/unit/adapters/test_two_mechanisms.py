"""Two mechanisms that are compared: each draws for the inputs of its side."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpaudit.adapters.loading import load_mechanism
from dpaudit.inputs.pairs import Side
from dpaudit.outcomes import Raised
from dpaudit.targets.target import CallableTarget, TwoTargets, is_of_two

INPUTS = [Side(is_b, number) for number, is_b in enumerate([True, False, False, True, True])]


def single(x: int, rng: np.random.Generator) -> Any:
    return "single", x


def raises(x: int) -> Any:
    raise ValueError(x)


def batch(x: int, size: int) -> Any:
    return np.full(size, 10 * x)


def of(a: Any, b: Any) -> Any:
    return TwoTargets(a=CallableTarget(function=a), b=CallableTarget(function=b))


def test_each_output_is_of_the_side_of_its_input() -> None:
    two = load_mechanism(of(single, batch))
    for seed in range(4):
        outputs = two.sample_each(INPUTS, np.random.default_rng(seed))
        assert outputs == [0, ("single", 1), ("single", 2), 30, 40]
    assert list(two.sample(Side(True, 7), 3, np.random.default_rng())) == [70, 70, 70]
    assert two.sample_each([], np.random.default_rng()) == []
    assert not two.interleaved
    assert two.parts[::3] == (single, batch)


def test_exceptions_of_a_side_are_outcomes() -> None:
    two = load_mechanism(of(single, raises))
    outputs = two.sample_each(INPUTS, np.random.default_rng(0))
    assert [isinstance(output, Raised) for output in outputs] == [side.is_b for side in INPUTS]
    assert two.interleaved


def test_a_description_tells_two_targets_from_one() -> None:
    target = of(single, batch)
    assert target.describe() == "A: single; B: batch"
    assert is_of_two(target.describe())
    assert not is_of_two(target.a.describe())
