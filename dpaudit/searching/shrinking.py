"""Shrinking: make a pair of inputs that violates a claim as small as possible, while it still
violates the claim.

Hypothesis can only shrink an example that it has generated itself, and most pairs have another
origin. This implementation is greedy and deterministic. Like delta debugging (Zeller & Hildebrandt
2002), it drops half of a failing input, then a quarter, and so on.
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

# Largest number of calls of `violates` in `shrunk`, if the caller gives no number.
MAX_TRIES = 2_000
# If the lists d1 and d2 have at most this number of records in common, they are short enough to
# read. If they have more, `_fewer_at_an_end` tries lists in which all records are equal.
_READABLE_RECORDS = 2
# A pair of lists becomes simpler if records that both lists share are left out. If the lists share
# at most this number of records, every combination of two shared records is tried. If they share
# more, only blocks of successive records are tried, since there are too many combinations.
_MAX_COMBINED = 12

_Step = Callable[[Pair, "Space"], Iterator[Pair]]


def shrunk(
    d1: Any,
    d2: Any,
    relation: Relation,
    violates: Callable[[Any, Any], bool],
    *,
    most_tries: int = MAX_TRIES,
    keeps_size: bool = False,
) -> tuple[Any, Any]:
    """Return a pair for which `violates` holds, with as few records as possible, then with values
    as simple as possible. `violates` must hold for the given pair.

    All tried pairs are neighbours. A pair inside the space is not replaced by a pair outside, and
    no dataset gets more records.

    most_tries: largest number of calls of `violates`.
    keeps_size: whether the number of records must stay the same.
    """
    search = _Shrinking(relation, violates, most_tries)
    now, previous = Pair(d1, d2), None
    search.known.add(_key(now))
    while now != previous and search.left > 0:
        previous = now
        for step in _SIMPLER if keeps_size else (*_FEWER, *_SIMPLER):
            now = search.smallest(now, step)
    return now.d1, now.d2


class _Shrinking:
    """State of one shrinking: the texts of the pairs tried, and the number of tries left."""

    def __init__(
        self, relation: Relation, violates: Callable[[Any, Any], bool], most_tries: int
    ) -> None:
        self._relation, self._violates, self.left = relation, violates, most_tries
        self.known: set[str] = set()

    def smallest(self, now: Pair, step: _Step) -> Pair:
        """Replace a pair by the first smaller one that violates the claim, again and again."""
        space = self._relation.space
        while True:
            smaller = next((pair for pair in step(now, space) if self._holds(pair, now)), None)
            if smaller is None:
                return now
            now = smaller

    def _holds(self, pair: Pair, now: Pair) -> bool:
        text = _key(pair)
        if self.left <= 0 or text in self.known or key(pair.d1) == key(pair.d2):
            return False
        self.known.add(text)
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
    """Yield pairs without some of the records that both lists have."""
    # Blocks of two keep an odd length odd, since a mechanism may violate the claim only for lists
    # of odd length.
    common = matched(*now)
    halves = {len(common) >> times for times in range(len(common).bit_length())}
    sizes = sorted(size for size in {*halves, 1, 2, 3} if size <= len(common))
    for size in reversed(sizes):
        for begin in range(0, len(common), size):
            yield _without_common(now, common[begin : begin + size])
    if len(common) <= _MAX_COMBINED:
        for pairs in combinations(common, 2):
            yield _without_common(now, pairs)


def _without_common(now: Pair, pairs: Sequence[tuple[int, int]]) -> Pair:
    ours, theirs = zip(*pairs, strict=True)
    return Pair(without(now.d1, *ours), without(now.d2, *theirs))


def _fewer_different(now: Pair, _: Space) -> Iterator[Pair]:
    """Yield pairs without a record that only one list has, or with one less in each list."""
    first, second = unmatched(*now)
    common = matched(*now)
    for left_index in first:
        for right_index in second:
            yield Pair(without(now.d1, left_index), without(now.d2, right_index))
    for left_index in first:
        yield Pair(without(now.d1, left_index), now.d2)
        yield from (
            Pair(without(now.d1, left_index), without(now.d2, right_index))
            for _, right_index in common
        )
    for right_index in second:
        yield Pair(now.d1, without(now.d2, right_index))
        yield from (
            Pair(without(now.d1, left_index), without(now.d2, right_index))
            for left_index, _ in common
        )


def _fewer_at_an_end(now: Pair, space: Space) -> Iterator[Pair]:
    """Yield pairs of shorter lists in which every record is the same edge inside the space."""
    # A sum of records at a bound exceeds a limit with fewer records than other sums.
    common = matched(*now)
    if not isinstance(now.d1, list) or len(common) <= _READABLE_RECORDS:
        return
    ends = [edge.value for edge in space.of_record().edges() if edge.inside]
    for count in range(_READABLE_RECORDS):
        shorter = _without_common(now, common[count:])
        for end in ends:
            yield Pair([end] * len(shorter.d1), [end] * len(shorter.d2))


def _simpler_common(now: Pair, space: Space) -> Iterator[Pair]:
    """Yield pairs with a simpler record in both lists: for all its copies, then for single ones."""
    equal: dict[str, list[tuple[int, int]]] = {}
    for ours, theirs in matched(*now):
        equal.setdefault(key(now.d1[ours]), []).append((ours, theirs))
    for matches in equal.values():
        for simpler in space.of_record().simpler(now.d1[matches[0][0]]):
            for pairs in (matches, *([match] for match in matches if len(matches) > 1)):
                first, second = zip(*pairs, strict=True)
                yield Pair(changed(now.d1, simpler, *first), changed(now.d2, simpler, *second))


def _simpler_different(now: Pair, space: Space) -> Iterator[Pair]:
    """Yield pairs in which a record that only one list has, or a single value, is simpler."""
    if isinstance(now.d1, list) and isinstance(now.d2, list):
        return other_differences(now, space.of_record().simpler)
    return other_values(now, space.simpler)


_FEWER: tuple[_Step, ...] = (_fewer_common, _fewer_different, _fewer_at_an_end)
_SIMPLER: tuple[_Step, ...] = (_simpler_common, _simpler_different)
