"""Small lattices: a few datasets of which many are neighbours, so that one set of draws for each
serves all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product
from typing import Any

from dpaudit.inputs.adjacency import Adjacency, Users
from dpaudit.searching.neighbours import NUMERIC, are_neighbours, entries, moved, present
from dpaudit.searching.proposals.hosts import extremes
from dpaudit.searching.space import Space, different
from dpaudit.searching.spaces.lists import Lists
from dpaudit.searching.spaces.own import Own

_CORNERS = 3
# Values of one record that are all compared with one another.
_VALUES = 4


def lattice(space: Space, adjacency: Adjacency) -> list[Any]:
    """Return the datasets of the lattice of a space, the smallest first."""
    inner = present(space)
    if isinstance(inner, Own):
        given = inner.spread(_VALUES)
        found: list[Any] = next((one for one in given if _has_corners(one)), [])
        return _subsets(found[:_CORNERS]) if found else list(different(given))
    if adjacency.kind in NUMERIC:
        return list(different(_grid(inner, adjacency.distance)))
    if not isinstance(inner, Lists):
        values = [edge.value for edge in inner.edges() if edge.inside][:_VALUES]
        return list(different([inner.usual(), *extremes(inner), *values]))
    low, high = extremes(inner.item)
    records = list(different([inner.item.usual(), low, high, *inner.item.spread(_CORNERS)]))
    three = [records[i % len(records)] for i in range(_CORNERS)]
    if adjacency.users is not None:
        three = _of_users(three, adjacency.users)
    if inner.is_vector:
        return [[one] * inner.most for one in three] + [
            [*([three[0]] * (inner.most - 1)), one] for one in three[1:]
        ]
    return [one for one in _subsets(three) if inner.fits(len(one))]


def lattice_pairs(space: Space, adjacency: Adjacency) -> Iterator[tuple[Any, Any, str]]:
    """Yield all pairs of neighbours in the lattice; d1 is the smaller one."""
    for one, other in combinations(lattice(space, adjacency), 2):
        if are_neighbours(one, other, adjacency, space):
            yield one, other, "neighbours in a small lattice"


def _has_corners(dataset: Any) -> bool:
    return isinstance(dataset, list) and len(dataset) >= _CORNERS


def _subsets(records: list[Any]) -> list[list[Any]]:
    """Return all sub-datasets, in the order of the records."""
    sizes = range(len(records) + 1)
    return list(different(list(one) for size in sizes for one in combinations(records, size)))


def _of_users(records: list[Any], users: Users) -> list[Any]:
    return [{**record, users.column: user} for user, record in enumerate(records, 1)]


def _grid(space: Space, step: float) -> Iterator[Any]:
    """Yield the corners of a cube of one to three entries, one step wide."""
    start = space.spread(1)[0] if isinstance(space, Lists) else space.usual()
    low = _lowest(space, start)
    size = len(entries(low))
    for corner in product((0.0, step), repeat=min(size, _CORNERS)):
        yield moved(low, [*corner, *([0.0] * (size - len(corner)))])


def _lowest(space: Space, like: Any) -> Any:
    """Return entries at the lower bound, from where a step up is most likely inside."""
    if isinstance(space, Lists) and isinstance(like, list):
        return [_lowest(present(space.item), one) for one in like]
    return extremes(space)[0]
