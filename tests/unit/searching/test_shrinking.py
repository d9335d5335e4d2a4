"""Witnesses become small: planted predicates whose smallest witnesses are known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from dpaudit.searching.climbing import key, matched, moved_alike
from dpaudit.searching.shrinking import shrunk
from dpaudit.searching.spaces import parse_space
from tests.neighbouring import relation

Violates = Callable[[Any, Any], bool]
UNIT = "list of number in [0, 1]"
TABLE = "table {age: integer in [0, 120], city: category [a, b, c]}"
USERS = "table {who: user, city: category [a, b, c]}"


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


def test_the_longer_one_may_be_the_second() -> None:
    d2 = values(12)
    found = smallest(UNIT, "add-remove", d2[1:], d2, lambda one, two: len(two) > len(one))
    assert found == ([], [0.0])


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


def test_a_length_that_three_divides() -> None:
    d1 = values(24)
    found = smallest(UNIT, "add-remove", d1, d1[1:], lambda one, two: len(one) % 3 == 0)
    assert found == ([0.0] * 3, [0.0] * 2)


def test_two_that_are_not_beside_each_other_go_together() -> None:
    def violates(one: list[float], _: object) -> bool:
        return one.count(0.0) == one.count(1.0)

    d1 = [0.0, 0.0, 1.0, 1.0, 0.5]
    assert violates(d1, None)
    found = smallest(UNIT, "add-remove", d1, d1[:-1], violates)
    assert found == ([0.5], []) or found == ([0.1], [])


def test_nan_stays_and_all_else_goes() -> None:
    d1 = [*values(9), math.nan]

    def violates(one: Any, two: Any) -> bool:
        return any(map(math.isnan, one)) and not any(map(math.isnan, two))

    d1, d2 = smallest(UNIT, "add-remove", d1, d1[:-1], violates)
    assert key((d1, d2)) == "([nan], [])"


def test_a_witness_inside_is_preferred() -> None:
    """What NaN shows, 1 shows as well."""
    d1 = [0.25, math.nan]
    found = smallest(UNIT, "add-remove", d1, [0.25], lambda one, _: one[-1:] != [0.0] and one != [])
    assert parse_space(UNIT).contains(found[0])
    assert found == ([1.0], [])


def test_outside_stays_outside_where_it_must() -> None:
    d1 = [0.25, 7350.25]
    found = smallest(UNIT, "add-remove", d1, [0.25], lambda one, _: max(one, default=0) > 2)
    assert len(found[0]) == 1
    assert found[0][0] < 7350.25


def test_a_replaced_record() -> None:
    d1, d2 = values(11), values(11)
    d2[4] = 0.913
    found = smallest(UNIT, "replace", d1, d2, lambda one, two: sum(one) != sum(two))
    assert found in (([0.0], [1.0]), ([1.0], [0.0]))


def test_columns_become_simple() -> None:
    rows = [{"age": 31 + i, "city": "abc"[i % 3]} for i in range(9)]

    def violates(one: Any, two: Any) -> bool:
        cities = [{row["city"] for row in rows if row["age"] >= 18} for rows in (one, two)]
        return "c" in cities[0] and "c" not in cities[1]

    d1 = [row for row in rows if row["city"] != "c"] + [rows[2]]
    found = smallest(TABLE, "add-remove", d1, d1[:-1], violates)
    assert found == ([{"age": 18, "city": "c"}], []) or found[0][0]["age"] in range(18, 21)


def test_a_replaced_row_changes_in_one_column_only() -> None:
    d1 = [{"age": 40, "city": "b"}, {"age": 71, "city": "c"}]
    d2 = [{"age": 40, "city": "b"}, {"age": 71, "city": "a"}]
    found = smallest(
        TABLE, "replace", d1, d2,
        lambda one, two: [row["city"] for row in one] != [row["city"] for row in two],
    )  # fmt: skip
    assert len(found[0]) == len(found[1]) == 1
    assert [one[0]["age"] for one in found] == [0, 0]


def test_a_vector_moves_as_a_whole() -> None:
    """Both inputs have to move, as far as each other, for one to be 0."""
    found = smallest(
        "vector of 3 number", "linf:1", [7.25, 3.5, 12.0], [8.25, 4.5, 13.0],
        lambda one, two: all(b - a == 1 for a, b in zip(one, two, strict=True)),
    )  # fmt: skip
    assert found == ([0.0] * 3, [1.0] * 3) or found == ([-1.0] * 3, [0.0] * 3)


def test_scalars() -> None:
    found = smallest(
        "integer in [0, 1000]", "linf:1", 737, 738, lambda one, two: two - one == 1 and one >= 100
    )
    assert found == (100, 101)


def test_a_user_with_two_groups() -> None:
    rows = [{"who": who, "city": city} for who, city in [(1, "a"), (2, "b"), (2, "c"), (3, "a")]]
    mine = [{"who": 4, "city": city} for city in "abbac"]

    def violates(one: Any, two: Any) -> bool:
        def groups(rows: Any) -> int:
            return max((len({r["city"] for r in rows if r["who"] == w["who"]}) for w in rows),
                       default=0)  # fmt: skip

        return groups(one) >= 2 > groups(two)

    rows = [row for row in rows if row["city"] != "c"]
    d1, d2 = smallest(USERS, "user:who", [*rows, *mine], rows, violates)
    assert d2 == []
    assert len(d1) == 2
    assert {row["city"] for row in d1} == {"a", "b"}
    assert len({row["who"] for row in d1}) == 1


def test_it_asks_no_more_often_than_it_may() -> None:
    d1 = values(30)
    for most in (0, 1, 7):
        found = smallest(UNIT, "add-remove", d1, d1[1:], lambda one, _: one != [], most_tries=most)
        assert most > 0 or found == (d1, d1[1:])


def test_the_same_witness_becomes_the_same() -> None:
    d1 = values(17)
    found = [
        smallest(UNIT, "add-remove", d1, d1[1:], lambda one, _: sum(one) >= 2.5) for _ in range(2)
    ]
    assert found[0] == found[1]
    assert len(found[0][0]) == 3


def test_matching_takes_the_front_then_the_back_then_the_rest() -> None:
    assert matched([1, 2, 3], [1, 3]) == [(0, 0), (2, 1)]
    assert matched([1, 1], [1]) == [(0, 0)]
    assert sorted(matched([1, 2, 3], [3, 2])) == [(1, 1), (2, 0)]
    assert matched([0.0], [-0.0]) == []
    assert matched([math.nan], [math.nan]) == [(0, 0)]
    assert matched(1, 1) == []


def test_what_moves_alike() -> None:
    assert list(moved_alike(3, 0, 4)) == [1]
    assert list(moved_alike(0.25, 0.0, 1.25)) == [1.0]
    assert list(moved_alike(math.nan, 0.0, 1.0)) == []
    assert list(moved_alike("a", "b", "a")) == []
    assert list(moved_alike(True, False, True)) == []
    old, new, other = {"x": 1, "c": "a"}, {"x": 0, "c": "a"}, {"x": 3, "c": "b"}
    assert list(moved_alike(old, new, other)) == [{"x": 2, "c": "b"}]


def test_a_sum_that_is_too_large_needs_few_of_the_largest() -> None:
    """Fewer records do only if those that are left become larger."""

    def overflows(d1: list[int], d2: list[int]) -> bool:
        return max(sum(d1), sum(d2)) > 32_767

    space, start = "list of integer in [0, 20000]", [9_000] * 5
    d1, d2 = smallest(space, "add-remove", start[1:], start, overflows)
    assert max(len(d1), len(d2)) == 2
    assert sum(d2) > 32_767


def test_records_of_a_witness_that_is_small_stay_as_they_are() -> None:
    def is_odd(d1: list[int], d2: list[int]) -> bool:
        return 7 in d1 and 7 in d2

    space = "list of integer in [0, 20000]"
    found = smallest(space, "add-remove", [7, 1, 2, 3, 4], [7, 1, 2, 3, 4, 5], is_odd)
    assert found == ([7], [7, 0])
