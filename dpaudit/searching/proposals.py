"""Propose pairs that are worth a trial: with edges, with patterns of query answers, at random."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, get_args

from dpaudit.errors import DatasetError
from dpaudit.searching.drawing import drawn
from dpaudit.searching.relations import Ingredients, Relation
from dpaudit.searching.relations.relation import Pairs
from dpaudit.searching.relations.users import allowed
from dpaudit.searching.space import Space, identity, strategies
from dpaudit.searching.spaces.user_spaces import Own

Origin = Literal["bound", "edge", "extreme", "pattern", "random", "raising"]

# Kinds of values outside the space: NaN, None, other numbers, and all other values, such as new
# categories.
Outside = Literal["NaN", "missing", "beyond", "other"]
KINDS: tuple[Outside, ...] = get_args(Outside)

# Largest number of proposed pairs at edges. Without a limit, there would be many more: each edge is
# added to several datasets, and each addition gives a pair.
MAX_EDGES = 300
# Of the `MAX_EDGES` (300) pairs at edges, at most this number lie inside the space; the other 100
# are for pairs outside the space. If there are fewer than 100 pairs outside it, more pairs inside
# it take their place.
_MAX_EDGES_INSIDE = 200
# A random pair consists of a random dataset and a changed copy of it. The change is drawn from at
# most this number of possible changes.
_MAX_CHANGES = 200
# Largest number of changes of a dataset that are tried to make a random pair, a dataset and a
# changed copy that is its neighbour. The first change is chosen at random from a list; if it gives
# no neighbour, the next changes in the list are tried.
_MAX_TRIES = 20
# No more random pairs are drawn after this number of draws in a row without a new pair: the space
# then counts as exhausted.
_MAX_VAIN_DRAWS = 500
_NONE = object()


@dataclass(frozen=True, slots=True)
class Proposal:
    """Two neighbouring inputs, in plain Python.

    why: short description, such as "the added record is NaN".
    inside: whether both inputs lie in the space.
    """

    d1: Any
    d2: Any
    why: str
    origin: Origin
    inside: bool


def proposals(relation: Relation, *, seed: int, inside_only: bool = False) -> Iterator[Proposal]:
    """Yield proposed pairs, each once: first the catalogue, then random pairs. `inside_only` leaves
    out inputs outside the space. Raises DatasetError if no two inputs are neighbours, or if a
    user's code fails. Raises MissingLibrary if random pairs need Hypothesis and it is not
    installed."""
    relation.check_possible()
    return _proposals(relation, seed, inside_only)


def _proposals(relation: Relation, seed: int, inside_only: bool) -> Iterator[Proposal]:
    unseen = _NewPairs(relation, inside_only)
    is_any = False
    for proposal in _catalogue(unseen):
        is_any = True
        yield proposal
    for d1, d2 in random_pairs(relation, seed):
        if (random := unseen.proposal(d1, d2, "drawn at random", "random")) is not None:
            is_any = True
            yield random
    if not is_any:
        where = " inside it" if inside_only else ""
        raise DatasetError(
            f"adjacency {relation.describe()} fits no two inputs of {relation.space.words()}: none "
            f"of the pairs{where} that were tried are neighbours; allow more inputs, or state "
            "another one",
            code="space-without-neighbours",
        )


def catalogue(relation: Relation, *, inside_only: bool = False) -> Iterator[Proposal]:
    """Yield the proposed pairs that are not random: pairs at edges, pairs with as many records as
    possible, and patterns. `inside_only` leaves out inputs outside the space."""
    relation.check_possible()
    yield from _catalogue(_NewPairs(relation, inside_only))


def at_bounds(relation: Relation) -> Iterator[Proposal]:
    """Yield the pairs of the smallest datasets, with records at the bounds, such as [0] and [1].
    All of them lie inside the space."""
    return _NewPairs(relation, inside_only=True).of(relation.bound_pairs, "bound")


def kind_outside(proposal: Proposal, space: Space) -> Outside:
    """Return the kind of the values by which a pair lies outside the space. Of several kinds,
    return the first in the order of `Outside`."""
    kinds = {
        _kind(value)
        for dataset in (proposal.d1, proposal.d2)
        for value in _values_outside(dataset, space)
    }
    return next((kind for kind in KINDS if kind in kinds), "other")


def _kind(value: Any) -> Outside:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if value is None:
        return "missing"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "beyond" if is_number else "other"


def _values_outside(dataset: Any, space: Space) -> Iterator[Any]:
    item = space.of_record()
    columns = item.by_column()
    for record in parts(dataset):
        if item.contains(record):
            continue
        if isinstance(record, dict) and record.keys() == columns.keys():
            yield from (part for name, part in record.items() if not columns[name].contains(part))
        else:
            yield record


class _NewPairs:
    """Makes a `Proposal` of each pair of neighbours that was not proposed before."""

    def __init__(self, relation: Relation, inside_only: bool) -> None:
        self.relation, self._inside_only = relation, inside_only
        self._known: set[Hashable] = set()

    def proposal(self, d1: Any, d2: Any, why: str, origin: Origin) -> Proposal | None:
        """Return a pair as a `Proposal`; None if it is known, not allowed, or not of neighbours."""
        key = frozenset((identity(d1), identity(d2)))
        if key in self._known:
            return None
        self._known.add(key)
        relation = self.relation
        # Leave out inputs whose number of records lies outside the space: a mechanism may rely on
        # this number.
        if any(
            isinstance(dataset, list) and not relation.has_room(len(dataset))
            for dataset in (d1, d2)
        ):
            return None
        inside = relation.are_inside(d1, d2)
        if (self._inside_only and not inside) or not relation.holds(d1, d2):
            return None
        return Proposal(d1, d2, why, origin, inside)

    def of(self, pairs: Callable[[], Pairs], origin: Origin) -> Iterator[Proposal]:
        """Yield a `Proposal` for each new pair of neighbours that `pairs` makes."""
        for d1, d2, why in pairs():
            if (proposal := self.proposal(d1, d2, why, origin)) is not None:
                yield proposal


def _catalogue(unseen: _NewPairs) -> Iterator[Proposal]:
    relation = unseen.relation
    # Pairs of query answers that follow a pattern, such as `one above`, are made before the edges.
    # A pair that is both then counts as a pattern and is always kept: patterns are known to find
    # most leaks of answers.
    first = list(unseen.of(relation.pattern_pairs, "pattern"))
    yield from _chosen(list(unseen.of(relation.edge_pairs, "edge")))
    yield from unseen.of(relation.extreme_pairs, "extreme")
    yield from first


def _chosen(edges: list[Proposal]) -> list[Proposal]:
    """Return at most `MAX_EDGES` proposals: inside the space first, then small datasets."""
    edges = sorted(
        edges,
        key=lambda proposal: (
            not proposal.inside,
            len(parts(proposal.d1)) + len(parts(proposal.d2)),
        ),
    )
    inside = [proposal for proposal in edges if proposal.inside]
    outside = edges[len(inside) :]
    selection = inside[: max(_MAX_EDGES_INSIDE, MAX_EDGES - len(outside))]
    return [*selection, *outside[: MAX_EDGES - len(selection)]]


def parts(dataset: Any) -> list[Any]:
    """Return the records of a dataset; for a single value, a list that contains only this value."""
    return dataset if isinstance(dataset, list) else [dataset]


def random_pairs(relation: Relation, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield random pairs, each once. End when 500 draws in a row have given no new pair."""
    known: set[Hashable] = set()
    vain = 0
    words = relation.space.words()
    for pair in drawn(pair_strategy(relation), seed, words, is_own=relation.is_own):
        vain += 1
        if pair is not None and (key := frozenset(map(identity, pair))) not in known:
            known.add(key)
            vain = 0
            yield pair
        if vain >= _MAX_VAIN_DRAWS:
            return


def pair_strategy(relation: Relation) -> Any:
    """Return a strategy of Hypothesis that draws a random dataset and one of its neighbours, in
    random order. The strategy draws None if it finds no neighbour."""
    st = strategies()
    datasets, records = relation.space.strategy(), _record_strategy(relation)
    users = relation.adjacency.users
    hundredths = st.integers(-100, 100).filter(bool).map(lambda part: part / 100)
    parts = hundredths | st.sampled_from((1.0, -1.0))

    def pair(draw: Any) -> tuple[Any, Any] | None:
        d1 = draw(datasets)
        if users is not None:
            d1 = allowed(d1, users)
        by = Ingredients([draw(records) for _ in range(2)], (draw(parts), draw(parts)))
        copies = list(islice(relation.changes(d1, by), _MAX_CHANGES))
        start = draw(st.integers(0, max(0, len(copies) - 1)))
        candidates = islice([*copies[start:], *copies[:start]], _MAX_TRIES)
        d2 = next((copy for copy in candidates if relation.holds(d1, copy)), _NONE)
        if d2 is _NONE:
            return None
        return (d1, d2) if draw(st.booleans()) else (d2, d1)

    return st.composite(pair)()


def _record_strategy(relation: Relation) -> Any:
    """Return a strategy of Hypothesis for one record."""
    if not isinstance(relation.inner, Own):
        return relation.space.of_record().strategy()
    st = strategies()
    filled = relation.space.strategy().filter(lambda dataset: dataset != [])
    return filled.flatmap(
        lambda dataset: st.sampled_from(dataset) if isinstance(dataset, list) else st.just(dataset)
    )
