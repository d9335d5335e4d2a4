"""Relations of numbers: two vectors, such as the answers of queries, are neighbours if their
distance is at most a limit. The eight patterns of query answers are those of StatDP (Ding et al.,
CCS 2018, table 1), scaled to the bounds of the numbers and to the limit of the distance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from dpaudit.inputs.adjacency import DISTANCES, Adjacency
from dpaudit.searching.relations.relation import Ingredients, Pairs, Relation, base_datasets
from dpaudit.searching.space import Space
from dpaudit.searching.spaces.record_spaces import Lists

# Usual length of the vectors that `pattern_pairs` makes, each pair by one of eight patterns. In the
# pattern `one above`, for example, one entry of d2 is larger than in d1.
_PATTERN_ENTRIES = 5
# The sum of an entry and a step is rounded to 12 significant digits (0.30000000000000004 becomes
# 0.3) if this changes the sum by at most this fraction of the step.
_ROUNDING_SHARE = 1e-12
# In a vector with at most this number of entries, each entry is also moved alone. In a longer
# vector, only the first, the middle and the last entry are moved alone.
_MAX_MOVED_ALONE = 50
# Number of neighbours that are tried for a vector inside the space.
_NEIGHBOURS_INSIDE = 10
# Number of neighbours that are tried for a vector outside the space. A vector inside gets 10
# (`_NEIGHBOURS_INSIDE`).
_NEIGHBOURS_OUTSIDE = 4


class Steps(Relation):
    """Vectors, or numbers, are neighbours if their distance is at most a given number."""

    is_of_answers: ClassVar[bool] = True

    def problem(self, space: Space) -> str:
        if not space.is_numeric():
            return "it holds no numbers; state replace or add-remove"
        if isinstance(space, Lists) and not space.max_size:
            return "its lists are always empty; write vector of 5 number"
        least, kind = space.least_step(), self.adjacency.kind
        if least > self.adjacency.distance:
            return f"different values are at least {least:g} apart; state {kind}:{least:g}"
        return ""

    def changes(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        return stepped(dataset, self.space, self.adjacency, by.steps)

    def pairs_at_edges(self) -> Pairs:
        """Yield (d1, d2, description) for pairs of vectors, or of numbers, in which entries differ
        by as much as the relation allows."""
        for words, base in self._bases():
            limit = _NEIGHBOURS_INSIDE if self.space.contains(base) else _NEIGHBOURS_OUTSIDE
            start = "one step from" if len(entries(base)) < 2 else "steps from"
            for neighbour in islice(self.changed(base, Ingredients([])), limit):
                yield base, neighbour, f"{start} {words}"

    def _bases(self) -> Iterator[tuple[str, Any]]:
        inner = self.inner
        if not isinstance(inner, Lists):
            low, high = inner.extremes()
            yield from (("a usual value", inner.usual()), ("the lowest", low))
            yield "the highest", high
            yield from ((edge.words, edge.value) for edge in inner.edges())
            if inner.contains(2.0**53 - 1):
                yield "just inside of 2^53", 2.0**53 - 1
            return
        yield "usual entries", inner.usual()
        for words, base in base_datasets(inner, empty=False):
            yield words.replace("records", "entries"), base
        size = len(inner.usual())
        for edge in inner.item.edges():
            yield f"entries that are {edge.words}", [edge.value] * size
            few = inner.item.spread(size)[:-1]
            yield f"entries of which one is {edge.words}", [*few, edge.value]

    def pattern_pairs(self) -> Pairs:
        space = self.inner
        if not isinstance(space, Lists) or isinstance(space.item.present(), Lists):
            return
        size = min(max(_PATTERN_ENTRIES, space.min_size), space.max_size)
        if not size or not space.is_numeric():
            return
        low, high = map(float, space.item.extremes())
        middles = [space.item.usual(), space.item.simplest, *_typed([low, high], space)]
        for middle in dict.fromkeys(middles):
            for name, first, second in patterns(size):
                step = self._step(first, second)
                yield _at(middle, first, step), _at(middle, second, step), name
        # In the pairs above, all entries start from the same number. In the next pairs, each entry
        # of d1 has a start of its own (`_start`), so that all entries of d1 and d2 stay within the
        # bounds, and the distance of d1 and d2 is as large as the relation and the bounds allow.
        for name, first, second in patterns(size):
            moves = [b - a for a, b in zip(first, second, strict=True)]
            step = min(self._step(first, second), high - low)
            d1 = _typed([_start(low, high, move, step) for move in moves], space)
            yield d1, moved(d1, [move * step for move in moves]), f"{name}, between the bounds"

    def _step(self, first: Sequence[int], second: Sequence[int]) -> float:
        """Return the factor that gives a pattern the distance that the relation allows."""
        order = DISTANCES.get(self.adjacency.kind, math.inf)
        return float(
            self.adjacency.distance / np.linalg.norm(np.subtract(second, first), ord=order)
        )


def patterns(size: int) -> list[tuple[str, list[int], list[int]]]:
    """Return (name, d1, d2) for the eight patterns of `size` query answers. An entry of d1 or d2 is
    0 at a common starting value, 1 above it, and −1 below it."""
    half = size // 2
    remaining, zero = size - 1, [0] * size
    return [
        ("one above", zero, [1] + [0] * remaining),
        ("one below", zero, [-1] + [0] * remaining),
        ("one above, the rest below", zero, [1] + [-1] * remaining),
        ("one below, the rest above", zero, [-1] + [1] * remaining),
        ("half above, half below", zero, [-1] * (size - half) + [1] * half),
        ("all above", zero, [1] * size),
        ("all below", zero, [-1] * size),
        ("X shape", [1] * half + [0] * (size - half), [0] * half + [1] * (size - half)),
    ]


def _at(middle: Any, pattern: Sequence[int], step: float) -> Any:
    return moved([middle] * len(pattern), [where * step for where in pattern])


def _start(low: float, high: float, move: int, step: float) -> float:
    """Return a start, centred between the bounds, from which a move stays within them."""
    # If the step is longer than the range, the start is `low` for a move up and `high` for a move
    # down.
    middle = low / 2 + high / 2
    return min(max(middle - move * step / 2, low), high) if move else middle


def _typed(values: list[float], space: Lists) -> list[Any]:
    """Return numbers converted to the type of the entries of vectors in `space`."""
    like = space.item.usual()
    if isinstance(like, bool):
        return [bool(value) for value in values]
    return [math.floor(value) for value in values] if isinstance(like, int) else values


def stepped(
    dataset: Any, space: Space, adjacency: Adjacency, steps: Sequence[float]
) -> Iterator[Any]:
    """Yield copies of a dataset in which entries are moved. Each move is the distance that the
    relation allows, times one of `steps`.

    First each entry is changed alone, then all entries in the same direction, then all in
    alternating directions. Each result is yielded twice: first with its entries clamped to the
    bounds, which only reduces the distance, then unclamped.
    """
    values = entries(dataset)
    size = len(values)
    indexes = range(size) if size <= _MAX_MOVED_ALONE else (0, size // 2, size - 1)
    shares = {"l1": size, "l2": math.sqrt(size)}
    step = adjacency.distance / shares.get(adjacency.kind, 1) if size else 0.0
    for part in steps:
        moves = [[0.0] * i + [part * adjacency.distance] + [0.0] * (size - i - 1) for i in indexes]
        if adjacency.kind != "coordinate" and size > 1:
            share = step * part
            moves += [[share] * size, [share if i % 2 else -share for i in range(size)]]
        for move in moves:
            copy = moved(dataset, move)
            yield from (space.clamped(copy), copy)


def entries(dataset: Any) -> list[Any]:
    """Return all numbers of a dataset, a number or nested lists, in order. Return [] if it contains
    a value of another type."""
    if isinstance(dataset, list):
        parts = list(map(entries, dataset))
        return [value for part in parts for value in part] if all(parts) else []
    return [dataset] if isinstance(dataset, int | float) else []


def moved(dataset: Any, steps: Sequence[float]) -> Any:
    """Return a copy of a number, or of nested lists of numbers, in which each number is increased
    by its step. For an integer, the step is truncated towards 0, so that -1.5 subtracts 1. A
    Boolean is negated if its step is at least 1 or at most -1."""
    return _moved(dataset, iter(steps))


def _moved(dataset: Any, steps: Iterator[float]) -> Any:
    if isinstance(dataset, list):
        return [_moved(part, steps) for part in dataset]
    step = next(steps)
    if isinstance(dataset, bool):
        return dataset if abs(step) < 1 else not dataset
    if isinstance(dataset, int):
        return dataset + math.trunc(step)
    if not step:  # keeps −0.0
        return dataset
    total = dataset + step
    # Round 0.30000000000000004 to 0.3, for example, unless that changes the step by more than the
    # fraction 1e-12.
    short = float(f"{total:.12g}")
    return short if abs(short - total) <= abs(step) * _ROUNDING_SHARE else total
