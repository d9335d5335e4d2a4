"""Pairs at the point where a mechanism begins to raise.

Where both inputs of a pair always raise and another input does not, some step between the two
datasets is from an input that gives outputs to one that raises: a leak. Bisection finds it with few
draws: along the number of records, then record by record, then along the values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dpaudit.inputs.adjacency import Adjacency, Users
from dpaudit.searching.neighbours import NUMERIC, are_neighbours, entries, moved, present
from dpaudit.searching.proposals.proposal import Proposal
from dpaudit.searching.space import Space, different
from dpaudit.searching.spaces.lists import Lists

_WHY = "where exceptions begin"
# Halvings of the distance between two vectors until they are neighbours.
_HALVINGS = 60

# Whether a mechanism raises for a dataset in all of a few draws; None where no draw can be made.
Raises = Callable[[Any], bool | None]


def where_exceptions_begin(
    raising: Sequence[Any],
    quiet: Sequence[Any],
    space: Space,
    adjacency: Adjacency,
    raises: Raises,
) -> Iterator[Proposal]:
    """Yield at most one pair for each raising dataset: one input raises, its neighbour does not.

    raising, quiet: datasets for which the mechanism raises, and for which it gives outputs.
    """
    for dataset in raising:
        for path in _paths(dataset, quiet, space, adjacency):
            step = _first_step(path, raises)
            if step is not None and adjacency.kind in NUMERIC:
                step = _closer(*step, space, adjacency, raises)
            if step is not None and are_neighbours(*step, adjacency, space):
                inside = all(map(space.contains, step))
                yield Proposal(*step, _WHY, "raising", inside)
                break


def _paths(
    dataset: Any, quiet: Sequence[Any], space: Space, adjacency: Adjacency
) -> Iterator[list[Any]]:
    """Yield lists of datasets that end in the given one; each differs from the next in one record,
    or in the records of one user."""
    inner = present(space)
    if not (isinstance(inner, Lists) and isinstance(dataset, list)):
        yield from ([other, dataset] for other in quiet)
        return
    grows = adjacency.kind in ("add-remove", "user", "import")
    if grows:
        yield [one for one in _prefixes(dataset, adjacency.users) if inner.fits(len(one))]
    for other in quiet:
        if isinstance(other, list) and other:
            same_size = [other[place % len(other)] for place in range(len(dataset))]
            yield list(_by_records(same_size, dataset, inner, may_grow=grows))


def _prefixes(dataset: list[Any], users: Users | None) -> Iterator[list[Any]]:
    """Yield the first records of a dataset, from none to all; all of one user together."""
    if users is None:
        yield from (dataset[:size] for size in range(len(dataset) + 1))
        return
    names = list(different(row[users.column] for row in dataset))
    for number in range(len(names) + 1):
        yield [row for row in dataset if row[users.column] in names[:number]]


def _by_records(start: list[Any], end: list[Any], space: Lists, *, may_grow: bool) -> Iterator[Any]:
    """Yield datasets from one list to another of the same size, one record changed at a time. Where
    records come and go, a change takes two steps: one comes and one leaves, or, in a full list, one
    leaves first."""
    is_full = not space.fits(len(end) + 1)
    for place, record in enumerate(end):
        yield [*end[:place], *start[place:]]
        if may_grow:
            between = [] if is_full else [record, start[place]]
            yield [*end[:place], *between, *start[place + 1 :]]
    yield end


def _first_step(path: list[Any], raises: Raises) -> tuple[Any, Any] | None:
    """Return two successive datasets such that only the second raises; None where the first of the
    path raises, or its last does not."""
    low, high = 0, len(path) - 1
    if high < 1 or raises(path[low]) is not False or raises(path[high]) is not True:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if raises(path[middle]):
            high = middle
        else:
            low = middle
    return path[low], path[high]


def _closer(
    quiet: Any, raising: Any, space: Space, adjacency: Adjacency, raises: Raises
) -> tuple[Any, Any]:
    """Return two inputs between the given ones, as near as their relation asks for: the values in
    which they differ are bisected."""
    for _ in range(_HALVINGS):
        first, second = entries(quiet), entries(raising)
        is_done = are_neighbours(quiet, raising, adjacency, space)
        if is_done or len(first) != len(second) or not all(map(math.isfinite, first + second)):
            break
        steps = [(high - low) / 2 for low, high in zip(first, second, strict=True)]
        middle = moved(quiet, steps)
        if middle in (quiet, raising):
            break
        if raises(middle):
            raising = middle
        else:
            quiet = middle
    return quiet, raising
