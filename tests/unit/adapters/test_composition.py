from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.adapters.loading import load_mechanism
from dpaudit.outcomes import Raised
from dpaudit.targets.target import CallableTarget, ComposedTarget, ImportedTarget

RESPONSE = ImportedTarget(path="mechanisms.randomized_response:randomized_response")
LAPLACE = ImportedTarget(path="mechanisms.laplace:laplace")
SCALAR = ImportedTarget(path="mechanisms.laplace:laplace_scalar")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def composed(*functions: Any) -> Any:
    parts = tuple(CallableTarget(function=function) for function in functions)
    return load_mechanism(ComposedTarget(parts=parts))


def fail_below_half(x: float, rng: np.random.Generator) -> float:
    value = rng.random()
    if value < 0.5:
        raise ArithmeticError("below half")
    return value


def test_batches_become_columns() -> None:
    outputs = load_mechanism(ComposedTarget(parts=(LAPLACE, RESPONSE))).sample(3, 5, rng())
    assert isinstance(outputs, np.ndarray)
    generator = rng()
    columns = [load_mechanism(part).sample(3, 5, generator) for part in (LAPLACE, RESPONSE)]
    np.testing.assert_array_equal(outputs, np.column_stack(columns))


def test_vectors_take_a_column_for_each_entry() -> None:
    mechanism = composed(lambda x, size: np.full((size, 2), x), lambda x, size: np.arange(size))
    assert mechanism.sample(7, 3, rng()).tolist() == [[7, 7, 0], [7, 7, 1], [7, 7, 2]]


@pytest.mark.parametrize(
    "values",
    [
        np.array([2**53 + 1, 5]),
        np.array([2**63 + 1, 5], dtype=np.uint64),
        np.array([True, False]),
        np.array([1.5, 2.5], dtype=np.longdouble),
    ],
)
def test_values_that_floats_would_change_are_kept(values: Any) -> None:
    mechanism = composed(lambda x, size: values, lambda x, size: np.array([0.5, 1.5]))
    first, second = mechanism.sample(0, 2, rng())
    assert first == (values.tolist()[0], 0.5)
    assert second == (values.tolist()[1], 1.5)
    assert type(first[0]) is type(values.tolist()[0])


def test_one_call_per_draw_if_a_component_needs_it() -> None:
    mechanism = load_mechanism(ComposedTarget(parts=(LAPLACE, SCALAR)))
    assert mechanism.interleaved
    outputs = mechanism.sample_each([0, 100, 0], rng())
    assert [abs(a - b) < 50 for a, b in outputs] == [True, True, True]
    assert [a > 50 for a, _ in outputs] == [False, True, False]


def test_the_same_mechanism_twice_draws_independently() -> None:
    for part in (LAPLACE, SCALAR):
        mechanism = load_mechanism(ComposedTarget(parts=(part, part)))
        first, second = np.array(mechanism.sample(0, 20_000, rng())).T
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.04


def test_an_exception_of_one_is_the_outcome_of_the_draw() -> None:
    mechanism = composed(lambda x: x, fail_below_half)
    outputs = mechanism.sample(0, 1_000, rng())
    raised = [output for output in outputs if isinstance(output, Raised)]
    assert 400 < len(raised) < 600
    assert raised[0] == Raised("ArithmeticError", "below half")
    assert all(isinstance(output, Raised) or output[1] >= 0.5 for output in outputs)


def test_post_process_gets_the_tuple_and_may_fail() -> None:
    target = ComposedTarget(
        parts=(CallableTarget(function=lambda x: x), CallableTarget(function=lambda x: [x, x])),
        post_process="builtins:max",
    )
    outputs = load_mechanism(target).sample_each([1, 2], rng())
    assert [output.kind for output in outputs] == ["TypeError", "TypeError"]
    summed = ComposedTarget(parts=(RESPONSE, RESPONSE), post_process="builtins:sum")
    assert set(load_mechanism(summed).sample(1, 100, rng())) == {0, 1, 2}


def test_parts_are_searched_for_generators() -> None:
    generator = rng()
    target = CallableTarget(function=lambda x: x + generator.random())
    mechanism = load_mechanism(ComposedTarget(parts=(RESPONSE, target)))
    assert target.function in mechanism.parts
