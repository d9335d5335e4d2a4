"""Whatever a mechanism returned, as columns: nothing merged, nothing lost, clear refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.outcomes import Outcomes, Raised, concatenate, failures, from_raw
from tests.raising import code, refusal


def words(outcomes: Outcomes) -> list[str]:
    return [outcomes.word(row) for row in range(outcomes.size)]


@pytest.mark.parametrize(
    "dtype", ["f2", ">f8", "g", "i1", "u8", "?", "<U3", "S1", "c8", "M8[s]", "O", "V1"]
)
def test_arrays_of_every_type_are_read(dtype: str) -> None:
    array = np.array([0, 1, 1]).astype("u1").view("V1") if dtype == "V1" else np.array([0, 1, 1])
    first, second, third = from_raw(array.astype(dtype)).keys()
    assert first != second == third


def test_integers_beyond_floats_are_told_apart_and_keep_their_order() -> None:
    for extreme in (np.array([2**63 + 1, 2**63 + 2], np.uint64), np.array([2**62 + 1, 1])):
        table = from_raw(extreme)
        assert len(set(table.keys().tolist())) == 2
        assert words(table) == [str(int(number)) for number in extreme]
        assert table.column("output").numbers.tolist() == extreme.astype(float).tolist()
    assert from_raw([2**60]).plain().keys() == from_raw([2.0**60]).plain().keys()


def test_exceptions_are_outcomes_among_scalars_and_vectors() -> None:
    failed = Raised("ValueError", "no")
    scalars = from_raw([1.0, failed, 2.0])
    assert words(scalars) == ["1", "raised ValueError", "2"]
    vectors = from_raw([(1, 2), failed])
    assert vectors.word(1) == "raised ValueError"
    assert failures(scalars) == failures(vectors) == {"ValueError": 1}


def test_joining_vectors_with_blocks_of_nothing_but_exceptions() -> None:
    failed = from_raw([Raised("E", "x")] * 2)
    joined = concatenate([failed, from_raw([(1, 2), (3, 4)]), failed])
    assert joined.size == 6
    assert failures(joined) == {"E": 4}
    mixed = from_raw([Raised("E", "x"), (1, 2)])
    assert joined.keys()[0] == joined.keys()[5] == mixed.keys()[0]
    assert failures(concatenate([failed, failed])) == {"E": 4}


def test_what_cannot_be_a_table_is_named() -> None:
    nan = {math.nan: 1, float("nan"): 2}
    for entry in (object(), Raised, {object(): 1}, {(1, object())}, nan):
        assert code(from_raw, [entry]) == "output-unsupported"
    assert 'output["a"][0]' in str(refusal(from_raw, [{"a": [object()]}]))


@pytest.mark.parametrize("dtype", ["<U5", ">U5"])
def test_an_array_of_short_texts_is_the_same_table_as_a_list(dtype: str) -> None:
    # Spaces and zeros at the end, what takes two units of UTF-16, half of such a pair.
    texts = ["", " ", "\0a", "a ", "\U0001f600", "\ud800", "é", "e\u0301", "\u200b"] * 40
    of_array, of_list = from_raw(np.array(texts).astype(dtype)), from_raw(texts)
    assert np.array_equal(of_array.keys(), of_list.keys())
    assert words(of_array) == words(of_list)


def test_elements_of_sets_are_columns_in_an_order_that_no_hash_decides() -> None:
    """A set of small integers goes through them as its table has them: 16 before 1."""
    assert list({16, 1, 3}) == [16, 1, 3]
    columns = [column.name for column in from_raw([{16, 1, 3}, {3}, {5}] * 50).columns]
    assert columns[:-1] == [f"kind of element {number} of output" for number in (1, 16, 3, 5)]
