"""Bisection finds where exceptions begin."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from dpaudit.searching.gathering import where_exceptions_begin
from tests.neighbouring import relation


def long(rows: list[Any]) -> bool:
    return len(rows) > 257


def long_and_equal(rows: list[Any]) -> bool:
    return len(rows) > 57 and len(set(rows)) == 1


def large_sum(rows: list[Any]) -> bool:
    return math.fsum(rows) > 17.3


def many_users(rows: list[Any]) -> bool:
    return len({row["id"] for row in rows}) > 3


def large_number(value: float) -> bool:
    return value > 700.7


def large_entry(values: list[float]) -> bool:
    return values[1] > 2.25


ROWS = [{"id": number // 2, "x": 0.0} for number in range(10)]


@pytest.mark.parametrize(
    ("space", "adjacency", "raises", "raising", "quiet"),
    [
        ("list of 0 to 400 number in [0, 1]", "add-remove", long, [0.5] * 400, []),
        ("list of 250 to 260 number in [0, 1]", "add-remove", long, [0.5] * 260, [0.1] * 250),
        ("list of 1 to 30 number in [0, 1]", "replace", large_sum, [1.0] * 30, [0.0]),
        ("list of 18 to 18 number in [0, 1]", "hamming:1", large_sum, [1.0] * 18, [0.0] * 18),
        ("table {id: user, x: number in [0, 1]}", "user:id", many_users, ROWS, ROWS[:2]),
        ("number in [0, 1000]", "l1:1", large_number, 1000.0, 0.0),
        ("vector of 3 number in [0, 10]", "l1:0.1", large_entry, [9.0, 9.0, 9.0], [0.0, 0.0, 0.0]),
        ("vector of 3 number in [0, 10]", "coordinate:1", large_entry, [9.0] * 3, [0.0] * 3),
    ],
)
def test_a_step_from_outputs_to_an_exception_is_found(
    space: str, adjacency: str, raises: Callable[[Any], bool], raising: Any, quiet: Any
) -> None:
    related = relation(space, adjacency)
    asked: list[Any] = []

    def noted(dataset: Any) -> bool:
        asked.append(dataset)
        return raises(dataset)

    (found,) = where_exceptions_begin([raising], [quiet], related, noted)
    assert (raises(found.d1), raises(found.d2)) == (False, True)
    assert related.holds(found.d1, found.d2)
    assert found.inside
    assert all(map(related.space.contains, asked))
    assert len(asked) <= 4 + 2 * math.ceil(math.log2(1000))


def test_nothing_is_found_where_every_dataset_raises_or_none_can_be_asked() -> None:
    related = relation("list of number in [0, 1]", "add-remove")

    def always(dataset: Any) -> bool | None:
        return True

    def unknown(dataset: Any) -> bool | None:
        return None

    for raises in (always, unknown):
        source = where_exceptions_begin([[0.5] * 9], [[0.1]], related, raises)
        assert list(source) == []
