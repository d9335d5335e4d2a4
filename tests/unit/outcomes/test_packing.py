"""Tables of outcomes survive being written down: every entry, label, place and key."""

from __future__ import annotations

import datetime
import io
from collections import namedtuple
from decimal import Decimal
from enum import Enum
from typing import Any

import numpy as np
import pytest

from dpaudit.outcomes import Outcomes, Raised, concatenate, from_raw, timed
from dpaudit.outcomes.packing import pack, unpack

Point = namedtuple("Point", ["x", "y"])


class Colour(Enum):
    RED = 1


RAW: dict[str, Any] = {
    "floats": np.array([0.1, -0.0, np.inf, 5e-324, np.nan]),
    "integers": [1, 2**53 + 1, -(10**400)],
    "Booleans": [True, False],
    "texts": ["a", "é", "\ud800", "line\nbreak", '"', "x" * 5_000],
    "bytes": [b"\x00\xff", b"", b"abc"],
    "nothing": [None, None],
    "mixed": [1, "1", None, 2.5, Raised("ValueError", "no"), b"1", True],
    "failures": [Raised("A", "x"), Raised("B", ""), 0.5],
    "vectors": np.arange(12.0).reshape(4, 3),
    "matrices": np.arange(8).reshape(2, 2, 2),
    "lists of any length": [[1, 2], [], [3], (4, 5, 6)],
    "dicts": [{"a": 1, "b": [1]}, {"a": 2}, {}],
    "sets": [{1, 2}, set(), {"a", (1, b"x")}],
    "objects": [Point(1, 2.5), Point("a", None), {"x": Point(0, 0)}],
    "special": [Decimal("0.1"), datetime.date(2020, 2, 29), Colour.RED, 1 + 2j, np.float32(0.1)],
    "structured": np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]),
    "one constant": [[], []],
    "no outcome": [],
}


def written(table: Outcomes) -> Outcomes:
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **pack(table))
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return unpack(dict(arrays))


def assert_same(one: Outcomes, other: Outcomes) -> None:
    assert type(one) is type(other)
    assert one.size == other.size
    assert one.width == other.width
    assert np.array_equal(one.keys(), other.keys())
    assert one.words(range(one.size)) == other.words(range(other.size))
    assert len(one.columns) == len(other.columns)
    for first, second in zip(one.columns, other.columns, strict=True):
        assert first.name == second.name
        assert first.labels == second.labels
        assert first.numbers.tobytes() == second.numbers.tobytes()
        assert (first.codes is None) == (second.codes is None)
        if first.codes is not None and second.codes is not None:
            assert first.codes.dtype == second.codes.dtype
            assert np.array_equal(first.codes, second.codes)


@pytest.mark.parametrize("raw", RAW.values(), ids=RAW.keys())
def test_a_table_comes_back_as_it_was(raw: Any) -> None:
    assert_same(written(from_raw(raw)), from_raw(raw))


def test_so_does_one_of_all_of_them_and_a_part_of_it() -> None:
    table = concatenate([from_raw(raw) for raw in RAW.values()])
    assert_same(written(table), table)
    part = table.take(np.array([5, 0, 5, 11]))
    assert_same(written(part), part)


def test_what_comes_back_joins_others_as_before() -> None:
    first, second = from_raw(["a", 1.0]), from_raw([{"k": 2}, "b"])
    assert_same(concatenate([written(first), second]), concatenate([first, second]))


def test_durations_come_along() -> None:
    table = timed(from_raw([1, "a", 2]), np.array([5, 6, 7]))
    assert_same(written(table), table)


def test_other_things_are_refused() -> None:
    with pytest.raises(TypeError, match="no table"):
        pack([1, 2])  # type: ignore[arg-type]  # what the message is for
