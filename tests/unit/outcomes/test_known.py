"""Outcomes found by their entries are those found by their keys."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpaudit.outcomes import Raised, from_raw
from dpaudit.outcomes.columns import find
from dpaudit.outcomes.known import Known


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


def known_of(raw: Any) -> Known:
    outcomes = from_raw(raw)
    keys, order = np.unique(outcomes.keys(), return_index=True)
    return Known.of(keys, outcomes.take(order))


def test_an_entry_that_no_known_one_has_is_not_found() -> None:
    asked = from_raw([[0, 1], [0, 2], [None, 1], ["1", 0], [np.nan, 0], [1, 0]])
    assert (known_of([[0, 1], [1, 0]]).places(asked) < 2).tolist() == [
        True,
        False,
        False,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    "other",
    [
        [[0, 1], [0, 1, 1], [1, 0]],
        [{"a": 0, "b": 1}],
        [0, 1],
        [[0, 1], "none", Raised("ValueError", "")],
    ],
)
def test_outcomes_of_another_shape_are_found_by_their_keys(other: list[Any]) -> None:
    found, asked = known_of([[0, 1], [1, 0]]), from_raw(other)
    assert found.places(asked).tolist() == find(found.keys, asked.keys()).tolist()


@pytest.mark.parametrize("signed", [False, True])
def test_zeros_of_both_signs_are_found_by_their_keys(signed: bool) -> None:
    numbers = np.array([-0.0 if signed else 0.5, 0.0, 1.5])[_FLAGS]
    found, asked = known_of(numbers[:4]), from_raw(numbers)
    assert (found.entries is None) == signed
    assert found.places(asked).tolist() == find(found.keys, asked.keys()).tolist()
    # and the other way round, where only those that come later have a sign
    other = known_of(np.abs(numbers[:4]))
    assert other.entries is not None
    assert other.places(asked).tolist() == find(other.keys, asked.keys()).tolist()


@pytest.mark.parametrize(("most", "columns"), [(9, 1), (2, 61)])
def test_of_too_many_values_or_combinations_keys_are_compared(most: int, columns: int) -> None:
    rows = np.random.default_rng(6).integers(0, most, (400, columns))
    known, found = from_raw(rows), known_of(rows)
    assert found.entries is None
    assert (found.places(known) == find(found.keys, known.keys())).all()


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
    found = known_of(known)
    assert found.entries is not None
    wanted = find(found.keys, from_raw(asked).keys())
    assert found.places(from_raw(asked)).tolist() == wanted.tolist()
