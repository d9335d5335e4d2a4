"""Witnesses become small: planted predicates whose smallest witnesses are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from dpaudit.searching.climbing import key
from dpaudit.searching.shrinking import shrunk
from dpaudit.searching.spaces import parse_space
from tests.neighbouring import relation

Violates = Callable[[Any, Any], bool]
UNIT = "list of number in [0, 1]"


def smallest(
    space: str, adjacency: str, d1: Any, d2: Any, violates: Violates, **more: Any
) -> tuple[Any, Any]:
    """Return what a pair is shrunk to, having held every step against the contract."""
    related = relation(space, adjacency)
    within = related.space
    start = (key(d1), key(d2))
    assert violates(d1, d2)
    assert related.holds(d1, d2)
    tries = []
    was_inside = within.contains(d1) and within.contains(d2)

    def asked(one: Any, other: Any) -> bool:
        tries.append((one, other))
        assert related.holds(one, other)
        if was_inside:
            assert within.contains(one)
            assert within.contains(other)
        return violates(one, other)

    found = shrunk(d1, d2, related, asked, **more)
    assert len(tries) <= more.get("most_tries", 2_000)
    assert violates(*found)
    assert (key(d1), key(d2)) == start  # not changed in place
    assert len(set(map(key, tries))) == len(tries)
    if isinstance(d1, list):
        assert all(len(one) <= len(other) for one, other in zip(found, (d1, d2), strict=True))
    if "most_tries" not in more:  # nothing is left to be done
        assert shrunk(*found, related, violates) == found
    return found


def values(number: int) -> list[float]:
    return [round(0.137 + 0.029 * i, 3) for i in range(number)]


def test_all_that_both_have_may_go() -> None:
    d1 = values(20)
    found = smallest(UNIT, "add-remove", d1, d1[:7] + d1[8:], lambda one, two: one != two)
    assert found == ([0.0], [])


def test_two_records_are_needed() -> None:
    def violates(one: list[float], two: list[float]) -> bool:
        return sum(value >= 0.5 for value in one) >= 2 > sum(value >= 0.5 for value in two)

    d1 = [*values(12), 0.73, 0.81]
    d1, d2 = smallest(UNIT, "add-remove", d1, d1[:-1], violates)
    assert len(d1) == 2
    assert len(d2) == 1
    assert all(0.5 <= value <= 0.55 or value == 1.0 for value in d1)


@pytest.mark.parametrize("odd", [3, 5])
@pytest.mark.parametrize("start", [13, 25, 29])
def test_an_odd_length(start: int, odd: int) -> None:
    """No single record may go from such a witness, only two at once."""
    d1 = values(start)
    found = smallest(
        UNIT, "add-remove", d1, d1[1:], lambda one, two: len(one) % 2 == 1 and len(one) >= odd
    )
    assert found == ([0.0] * odd, [0.0] * (odd - 1))


def test_a_witness_inside_is_preferred() -> None:
    """What NaN shows, 1 shows as well."""
    d1 = [0.25, math.nan]
    found = smallest(UNIT, "add-remove", d1, [0.25], lambda one, _: one[-1:] != [0.0] and one != [])
    assert parse_space(UNIT).contains(found[0])
    assert found == ([1.0], [])


def test_a_vector_moves_as_a_whole() -> None:
    """Both inputs have to move, as far as each other, for one to be 0."""
    found = smallest(
        "vector of 3 number", "linf:1", [7.25, 3.5, 12.0], [8.25, 4.5, 13.0],
        lambda one, two: all(b - a == 1 for a, b in zip(one, two, strict=True)),
    )  # fmt: skip
    assert found == ([0.0] * 3, [1.0] * 3) or found == ([-1.0] * 3, [0.0] * 3)


def test_it_asks_no_more_often_than_it_may() -> None:
    d1 = values(30)
    for most in (0, 1, 7):
        found = smallest(UNIT, "add-remove", d1, d1[1:], lambda one, _: one != [], most_tries=most)
        assert most > 0 or found == (d1, d1[1:])


def test_a_sum_that_is_too_large_needs_few_of_the_largest() -> None:
    """Fewer records do only if those that are left become larger."""

    def overflows(d1: list[int], d2: list[int]) -> bool:
        return max(sum(d1), sum(d2)) > 32_767

    space, start = "list of integer in [0, 20000]", [9_000] * 5
    d1, d2 = smallest(space, "add-remove", start[1:], start, overflows)
    assert max(len(d1), len(d2)) == 2
    assert sum(d2) > 32_767
