"""Datasets that an edge is tried in: few, small, and each of another kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dpaudit.searching.neighbours import present
from dpaudit.searching.space import Space, different
from dpaudit.searching.spaces.categories import Categories
from dpaudit.searching.spaces.lists import FEW, Lists
from dpaudit.searching.spaces.numbers import Booleans, Integers, Numbers
from dpaudit.searching.spaces.records import Records

Hosts = list[tuple[str, list[Any]]]


def extremes(space: Space) -> tuple[Any, Any]:
    """Return a lowest and a highest harmless value: the bounds, where there are any."""
    space = present(space)
    if isinstance(space, Numbers):
        low, high = space.low, space.high
        usual = space.usual()
        low = low if abs(low) < float("inf") else usual - 1
        return low, high if abs(high) < float("inf") else usual + 1
    if isinstance(space, Integers):
        usual = space.usual()
        low = usual - 1 if space.low is None else space.low
        return low, usual + 1 if space.high is None else space.high
    if isinstance(space, Booleans):
        return False, True
    if isinstance(space, Categories):
        return space.values[0], space.values[-1]
    if isinstance(space, Records):
        parts = {name: extremes(one) for name, one in space.columns.items()}
        return {k: one[0] for k, one in parts.items()}, {k: one[1] for k, one in parts.items()}
    if isinstance(space, Lists):
        low, high = extremes(space.item)
        size = len(space.usual())
        return [low] * size, [high] * size
    first, *_, last = [*space.spread(2), space.usual()][:2] or [None]
    return first, last


def hosts(space: Lists, room: int = 0, empty: bool = True) -> Hosts:
    """Return datasets to put an edge in, the smallest first.

    room: how many records more there must be room for.  empty: whether it may have no records.
    """
    item = space.item
    low, high = extremes(item)
    known = [
        ("nothing", []),
        ("one usual record", [item.usual()]),
        ("a few usual records", item.spread(FEW)),
        ("records at the lower bound", [low] * FEW),
        ("records at the upper bound", [high] * FEW),
        ("an even number of records", item.spread(FEW + 1)),
    ]
    sized = ((words, _sized(records, space, room)) for words, records in known)
    kept = [(words, one) for words, one in sized if one is not None and (one or empty)]
    firsts = list(different(records for _, records in kept))
    return [next(pair for pair in kept if pair[1] is records) for records in firsts]


def _sized(records: list[Any], space: Lists, room: int) -> list[Any] | None:
    """Return as many records as the space and some room allow; None if it allows none."""
    most = space.most - room
    if most < space.least:
        return None
    filler = records[-1] if records else space.item.usual()
    return [*records, *([filler] * max(0, space.least - len(records)))][:most]


def with_columns(space: Space) -> Iterator[tuple[str, Space]]:
    """Yield the columns of records, with their spaces."""
    item = present(space)
    if isinstance(item, Records):
        yield from item.columns.items()
