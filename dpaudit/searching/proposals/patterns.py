"""The eight patterns of query answers, scaled to the space and the relation.

They are those that StatDP (Ding et al., CCS 2018, table 1) tries. Of records, which have no answers
yet, the pattern is that of the rest of the dataset and of the record that comes or is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpaudit.inputs.adjacency import DISTANCES, Adjacency
from dpaudit.searching.neighbours import NUMERIC, is_numeric, moved, present
from dpaudit.searching.proposals.hosts import extremes
from dpaudit.searching.space import Space
from dpaudit.searching.spaces.lists import Lists

_ENTRIES = 5


def patterns(size: int) -> list[tuple[str, list[int], list[int]]]:
    """Return the patterns of so many entries: each a name, where d1 and d2 are above (1), at (0) or
    below (−1) the middle."""
    half = size // 2
    rest, zero = size - 1, [0] * size
    return [
        ("one above", zero, [1] + [0] * rest),
        ("one below", zero, [-1] + [0] * rest),
        ("one above, the rest below", zero, [1] + [-1] * rest),
        ("one below, the rest above", zero, [-1] + [1] * rest),
        ("half above, half below", zero, [-1] * (size - half) + [1] * half),
        ("all above", zero, [1] * size),
        ("all below", zero, [-1] * size),
        ("X shape", [1] * half + [0] * (size - half), [0] * half + [1] * (size - half)),
    ]


def pattern_pairs(space: Space, adjacency: Adjacency) -> Iterator[tuple[Any, Any, str]]:
    """Yield pairs of the eight patterns; none where they mean nothing."""
    inner = present(space)
    if not isinstance(inner, Lists) or adjacency.users is not None or adjacency.path:
        return
    if adjacency.kind in NUMERIC:
        yield from _of_answers(inner, adjacency)
    elif adjacency.kind == "add-remove":
        yield from _of_added(inner)
    else:
        yield from _of_replaced(inner)


def _of_answers(space: Lists, adjacency: Adjacency) -> Iterator[tuple[Any, Any, str]]:
    size = min(max(_ENTRIES, space.least), space.most)
    if not size or not is_numeric(space) or isinstance(present(space.item), Lists):
        return
    low, high = map(float, extremes(space.item))
    for base in _bases(space, low, high):
        for name, first, second in patterns(size):
            step = _step(first, second, adjacency)
            yield _at(base, first, step), _at(base, second, step), name
    # As far apart as the bounds allow, with every entry inside of them: d1 is no longer constant.
    for name, first, second in patterns(size):
        whole = [b - a for a, b in zip(first, second, strict=True)]
        step = min(_step(first, second, adjacency), high - low)
        d1 = [_back(low, high, move, step) for move in whole]
        steps = [move * step for move in whole]
        yield _typed(d1, space), moved(_typed(d1, space), steps), f"{name}, between the bounds"


def _bases(space: Lists, low: float, high: float) -> list[Any]:
    """Return the middle values, of which the patterns are above and below: usual, 0, the bounds."""
    found = [space.item.usual(), space.item.simplest, *(_typed([low, high], space))]
    return list(dict.fromkeys(found))


def _step(first: Sequence[int], second: Sequence[int], adjacency: Adjacency) -> float:
    """Return the size of a step so that the two are exactly as far apart as is allowed."""
    difference = np.subtract(second, first)
    order = DISTANCES.get(adjacency.kind, math.inf)
    return float(adjacency.distance / np.linalg.norm(difference, ord=order))


def _at(base: Any, pattern: Sequence[int], step: float) -> Any:
    return moved([base] * len(pattern), [where * step for where in pattern])


def _back(low: float, high: float, move: int, step: float) -> float:
    """Return where an entry begins that moves by a step and ends inside the bounds."""
    middle = low / 2 + high / 2
    if not move:
        return middle
    return min(max(middle - move * step / 2, low), high)


def _typed(values: list[float], space: Lists) -> list[Any]:
    """Return numbers of the type that the space has."""
    like = space.item.usual()
    if isinstance(like, bool):
        return [bool(one) for one in values]
    return [math.floor(one) for one in values] if isinstance(like, int) else values


def _rests(space: Lists, size: int) -> list[tuple[str, list[Any]]]:
    low, high = extremes(space.item)
    half = size // 2
    return [
        ("usual", [space.item.usual()] * size),
        ("below", [low] * size),
        ("above", [high] * size),
        ("half above, half below", [low] * (size - half) + [high] * half),
    ]


def _of_added(space: Lists) -> Iterator[tuple[Any, Any, str]]:
    low, high = extremes(space.item)
    size = min(max(_ENTRIES - 1, space.least), space.most - 1)
    for rest, records in _rests(space, size):
        for name, one in (("above", high), ("below", low)):
            yield records, [*records, one], f"one {name}, the rest {rest}"


def _of_replaced(space: Lists) -> Iterator[tuple[Any, Any, str]]:
    low, high = extremes(space.item)
    size = min(max(_ENTRIES, space.least), space.most)
    for rest, records in _rests(space, size):
        for name, one in (("above", high), ("below", low)):
            yield records, [*records[:-1], one], f"one {name}, the rest {rest}"
    half = size // 2
    crossed = [low] * half + [high] * (size - half)
    yield crossed, [*crossed[:half], low, *crossed[half + 1 :]], "X shape: one goes below"
