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
    "numbers": np.array([0.5, 0.0, 1.5, -np.inf])[_FLAGS],
    "Booleans": _FLAGS > 0,
    "numbers and others": [[1, None, "yes"][flag] for flag in _FLAGS[:, 0]],
    "records": [{"a": int(a), "b": [bool(b)]} for a, b in _FLAGS[:, :2]],
    "lists of two kinds": [[int(a), [2.0, None, True][b]] for a, b in _FLAGS[:, :2]],
    "exceptions": [Raised("ValueError", "") if flag < 0 else int(flag) for flag in _FLAGS[:, 0]],
}


@pytest.mark.parametrize("name", RETURNED)
def test_they_are_found_where_their_keys_are(name: str) -> None:
    returned = RETURNED[name]
    outcomes = from_raw(returned[: len(returned) // 2])
    _, first = np.unique(outcomes.keys(), return_index=True)
    some = outcomes.take(np.sort(first)[::2])  # of all that came up, every other one
    keys, order = np.unique(some.keys(), return_index=True)
    known = pickle.loads(pickle.dumps(Known.of(keys, some.take(order))))
    for fresh in (outcomes, from_raw(returned[len(returned) // 2 :])):
        expected = find(keys, fresh.keys())
        assert 0 < np.count_nonzero(expected == len(keys)) < fresh.size
        assert known.entries.places(fresh).tolist() == expected.tolist()
        assert known.places(fresh).tolist() == expected.tolist()


def known_of(raw: Any) -> Known:
    outcomes = from_raw(raw)
    keys, order = np.unique(outcomes.keys(), return_index=True)
    return Known.of(keys, outcomes.take(order))


def test_an_entry_that_no_known_one_has_is_not_found() -> None:
    fresh = from_raw([[0, 1], [0, 2], [None, 1], ["1", 0], [np.nan, 0], [1, 0]])
    is_known = known_of([[0, 1], [1, 0]]).places(fresh) < 2
    assert is_known.tolist() == [True, False, False, False, False, True]


@pytest.mark.parametrize(
    "raw",
    [
        [[0, 1], [0, 1, 1], [1, 0]],
        [{"a": 0, "b": 1}],
        [0, 1],
        [[0, 1], "none", Raised("ValueError", "")],
    ],
)
def test_outcomes_of_another_shape_are_found_by_their_keys(raw: list[Any]) -> None:
    known, fresh = known_of([[0, 1], [1, 0]]), from_raw(raw)
    assert known.places(fresh).tolist() == find(known.keys, fresh.keys()).tolist()


@pytest.mark.parametrize("is_signed", [False, True])
def test_zeros_of_both_signs_are_found_by_their_keys(is_signed: bool) -> None:
    numbers = np.array([-0.0, 0.0, 1.5])[_FLAGS]
    known = known_of(numbers[:4] if is_signed else np.abs(numbers[:4]))
    fresh = from_raw(numbers)
    assert (known.entries is None) == is_signed
    assert known.places(fresh).tolist() == find(known.keys, fresh.keys()).tolist()


@pytest.mark.parametrize(("most", "columns"), [(9, 1), (2, 61)])
def test_of_too_many_values_or_combinations_keys_are_compared(most: int, columns: int) -> None:
    rows = np.random.default_rng(6).integers(0, most, (400, columns))
    fresh, known = from_raw(rows), known_of(rows)
    assert known.entries is None
    assert (known.places(fresh) == find(known.keys, fresh.keys())).all()


@pytest.mark.parametrize(
    ("raw", "later"),
    [
        ([_Pair(0, 1), _Pair(1, 0)], [_Other(0, 1), _Other(1, 1)]),
        ([{"a": 0, "b": 1}, {"a": 1, "b": 0}], [{"c": 0, "d": 1}, {"c": 1, "d": 0}]),
        ([{"a": 0, "b": 1}, {"a": 1, "b": 0}], [{"b": 0, "a": 1}, {"b": 0, "a": 0}]),
    ],
)
def test_outcomes_that_are_alike_but_for_a_type_or_names_are_told_apart(
    raw: list[Any], later: list[Any]
) -> None:
    known, fresh = known_of(raw), from_raw(later)
    assert known.entries is not None
    assert known.places(fresh).tolist() == find(known.keys, fresh.keys()).tolist()
