from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpaudit.errors import DatasetError
from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import NeighbouringPair
from tests.raising import code, refusal


def check(d1: Any, d2: Any, adjacency: Any = None) -> tuple[str, ...]:
    return check_pair(NeighbouringPair(d1, d2, parse_adjacency(adjacency)))


def contradicted(d1: Any, d2: Any, adjacency: Any) -> str:
    """Return the message for a pair that is not one of neighbours."""
    error = refusal(check, d1, d2, adjacency)
    assert error.code == "pair-not-neighbours"
    return str(error)


@pytest.mark.parametrize("value", [0, None, math.nan, np.array([1.0, math.nan]), {1, 2}])
def test_equal_datasets_are_a_warning(value: Any) -> None:
    import copy

    (warning,) = check(value, copy.deepcopy(value), "replace")
    assert "equal" in warning


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
    assert "2 rows" in text
    (warning,) = check([1, 2], [2, 1], "add-remove")
    assert "order" in warning


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


@pytest.mark.parametrize("other", [{"a": 1}, 7, "a", None])
@pytest.mark.parametrize("kind", ["add-remove", "replace", "hamming:2", "user:id"])
def test_rows_are_no_neighbour_of_what_has_none(other: Any, kind: str) -> None:
    rows = [{"id": 1}]
    assert "d1 has rows, and d2 = " in contradicted(rows, other, kind)
    assert "d2 has rows, and d1 = " in contradicted(other, rows, kind)


@pytest.mark.parametrize(("kind", "distance"), [("l1", 7.0), ("l2", 5.0), ("linf", 4.0)])
def test_distances(kind: str, distance: float) -> None:
    d1, d2 = [0, 0], [3, -4]
    assert check(d1, d2, {kind: distance}) == ()
    text = contradicted(d1, d2, {kind: distance * 0.99})
    assert f"{distance:g}" in text
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


def test_a_group_may_differ_in_more() -> None:
    pair = NeighbouringPair([1, 2, 3], [4, 5, 3], parse_adjacency("replace"))
    assert check_pair(pair, 2) == ()
    assert "group of 3" in str(
        refusal(check_pair, NeighbouringPair([1, 2], [4, 5], parse_adjacency("add-remove")), 3)
    )
    assert check_pair(NeighbouringPair([1, 2], [1, 3], parse_adjacency("add-remove")), 2) == ()
    assert check_pair(NeighbouringPair([0, 0], [1, 1], parse_adjacency("l1:1")), 2) == ()
    far = NeighbouringPair([0, 0], [1, 2], parse_adjacency("l1:1"))
    assert code(check_pair, far, 2) == "pair-not-neighbours"


ROWS = [{"id": 1, "city": "a"}, {"id": 1, "city": "b"}, {"id": 2, "city": "a"}]
BOUNDED = "user:id,group=city,groups=2,per_group=1"


@pytest.mark.parametrize(
    ("d1", "d2", "adjacency"),
    [
        ([0, 1, 2], [0, 3, 2], "coordinate:2"),
        (0, 0.5, "coordinate:1"),
        ([math.nan, 1], [math.nan, 2], "coordinate:1"),
        ([math.inf, 1], [math.inf, 2], "linf:1"),
        ([1, 2, 3], [4, 5, 3], "hamming:2"),
        (ROWS, ROWS[2:], "user:id"),
        (ROWS[2:], ROWS, BOUNDED),
        ([], ROWS[:1], "user:id"),
        ([{"id": math.nan}], [], "user:id"),
    ],
)
def test_relations_of_entries_places_and_users(d1: Any, d2: Any, adjacency: str) -> None:
    assert check(d1, d2, adjacency) == ()
    assert check(d2, d1, adjacency) == ()


CONTRADICTED: list[tuple[Any, Any, str, str, str]] = [
    ([0, 0], [1, 1], "coordinate:1", "pair-not-neighbours", "2 entries"),
    ([0, 0], [0, 2], "coordinate:1", "pair-not-neighbours", "is 2"),
    ([0.0], [math.nan], "linf:1", "pair-not-neighbours", "is inf"),
    ([1, 2, 3], [3, 2, 2], "hamming:1", "pair-not-neighbours", "2 rows"),
    (ROWS, ROWS[1:], "user:id", "pair-not-neighbours", "user 1"),
    (ROWS, [], "user:id", "pair-not-neighbours", "2 users"),
    (ROWS, ROWS[:2], "user:name", "column-unknown", "'name'"),
    ([*ROWS, ROWS[2]], ROWS[:2], BOUNDED, "pair-not-neighbours", " user 2"),
]


def test_what_contradicts_them() -> None:
    for d1, d2, adjacency, expected, named in CONTRADICTED:
        for pair in ((d1, d2), (d2, d1)):
            error = refusal(check, *pair, adjacency)
            assert error.code == expected
            assert named in str(error)


def test_groups_of_such_relations() -> None:
    for d1, d2, adjacency in (
        ([0, 0], [1, 1], "coordinate:1"),
        ([1, 2, 3], [4, 5, 3], "hamming:1"),
        (ROWS, [], "user:id"),
    ):
        pair = NeighbouringPair(d1, d2, parse_adjacency(adjacency))
        assert check_pair(pair, 2) == ()
        with pytest.raises(DatasetError):
            check_pair(pair, 1)


def test_a_relation_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "relations.py").write_text(
        "def near(d1, d2):\n    return abs(d1 - d2) < 2\n\n"
        "def above(d1, d2):\n    return d1 > d2\n\n"
        "def broken(d1, d2):\n    return d1.rows\n\nnumber = 3\n"
    )
    monkeypatch.chdir(tmp_path)
    assert check(1, 2, "import:relations.py:near") == ()
    assert contradicted(1, 4, "import:relations.py:near")
    assert code(check, 1, 2, "import:relations.py:above") == "adjacency-failed"
    assert "AttributeError" in str(refusal(check, 1, 2, "import:relations.py:broken"))
    assert code(check, 1, 2, "import:relations.py:number") == "adjacency-invalid"
    near = parse_adjacency("import:relations.py:near")
    assert "nothing of groups" in check_pair(NeighbouringPair(1, 2, near), 2)[0]


def test_negative_zero_is_another_value() -> None:
    assert check([0.0], [-0.0], "replace") == ()
    assert check(np.array([0.0]), np.array([-0.0]), "linf:1") == ()
    assert check([1.0], [1.0, -0.0], "add-remove") == ()
    assert "have" in contradicted([0.0], [-0.0], "add-remove")
