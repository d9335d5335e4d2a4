"""Fractions that are rounded, so that the last bits of a float are no difference."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.outcomes import from_raw

LARGE = 2**45 + 1


def are_alike(first: Any, second: Any) -> bool:
    a, b = (from_raw(outputs, types=False, rounds=True).keys() for outputs in (first, second))
    return bool(np.array_equal(a, b))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0.3, 0.5], [0.1 + 0.2, 0.5]),
        ([3.0, 1.0], [math.nextafter(3, 4), math.nextafter(1, 0)]),
        ([0.0], [-0.0]),
        ([math.nan, -math.inf, 1e-310], [math.nan, -math.inf, 1e-310]),
        ([(0.3, {"a": 0.3})], [(0.1 + 0.2, {"a": 0.1 + 0.2})]),
        (np.array([[0.3, 1]]), [[0.1 + 0.2, 1]]),
    ],
)
def test_last_bits_are_no_difference(first: Any, second: Any) -> None:
    assert are_alike(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0.3], [0.3 + 1e-11]),
        ([LARGE], [LARGE + 1]),
        ([float(LARGE)], [float(LARGE + 1)]),
        ([Fraction(1, 3)], [Fraction(2, 3)]),
        ([1e300], [math.inf]),
    ],
)
def test_other_differences_stay(first: Any, second: Any) -> None:
    assert not are_alike(first, second)


def test_rounding_is_off_by_default() -> None:
    assert from_raw([0.3]).keys() != from_raw([0.1 + 0.2]).keys()
