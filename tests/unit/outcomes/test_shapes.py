"""Outcomes of any shape: every place is a column, nothing is merged, chunks agree."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import math
import pickle
import uuid
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest

from dpaudit.outcomes import Outcomes, Raised, concatenate, failures, from_raw, narrowed
from tests.raising import code


class Colour(enum.Enum):
    RED = 1
    BLUE = "1"


class Person(NamedTuple):
    age: int


@dataclasses.dataclass
class Release:
    mean: float
    note: str | None = None


POINT = np.dtype([("x", "f8"), ("y", "i4", (2,))])
LONG = "x" * 300

# Each of these is an outcome of its own: no two may share a key, and each has its words.
DISTINCT: list[tuple[Any, str]] = [
    (0, "0"),
    (1, "1"),
    (0.1 + 0.2, "0.30000000000000004"),
    (5e-324, "5e-324"),
    (-math.inf, "-inf"),
    (math.nan, "NaN"),
    (2**53, "9007199254740992.0"),
    (-(2**53) - 1, "-9007199254740993"),
    (10**400, str(10**400)),
    (True, "True"),
    (False, "False"),
    (None, "None"),
    ("", "''"),
    ("1", "'1'"),
    ("NaN", "'NaN'"),
    ("raised ValueError", "'raised ValueError'"),
    (Raised("ValueError", "no"), "raised ValueError"),
    ((), "()"),
    ((1,), "(1)"),
    ((1, (2,)), "(1, (2))"),
    (((1, 2),), "((1, 2))"),
    ((1, None), "(1, None)"),
    ((1, "a", (b"b", 2.5)), "(1, 'a', (b'b', 2.5))"),
    ({}, "{}"),
    ({"a": 1}, '{"a": 1}'),
    ({"a": "1"}, "{\"a\": '1'}"),
    ({1: 1}, "{1: 1}"),
    ({"1": 1}, '{"1": 1}'),
    ({True: 1}, "{True: 1}"),
    ({(1, "a"): 1}, '{(1, "a"): 1}'),
    ({"a": {}, "b": {"c": (1,)}}, '{"a": {}, "b": {"c": (1)}}'),
    ({'q"]': 1}, '{"q\\"]": 1}'),
    (set(), "set()"),
    ({1}, "{1}"),
    ({"1"}, '{"1"}'),
    ({frozenset({2, 1})}, "{{1, 2}}"),
    (b"", "b''"),
    (b"a", "b'a'"),
    ("b'a'", "\"b'a'\""),
    ("a dict", "'a dict'"),
    ("absent", "'absent'"),
    (1 + 2j, "(1+2j)"),
    (Fraction(1, 3), "1/3"),
    (Decimal("0.1"), "0.1"),
    (Decimal("-1e-30"), "-0.000000000000000000000000000001"),
    (2**53 + 1, "9007199254740993"),
    (Colour.RED, "Colour.RED"),
    (Colour.BLUE, "Colour.BLUE"),
    (datetime.date(2020, 1, 31), "2020-01-31"),
    (datetime.datetime(2020, 1, 31, 12), "2020-01-31T12:00:00"),
    (datetime.datetime(2020, 1, 31, 12, tzinfo=datetime.UTC), "2020-01-31T12:00:00Z"),
    (datetime.time(12, 30), "12:30:00"),
    (datetime.timedelta(hours=12, minutes=30), "duration 12:30:00"),
    ({0.1: 1}, "{0.1: 1}"),
    ({2**53 + 1: 1}, "{9007199254740993: 1}"),
    (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (Person(3), "Person(age=3)"),
    (Release(0.5), "Release(mean=0.5, note=None)"),
    (np.zeros((2, 0)), "((), ())"),
    (np.array([("a", 1)], dtype="U1,i4")[0], '{"f0": \'a\', "f1": 1}'),
    (np.zeros(1, POINT)[0], '{"x": 0, "y": (0, 0)}'),
    (pd.DataFrame({"a": [1, 2], "b": [0.5, None]}), 'DataFrame("a"=(1, 2), "b"=(0.5, NaN))'),
    (pd.DataFrame({"b": [0.5, None], "a": [1, 2]}), 'DataFrame("a"=(1, 2), "b"=(0.5, NaN))'),
    (pd.Series([3, 4], index=["x", "x"]), '{"x": 3, ("x", 1): 4}'),
]

SAME: list[tuple[Any, Any]] = [
    (0.0, -0.0),
    (1, np.int8(1)),
    (3, np.array(3)),
    (True, np.bool_(True)),
    ("a", np.str_("a")),
    (2**53 + 1, np.uint64(2**53 + 1)),
    (Raised("ValueError", "one"), Raised("ValueError", "another")),
    ([1, 2], (1, 2)),
    ([1, 2], collections.deque([1, 2])),
    ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])),
    ([1, None], np.ma.masked_array([1, 2], mask=[False, True])),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, MappingProxyType({"a": 1})),
    ({1: 2}, {1.0: 2.0}),
    ({1, 2}, frozenset({2, 1})),
    (b"ab", bytearray(b"ab")),
    (Decimal("0.10"), Fraction(1, 10)),
    (10**400, Decimal(10**400)),
    (1j, np.complex64(1j)),
    (datetime.date(2020, 1, 31), np.datetime64("2020-01-31")),
    (datetime.datetime(2020, 1, 1, 12), pd.Timestamp("2020-01-01 12:00")),
    (pd.NaT, np.datetime64("NaT")),
    ({"x": 1}, pd.Series([1], index=["x"])),
    ({"x": 0, "y": [0, 0]}, np.zeros(1, POINT)[0]),
    (Release(1), Release(1.0)),
]


def keys(*entries: Any) -> list[int]:
    return list(map(int, from_raw(entries).keys()))


def plain_keys(*entries: Any) -> list[int]:
    return list(map(int, from_raw(entries).plain().keys()))


def words(outcomes: Outcomes) -> list[str]:
    return outcomes.words(range(outcomes.size))


def column(outcomes: Outcomes, name: str) -> list[str]:
    return [outcomes.column(name).word(row) for row in range(outcomes.size)]


def names(outcomes: Outcomes) -> list[str]:
    return [column.name for column in outcomes.columns]


def test_distinct_outcomes_have_distinct_keys_and_words() -> None:
    every = [value for value, _ in DISTINCT]
    table = from_raw(every)
    assert words(table) == [word for _, word in DISTINCT]
    assert len(set(table.keys().tolist())) == len(every)
    # and the same by themselves, in pieces, and in another process
    assert [keys(value)[0] for value in every] == table.keys().tolist()
    assert [words(from_raw([value]))[0] for value in every] == words(table)
    joined = concatenate([from_raw(every[i : i + 7]) for i in range(0, len(every), 7)])
    for copy in (joined, pickle.loads(pickle.dumps(table))):
        assert (copy.keys().tolist(), words(copy)) == (table.keys().tolist(), words(table))


@pytest.mark.parametrize(("a", "b"), SAME)
def test_equal_outcomes_have_equal_keys_but_for_how_they_are_represented(a: Any, b: Any) -> None:
    assert len({*plain_keys(a, b), *plain_keys(a), *plain_keys(b)}) == 1
    assert keys(a, b) == [*keys(a), *keys(b)]


def test_a_batch_as_an_array_is_the_same_as_its_rows() -> None:
    rng = np.random.default_rng(0)
    for batch in (rng.normal(size=(5, 2, 3)), np.zeros(5, POINT), np.array([b"a", b"bc"])):
        by_row = from_raw(list(batch)).plain()
        assert from_raw(batch).plain().keys().tolist() == by_row.keys().tolist()
        assert words(from_raw(batch)) == words(from_raw(list(batch)))


@pytest.mark.parametrize(
    ("dtype", "order"), [("float64", "C"), ("float32", "F"), ("uint64", "F"), ("bool", "C")]
)
def test_a_long_matrix_is_the_same_as_its_columns(dtype: str, order: Any) -> None:
    # More rows than are turned into columns at a time.
    numbers = np.random.default_rng(1).integers(0, 100, (2_500, 3)).astype(dtype)
    if dtype == "float64":
        numbers[7, 1] = np.nan
    if dtype.endswith("int64"):
        numbers[7, 1] = 2**60 + 1  # no float
    table = from_raw(np.asarray(numbers, order=order))
    for index in range(3):
        column = table.column(f"output[{index}]")
        expected = from_raw(numbers[:, index].copy()).column("output")
        assert np.array_equal(column.numbers, expected.numbers, equal_nan=True)
        assert column.keys().tolist() == expected.keys().tolist()
    assert table.plain().keys().tolist() == from_raw(list(numbers)).plain().keys().tolist()


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (
            [{"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 4}],
            ["length of output", 'output["a"]', 'output["b"]', 'kind of output["b"]'],
        ),
        ([[1], [2, 5], [2, 7]], ["length of output", "output[0]", "output[1]"]),
        ([{1}, {1, 2}] * 2, ["length of output", "kind of element 2 of output"]),
        ([Release(1.0, "x"), Release(2.0)], ["output.mean", "output.note"]),
        ([np.zeros(1, POINT)[0]], ['output["x"]', 'output["y"][0]', 'output["y"][1]']),
        ([b"ab", b"ac"], ["output", "output[0]", "output[1]"]),
        ([LONG, LONG + "y"], ["output", "length of output"]),
        ([1j, 2j], ["output", "real part of output", "imaginary part of output"]),
        ([Fraction(1, 3), Fraction(2, 3)], ["output", "exact value of output"]),
        ([datetime.date(2020, 1, 1)], ["output", "timestamp of output"]),
    ],
)
def test_every_place_that_tells_something_is_a_column(
    entries: list[Any], expected: list[str]
) -> None:
    assert sorted(names(from_raw(entries))) == sorted(expected)


def test_columns_are_found_by_name_where_they_vary_and_where_they_do_not() -> None:
    table = from_raw([{"a": [1.5]}, {"a": [2.5, 3], "b": "x"}, {"b": None}, Raised("E", "")])
    assert column(table, "output") == ["a dict"] * 3 + ["raised E"]
    assert column(table, 'output["a"][1]') == ["absent", "3", "absent", "absent"]
    assert column(table, 'kind of output["b"]') == ["absent", "a string", "None", "absent"]
    assert column(table, 'length of output["a"]') == ["1", "2", "absent", "absent"]
    assert column(table, 'output["c"]') == ["absent"] * 4
    assert column(from_raw(np.zeros((2, 3))), "length of output") == ["3"] * 2
    assert failures(table) == {"E": 1}


def test_what_contains_itself_or_is_too_deep_is_refused() -> None:
    cyclic: list[Any] = [1]
    cyclic += [cyclic, cyclic]
    looped: dict[str, Any] = {}
    looped["x"] = (looped, looped)
    deep: list[Any] = []
    for _ in range(3_000):
        deep = [deep]
    for value in (cyclic, looped, deep):
        assert code(from_raw, [value]) == "output-too-large"
    twice = [1]
    assert words(from_raw([[[[[twice, twice]]]]])) == ["(((((1), (1)))))"]


def test_too_many_columns_are_cut_with_a_message_but_stay_in_the_keys() -> None:
    wide = [{"often": i % 3, **{f"k{j}": 1 for j in range(i % 2, 5_000, 2)}} for i in range(6)]
    table = from_raw(wide)
    assert len(table.columns) <= 2 * 4_096
    assert 'output["often"]' in names(table)
    assert narrowed(table) is not None
    assert len(set(table.keys().tolist())) == 6
    assert column(table, 'output["k4999"]') == ["absent", "1"] * 3
    assert narrowed(from_raw([{"a": 1}])) is None
    assert len(from_raw(np.zeros((2, 5_000))).columns) == 4_096


def test_keys_that_are_texts_of_two_types_are_one() -> None:
    table = from_raw([{"a": 1.0}, {np.str_("a"): 2.0, "b": 3.0}, {"b": 4.0}, {}])
    assert table.column('output["a"]').numbers[:2].tolist() == [1.0, 2.0]
    assert table.column('output["b"]').numbers[1:3].tolist() == [3.0, 4.0]
