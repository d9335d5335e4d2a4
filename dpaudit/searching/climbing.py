"""Hill climbing on a number that does not change from call to call: one change of a pair at a time,
as long as the number grows.

A change is tried on both datasets alike, or on what differs alone. What may stand in a dataset is
learned from the pairs that were proposed: their records, and the values in each column.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dpaudit.searching.neighbours import Ingredients, present
from dpaudit.searching.neighbours import changed as changed_by
from dpaudit.searching.parts import changed, key, matched, moved_alike, unmatched, without
from dpaudit.searching.proposals.hosts import extremes
from dpaudit.searching.spaces.lists import Lists

if TYPE_CHECKING:
    from dpaudit.inputs.adjacency import Adjacency
    from dpaudit.searching.space import Space

# So many records, and values of each column, are tried in the place of others.
_MOST_RECORDS, _MOST_VALUES = 24, 12
# Halvings of a step between numbers, from the range that was seen.
_HALVINGS = 24
# Lists of so many records are the longest that are tried for their length.
_MOST_SIZE = 40
# So many neighbours of each are tried: in most functions every record has the same part.
_NEIGHBOURS = 20


class Ended(Exception):
    """There is no more time for a search."""


class Pair(NamedTuple):
    """Two datasets in plain Python."""

    d1: Any
    d2: Any


class Pool:
    """Records, and values by column, that proposals had: those seen first, which are the edges.

    may_invent: whether there may be others; not where a user's own function makes all inputs.
    """

    def __init__(self, *, may_invent: bool = True) -> None:
        self._may_invent = may_invent
        self._records: dict[str, Any] = {}
        self._values: dict[str, dict[str, Any]] = {}

    def add(self, dataset: Any) -> None:
        """Learn what stands in a dataset."""
        for record in dataset if isinstance(dataset, list) else [dataset]:
            if len(self._records) < _MOST_RECORDS:
                self._records.setdefault(key(record), record)
            if isinstance(record, dict):
                for name, value in record.items():
                    values = self._values.setdefault(name, {})
                    if len(values) < _MOST_VALUES:
                        values.setdefault(key(value), value)

    def records(self) -> Iterable[Any]:
        """Return the records that are tried."""
        return self._records.values()

    def others(self, record: Any) -> Iterator[Any]:
        """Yield what is tried in the place of a record: others, those that differ in one column,
        and, for numbers, steps up and down."""
        known: Iterable[Any] = self._records.values()
        if self._may_invent:
            known = chain(known, self._columns(record), self._steps(record))
        yield from (one for one in known if key(one) != key(record))

    def _columns(self, record: Any) -> Iterator[Any]:
        if not isinstance(record, dict):
            return
        for name, old in record.items():
            values = self._values.get(name, {}).values()
            for value in chain(values, _steps(old, values)):
                yield {**record, name: value}

    def _steps(self, record: Any) -> Iterator[Any]:
        yield from _steps(record, self._records.values())


def _steps(value: Any, known: Iterable[Any]) -> Iterator[Any]:
    """Yield numbers above and below one, by steps from the range of those known to a tiny part of
    it."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return
    finite = [one for one in known if _is_moderate(one)]
    span = max([1, *(abs(one - value) for one in finite)])
    for halving in range(_HALVINGS):
        step: float = span * 0.5**halving
        if isinstance(value, int):
            if step < 1:
                return
            step = int(step)
        yield from (value + step, value - step)


def _is_moderate(value: Any) -> bool:
    """Whether a value is a number from which a range can be told, not one of the largest floats."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < 1e15


def of_every_size(space: Space, adjacency: Adjacency) -> Iterator[Pair]:
    """Yield neighbours of lists of every length: a function may do something else from some length
    on, or at one, where no step leads to that shows an improvement."""
    inner = present(space)
    if not isinstance(inner, Lists) or inner.is_vector:
        return
    low, high = extremes(inner.item)
    by = Ingredients([low, high, inner.item.usual()])
    for size in range(inner.least, min(inner.most, _MOST_SIZE) + 1):
        half = [low] * (size // 2) + [high] * (size - size // 2)
        for host in ([low] * size, [high] * size, half, inner.item.spread(size)):
            near = islice(changed_by(host, space, adjacency, by), _NEIGHBOURS)
            yield from (Pair(host, other) for other in near)


def climbed(start: Pair, pool: Pool, score: Callable[[Pair], float]) -> Pair:
    """Return the best pair on the way up from one. score: of a pair, or -∞ for one that is not to
    be taken; it may raise to end the climb."""
    best, height = start, score(start)
    while True:
        better = None
        for one in moves(best, pool):
            reached = score(one)
            if reached > height:
                better, height = one, reached
                break
        if better is None or height == math.inf:
            return better or best
        best = better


def moves(pair: Pair, pool: Pool) -> Iterator[Pair]:
    """Yield pairs that differ from one in one thing; they need not be neighbours any more."""
    if not (isinstance(pair.d1, list) and isinstance(pair.d2, list)):
        yield from _other_values(pair, pool)
        return
    yield from other_differences(pair, pool.others)
    yield from _other_common(pair, pool)
    for record in pool.records():
        yield Pair([*pair.d1, record], [*pair.d2, record])


def _other_values(pair: Pair, pool: Pool) -> Iterator[Pair]:
    for other in pool.others(pair.d1):
        yield from (Pair(other, one) for one in moved_alike(pair.d1, other, pair.d2))
        yield Pair(other, pair.d2)
    yield from (Pair(pair.d1, other) for other in pool.others(pair.d2))


def other_differences(pair: Pair, others: Callable[[Any], Iterable[Any]]) -> Iterator[Pair]:
    """Yield pairs of which what differs is another value, on one side or, moved alike, on both.

    others: of a record, what may stand in its place.
    """
    first, second = unmatched(*pair)
    for place in first:
        old = pair.d1[place]
        for new in others(old):
            ours = changed(pair.d1, new, place)
            for other in second:
                for one in moved_alike(old, new, pair.d2[other]):
                    yield Pair(ours, changed(pair.d2, one, other))
            yield Pair(ours, pair.d2)
    for place in second:
        for new in others(pair.d2[place]):
            yield Pair(pair.d1, changed(pair.d2, new, place))


def _other_common(pair: Pair, pool: Pool) -> Iterator[Pair]:
    common, seen = matched(*pair), set[str]()
    for one, other in common:
        record = pair.d1[one]
        yield Pair(without(pair.d1, one), without(pair.d2, other))
        if key(record) in seen:  # order says nothing to most functions
            continue
        seen.add(key(record))
        for new in pool.others(record):
            yield Pair(changed(pair.d1, new, one), changed(pair.d2, new, other))
