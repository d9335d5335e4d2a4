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


@pytest.mark.parametrize(
    ("d1", "d2", "words"),
    [
        (ROWS, [*ROWS[:2], {**ROWS[2], "age": 0}], "3 records; number 3: age is 34 in d1, 0 in d2"),
        ([*NUMBERS, 2], [*NUMBERS, 0], "41 records; number 41 is 2 in d1, 0 in d2"),
        (np.zeros(50), np.eye(1, 50)[0], "50 records; number 1 is 0.0 in d1, 1.0 in d2"),
    ],
)
def test_the_record_that_differs_is_named(d1: Any, d2: Any, words: str) -> None:
    assert describe_pair(d1, d2) == words


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
