from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest

from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.inputs.pairs import (
    NeighbouringPair,
    describe_pair,
    differ_in_type,
    notes,
    several_more,
    unlike_inputs,
    with_type,
)


def test_describe_pair_is_short() -> None:
    assert describe_pair(0, 1) == "d1 = 0, d2 = 1"
    assert describe_pair("@rows.csv", "a") == "d1 = @rows.csv, d2 = 'a'"
    assert "array of shape (100,)" in describe_pair(np.zeros(100), 0)
    assert len(describe_pair(list(range(100)), 0)) < 60


def noted(d1: Any, d2: Any, group: int = 1, adjacency: Any = None) -> bool:
    pair = NeighbouringPair(d1, d2, parse_adjacency(adjacency))
    return bool(notes(pair, group))


@pytest.mark.parametrize(
    ("d1", "d2"),
    [
        ([1, 2, 3], [1, 4, 3]),
        ([1, 2, 3], [3, 2, 4]),
        ((1,), (2,)),
        ([{"age": 1}, {"age": 2}], [{"age": 1}, {"age": 3}]),
        ([[1, 2], [3, 4]], [[1, 2], [3, 5]]),
        (np.array([1, 2]), np.array([1, 3])),
        (np.zeros((3, 2)), np.eye(3, 2, k=-2)),
        ({1, 2}, {1, 3}),
        (frozenset("ab"), frozenset("ac")),
    ],
)
def test_one_record_in_the_place_of_another(d1: Any, d2: Any) -> None:
    assert noted(d1, d2)
    assert not noted(d1, d2, group=2)
    assert not noted(d1, d2, adjacency="replace")


@pytest.mark.parametrize(
    ("d1", "d2"),
    [
        (0, 1),
        (0.5, None),
        ("abc", "abd"),
        (b"abc", b"abd"),
        (np.array(1), np.array(2)),
        (np.float64(1), np.float64(2)),
        ({"age": 1}, {"age": 2}),
        ([], []),
        ([1, 2], [1, 2]),
        ([1, 2], [2, 1]),
        ([1, 2], [1]),
        ([1, 2], [3, 4]),
        ({1, 2}, {1}),
        ([1], 1),
        (np.zeros(200_000), np.arange(200_000) == 0),
    ],
)
def test_what_is_no_replacement_or_has_no_records(d1: Any, d2: Any) -> None:
    assert not noted(d1, d2)


def test_one_row_of_a_frame_in_the_place_of_another() -> None:
    frame, other = (pandas.DataFrame({"a": [1, 2], "b": ["x", one]}) for one in "yz")
    assert noted(frame, other)
    assert noted(frame["b"], other["b"])
    assert not noted(frame, frame.iloc[:1])


def test_one_input_with_several_records_more_is_warned_of() -> None:
    pair = NeighbouringPair([1, 2, 3, 4], [1])
    (found,) = several_more(pair)
    assert found.startswith("d1 has 3 records more ")
    assert several_more(NeighbouringPair((1,), (1, 2, 3)))[0].startswith("d2 has 2 records more ")
    assert several_more(pair, 3) == ()
    assert several_more(NeighbouringPair([1, 2, 3, 4], [1], parse_adjacency("add-remove"))) == ()
    # Answers of several queries are no records, as far as can be told.
    assert several_more(NeighbouringPair([0, 0, 0], [1, 1, 1])) == ()
    assert several_more(NeighbouringPair([1, 2], [1])) == ()


MIXED = [{"age": 1, "city": "a"}, {"age": None, "city": None}]


@pytest.mark.parametrize(
    ("d1", "d2", "differ"),
    [
        (1, 2.5, False),
        (True, np.int8(2), False),
        ("a", "b", False),
        ("a", 1, True),
        (1, [1], True),
        ([1], (1,), True),
        ([1], np.array([1]), True),
        (None, [1], True),
        ([1], [], False),
        ([1], [None], False),
        ([1, None], [2], False),
        ([1, "a"], [1], True),
        (["a"], [1], True),
        ([[1]], [1], True),
        ([[1], [2]], [["a"]], True),
        (MIXED, MIXED[:1], False),
        (MIXED, MIXED[1:], False),
        (MIXED, [{"age": "1", "city": "a"}], True),
        (MIXED, [{"other": "1"}], False),
        ({"a": 1}, {"a": "x"}, True),
        (np.array([1.0]), np.array(["a"]), True),
        (np.array([1.0]), np.array([2]), False),
        (pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": ["x"]}), True),
        (pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": []}, dtype=object), False),
        (pandas.DataFrame({"a": [1]}), [{"a": 1}], True),
        # A missing cell may make a column one of objects, or of floats.
        (pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": [None]}), False),
        (pandas.DataFrame({"a": ["x"]}), pandas.DataFrame({"a": [np.nan]}), False),
        (pandas.DataFrame({"a": [True]}), pandas.DataFrame({"a": [True, None]}), False),
        (pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": [1, None]}, dtype=object), False),
        (pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": ["x", None]}), True),
        (np.array([1.0]), np.array([None, 1]), False),
        (np.array([1.0]), np.array([None, "a"]), True),
    ],
)
def test_types_of_inputs_are_compared(d1: Any, d2: Any, differ: bool) -> None:
    assert differ_in_type(d1, d2) is differ
    assert differ_in_type(d2, d1) is differ
    assert len(list(unlike_inputs(d1, d2))) == (differ and d1 is not None)


def test_an_input_is_named_with_its_type() -> None:
    assert with_type(None) == "null"
    assert with_type("a") == "text, 'a'"
    assert with_type([1, "a"]) == "a list of numbers and text, [1, 'a']"
    assert with_type(np.array([1])) == "an array of numbers, array([1])"


def test_a_column_in_another_spelling_is_pointed_out() -> None:
    city = [{"age": 1, "city": "a"}]
    for first, second in (([{"agee": 1}], [{"age": 1}]), (city, [{"age": 1, "City": "a"}])):
        assert len(list(unlike_inputs(first, second))) == 1
        assert len(list(unlike_inputs(pandas.DataFrame(first), pandas.DataFrame(second)))) == 1
    assert not list(unlike_inputs([{"age": 1}], [{"age": 2, "agee": 1}]))
    assert not list(unlike_inputs([{"north": 1}], [{"south": 1}]))
