from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

from dpaudit.stats.order import FloatArray, few_values, in_order, mid_ranks, stable_order

SIZES = (0, 1, 2, 1_000, 4_999, 5_000, 60_000)


def numbers(kind: str, size: int) -> FloatArray:
    rng = np.random.default_rng(size)
    if kind == "all differ":
        return rng.normal(size=size)
    if kind == "three values":
        return rng.choice([-0.1, 0.0, 0.1], size)
    bits = rng.integers(0, 2**64, size, dtype=np.uint64)  # of every size and sign, some NaN
    actual: FloatArray = bits.view(np.float64)
    for value in (0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 5e-324, -5e-324):
        actual[rng.random(size) < 0.05] = value
    return actual


def test_the_order_equals_a_stable_sort() -> None:
    for kind, size in product(["all differ", "three values", "any bits"], SIZES):
        given = numbers(kind, size)
        assert stable_order(given).tolist() == np.argsort(given, kind="stable").tolist()


def test_ranks_agree_with_scipy() -> None:
    for kind, size in product(["all differ", "three values"], SIZES):
        given = numbers(kind, size)
        assert np.array_equal(mid_ranks(given), rankdata(given) - 1)


def test_nan_has_the_largest_rank() -> None:
    given = np.array([np.nan, 1.0, np.inf, -np.nan])
    assert mid_ranks(given).tolist() == [2.5, 0, 1, 2.5]


def test_numbers_are_sorted() -> None:
    for kind, size in product(["all differ", "three values", "any bits"], SIZES):
        given = numbers(kind, size)
        assert np.array_equal(in_order(given), np.sort(given), equal_nan=True)


@pytest.mark.parametrize("last", [[7.0], [np.nan], list(range(2, 12))])
def test_values_after_the_first_hundred_are_counted(last: list[float]) -> None:
    given = np.append(np.tile([0.0, 1.0], 400), last)
    assert few_values(given) is None
    assert np.array_equal(in_order(given), np.sort(given), equal_nan=True)
