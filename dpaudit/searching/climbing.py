"""Hill climbing: change one thing in a pair of inputs at a time, as long as a score grows.

The score of a pair must not change from call to call. A change is made to both inputs alike, or to
records that only one input has. New records and values come from earlier proposals. Here, records
are equal if their `repr` is (`key`): -0.0 differs from 0.0, and NaN equals NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from dpaudit.searching.relations import Ingredients
from dpaudit.searching.spaces.record_spaces import Lists
from dpaudit.searching.spaces.user_spaces import Own

if TYPE_CHECKING:
    from dpaudit.searching.proposals import Proposal
    from dpaudit.searching.relations import Relation

# Largest number of records that a `RecordPool` keeps. It offers them as replacements for other
# records.
_MAX_RECORDS = 24
# Largest number of values that a `RecordPool` keeps for each column. It offers them as replacements
# for other values of the same column.
_MAX_VALUES = 12
# Number of distances at which `_steps` tries numbers above and below a number. The first distance
# is the range of the known numbers. Each further distance is half of the distance before it.
_STEP_HALVINGS = 24
# `of_every_size` makes lists of every length up to this number of records.
_MAX_LENGTH = 40
# `of_every_size` makes lists of every length, and pairs each list with some of its neighbours.
# Largest number of neighbours for each list. A few suffice, since most functions treat all records
# alike.
_MAX_NEIGHBOURS = 20
# `moved_alike` adds the difference of two numbers to a third number. It rounds the sum to this
# number of significant digits, since later digits are often rounding errors.
_SUM_DIGITS = 12
# `_steps` changes a number by up to the range of the known numbers.
# Known numbers with this absolute value or a larger one are left out of the range: a range up to
# 1e300 would make all changes too large.
_MAX_KNOWN = 1e15


class Pair(NamedTuple):
    """Two inputs, each as a plain Python value: a number, a text, a list or a dict."""

    d1: Any
    d2: Any


def key(value: Any) -> str:
    """Return the `repr` of a value. Two values count as equal if these texts are equal."""
    return repr(value)


def matched(d1: Any, d2: Any) -> list[tuple[int, int]]:
    """Return (index in d1, index in d2) for records that are equal in both lists. Each record is
    matched at most once: first those at the beginning of both lists, then those in between, then
    those at the end. Return [] if the inputs are not lists."""
    if not (isinstance(d1, list) and isinstance(d2, list)):
        return []
    first, second = list(map(key, d1)), list(map(key, d2))
    shorter = min(len(first), len(second))
    front = next((i for i in range(shorter) if first[i] != second[i]), shorter)
    remaining = shorter - front
    back = next((i for i in range(remaining) if first[-1 - i] != second[-1 - i]), remaining)
    pairs = [(i, i) for i in range(front)]
    inner: dict[str, list[int]] = {}
    for index in range(front, len(second) - back):
        inner.setdefault(second[index], []).append(index)
    for index in range(front, len(first) - back):
        if inner.get(first[index]):
            pairs.append((index, inner[first[index]].pop(0)))
    return pairs + [(len(first) - i, len(second) - i) for i in range(back, 0, -1)]


def unmatched(d1: Any, d2: Any) -> tuple[list[int], list[int]]:
    """Return the indexes in d1, and those in d2, of the records that `matched` does not match. Both
    lists are empty if the inputs are not lists."""
    if not (isinstance(d1, list) and isinstance(d2, list)):
        return [], []
    common = matched(d1, d2)
    ours, theirs = {index for index, _ in common}, {index for _, index in common}
    return (
        [index for index in range(len(d1)) if index not in ours],
        [index for index in range(len(d2)) if index not in theirs],
    )


def without(dataset: list[Any], *indexes: int) -> list[Any]:
    """Return a copy of a list without the records at the given indexes."""
    return [record for index, record in enumerate(dataset) if index not in indexes]


def changed(dataset: list[Any], record: Any, *indexes: int) -> list[Any]:
    """Return a copy of a list in which `record` replaces the records at the given indexes."""
    return [record if index in indexes else old for index, old in enumerate(dataset)]


def moved_alike(old: Any, new: Any, counterpart: Any) -> Iterator[Any]:
    """Yield values made from `counterpart` by the change from `old` to `new`. For a number, this
    adds `new - old`; the sum rounded to 12 digits comes first, then the exact sum. In a row (dict),
    this changes the columns that differ between `old` and `new`. For other types, yield nothing."""
    if isinstance(old, dict) and isinstance(new, dict) and isinstance(counterpart, dict):
        names = [name for name in old if name in new and key(old[name]) != key(new[name])]
        if names and all(name in counterpart for name in names):
            yield {
                **counterpart,
                **{name: _moved(old[name], new[name], counterpart[name]) for name in names},
            }
    elif all(is_number(value) for value in (old, new, counterpart)):
        with suppress(OverflowError):
            total = Fraction(counterpart) + Fraction(new) - Fraction(old)
            is_whole = (
                isinstance(old, int) and isinstance(new, int) and isinstance(counterpart, int)
            )
            moved: float = int(total) if is_whole else float(total)
            if not is_whole and (short := float(f"{moved:.{_SUM_DIGITS}g}")) != moved:
                yield short
            yield moved


def _moved(old: Any, new: Any, counterpart: Any) -> Any:
    return (
        new
        if key(old) == key(counterpart)
        else next(moved_alike(old, new, counterpart), counterpart)
    )


def is_number(value: Any) -> bool:
    """Return whether a value is an integer or a finite float. Booleans do not count."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


class RecordPool:
    """Known records, and known values of each column, from which new pairs are made. `add` collects
    them from proposed pairs. If a user's function generates all inputs, `others` yields only
    records that the function generated."""

    def __init__(self, relation: Relation) -> None:
        self._may_invent = not isinstance(relation.inner, Own)
        self._records: dict[str, Any] = {}
        self._values: dict[str, dict[str, Any]] = {}

    def add(self, proposal: Proposal) -> None:
        """Add the records and values of a pair, unless one of its inputs is outside the space."""
        for dataset in (proposal.d1, proposal.d2) if proposal.inside else ():
            for record in dataset if isinstance(dataset, list) else [dataset]:
                self._add(record)

    def _add(self, record: Any) -> None:
        if len(self._records) < _MAX_RECORDS:
            self._records.setdefault(key(record), record)
        for name, value in record.items() if isinstance(record, dict) else ():
            values = self._values.setdefault(name, {})
            if len(values) < _MAX_VALUES:
                values.setdefault(key(value), value)

    def records(self) -> Iterable[Any]:
        return self._records.values()

    def others(self, record: Any) -> Iterator[Any]:
        """Yield values to put in place of a record: other known records, copies with another value
        in one column and, if the record is a number, numbers above and below it."""
        known: Iterable[Any] = self._records.values()
        if self._may_invent:
            known = chain(known, self._columns(record), _steps(record, self._records.values()))
        yield from (replacement for replacement in known if key(replacement) != key(record))

    def _columns(self, record: Any) -> Iterator[Any]:
        for name, old in record.items() if isinstance(record, dict) else ():
            values = self._values.get(name, {}).values()
            for value in chain(values, _steps(old, values)):
                yield {**record, name: value}


def _steps(value: Any, known: Iterable[Any]) -> Iterator[Any]:
    """Yield numbers above and below `value`. Distances are halved, from the range of `known` on."""
    if not is_number(value):
        return
    span = max([1, *(abs(x - value) for x in known if is_number(x) and abs(x) < _MAX_KNOWN)])
    for halving in range(_STEP_HALVINGS):
        step: float = span * 0.5**halving
        if isinstance(value, int):
            if step < 1:
                return
            step = int(step)
        yield from (value + step, value - step)


def of_every_size(relation: Relation) -> Iterator[Pair]:
    """Yield pairs of lists of every length that the space allows, up to 40 records. For each length
    there are up to four lists, each with at most 20 of its neighbours.

    A function may behave differently from a certain length on. Hill climbing does not reach this
    length if no single step towards it improves the score.
    """
    inner = relation.inner
    if not isinstance(inner, Lists) or inner.is_vector:
        return
    low, high = inner.item.extremes()
    by = Ingredients([low, high, inner.item.usual()])
    for size in range(inner.min_size, min(inner.max_size, _MAX_LENGTH) + 1):
        half = [low] * (size // 2) + [high] * (size - size // 2)
        for base in ([low] * size, [high] * size, half, inner.item.spread(size)):
            near = islice(relation.changed(base, by), _MAX_NEIGHBOURS)
            yield from (Pair(base, neighbour) for neighbour in near)


def climbed(start: Pair, pool: RecordPool, score: Callable[[Pair], float]) -> Pair:
    """Change a pair as long as some change increases its score, and return the last pair. `score`
    returns -∞ for a pair that must not be the result. It may raise an exception to end the
    climb."""
    best, height = start, score(start)
    while height < math.inf:
        higher = ((pair, high) for pair in moves(best, pool) if (high := score(pair)) > height)
        better = next(higher, None)
        if better is None:
            break
        best, height = better
    return best


def moves(pair: Pair, pool: RecordPool) -> Iterator[Pair]:
    """Yield pairs that differ from `pair` by one change. In lists, a record is added, removed or
    replaced; of single values, one or both are replaced. The inputs may be no neighbours."""
    if not (isinstance(pair.d1, list) and isinstance(pair.d2, list)):
        yield from other_values(pair, pool.others)
        return
    yield from other_differences(pair, pool.others)
    yield from _other_common(pair, pool)
    for record in pool.records():
        yield Pair([*pair.d1, record], [*pair.d2, record])


def other_values(pair: Pair, replacements: Callable[[Any], Iterable[Any]]) -> Iterator[Pair]:
    """Yield pairs made from a pair of single values: both values are moved by the same difference,
    or one value is replaced by each of its `replacements`."""
    for new in replacements(pair.d1):
        yield from (Pair(new, moved) for moved in moved_alike(pair.d1, new, pair.d2))
        yield Pair(new, pair.d2)
    yield from (Pair(pair.d1, new) for new in replacements(pair.d2))


def other_differences(pair: Pair, replacements: Callable[[Any], Iterable[Any]]) -> Iterator[Pair]:
    """Yield pairs of lists in which one record that only one list has is replaced. If each list has
    such a record, also yield pairs in which both of these records are changed alike."""
    first, second = unmatched(*pair)
    for left_index in first:
        old = pair.d1[left_index]
        for new in replacements(old):
            ours = changed(pair.d1, new, left_index)
            for right_index in second:
                for moved in moved_alike(old, new, pair.d2[right_index]):
                    yield Pair(ours, changed(pair.d2, moved, right_index))
            yield Pair(ours, pair.d2)
    for right_index in second:
        for new in replacements(pair.d2[right_index]):
            yield Pair(pair.d1, changed(pair.d2, new, right_index))


def _other_common(pair: Pair, pool: RecordPool) -> Iterator[Pair]:
    """Yield pairs of lists in which a common record is removed from both, or replaced in both."""
    known = set[str]()
    for ours, theirs in matched(*pair):
        record = pair.d1[ours]
        yield Pair(without(pair.d1, ours), without(pair.d2, theirs))
        if key(record) in known:  # the order of records is irrelevant to most functions
            continue
        known.add(key(record))
        for new in pool.others(record):
            yield Pair(changed(pair.d1, new, ours), changed(pair.d2, new, theirs))
