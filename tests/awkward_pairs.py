"""Awkward pairs of neighbours for the planted leaks, by an enumeration that knows no code of the
package."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from mechanisms.neighbours.planted import Planted

NAN, INF = math.nan, math.inf
# The first five of each are audited, all are in the exact tests.
NUMBERS: Sequence[Any] = (
    NAN, None, 1e308, -INF, 2**63 - 1, INF, -1e308, 5e-324, -0.0, 0, -(2**63), 10**400, -(10**400),
    True, -10.0, 0.5, 1.0, 5.0, 30.0, 100.0, 20_000, "text",
)  # fmt: skip


TEXTS: Sequence[Any] = ("", 10 * "🙂", None, 1000 * "é", "\ud800", "a", "red", 3, NAN, 10**400)


USERS: Sequence[Any] = ("Bo", None, NAN, "", 1, True, 10**400)


CITIES: Sequence[Any] = ("Oslo", "Rome", "rome", "ROME", " rome ", "Paris", "", None, NAN, 3)


def odd_records(planted: Planted) -> list[Any]:
    """Return records that the space has not foreseen, or hardly."""
    usual = planted.harmless[1][-1]
    if not isinstance(usual, dict):
        return list(NUMBERS if isinstance(usual, float | int) else TEXTS)
    values = {"answer": [*TEXTS, "yes", "no"]}
    odd = [
        {**usual, column: value}
        for column in usual
        for value in itertools.islice(values.get(column, NUMBERS), 30)
    ]
    # Both columns by turns, so that the first five are of either.
    half = len(odd) // 2
    return [one for two in itertools.zip_longest(odd[:half], odd[half:]) for one in two if one]


def pairs_with(planted: Planted, odd: Any) -> Iterator[tuple[Any, Any]]:
    usual = planted.harmless[1][-1]
    hosts: list[list[Any]] = [
        [],
        [usual],
        2 * [usual],
        list(planted.d1),
        [odd],
        3 * [odd],
        [None, None, usual],
    ]
    for host in hosts:
        if isinstance(usual, dict) and None in host:
            continue
        if planted.adjacency == "add-remove":
            yield host, [*host, odd]
            yield [odd, *host], host
        else:
            yield [*host, odd], [*host, usual]
            yield [planted.d2[-1], *host], [odd, *host]


def records_of_users() -> list[list[dict[str, Any]]]:
    """Return records of one user each: of one city, of two, of all that are known."""
    cities = [*[(city,) for city in CITIES], ("Oslo", "Rome"), ("Rome", "ROME"), CITIES[:4], CITIES]
    return [
        times * [{"who": who, "city": city} for city in some]
        for who in USERS
        for some in cities
        for times in (1, 3)
    ]


def pairs_of_users() -> list[tuple[Any, Any]]:
    ada = [{"who": "Ada", "city": city} for city in CITIES]
    hosts: list[list[Any]] = [[], ada[:1], ada]
    return [(host, [*host, *rows]) for rows in records_of_users() for host in hosts]


def pairs_of_answers(length: int) -> list[tuple[Any, Any]]:
    """Return one odd answer that stays, among others that move by 1 up and down."""
    odd = (NAN, INF, 1e308, -INF, None, 5e-324, -0.0, 10**400, -5.0)
    moves = [(-1) ** place for place in range(length - 1)]
    return [
        ([one, *(base - move / 2 for move in moves)], [one, *(base + move / 2 for move in moves)])
        for base in (5.0, 10.0, 0.0)
        for one in odd
    ]


def awkward(planted: Planted) -> list[tuple[Any, Any]]:
    if planted.adjacency == "linf:1":
        return pairs_of_answers(len(planted.d1))
    if planted.adjacency == "user:who":
        return pairs_of_users()
    return [pair for odd in odd_records(planted) for pair in pairs_with(planted, odd)]


def five(planted: Planted) -> list[tuple[Any, Any]]:
    """Return awkward pairs to audit, no two alike: other odd values, in other hosts."""
    if planted.adjacency == "linf:1":
        return awkward(planted)[:5]
    if planted.adjacency == "user:who":
        both = [(host, more) for host, more in awkward(planted) if len(more) - len(host) >= 4]
        return both[:: len(both) // 4][:5]
    odd = odd_records(planted)[:5]
    return [list(pairs_with(planted, one))[2 * place] for place, one in enumerate(odd)]
