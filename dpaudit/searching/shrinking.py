"""A witness becomes small: fewest records first, then the simplest values, while it still violates.

Hypothesis can only shrink an example that it has generated, from the choices that made it. Most
witnesses come from the catalogue, from patterns or from climbing; so this is ours. It is greedy and
deterministic, as a debugger's is that drops half of a failing input, then a quarter, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from dpaudit.searching.climbing import Pair, other_differences
from dpaudit.searching.neighbours import are_neighbours, item_of
from dpaudit.searching.parts import changed, key, matched, moved_alike, unmatched, without

if TYPE_CHECKING:
    from dpaudit.inputs.adjacency import Adjacency
    from dpaudit.searching.space import Space

MOST_TRIES = 2_000
# With no more common records a witness is small enough to be read.
_READABLE = 2
# Of so many common records, any two are left out together.
_FEW = 12
Violates = Callable[[Any, Any], bool]


def shrunk(
    d1: Any,
    d2: Any,
    space: Space,
    adjacency: Adjacency,
    violates: Violates,
    *,
    most_tries: int = MOST_TRIES,
    keeps_size: bool = False,
) -> tuple[Any, Any]:
    """Return the smallest pair found for which `violates` still holds; it holds for the one given.

    Every pair tried is one of neighbours. One outside the space is tried only in the place of
    another such, and one inside is taken in its place whenever there is one. No dataset gets more
    records. most_tries: how often `violates` is asked.  keeps_size: leave out no records.
    """
    search = _Shrinking(space, adjacency, violates, most_tries)
    now, before = Pair(d1, d2), None
    search.seen.add(_key(now))
    while now != before and search.left > 0:
        before = now
        for step in _SIMPLER if keeps_size else (*_FEWER, *_SIMPLER):
            now = search.smallest(now, step)
    return now.d1, now.d2


class _Shrinking:
    """What is shrunk towards, and what was tried."""

    def __init__(
        self, space: Space, adjacency: Adjacency, violates: Violates, most_tries: int
    ) -> None:
        self.space, self._adjacency, self._violates = space, adjacency, violates
        self.left = most_tries
        self.seen: set[str] = set()

    def smallest(self, now: Pair, step: _Step) -> Pair:
        """Return what is left when no candidate of a step violates."""
        while True:
            found = next((one for one in step(now, self.space) if self._holds(one, now)), None)
            if found is None:
                return now
            now = found

    def _holds(self, one: Pair, now: Pair) -> bool:
        named = _key(one)
        if self.left <= 0 or named in self.seen or key(one.d1) == key(one.d2):
            return False
        self.seen.add(named)
        if self._is_inside(now) and not self._is_inside(one):
            return False
        if not are_neighbours(one.d1, one.d2, self._adjacency, self.space):
            return False
        self.left -= 1
        return self._violates(one.d1, one.d2)

    def _is_inside(self, one: Pair) -> bool:
        return self.space.contains(one.d1) and self.space.contains(one.d2)


_Step = Callable[[Pair, "Space"], Iterator[Pair]]


def _key(one: Pair) -> str:
    return f"{key(one.d1)} {key(one.d2)}"


def _fewer_common(now: Pair, _: Space) -> Iterator[Pair]:
    """Yield pairs without some of the records that both have: all, a half, a quarter, …, three,
    two (a witness may need an odd length), one; of few, any two."""
    common = matched(now.d1, now.d2)
    halves = {len(common) >> times for times in range(len(common).bit_length())}
    sizes = sorted(one for one in {*halves, 1, 2, 3} if one <= len(common))
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
    """Yield pairs without a record that only one of them has; in its place there may be one that
    both have."""
    first, second = unmatched(now.d1, now.d2)
    common = matched(now.d1, now.d2)
    for place in first:
        for other in second:
            yield Pair(without(now.d1, place), without(now.d2, other))
    for place in first:
        yield Pair(without(now.d1, place), now.d2)
        yield from (Pair(without(now.d1, place), without(now.d2, other)) for _, other in common)
    for place in second:
        yield Pair(now.d1, without(now.d2, place))
        yield from (Pair(without(now.d1, one), without(now.d2, place)) for one, _ in common)


def _fewer_at_an_end(now: Pair, space: Space) -> Iterator[Pair]:
    """Yield pairs without most of the records that both have, where several are left, all others
    being the same, at an end of the space: it takes fewer of these for a sum that is too large."""
    common = matched(now.d1, now.d2)
    if not isinstance(now.d1, list) or len(common) <= _READABLE:
        return
    of_record = item_of(space)
    ends = [edge.value for edge in of_record.edges() if of_record.contains(edge.value)]
    for many in range(_READABLE):
        kept = _without_common(now, common[many:])
        for end in ends:
            yield Pair([end] * len(kept.d1), [end] * len(kept.d2))


def _simpler_common(now: Pair, space: Space) -> Iterator[Pair]:
    """Yield pairs of which records that both have are simpler: all that are alike at once, then
    single ones."""
    common = matched(now.d1, now.d2)
    of_record = item_of(space)
    alike: dict[str, list[tuple[int, int]]] = {}
    for one, other in common:
        alike.setdefault(key(now.d1[one]), []).append((one, other))
    for places in alike.values():
        record = now.d1[places[0][0]]
        for simpler in of_record.simpler(record):
            for some in (places, *([one] for one in places if len(places) > 1)):
                ours, theirs = zip(*some, strict=True)
                yield Pair(changed(now.d1, simpler, *ours), changed(now.d2, simpler, *theirs))


def _simpler_different(now: Pair, space: Space) -> Iterator[Pair]:
    """Yield pairs of which what differs is simpler, on one side or, moved alike, on both."""
    if not (isinstance(now.d1, list) and isinstance(now.d2, list)):
        for simpler in space.simpler(now.d1):
            yield from (Pair(simpler, one) for one in moved_alike(now.d1, simpler, now.d2))
            yield Pair(simpler, now.d2)
        yield from (Pair(now.d1, simpler) for simpler in space.simpler(now.d2))
        return
    yield from other_differences(now, item_of(space).simpler)


_FEWER: tuple[_Step, ...] = (_fewer_common, _fewer_different, _fewer_at_an_end)
_SIMPLER: tuple[_Step, ...] = (_simpler_common, _simpler_different)
