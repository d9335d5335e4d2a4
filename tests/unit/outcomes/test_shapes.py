"""Outcomes of any shape: every place is a column, nothing is merged, chunks agree."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import enum
import pickle
import subprocess
import sys
import uuid
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType, SimpleNamespace
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
    ((), "()"),
    ((1,), "(1)"),
    ((1, 2), "(1, 2)"),
    ((1, (2,)), "(1, (2))"),
    (((1, 2),), "((1, 2))"),
    ((1, None), "(1, None)"),
    ((1, "a", (b"b", 2.5)), "(1, 'a', (b'b', 2.5))"),
    ({}, "{}"),
    ({"a": 1}, '{"a": 1}'),
    ({"a": "1"}, "{\"a\": '1'}"),
    ({"a": None}, '{"a": None}'),
    ({"b": 1}, '{"b": 1}'),
    ({1: 1}, "{1: 1}"),
    ({"1": 1}, '{"1": 1}'),
    ({True: 1}, "{True: 1}"),
    ({(1, "a"): 1}, '{(1, "a"): 1}'),
    ({"a": {}, "b": {"c": (1,)}}, '{"a": {}, "b": {"c": (1)}}'),
    ({"a": ()}, '{"a": ()}'),
    ({'q"]': 1}, '{"q\\"]": 1}'),
    (set(), "set()"),
    ({1}, "{1}"),
    ({"1"}, '{"1"}'),
    ({frozenset({2, 1})}, "{{1, 2}}"),
    (b"", "b''"),
    (b"a", "b'a'"),
    ("a", "'a'"),
    ("b'a'", "\"b'a'\""),
    ("a dict", "'a dict'"),
    ("absent", "'absent'"),
    (Raised("KeyError", "no"), "raised KeyError"),
    (1 + 2j, "(1+2j)"),
    (Fraction(1, 3), "1/3"),
    (Decimal("0.1"), "0.1"),
    (0.1, "0.1"),
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
    ({Decimal("0.1"): 1}, "{exactly 0.1: 1}"),
    ({2**53 + 1: 1}, "{9007199254740993: 1}"),
    (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
    (Person(3), "Person(age=3)"),
    (Release(0.5), "Release(mean=0.5, note=None)"),
    (Release(0.5, "x"), "Release(mean=0.5, note='x')"),
    (np.zeros((2, 0)), "((), ())"),
    (np.eye(2), "((1, 0), (0, 1))"),
    (np.array([("a", 1)], dtype="U1,i4")[0], '{"f0": \'a\', "f1": 1}'),
    (np.zeros(1, POINT)[0], '{"x": 0, "y": (0, 0)}'),
    (pd.DataFrame({"a": [1, 2], "b": [0.5, None]}), 'DataFrame("a"=(1, 2), "b"=(0.5, NaN))'),
    (pd.DataFrame({"b": [0.5, None], "a": [1, 2]}), 'DataFrame("a"=(1, 2), "b"=(0.5, NaN))'),
    (pd.Series([3, 4], index=["x", "y"]), '{"x": 3, "y": 4}'),
    (pd.Series([3, 4], index=["x", "x"]), '{"x": 3, ("x", 1): 4}'),
]

SAME: list[tuple[Any, Any]] = [
    ([1, 2], (1, 2)),
    ([1, 2], np.array([1.0, 2.0])),
    ([1, 2], collections.deque([1, 2])),
    ([0, 1], range(2)),
    ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]])),
    ([1, 2], np.array([1, 2], dtype=object)),
    ([1, None], np.ma.masked_array([1, 2], mask=[False, True])),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, collections.Counter("a")),
    ({"a": 1}, MappingProxyType({"a": 1})),
    ({1: 2}, {1.0: 2.0}),
    ({1, 2}, frozenset({2, 1})),
    ({1, 2}, {2: 0, 1: 0}.keys()),
    (b"ab", bytearray(b"ab")),
    (Decimal("0.10"), Fraction(1, 10)),
    (Decimal("0.5"), 0.5),
    (10**400, Decimal(10**400)),
    (0j, -0j),
    (1j, np.complex64(1j)),
    (datetime.date(2020, 1, 31), np.datetime64("2020-01-31")),
    (datetime.datetime(2020, 1, 1, 12), pd.Timestamp("2020-01-01 12:00")),
    (pd.NaT, np.datetime64("NaT")),
    ([1, 2], pd.Series([1, 2])),
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
    found = outcomes.column(name)
    return [found.word(row) for row in range(outcomes.size)]


def names(outcomes: Outcomes) -> list[str]:
    return [one.name for one in outcomes.columns]


def test_distinct_outcomes_have_distinct_keys_and_words() -> None:
    every = [value for value, _ in DISTINCT]
    assert words(from_raw(every)) == [word for _, word in DISTINCT]
    assert len(set(keys(*every))) == len(every)


@pytest.mark.parametrize("place", range(len(DISTINCT)))
def test_an_outcome_is_the_same_by_itself_and_among_others(place: int) -> None:
    value, word = DISTINCT[place]
    assert words(from_raw([value])) == [word]
    assert keys(value) == [keys(*(one for one, _ in DISTINCT))[place]]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_outcomes_have_equal_keys_but_for_how_they_are_represented(
    one: Any, other: Any
) -> None:
    assert len({*plain_keys(one, other), *plain_keys(one), *plain_keys(other)}) == 1
    assert keys(one, other) == [*keys(one), *keys(other)]


def test_a_batch_as_an_array_is_the_same_as_its_rows() -> None:
    rng = np.random.default_rng(0)
    for batch in (rng.normal(size=(5, 2, 3)), np.zeros(5, POINT), np.array([b"a", b"bc"])):
        by_row = from_raw(list(batch)).plain()
        assert from_raw(batch).plain().keys().tolist() == by_row.keys().tolist()
        assert words(from_raw(batch)) == words(from_raw(list(batch)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "int64", "uint64", "bool"])
def test_a_long_matrix_is_the_same_as_its_columns(dtype: str, order: Any) -> None:
    # More rows than are turned into columns at a time.
    numbers = np.random.default_rng(1).integers(0, 100, (2_500, 3)).astype(dtype)
    if dtype == "float64":
        numbers[7, 1] = np.nan
    if dtype.endswith("int64"):
        numbers[7, 1] = 2**60 + 1  # no float
    table = from_raw(np.asarray(numbers, order=order))
    for place in range(3):
        column, alone = table.column(f"output[{place}]"), from_raw(numbers[:, place].copy())
        own = alone.column("output")
        assert np.array_equal(column.numbers, own.numbers, equal_nan=True)
        assert column.keys().tolist() == own.keys().tolist()
        assert column.labels == own.labels
    assert table.plain().keys().tolist() == from_raw(list(numbers)).plain().keys().tolist()


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([{"a": 1.5}, {"a": 2}], ['output["a"]']),
        (
            [{"a": 1}, {"a": 2, "b": 3}, {"a": 2, "b": 4}],
            ["length of output", 'output["a"]', 'output["b"]', 'kind of output["b"]'],
        ),
        ([{"a": 1}, {"a": 1, "b": 3}] * 2, ["length of output", 'kind of output["b"]']),
        ([{"a": {"b": (1, 2)}}], ['output["a"]["b"][0]', 'output["a"]["b"][1]']),
        ([[1], [2, 5], [2, 7]], ["length of output", "output[0]", "output[1]"]),
        ([{1}, {1, 2}] * 2, ["length of output", "kind of element 2 of output"]),
        ([Release(1.0, "x"), Release(2.0)], ["output.mean", "output.note"]),
        ([Person(1), {"a": 1}] * 2, ["kind of output", 'kind of output["a"]']),
        ([np.zeros((1, 2))], ["output[0][0]", "output[0][1]"]),
        ([np.zeros(1, POINT)[0]], ['output["x"]', 'output["y"][0]', 'output["y"][1]']),
        ([b"ab", b"ac"], ["output", "output[0]", "output[1]"]),
        ([LONG, LONG + "y"], ["output", "length of output"]),
        ([1.5, None, "x"], ["output"]),
        ([pd.DataFrame({"a": [1, 2]})], ['output["a"][0]', 'output["a"][1]']),
        ([pd.Series([1], index=["x"])], ['output["x"]']),
        ([1j, 2j], ["output", "real part of output", "imaginary part of output"]),
        ([Fraction(1, 3), Fraction(2, 3)], ["output", "exact value of output"]),
        ([datetime.date(2020, 1, 1)], ["output", "timestamp of output"]),
        ([{}, {}], ["output"]),
        ([[], []], ["output"]),
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
    vectors = from_raw(np.zeros((2, 3)))
    assert column(vectors, "output") == ["a list"] * 2
    assert column(vectors, "length of output") == ["3"] * 2
    assert column(vectors, "kind of output[1]") == ["a number"] * 2
    assert failures(table) == {"E": 1}


def test_long_texts_are_short_labels_and_still_apart() -> None:
    table = from_raw([LONG, LONG[:-1] + "y", LONG.encode(), LONG.encode()[:-1]])
    assert len(set(table.keys().tolist())) == 4
    assert all(len(word) < 100 for word in words(table))
    assert "(300 characters, digest " in table.word(0)


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
    assert "at 5,00" in (narrowed(table) or "")
    assert "4,096" in (narrowed(table) or "")
    assert len(set(table.keys().tolist())) == 6
    assert column(table, 'output["k4999"]') == ["absent", "1"] * 3
    assert narrowed(from_raw([{"a": 1}])) is None
    assert len(from_raw(np.zeros((2, 5_000))).columns) == 4_096


def test_many_different_outcomes_have_different_keys() -> None:
    table = from_raw(np.random.default_rng(0).integers(0, 2**40, 200_000))
    assert len(np.unique(table.keys())) > 199_900
    text = from_raw([f"{i:x}" for i in range(40_000)])
    assert len(np.unique(text.take(slice(20_000)).keys())) == 20_000


def test_pandas_is_not_imported_for_it() -> None:
    code = (
        "import sys; from dpaudit.outcomes import from_raw; "
        "from_raw([{'a': [1]}, {2}, 1j]); "
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_joining_keeps_every_entry() -> None:
    every = [value for value, _ in DISTINCT]
    parts = [from_raw(every[i : i + 7]) for i in range(0, len(every), 7)]
    joined, whole = concatenate(parts), from_raw(every)
    assert joined.keys().tolist() == whole.keys().tolist()
    assert words(joined) == words(whole)


def test_tables_travel_between_processes() -> None:
    for table in (from_raw([value for value, _ in DISTINCT]), from_raw(np.eye(2))):
        copy = pickle.loads(pickle.dumps(table))
        assert copy.keys().tolist() == table.keys().tolist()
        assert words(copy) == words(table)
        assert names(copy) == names(table)


@pytest.mark.parametrize("many", [1, 32, 33])
def test_an_array_of_texts_is_read_as_a_list_of_them(many: int) -> None:
    words = ["", "a", "aé", "☃☃", *(f"word {one}" for one in range(many))][:many]
    place = np.random.default_rng(1).integers(many, size=40_000)
    array = np.array(words)[place]
    read, plain = from_raw(array).columns[0], from_raw(array.tolist()).columns[0]
    assert read.labels == plain.labels
    assert read.codes is not None
    assert plain.codes is not None
    assert np.array_equal(read.codes, plain.codes)
    rows = np.empty(len(array), dtype=[("number", "f8"), ("word", "U9")])
    rows["word"] = array
    assert np.array_equal(from_raw(rows).column('output["word"]').keys(), plain.keys())


def test_long_texts_of_an_array_are_known_by_their_length() -> None:
    table = from_raw(np.array(["a" * 65, "b", "c" * 70]))
    assert {one.name for one in table.columns} >= {"output", "length of output"}


def test_keys_that_are_texts_of_two_types_are_one() -> None:
    table = from_raw([{"a": 1.0}, {np.str_("a"): 2.0, "b": 3.0}, {"b": 4.0}, {}])
    assert table.column('output["a"]').numbers[:2].tolist() == [1.0, 2.0]
    assert table.column('output["b"]').numbers[1:3].tolist() == [3.0, 4.0]


class Tensor:
    """Stand for a tensor of torch that NumPy cannot read."""

    dtype = "torch.float32"

    def __init__(self, layout: str) -> None:
        self.layout = layout

    def detach(self) -> Tensor:
        return self

    cpu = resolve_conj = resolve_neg = detach

    def numpy(self) -> None:
        raise TypeError("no NumPy")


@pytest.mark.parametrize("output", [[Tensor("torch.sparse_coo")], Tensor("torch.strided")])
def test_a_tensor_that_numpy_cannot_read_is_an_error_about_the_output(
    output: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = SimpleNamespace(Tensor=Tensor, set_rng_state=None, Generator=Tensor)
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert code(from_raw, [output]) == "output-unsupported"
