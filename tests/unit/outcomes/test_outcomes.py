"""Whatever a mechanism returned, as columns: nothing merged, nothing lost, clear refusals."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.outcomes import Outcomes, Raised, concatenate, failures, from_raw, number_word
from tests.raising import code, refusal

BIG = 2**53


class Colour(enum.StrEnum):
    RED = "red"


# Each of these is a value of its own: no two may share a key, and each has one word.
DISTINCT: list[tuple[Any, str]] = [
    (0, "0"),
    (1, "1"),
    (-1, "-1"),
    (0.5, "0.5"),
    (0.1 + 0.2, "0.30000000000000004"),
    (5e-324, "5e-324"),
    (1e300, "1e+300"),
    (math.inf, "inf"),
    (-math.inf, "-inf"),
    (math.nan, "NaN"),
    (BIG, "9007199254740992.0"),
    (BIG + 1, "9007199254740993"),
    (-BIG - 1, "-9007199254740993"),
    (10**400, str(10**400)),
    (True, "True"),
    (False, "False"),
    (None, "None"),
    ("", "''"),
    ("1", "'1'"),
    ("True", "'True'"),
    ("NaN", "'NaN'"),
    ("None", "'None'"),
    ("raised ValueError", "'raised ValueError'"),
    (Raised("ValueError", "no"), "raised ValueError"),
    (Raised("KeyError", "no"), "raised KeyError"),
]

SAME: list[tuple[Any, Any]] = [
    (0.0, -0.0),
    (1, 1.0),
    (1, np.int8(1)),
    (0.5, np.float32(0.5)),
    (0.5, np.float16(0.5)),
    (0.1, np.float64(0.1)),
    (3, np.array(3)),
    (math.nan, np.float64("nan")),
    (math.nan, -math.nan),
    (True, np.bool_(True)),
    ("a", np.str_("a")),
    ("red", Colour.RED),
    (BIG + 1, np.uint64(BIG + 1)),
    (Raised("ValueError", "one"), Raised("ValueError", "another")),
]


def keys(*entries: Any) -> list[int]:
    table = from_raw(entries)
    return list(map(int, table.keys()))


def words(outcomes: Outcomes) -> list[str]:
    return [outcomes.word(row) for row in range(outcomes.size)]


def test_distinct_values_have_distinct_keys() -> None:
    assert len(set(keys(*(value for value, _ in DISTINCT)))) == len(DISTINCT)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_equal_values_have_equal_keys_but_for_how_they_are_represented(
    one: Any, other: Any
) -> None:
    first, second = from_raw([one, other]).plain().keys()
    assert first == second
    # and also when each comes in a table by itself
    assert from_raw([one]).plain().keys() == from_raw([other]).plain().keys() == first
    assert keys(one, other) == [*keys(one), *keys(other)]


@pytest.mark.parametrize(("value", "word"), DISTINCT)
def test_every_value_has_its_word_and_a_key_of_its_own_table(value: Any, word: str) -> None:
    alone, mixed = from_raw([value]), from_raw([value, "something else", 2.5])
    assert words(alone) == [word]
    assert alone.keys()[0] == mixed.keys()[0]
    assert mixed.word(0) == word


@pytest.mark.parametrize(
    "values",
    [
        [0.5, -1.25, 3.0],
        [1, 2, 3],
        [True, False, True],
        ["a", "b", "a"],
        [0.5, math.nan, math.inf],
        [BIG + 1, 5, -BIG - 3],
    ],
)
def test_a_batch_as_an_array_is_the_same_table(values: list[Any]) -> None:
    single, batch = from_raw(values), from_raw(np.array(values))
    assert single.plain().keys().tolist() == batch.plain().keys().tolist()
    assert words(single) == words(batch)


@pytest.mark.parametrize(
    "dtype",
    [
        "f2",
        "f4",
        "f8",
        ">f8",
        "g",
        "i1",
        "i8",
        "u1",
        "u8",
        "?",
        "<U3",
        "S1",
        "c8",
        "M8[s]",
        "O",
        "V1",
    ],
)
def test_arrays_of_every_type_are_read(dtype: str) -> None:
    array = np.array([0, 1, 1]).astype("u1").view("V1") if dtype == "V1" else np.array([0, 1, 1])
    first, second, third = from_raw(array.astype(dtype)).keys()
    assert first != second == third


def test_integers_beyond_floats_are_told_apart_and_keep_their_order() -> None:
    for extreme in (np.array([2**63 + 1, 2**63 + 2], np.uint64), np.array([2**62 + 1, 1])):
        table = from_raw(extreme)
        assert len(set(table.keys().tolist())) == 2
        assert words(table) == [str(int(one)) for one in extreme]
        assert table.column("output").numbers.tolist() == extreme.astype(float).tolist()
    assert from_raw([2**60]).plain().keys() == from_raw([2.0**60]).plain().keys()


def test_numbers_are_kept_as_they_are() -> None:
    values = [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf]
    (column,) = from_raw(values).columns
    assert column.codes is None
    assert column.numbers.tolist() == values


def test_a_list_of_numpy_floats_needs_no_labels() -> None:
    (column,) = from_raw([np.float64(0.5), 1.5, np.float64(2)]).columns
    assert column.codes is None
    assert column.numbers.tolist() == [0.5, 1.5, 2.0]


def test_a_table_does_not_change_with_the_array_it_came_from() -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0]])
    table = from_raw(rows)
    before = table.keys().tolist()
    assert table.columns[0].numbers.flags.c_contiguous
    assert table.keys().tolist() == before


@pytest.mark.parametrize("make", [tuple, list, np.array])
def test_vectors_become_columns(make: Any) -> None:
    table = from_raw([make([1.5, 2.0]), make([3.0, 4.0])])
    assert [column.name for column in table.columns] == ["output[0]", "output[1]"]
    assert words(table) == ["(1.5, 2)", "(3, 4)"]
    batch = from_raw(np.array([[1.5, 2.0], [3.0, 4.0]]))
    assert table.plain().keys().tolist() == batch.plain().keys().tolist()


def test_vectors_of_mixed_scalars() -> None:
    table = from_raw([(1, "a", None), (np.array(2.5), True, math.nan)])
    assert words(table) == ["(1, 'a', None)", "(2.5, True, NaN)"]


def test_the_order_and_place_of_entries_matter() -> None:
    assert len(set(keys((0, 1), (1, 0), (0, 0), (1, 1)))) == 4
    grid = [(i, j, k) for i in range(12) for j in range(12) for k in range(12)]
    assert len(set(keys(*grid))) == len(grid)


def test_a_vector_of_one_is_not_a_scalar() -> None:
    assert words(from_raw([(5,), 5])) == ["(5)", "5"]
    assert len(set(keys((5,), 5, ((5,),), {5}, {5: 5}))) == 5


def test_exceptions_are_outcomes_among_scalars_and_vectors() -> None:
    failed = Raised("ValueError", "no")
    scalars = from_raw([1.0, failed, 2.0])
    assert words(scalars) == ["1", "raised ValueError", "2"]
    vectors = from_raw([(1, 2), failed])
    assert vectors.word(1) == "raised ValueError"
    assert failures(scalars) == failures(vectors) == {"ValueError": 1}


def test_failures_are_counted_by_kind() -> None:
    table = from_raw([Raised("A", ""), Raised("B", ""), Raised("A", "x"), "raised C", 1])
    assert failures(table) == {"A": 2, "B": 1}
    assert failures(from_raw([1.0, 2.0])) == {}
    assert failures(table.take(np.array([4]))) == {}


def test_take_keeps_rows_and_words() -> None:
    table = from_raw([1, "a", None, 2.5])
    part = table.take(np.array([3, 1]))
    assert (part.size, words(part)) == (2, ["2.5", "'a'"])
    assert words(table.take(slice(1, 3))) == ["'a'", "None"]
    assert part.keys().tolist() == table.keys()[[3, 1]].tolist()


def test_joining_tables_with_different_labels_keeps_every_entry() -> None:
    raw: list[list[Any]] = [["a", 1.0], ["b", "a"], [0.5, -2], [None, "b", math.nan, True]]
    joined = concatenate([from_raw(part) for part in raw])
    whole = from_raw([entry for part in raw for entry in part])
    assert words(joined) == words(whole)
    assert joined.keys().tolist() == whole.keys().tolist()
    assert joined.size == whole.size == 10


def test_joining_vectors_with_blocks_of_nothing_but_exceptions() -> None:
    failed = from_raw([Raised("E", "x")] * 2)
    joined = concatenate([failed, from_raw([(1, 2), (3, 4)]), failed])
    assert joined.size == 6
    assert failures(joined) == {"E": 4}
    mixed = from_raw([Raised("E", "x"), (1, 2)])
    assert joined.keys()[0] == joined.keys()[5] == mixed.keys()[0]
    assert failures(concatenate([failed, failed])) == {"E": 4}


def test_joining_nothing_is_an_empty_table() -> None:
    assert concatenate([]).size == 0
    assert concatenate([from_raw([]), from_raw([])]).size == 0
    assert len(concatenate([from_raw(np.empty((0, 3)))]).columns) == 3
    assert words(concatenate([from_raw([]), from_raw([1])])) == ["1"]


@pytest.mark.parametrize("empty", [[], (), np.empty(0), np.empty(0, int), np.empty(0, bool)])
def test_no_outcome_is_a_table_too(empty: Sequence[Any] | NDArray[Any]) -> None:
    table = from_raw(empty)
    assert table.size == 0
    assert table.keys().shape == (0,)
    assert failures(table) == {}


def test_vectors_of_different_lengths_can_be_joined() -> None:
    joined = concatenate([from_raw([(1, 2)]), from_raw([(1, 2, 3)])])
    assert words(joined) == ["(1, 2)", "(1, 2, 3)"]
    assert joined.column("length of output").numbers.tolist() == [2, 3]


def test_what_cannot_be_a_table_is_named() -> None:
    unsupported: list[tuple[Any, str]] = [
        (object(), "type object; "),
        ({"a": [object()]}, 'type object (as output["a"][0])'),
        (lambda: 1, "type function"),
        ((i for i in range(3)), "type generator"),
        (Raised, "type type"),
        ({object(): 1}, "type object in output;"),
        ({(1, object())}, "type tuple in output"),
    ]
    for entry, named in unsupported:
        error = refusal(from_raw, [entry])
        assert error.code == "output-unsupported"
        assert named in str(error)
    nan = {math.nan: 1, float("nan"): 2}
    assert code(from_raw, [nan]) == "output-unsupported"


@pytest.mark.parametrize(
    ("number", "word"),
    [(3.0, "3"), (-0.0, "0"), (1e15, "1000000000000000.0"), (0.1, "0.1"), (math.inf, "inf")],
)
def test_numbers_are_written_as_short_as_they_can_be(number: float, word: str) -> None:
    assert number_word(number) == word
    assert math.isinf(number) or float(word) == number


def short_texts(different: int, size: int = 300) -> list[str]:
    """Texts without digits that differ in what is easily lost: spaces and zeros at the end, what
    takes two units of UTF-16, half of such a pair."""
    letters = str.maketrans("0123456789", "abcdefghij")
    endings = ["", " ", "\0a", "\U0001f600", "\ud800", "é", "e\u0301", "\u200b"]
    numbers = [f"{n % different // 8:d}".translate(letters) for n in range(size)]
    return [number[: n % 8] + endings[n % 8] for n, number in enumerate(numbers)]


@pytest.mark.parametrize("different", [8, 33, 300])
@pytest.mark.parametrize("make", [np.array, lambda texts: np.array(texts).astype(">U5")])
def test_an_array_of_short_texts_is_the_same_table_as_a_list(make: Any, different: int) -> None:
    texts = short_texts(different)
    of_array, of_list = from_raw(make(texts)), from_raw(texts)
    assert np.array_equal(of_array.keys(), of_list.keys())
    (one,), (other,) = of_array.columns, of_list.columns
    assert one.labels == other.labels
    assert one.codes is not None
    assert other.codes is not None
    assert np.array_equal(one.codes, other.codes)


def test_spaces_at_the_end_stay_in_arrays_that_hide_them() -> None:
    texts = ["a ", "a", "", " ", "a "] * 9
    hidden = np.array(texts).view(np.char.chararray)
    assert np.array_equal(from_raw(hidden).keys(), from_raw(texts).keys())


@pytest.mark.parametrize("entries", list(itertools.permutations(["z", None, 1.0, True])))
def test_labels_stand_in_the_order_in_which_their_types_come_up(entries: Any) -> None:
    (column, *_) = from_raw(list(entries)).columns
    words = {"z": "'z'", None: "None", True: "True"}
    met = [words[one] for one in entries if not isinstance(one, float)]
    assert [one for one in column.labels if one != "False"] == met


def test_elements_of_sets_are_columns_in_an_order_that_no_hash_decides() -> None:
    """A set of small integers goes through them as its table has them: 16 before 1."""
    assert list({16, 1, 3}) == [16, 1, 3]
    columns = [one.name for one in from_raw([{16, 1, 3}, {3}, {5}] * 50).columns]
    assert columns[:-1] == [f"kind of element {one} of output" for one in (1, 16, 3, 5)]
