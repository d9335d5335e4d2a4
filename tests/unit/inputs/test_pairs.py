from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.errors import DatasetError
from dpaudit.inputs.pairs import (
    Adjacency,
    NeighbouringPair,
    check_pair,
    describe_pair,
    fingerprint,
    notes,
    parse_adjacency,
)


def check(d1: Any, d2: Any, adjacency: Any = None) -> tuple[str, ...]:
    return check_pair(NeighbouringPair(d1, d2, parse_adjacency(adjacency)))


def contradicted(d1: Any, d2: Any, adjacency: Any) -> str:
    with pytest.raises(DatasetError) as caught:
        check(d1, d2, adjacency)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "adjacency"),
    [
        (None, None),
        ("add-remove", Adjacency("add-remove")),
        ("replace", Adjacency("replace")),
        ("l1:2", Adjacency("l1", 2.0)),
        ({"linf": 0.5}, Adjacency("linf", 0.5)),
        (Adjacency("l2"), Adjacency("l2")),
    ],
)
def test_parse_adjacency(value: Any, adjacency: Adjacency | None) -> None:
    assert parse_adjacency(value) == adjacency


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("replaces", "Did you mean 'replace'?"),
        ("l1", "write l1:1"),
        ("l1:x", "must be a number"),
        ("l1:0", "must be finite and above 0"),
        ("l1:inf", "must be finite and above 0"),
        ({"l1": True}, "must be a number"),
        ("replace:2", "takes no distance"),
        ({"l1": 1, "l2": 1}, "is not known"),
        (3, "is not known"),
    ],
)
def test_bad_adjacency(value: Any, words: str) -> None:
    with pytest.raises(DatasetError, match="adjacency") as caught:
        parse_adjacency(value)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "value", [0, "a", None, math.nan, [1, [2]], {"a": [1]}, np.array([1.0, math.nan]), {1, 2}]
)
def test_equal_datasets_are_a_warning(value: Any) -> None:
    import copy

    (warning,) = check(value, copy.deepcopy(value), "replace")
    assert "equal" in warning


def test_without_adjacency_only_equality_is_checked() -> None:
    assert check([1], [2, 3, 4]) == ()
    assert check(np.zeros(2), np.zeros(3)) == ()
    assert check({1}, {2}) == ()


@pytest.mark.parametrize(
    ("d1", "d2"),
    [
        ([1, 2, 3], [1, 2]),
        ([1, 2], [2, 3, 1]),
        ((), ("a",)),
        (np.zeros((2, 3)), np.zeros((3, 3))),
        ([{"a": 1}], []),
        ([math.nan, 1.0], [1.0]),
    ],
)
def test_add_remove_ignores_the_order(d1: Any, d2: Any) -> None:
    assert check(d1, d2, "add-remove") == ()
    assert check(d2, d1, "add-remove") == ()


def test_add_remove_contradicted() -> None:
    text = contradicted([1, 2, 3], [1, 4], "add-remove")
    assert "d1 has 2 rows that d2 does not have, and d2 has 1 that d1 does not have" in text
    assert "add-remove means one row more or less" in text
    (warning,) = check([1, 2], [2, 1], "add-remove")
    assert "same rows in another order" in warning


@pytest.mark.parametrize(
    ("d1", "d2"),
    [
        ([1, 2, 3], [1, 5, 3]),
        # One record changed and the rows sorted again: still one row as a multiset.
        ([1, 2, 3], [2, 3, 9]),
        (np.array([[1, 2], [3, 4]]), np.array([[1, 2], [3, 5]])),
        (0, 1),
        ("yes", "no"),
    ],
)
def test_replace_holds(d1: Any, d2: Any) -> None:
    assert check(d1, d2, "replace") == ()


def test_replace_contradicted() -> None:
    assert "differ in 2 rows; replace means exactly one" in contradicted(
        [1, 2, 3], [7, 8, 3], "replace"
    )
    assert "replace keeps the number of rows" in contradicted([1, 2], [1], "replace")


def test_unchecked_adjacency_is_a_warning_that_says_why() -> None:
    assert "d1 (int) has no rows" in check(0, 1, "add-remove")[0]
    assert "d2 (dict) has no rows" in check([1], {"a": 1}, "replace")[0]
    assert "d1 (str) is not a number" in check("a", 1, "l1:1")[0]


@pytest.mark.parametrize(("kind", "distance"), [("l1", 7.0), ("l2", 5.0), ("linf", 4.0)])
def test_distances(kind: str, distance: float) -> None:
    d1, d2 = [0, 0], [3, -4]
    assert check(d1, d2, {kind: distance}) == ()
    text = contradicted(d1, d2, {kind: distance * 0.99})
    assert f"{kind} distance of d1 and d2 is {distance:g}" in text
    assert "shape" in contradicted([1, 2], [1], {kind: 1})


def test_distance_allows_for_rounding() -> None:
    assert check([0.1, 0.2], [0.0, 0.0], {"l1": 0.3}) == ()


@given(st.lists(st.integers(0, 3), max_size=6), st.data())
def test_what_is_one_step_away_is_accepted(rows: list[int], data: st.DataObject) -> None:
    row = data.draw(st.integers(4, 9))
    shuffled = data.draw(st.permutations([*rows, row]))
    assert check(rows, shuffled, "add-remove") == ()
    if rows:
        place = data.draw(st.integers(0, len(rows) - 1))
        assert check(rows, [*rows[:place], row, *rows[place + 1 :]], "replace") == ()


def test_pandas_rows() -> None:
    pandas: Any = importlib.import_module("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    assert check(frame, frame.iloc[1:], "add-remove") == ()
    assert "replace keeps" in contradicted(frame, frame.iloc[1:], "replace")
    assert "equal" in check(frame, frame.copy())[0]
    assert check(frame["a"], frame["a"].replace(2, 7), "replace") == ()


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
    pandas = pytest.importorskip("pandas")
    frame, other = (pandas.DataFrame({"a": [1, 2], "b": ["x", one]}) for one in "yz")
    assert noted(frame, other)
    assert noted(frame["b"], other["b"])
    assert not noted(frame, frame.iloc[:1])


def test_a_group_may_differ_in_more() -> None:
    pair = NeighbouringPair([1, 2, 3], [4, 5, 3], parse_adjacency("replace"))
    assert check_pair(pair, 2) == ()
    with pytest.raises(DatasetError, match="in a group of 3 at most 3 rows"):
        check_pair(NeighbouringPair([1, 2], [4, 5], parse_adjacency("add-remove")), 3)
    assert check_pair(NeighbouringPair([1, 2], [1, 3], parse_adjacency("add-remove")), 2) == ()
    assert check_pair(NeighbouringPair([0, 0], [1, 1], parse_adjacency("l1:1")), 2) == ()
    with pytest.raises(DatasetError, match="allows at most 2 in a group of 2"):
        check_pair(NeighbouringPair([0, 0], [1, 2], parse_adjacency("l1:1")), 2)
