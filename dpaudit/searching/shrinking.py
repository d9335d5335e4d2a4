"""Shrinking: make a pair that violates a claim as small as possible, while it still violates it.

Hypothesis can only shrink an example that it has generated, from the choices that made it. Most
pairs come from the catalogue, from patterns or from climbing, so this module has its own
implementation. It is greedy and deterministic like delta debugging (Zeller & Hildebrandt 2002),
which drops half of a failing input, then a quarter, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from dpaudit.searching.climbing import (
    Pair,
    changed,
    key,
    matched,
    other_differences,
    other_values,
    unmatched,
    without,
)

if TYPE_CHECKING:
    from dpaudit.searching.relations import Relation
    from dpaudit.searching.space import Space

# Default for the largest number of calls of `violates`.
MOST_TRIES = 2_000
# A pair with at most this number of common records is short enough to read.
_READABLE = 2
# If at most this number of records are common, every two of them are also left out together.
_FEW = 12

_Step = Callable[[Pair, "Space"], Iterator[Pair]]


def shrunk(
    d1: Any,
    d2: Any,
    relation: Relation,
    violates: Callable[[Any, Any], bool],
    *,
    most_tries: int = MOST_TRIES,
    keeps_size: bool = False,
) -> tuple[Any, Any]:
    """Return a small pair for which `violates` still holds: fewest records first, then simplest
    values.

    Every pair that is tried consists of neighbours. A pair inside the space is not replaced by a
    pair outside, and no dataset gets more records.

    violates: function that returns whether a pair violates the claim. It holds for the given pair.
    most_tries: largest number of calls of `violates`.
    keeps_size: whether the number of records must stay the same.
    """
    search = _Shrinking(relation, violates, most_tries)
    now, before = Pair(d1, d2), None
    search.seen.add(_key(now))
    while now != before and search.left > 0:
        before = now
        for step in _SIMPLER if keeps_size else (*_FEWER, *_SIMPLER):
            now = search.smallest(now, step)
    return now.d1, now.d2


class _Shrinking:
    """One shrinking of a pair: the pairs that were tried, and the number of tries that are left."""

    def __init__(
        self, relation: Relation, violates: Callable[[Any, Any], bool], most_tries: int
    ) -> None:
        self._relation, self._violates, self.left = relation, violates, most_tries
        self.seen: set[str] = set()

    def smallest(self, now: Pair, step: _Step) -> Pair:
        """Replace a pair by the first smaller pair that still violates the claim, until there is
        none. Return the last pair. step: function that yields smaller pairs of a pair."""
        space = self._relation.space
        while True:
            smaller = next((one for one in step(now, space) if self._holds(one, now)), None)
            if smaller is None:
                return now
            now = smaller

    def _holds(self, pair: Pair, now: Pair) -> bool:
        named = _key(pair)
        if self.left <= 0 or named in self.seen or key(pair.d1) == key(pair.d2):
            return False
        self.seen.add(named)
        relation = self._relation
        if relation.are_inside(*now) and not relation.are_inside(*pair):
            return False
        if not relation.holds(*pair):
            return False
        self.left -= 1
        return self._violates(*pair)


def _key(pair: Pair) -> str:
    return f"{key(pair.d1)} {key(pair.d2)}"


def _fewer_common(now: Pair, _: Space) -> Iterator[Pair]:
    """Yield pairs without some records that both datasets have.

    Runs of records are left out: all records, a half, a quarter, …, three, two, one. Two are tried
    since a pair may need an odd length. Of 12 or fewer records, every two are also left out
    together.
    """
    common = matched(*now)
    halves = {len(common) >> times for times in range(len(common).bit_length())}
    sizes = sorted(size for size in {*halves, 1, 2, 3} if size <= len(common))
    for size in reversed(sizes):
        for begin in range(0, len(common), size):
            yield _without_common(now, common[begin : begin + size])
    if len(common) <= _FEW:
        for some in combinations(common, 2):
            yield _without_common(now, some)


def _without_common(now: Pair, gone: Sequence[tuple[int, int]]) -> Pair:
    ours, theirs = zip(*gone, strict=True)
    return Pair(without(now.d1, *ours), without(now.d2, *theirs))


def _fewer_different(now: Pair, _: Space) -> Iterator[Pair]:
    """Yield pairs without one of the records that only one dataset has. In some of them, the other
    dataset also loses a record."""
    first, second = unmatched(*now)
    common = matched(*now)
    for place in first:
        for other in second:
            yield Pair(without(now.d1, place), without(now.d2, other))
    for place in first:
        yield Pair(without(now.d1, place), now.d2)
        yield from (Pair(without(now.d1, place), without(now.d2, other)) for _, other in common)
    for place in second:
        yield Pair(now.d1, without(now.d2, place))
        yield from (Pair(without(now.d1, other), without(now.d2, place)) for other, _ in common)


def _fewer_at_an_end(now: Pair, space: Space) -> Iterator[Pair]:
    """Yield pairs with at most one common record, in which all records are equal to an edge (a
    value at which bugs are likely) inside the space.

    A sum of records at an edge exceeds a limit with fewer records.
    """
    common = matched(*now)
    if not isinstance(now.d1, list) or len(common) <= _READABLE:
        return
    ends = [edge.value for edge in space.of_record().edges() if edge.inside]
    for many in range(_READABLE):
        kept = _without_common(now, common[many:])
        for end in ends:
            yield Pair([end] * len(kept.d1), [end] * len(kept.d2))


def _simpler_common(now: Pair, space: Space) -> Iterator[Pair]:
    """Yield pairs in which records that both datasets have are simpler: first all equal records
    together, then single records. space: space of the records."""
    equal: dict[str, list[tuple[int, int]]] = {}
    for ours, theirs in matched(*now):
        equal.setdefault(key(now.d1[ours]), []).append((ours, theirs))
    for places in equal.values():
        for simpler in space.of_record().simpler(now.d1[places[0][0]]):
            for some in (places, *([place] for place in places if len(places) > 1)):
                first, second = zip(*some, strict=True)
                yield Pair(changed(now.d1, simpler, *first), changed(now.d2, simpler, *second))


def _simpler_different(now: Pair, space: Space) -> Iterator[Pair]:
    """Yield pairs in which a value that differs between the datasets is replaced by a simpler
    value."""
    if isinstance(now.d1, list) and isinstance(now.d2, list):
        return other_differences(now, space.of_record().simpler)
    return other_values(now, space.simpler)


_FEWER: tuple[_Step, ...] = (_fewer_common, _fewer_different, _fewer_at_an_end)
_SIMPLER: tuple[_Step, ...] = (_simpler_common, _simpler_different)
