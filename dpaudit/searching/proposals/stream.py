"""All proposals for a space and a relation, the most promising first."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.searching.neighbours import NUMERIC, are_neighbours, check_possible, present
from dpaudit.searching.proposals.edges import edge_pairs, extreme_pairs
from dpaudit.searching.proposals.lattices import lattice_pairs
from dpaudit.searching.proposals.patterns import pattern_pairs
from dpaudit.searching.proposals.proposal import Origin, Proposal
from dpaudit.searching.proposals.random import random_pairs
from dpaudit.searching.space import Space, identity
from dpaudit.searching.spaces.lists import Lists

# More of them than values of one record and places for it would take over a search.
MOST_EDGES = 300
# Of these, so many may be of values inside the space, if there are others.
_MOST_INSIDE = 200

Source = Callable[[Space, Adjacency], Iterator[tuple[Any, Any, str]]]


def proposals(
    space: Space, adjacency: Adjacency, *, seed: int, inside_only: bool = False
) -> Iterator[Proposal]:
    """Yield proposals: the catalogue of edges, patterns, a lattice, then random ones, each pair
    once. They do not end, but in a space of which no new pair can be drawn.

    seed: of the random ones.  inside_only: leave out inputs that do not lie in the space.
    Raises DatasetError when no two inputs are neighbours, or a user's own space or relation fails;
    UsageError when random ones are needed and Hypothesis is not installed.
    """
    check_possible(space, adjacency)
    return _all(space, adjacency, seed, inside_only)


def catalogue(
    space: Space, adjacency: Adjacency, *, inside_only: bool = False
) -> Iterator[Proposal]:
    """Yield the proposals that are not random."""
    check_possible(space, adjacency)
    yield from _catalogue(_Sieve(space, adjacency, inside_only))


class _Sieve:
    """Lets through pairs of neighbours, each once."""

    def __init__(self, space: Space, adjacency: Adjacency, inside_only: bool) -> None:
        self.space, self.adjacency, self.inside_only = space, adjacency, inside_only
        self._known: set[Hashable] = set()

    def proposal(self, d1: Any, d2: Any, why: str, origin: Origin) -> Proposal | None:
        """Return the proposal of a pair; None for what is known, or is none."""
        key = frozenset((identity(d1), identity(d2)))
        if key in self._known:
            return None
        self._known.add(key)
        if not (_has_room(self.space, d1) and _has_room(self.space, d2)):
            return None
        inside = self.space.contains(d1) and self.space.contains(d2)
        if self.inside_only and not inside:
            return None
        if not are_neighbours(d1, d2, self.adjacency, self.space):
            return None
        return Proposal(d1, d2, why, origin, inside)

    def of(self, source: Source, origin: Origin) -> Iterator[Proposal]:
        for d1, d2, why in source(self.space, self.adjacency):
            if (found := self.proposal(d1, d2, why, origin)) is not None:
                yield found


def _has_room(space: Space, dataset: Any) -> bool:
    """Whether a list has as many records as it may have; more or fewer are not proposed, since a
    mechanism may rely on their number."""
    inner = present(space)
    if isinstance(inner, Lists) and isinstance(dataset, list):
        return inner.fits(len(dataset))
    return True


def _all(space: Space, adjacency: Adjacency, seed: int, inside_only: bool) -> Iterator[Proposal]:
    sieve = _Sieve(space, adjacency, inside_only)
    found = False
    for one in _catalogue(sieve):
        found = True
        yield one
    for d1, d2 in random_pairs(space, adjacency, seed):
        drawn = sieve.proposal(d1, d2, "drawn at random", "random")
        if drawn is not None:
            found = True
            yield drawn
    if not found:
        where = " inside it" if inside_only else ""
        raise DatasetError(
            f"adjacency {adjacency.describe()} fits no two inputs of {space.words()}: none of the "
            f"pairs{where} that were tried are neighbours; allow more inputs, or state another one",
            code="space-without-neighbours",
        )


def _catalogue(sieve: _Sieve) -> Iterator[Proposal]:
    # Of answers, an edge that is a pattern is one of the few pairs known to be bad ones.
    is_numeric = sieve.adjacency.kind in NUMERIC
    shapes = list(sieve.of(pattern_pairs, "pattern")) if is_numeric else []
    yield from _chosen(list(sieve.of(edge_pairs, "edge")))
    yield from sieve.of(extreme_pairs, "extreme")
    yield from shapes
    yield from sieve.of(pattern_pairs, "pattern")
    yield from sieve.of(lattice_pairs, "lattice")


def _chosen(found: list[Proposal]) -> list[Proposal]:
    """Return edges, those inside first and of these the small ones; not too many of them."""
    found = sorted(found, key=lambda one: (not one.inside, _size(one.d1) + _size(one.d2)))
    inside = [one for one in found if one.inside]
    outside = found[len(inside) :]
    kept = inside[: max(_MOST_INSIDE, MOST_EDGES - len(outside))]
    return [*kept, *outside[: MOST_EDGES - len(kept)]]


def _size(dataset: Any) -> int:
    return len(dataset) if isinstance(dataset, list) else 1
