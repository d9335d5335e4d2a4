"""Distances of outputs, against NumPy's norms and against counts by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpaudit.searching.distances import metric, plain_numbers, plain_records
from tests.raising import refusal

NAN, INF = math.nan, math.inf


def distance(first: Any, second: Any, norm: str = "l1") -> float:
    plain = [plain_numbers(one, "f") for one in (first, second)]
    return metric(norm, "add-remove")(*plain).value


def words(first: Any, second: Any) -> str:
    plain = [plain_numbers(one, "f") for one in (first, second)]
    found = metric("l1", "add-remove")(*plain)
    assert found.value == INF
    return found.words


@pytest.mark.parametrize(("norm", "order"), [("l1", 1), ("l2", 2), ("linf", np.inf)])
def test_norms_are_those_of_numpy(norm: str, order: float) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        first, second = rng.normal(size=(2, 7))
        expected = np.linalg.norm(first - second, ord=order)
        assert distance(first, second, norm) == pytest.approx(expected, rel=1e-14)
        nested = distance({"a": first[:3], "b": [list(first[3:])]},
                          {"a": second[:3], "b": [list(second[3:])]}, norm)  # fmt: skip
        assert nested == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (3, 5, 2.0),
        (2**53 + 1, 2**53, 1.0),  # floats cannot tell them apart
        (10**400, 10**400 + 3, 3.0),
        (np.uint8(3), np.uint8(5), 2.0),  # which wraps around in NumPy
        (np.float32(0.5), 0.25, 0.25),
        (Decimal("0.5"), Fraction(1, 4), 0.25),
        ([1, [2, 3]], (1, (2, 5)), 2.0),
        (None, None, 0.0),
        ([None, 1], [None, 3], 2.0),
        (INF, INF, 0.0),
        ({}, {"a": 3, "b": -2}, 5.0),  # a key in one alone counts as 0
        ({}, {"a": [1, {"b": 2}]}, 3.0),
        (1e308, -1e308, INF),
    ],
)
def test_by_hand(first: Any, second: Any, expected: float) -> None:
    assert distance(first, second) == distance(second, first) == expected


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        ([1, 2], [1], "the output has 2 values for d1 and 1 for d2"),
        (1, [1], "the output is the number 1 for d1 and a sequence of 1 for d2"),
        (NAN, 1, "the output is NaN for d1 and 1 for d2"),
        ([0, INF], [0, 2], "the output[1] is ∞ for d1 and 2 for d2"),
    ],
)
def test_what_has_no_difference_is_infinitely_far(first: Any, second: Any, said: str) -> None:
    assert words(first, second) == said


def test_the_largest_floats_do_not_overflow_in_between() -> None:
    assert distance([1e200, 1e200], [0, 0], "l2") == pytest.approx(math.sqrt(2) * 1e200)
    assert distance([5e-324], [0], "l2") == 5e-324


def test_tables_go_by_their_names() -> None:
    counts = [pd.Series(list(text)).value_counts() for text in ("aab", "a")]
    assert distance(counts[0], counts[1]) == 2.0
    frames = [pd.DataFrame({"x": one}) for one in ([1, 2], [1, 5])]
    assert distance(frames[0], frames[1]) == 3.0
    # Rows that are only counted are a sequence.
    assert distance(pd.Series([1]), pd.Series([1, 2])) == INF


@pytest.mark.parametrize("output", ["north", b"a", {1, 2}, object(), 1j, np.array(["a"]), ["a"]])
def test_what_is_no_number_is_refused(output: Any) -> None:
    error = refusal(plain_numbers, output, "f")
    assert error.code == "answer-without-distance"
    assert "--norm records" in str(error)


def test_later_changes_of_an_output_do_not_reach_what_was_read() -> None:
    output: dict[str, Any] = {"a": np.zeros(2), "b": [1]}
    read = plain_numbers(output, "f")
    output["a"][0], output["b"][0] = 7, 7
    assert read == {"a": [0.0, 0.0], "b": [1]}


@pytest.mark.parametrize(
    ("first", "second", "added", "replaced"),
    [
        ([1, 2, 3], [3, 2, 1], 0, 0),
        ([1, 2], [1], 1, 1),
        ([1, 2], [1, 3], 2, 1),
        ([1, 1], [1], 1, 1),
        ([1, 2, 3], [], 3, 3),
        ([{"a": 1}], [{"a": NAN}], 2, 1),
        ([{"a": NAN}], [{"a": NAN}], 0, 0),
        (np.array([[1, 2], [3, 4]]), [[1, 2]], 1, 1),
        ({1, 2}, {2}, 1, 1),
        (pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"x": [2]}), 1, 1),
    ],
)
def test_records_that_differ(first: Any, second: Any, added: int, replaced: int) -> None:
    read = [plain_records(one, "f") for one in (first, second)]
    assert metric("records", "add-remove")(*read).value == added
    assert metric("records", "user")(*read).value == added
    assert metric("records", "replace")(*read).value == replaced
    assert metric("records", "hamming")(*read).value == replaced


@pytest.mark.parametrize("output", [3, None, "abc", {"a": 1}])
def test_what_has_no_records_is_refused(output: Any) -> None:
    error = refusal(plain_records, output, "f")
    assert error.code == "answer-without-distance"
    assert "--norm l1" in str(error)
