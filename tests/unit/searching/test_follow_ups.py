"""Variations of a pair are neighbours, and bisection finds where exceptions begin."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import islice
from typing import Any

import numpy as np
import pytest

from dpaudit.searching.follow_ups import around, where_exceptions_begin
from dpaudit.searching.proposals import Proposal
from tests.neighbouring import relation

VECTOR = "vector of 3 number in [0, 10]"


def like(d1: Any, d2: Any, adjacency: str, values: list[Any]) -> list[Proposal]:
    pair = Proposal(d1, d2, "given", "edge", True)
    source = around([pair], values, relation(VECTOR, adjacency), np.random.default_rng(0))
    return list(islice(source, 300))


@pytest.mark.parametrize("kind", ["linf", "l1", "coordinate"])
def test_answers_stay_neighbours(kind: str) -> None:
    adjacency = f"{kind}:1"
    found = like([5.0, 5.0, 5.0], [5.0, 6.0, 5.0], adjacency, [0.0, 2.5, 9.0])
    assert len(found) == 300
    for one in found:
        assert relation(VECTOR, adjacency).holds(one.d1, one.d2)


def test_one_answer_can_become_all_of_them() -> None:
    found = like([5.0, 5.0, 5.0], [5.0, 6.0, 4.0], "linf:1", [2.0])
    pairs = [(one.d1, one.d2) for one in found]
    assert ([5.0, 5.0, 5.0], [6.0, 6.0, 6.0]) in pairs
    assert ([5.0, 6.0, 5.0], [5.0, 5.0, 4.0]) in pairs  # the other way
    assert ([5.0, 5.0, 5.0], [5.0, 5.0, 4.0]) in pairs  # still
    assert ([5.0, 2.0, 5.0], [5.0, 3.0, 4.0]) in pairs  # elsewhere, and as far apart


def test_what_is_no_number_moves_nothing() -> None:
    found = like([5.0, 5.0, 5.0], [6.0, 5.0, 5.0], "linf:1", [None, float("nan"), 1.0])
    assert all(isinstance(x, float) and x == x for one in found for x in (*one.d1, *one.d2))


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
        ("list of 0 to 99 number in [0, 1]", "add-remove", long_and_equal, [1.0] * 99, [1.0]),
        ("list of 1 to 30 number in [0, 1]", "replace", large_sum, [1.0] * 30, [0.0]),
        ("list of 18 to 30 number in [0, 1]", "add-remove", large_sum, [1.0] * 18, [0.0] * 18),
        ("list of 18 to 18 number in [0, 1]", "hamming:1", large_sum, [1.0] * 18, [0.0] * 18),
        ("table {id: user, x: number in [0, 1]}", "user:id", many_users, ROWS, ROWS[:2]),
        ("number in [0, 1000]", "l1:1", large_number, 1000.0, 0.0),
        ("integer in [0, 1000]", "l1:1", large_number, 1000, 0),
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
