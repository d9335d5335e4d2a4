"""Pairs of long lists are described by their difference."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from dpaudit.inputs.pairs import describe_pair
from dpaudit.inputs.records import fingerprint

ROW = {"name": "Ann", "age": 34, "city": "Zurich", "visits": 3}
ROWS = [ROW, {**ROW, "name": "Bob"}, {**ROW, "name": "Cyd"}]
NUMBERS = [1.5] * 40


ANN = "{'name': 'Ann', 'age': 34, 'city': 'Zur…"
CYD = "{'name': 'Cyd', 'age': 34, 'city': 'Zur…"
NAN = float("nan")


@pytest.mark.parametrize(
    ("d1", "d2", "words"),
    [
        ([1, 2], [1, 3], "d1 = [1, 2], d2 = [1, 3]"),
        ([], ROWS[:1], f"d2 has 1 record; d1 lacks number 1: {ANN}"),
        (ROWS, ROWS[:2], f"d1 has 3 records; d2 lacks number 3: {CYD}"),
        (ROWS[1:], ROWS, f"d2 has 3 records; d1 lacks number 1: {ANN}"),
        (ROWS, [*ROWS[:2], {**ROWS[2], "age": 0}], "3 records; number 3: age is 34 in d1, 0 in d2"),
        (
            ROWS,
            [ROWS[0], {"name": 1, "age": 2, "city": 3, "visits": 4}, ROWS[2]],
            "3 records; number 2: name is 'Bob' in d1, 1 in d2, and age is 34 in d1, 2 in d2 "
            "(2 more differ)",
        ),
        (
            ROWS,
            [*ROWS[:2], {"name": "Cyd"}],
            "3 records; number 3 is {'name': 'Cyd', 'ag… in d1, {'name': 'Cyd'} in d2",
        ),
        ([*NUMBERS, 2], [*NUMBERS, 0], "41 records; number 41 is 2 in d1, 0 in d2"),
        (NUMBERS, NUMBERS[1:], "d1 has 40 records; d2 lacks number 40: 1.5"),
        ([*NUMBERS, NAN], [*NUMBERS, 0], "41 records; number 41 is nan in d1, 0 in d2"),
        ([[1, 2]] * 20, [*[[1, 2]] * 19, [1, 3]], "20 records; number 20: [1] is 2 in d1, 3 in d2"),
        (
            [{"x": [*range(30), 1]}] * 9,
            [*[{"x": [*range(30), 1]}] * 8, {"x": [*range(30), 2]}],
            "9 records; number 9: x is … 29, 1] in d1, … 29, 2] in d2",
        ),
        (
            [{"a\nb" * 20: 1}, 2],
            [{"a\nb" * 20: 2}, 2],
            "2 records; number 1: a ba ba ba ba ba ba… is 1 in d1, 2 in d2",
        ),
        ([0.0] * 2000, [*[0.0] * 1999, 1.0], "2,000 records; number 2,000 is 0.0 in d1, 1.0 in d2"),
        (
            np.zeros(9, "datetime64[ns]"),
            np.zeros(8, "datetime64[ns]"),
            "d1 has 9 records; d2 lacks number 9: np.datetime64('1970-01-01T00:00:00.0000…",
        ),
        (np.zeros(50), np.eye(1, 50)[0], "50 records; number 1 is 0.0 in d1, 1.0 in d2"),
        (np.zeros((9, 2)), np.zeros((8, 2)), "d1 has 9 records; d2 lacks number 9: [0.0, 0.0]"),
    ],
)
def test_the_record_that_differs_is_named(d1: Any, d2: Any, words: str) -> None:
    assert describe_pair(d1, d2) == words


@pytest.mark.parametrize(
    ("d1", "d2"),
    [
        (NUMBERS, [2.5] * 40),
        (NUMBERS, NUMBERS[2:]),
        (NUMBERS, NUMBERS),
        (NUMBERS, "a text"),
        (set(range(50)), set(range(51))),
        (np.zeros(50), np.ones(50)),
        (np.zeros(()), np.ones(())),
    ],
)
def test_others_are_said_by_their_beginnings(d1: Any, d2: Any) -> None:
    assert describe_pair(d1, d2).startswith("d1 = ")
    assert ", d2 = " in describe_pair(d1, d2)


class Odd:
    def __eq__(self, other: object) -> bool:
        raise ValueError("these cannot be compared")

    __hash__ = object.__hash__


@pytest.mark.parametrize(
    ("d1", "d2"),
    [
        ([Odd()] * 20, [Odd()] * 20),
        (np.zeros((1000, 1000)), np.zeros((999, 1000))),
        ([np.zeros(60_000)] * 2, [np.zeros(60_000)]),
        ([[0] * 60_000] * 2, [[0] * 60_000]),
    ],
    ids=["no equality", "a large array", "large arrays", "large lists"],
)
def test_what_cannot_be_compared_or_takes_long_is_left(d1: Any, d2: Any) -> None:
    assert describe_pair(d1, d2).startswith("d1 = ")


def test_fingerprint_notices_a_change() -> None:
    array = np.zeros(4)
    before = fingerprint(array)
    assert fingerprint(array.copy()) == before
    assert fingerprint(array.astype(np.float32)) != before
    assert fingerprint(array.reshape(2, 2)) != before
    array[2] = 1
    assert fingerprint(array) != before
    rows = [{"a": 1}]
    first = fingerprint(rows)
    rows[0]["a"] = 2
    assert fingerprint(rows) != first


def test_fingerprint_of_a_frame_depends_on_its_content_alone() -> None:
    pandas: Any = importlib.import_module("pandas")
    frame = pandas.DataFrame({"a": [1, 2]})
    before = fingerprint(frame)
    assert before is not None
    assert fingerprint(frame.copy()) == before
    frame.loc[0, "a"] = 7
    assert fingerprint(frame) != before
    assert fingerprint(frame.rename(columns={"a": "b"})) != fingerprint(frame)


def test_fingerprint_may_be_impossible() -> None:
    assert fingerprint(lambda: 0) is None
