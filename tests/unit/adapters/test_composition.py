from __future__ import annotations

import math
from collections import Counter
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
    return load_mechanism(
        ComposedTarget(parts=tuple(CallableTarget(function=one) for one in functions))
    )


def fail_below_half(x: float, rng: np.random.Generator) -> float:
    value = rng.random()
    if value < 0.5:
        raise ArithmeticError("below half")
    return value


def test_batches_become_columns() -> None:
    drawn = load_mechanism(ComposedTarget(parts=(LAPLACE, RESPONSE))).sample(3, 5, rng())
    assert isinstance(drawn, np.ndarray)
    source = rng()
    alone = [
        load_mechanism(LAPLACE).sample(3, 5, source),
        load_mechanism(RESPONSE).sample(3, 5, source),
    ]
    np.testing.assert_array_equal(drawn, np.column_stack(alone))


def test_vectors_take_a_column_for_each_entry() -> None:
    mechanism = composed(lambda x, size: np.full((size, 2), x), lambda x, size: np.arange(size))
    assert mechanism.sample(7, 3, rng()).tolist() == [[7, 7, 0], [7, 7, 1], [7, 7, 2]]


@pytest.mark.parametrize(
    "values",
    [
        np.array([2**53 + 1, 5]),
        np.array([2**63 + 1, 5], dtype=np.uint64),
        np.array([True, False]),
        np.array(["a", "b"]),
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
    drawn = mechanism.sample_each([0, 100, 0], rng())
    assert [len(one) for one in drawn] == [2, 2, 2]
    assert [abs(a - b) < 50 for a, b in drawn] == [True, True, True]
    assert [a > 50 for a, _ in drawn] == [False, True, False]


def test_the_same_mechanism_twice_draws_independently() -> None:
    for part in (LAPLACE, SCALAR):
        mechanism = load_mechanism(ComposedTarget(parts=(part, part)))
        first, two = np.array(mechanism.sample(0, 20_000, rng())).T
        assert abs(np.corrcoef(first, two)[0, 1]) < 0.04


def test_an_exception_of_one_is_the_outcome_of_the_draw() -> None:
    mechanism = composed(lambda x: x, fail_below_half)
    drawn = mechanism.sample(0, 1_000, rng())
    raised = [one for one in drawn if isinstance(one, Raised)]
    assert 400 < len(raised) < 600
    assert raised[0] == Raised("ArithmeticError", "below half")
    assert all(one[0] == 0 and one[1] >= 0.5 for one in drawn if not isinstance(one, Raised))


def test_post_process_gets_the_tuple_and_may_fail() -> None:
    target = ComposedTarget(
        parts=(CallableTarget(function=lambda x: x), CallableTarget(function=lambda x: [x, x])),
        post_process="builtins:max",
    )
    drawn = load_mechanism(target).sample_each([1, 2], rng())
    assert [one.kind for one in drawn] == ["TypeError", "TypeError"]
    summed = ComposedTarget(parts=(RESPONSE, RESPONSE), post_process="builtins:sum")
    assert set(load_mechanism(summed).sample(1, 100, rng())) == {0, 1, 2}


def test_parts_are_searched_for_generators() -> None:
    generator = rng()
    target = CallableTarget(function=lambda x: x + generator.random())
    mechanism = load_mechanism(ComposedTarget(parts=(RESPONSE, target)))
    assert target.function in mechanism.parts


def test_laws_of_the_composition_are_products() -> None:
    mechanism = load_mechanism(ComposedTarget(parts=(RESPONSE, RESPONSE)))
    seen = Counter(map(tuple, np.asarray(mechanism.sample(1, 40_000, rng())).tolist()))
    for outcome, expected in {(1, 1): 9, (0, 1): 3, (1, 0): 3, (0, 0): 1}.items():
        share = expected / 16
        assert abs(seen[outcome] / 40_000 - share) < 5 * math.sqrt(share / 40_000)
