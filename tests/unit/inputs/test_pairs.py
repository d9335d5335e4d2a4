from __future__ import annotations

from typing import Any

import numpy as np
import pandas
import pytest

from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.inputs.pairs import (
    NeighbouringPair,
    differ_in_type,
    notes,
    several_more,
    unlike_inputs,
)


def noted(d1: Any, d2: Any, group: int = 1, adjacency: Any = None) -> bool:
    pair = NeighbouringPair(d1, d2, parse_adjacency(adjacency))
    return bool(notes(pair, group))


@pytest.mark.parametrize(
    ("d1", "d2"),
    [
        ([1, 2, 3], [1, 4, 3]),
        ([1, 2, 3], [3, 2, 4]),
        ([{"age": 1}, {"age": 2}], [{"age": 1}, {"age": 3}]),
        (np.array([1, 2]), np.array([1, 3])),
        ({1, 2}, {1, 3}),
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
        ("abc", "abd"),
        ({"age": 1}, {"age": 2}),
        ([1, 2], [1, 2]),
        ([1, 2], [2, 1]),
        ([1, 2], [1]),
        ([1, 2], [3, 4]),
        (np.zeros(200_000), np.arange(200_000) == 0),
    ],
)
def test_what_is_no_replacement_or_has_no_records(d1: Any, d2: Any) -> None:
    assert not noted(d1, d2)


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
        ("a", 1, True),
        (1, [1], True),
        ([1], np.array([1]), True),
        (None, [1], True),
        ([1], [], False),
        ([1, None], [2], False),
        ([1, "a"], [1], True),
        (["a"], [1], True),
        (MIXED, MIXED[:1], False),
        (MIXED, MIXED[1:], False),
        (MIXED, [{"age": "1", "city": "a"}], True),
        (MIXED, [{"other": "1"}], False),
        ({"a": 1}, {"a": "x"}, True),
        (pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": ["x"]}), True),
        (pandas.DataFrame({"a": [1]}), [{"a": 1}], True),
        # A missing cell may make a column one of objects, or of floats.
        (pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": [None]}), False),
        (pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": [1, None]}, dtype=object), False),
        (pandas.DataFrame({"a": [1]}), pandas.DataFrame({"a": ["x", None]}), True),
        (np.array([1.0]), np.array([None, "a"]), True),
    ],
)
def test_types_of_inputs_are_compared(d1: Any, d2: Any, differ: bool) -> None:
    assert differ_in_type(d1, d2) is differ
    assert differ_in_type(d2, d1) is differ
    assert len(list(unlike_inputs(d1, d2))) == (differ and d1 is not None)
