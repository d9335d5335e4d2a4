"""Outcomes found by their entries are those found by their keys."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpaudit.outcomes import Column, Raised, from_raw
from dpaudit.outcomes.columns import find
from dpaudit.outcomes.known import Known
from dpaudit.outcomes.tables import Table


@dataclass
class _Pair:
    a: int
    b: int


@dataclass
class _Other:
    a: int
    b: int


_RNG = np.random.default_rng(5)
_FLAGS = _RNG.integers(-1, 2, (3_000, 6))
# What is returned, of which the first half is known: three values a place, at most.
RETURNED: dict[str, Any] = {
    "integers": _FLAGS,
    "numbers": np.array([0.5, 0.0, 1.5, -np.inf])[_FLAGS],
    "Booleans": _FLAGS > 0,
    "one number": _FLAGS[:, 0],
    "strings": [["no", "yes", "?"][one] for one in _FLAGS[:, 0]],
    "numbers and others": [[1, None, "yes"][one] for one in _FLAGS[:, 0]],
    "records": [{"a": int(one), "b": [bool(other)]} for one, other in _FLAGS[:, :2]],
    "lists of two kinds": [[int(one), [2.0, None, True][other]] for one, other in _FLAGS[:, :2]],
    "exceptions": [Raised("ValueError", "") if one < 0 else int(one) for one in _FLAGS[:, 0]],
}


@pytest.mark.parametrize("name", RETURNED)
def test_they_are_found_where_their_keys_are(name: str) -> None:
    returned = RETURNED[name]
    outcomes = from_raw(returned[: len(returned) // 2])
    _, first = np.unique(outcomes.keys(), return_index=True)
    some = outcomes.take(np.sort(first)[::2])  # of all that came up, every other one
    keys, order = np.unique(some.keys(), return_index=True)
    known = Known.of(keys, some.take(order))
    for one in (known, pickle.loads(pickle.dumps(known))):
        assert one.entries is not None
        for asked in (outcomes, from_raw(returned[len(returned) // 2 :])):
            wanted = find(keys, asked.keys())
            assert 0 < np.count_nonzero(wanted == len(keys)) < asked.size
            by_entries = one.entries.places(asked)
            assert by_entries is not None
            assert by_entries.tolist() == wanted.tolist()
            assert one.places(asked).tolist() == wanted.tolist()


def test_an_entry_that_no_known_one_has_is_not_found() -> None:
    known = from_raw([[0, 1], [1, 0]])
    keys, order = np.unique(known.keys(), return_index=True)
    found = Known.of(keys, known.take(order))
    asked = from_raw([[0, 1], [0, 2], [None, 1], ["1", 0], [np.nan, 0], [1, 0]])
    assert (found.places(asked) < 2).tolist() == [True, False, False, False, False, True]


@pytest.mark.parametrize(
    "other",
    [
        [[0, 1], [0, 1, 1], [1, 0]],
        [(0, 1), (1, 0), (0, 0)],
        [{"a": 0, "b": 1}],
        [0, 1],
        [[0, 1], "none", Raised("ValueError", "")],
    ],
)
def test_outcomes_of_another_shape_are_found_by_their_keys(other: list[Any]) -> None:
    known = from_raw([[0, 1], [1, 0]])
    keys, order = np.unique(known.keys(), return_index=True)
    found = Known.of(keys, known.take(order))
    asked = from_raw(other)
    assert found.places(asked).tolist() == find(keys, asked.keys()).tolist()


@pytest.mark.parametrize("signed", [False, True])
def test_zeros_of_both_signs_are_found_by_their_keys(signed: bool) -> None:
    numbers = np.array([-0.0 if signed else 0.5, 0.0, 1.5])[_FLAGS]
    known = from_raw(numbers[:4])
    keys, order = np.unique(known.keys(), return_index=True)
    found = Known.of(keys, known.take(order))
    asked = from_raw(numbers)
    assert (found.entries is None) == signed
    assert found.places(asked).tolist() == find(keys, asked.keys()).tolist()
    # and the other way round, where only those that come later have a sign
    other = Known.of(*_known(np.abs(numbers[:4])))
    assert other.entries is not None
    assert other.places(asked).tolist() == find(other.keys, asked.keys()).tolist()


def _known(numbers: Any) -> tuple[Any, Any]:
    outcomes = from_raw(numbers)
    keys, order = np.unique(outcomes.keys(), return_index=True)
    return keys, outcomes.take(order)


@pytest.mark.parametrize(("most", "columns"), [(9, 1), (8, 21), (2, 61)])
def test_of_too_many_values_or_combinations_keys_are_compared(most: int, columns: int) -> None:
    known = from_raw(np.random.default_rng(6).integers(0, most, (400, columns)))
    keys, order = np.unique(known.keys(), return_index=True)
    found = Known.of(keys, known.take(order))
    assert found.entries is None
    assert (found.places(known) == find(keys, known.keys())).all()


@pytest.mark.parametrize(("most", "columns"), [(2, 18), (2, 19), (2, 60), (8, 20)])
def test_there_may_be_very_many_combinations(most: int, columns: int) -> None:
    known = from_raw(np.random.default_rng(6).integers(0, most, (400, columns)))
    keys, order = np.unique(known.take(slice(200)).keys(), return_index=True)
    found = Known.of(keys, known.take(order))
    assert found.entries is not None
    wanted = find(keys, known.keys())
    assert 0 < np.count_nonzero(wanted == len(keys)) < 400
    by_entries = found.entries.places(known)
    assert by_entries is not None
    assert (by_entries == wanted).all()
    strange = np.full((3, columns), -1)
    assert (found.places(from_raw(strange)) == len(keys)).all()


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        ([_Pair(0, 1), _Pair(1, 0)], [_Other(0, 1), _Other(1, 1)]),
        ([{"a": 0, "b": 1}, {"a": 1, "b": 0}], [{"c": 0, "d": 1}, {"c": 1, "d": 0}]),
        ([{"a": 0, "b": 1}, {"a": 1, "b": 0}], [{"b": 0, "a": 1}, {"b": 0, "a": 0}]),
    ],
)
def test_outcomes_that_are_alike_but_for_a_type_or_names_are_told_apart(
    known: list[Any], asked: list[Any]
) -> None:
    outcomes = from_raw(known)
    keys, order = np.unique(outcomes.keys(), return_index=True)
    found = Known.of(keys, outcomes.take(order))
    assert found.entries is not None
    wanted = find(keys, from_raw(asked).keys())
    assert found.places(from_raw(asked)).tolist() == wanted.tolist()


def test_many_places_of_one_value_are_no_combinations() -> None:
    rows = np.zeros((300, 4_000))
    rows[:, -16:] = np.random.default_rng(7).integers(0, 2, (300, 16))
    outcomes = from_raw(rows)
    keys, order = np.unique(outcomes.keys(), return_index=True)
    found = Known.of(keys, outcomes.take(order))
    assert found.entries is not None
    assert (found.places(outcomes) == find(keys, outcomes.keys())).all()
    rows[::3, 7] = 1.0
    assert (found.places(from_raw(rows))[::3] == len(keys)).all()


def test_a_number_that_is_none_is_found_by_its_key() -> None:
    column = Column("output", np.array([np.nan, 0.0]))
    outcomes = Table((column,), 2)
    keys, order = np.unique(outcomes.keys(), return_index=True)
    found = Known.of(keys, outcomes.take(order))
    assert sorted(found.places(outcomes).tolist()) == [0, 1]


def test_more_labels_than_outcomes_are_not_looked_through() -> None:
    outcomes = from_raw([str(one) for one in range(3_000)]).take(np.array([1, 2]))
    keys, order = np.unique(outcomes.keys(), return_index=True)
    found = Known.of(keys, outcomes.take(order))
    assert found.entries is not None
    assert found.entries.places(outcomes) is None
    assert sorted(found.places(outcomes).tolist()) == [0, 1]
