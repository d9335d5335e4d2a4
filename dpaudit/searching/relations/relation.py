"""The interface of a neighbouring relation on a space: its neighbours, and the pairs worth a trial.

Each kind of relation is one class, with the changes that lead to a neighbour and with its
catalogue: pairs at an edge, patterns, and a lattice (a few datasets that are all compared).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice, permutations
from typing import Any, ClassVar

from dpaudit.errors import DatasetError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.neighbouring import holds
from dpaudit.searching.space import Edge, Space, distinct, identity
from dpaudit.searching.spaces.datasets import FEW, Lists
from dpaudit.searching.spaces.own import Own

# Two inputs, and in words what they try. They need not be neighbours: the caller checks it.
Pairs = Iterator[tuple[Any, Any, str]]

# Records that `neighbours` adds, or puts in the place of another.
_RECORDS = 40
# Inputs of a user's generator that are changed.
_GENERATED = 8
# Most changes of each such input.
_CHANGES_OF_EACH = 30
# Most records that these changes put in.
_INGREDIENTS = 20
# Pairs of two generated inputs, at most.
_PERMUTATIONS = 100
# Records of which a lattice has all subsets.
_CORNERS = 3
# Most edges in a lattice of single values.
_VALUES = 4


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What a dataset is changed by.

    records: to add, or to put in the place of others.  steps: of numbers, as parts of the allowed
    distance, from −1 to 1.
    """

    records: Sequence[Any]
    steps: Sequence[float] = (1.0, -1.0)


class Relation(ABC):
    """A neighbouring relation on a space. inner: the space without its missing value."""

    # Whether inputs are answers to queries, whose numbers move, and not records.
    is_of_answers: ClassVar[bool] = False
    # Whether neighbours have equally many records; whether records come and go one by one.
    keeps_size: ClassVar[bool] = False
    grows: ClassVar[bool] = False

    def __init__(self, space: Space, adjacency: Adjacency) -> None:
        self.space, self.adjacency = space, adjacency
        self.inner = space.present()

    @property
    def is_own(self) -> bool:
        """Whether the space or the relation is a user's own code, which may never return."""
        return isinstance(self.inner, Own) or bool(self.adjacency.path)

    def describe(self) -> str:
        """Return the relation as a user writes it, e.g. `l1:2`."""
        return self.adjacency.describe()

    def check_possible(self) -> None:
        """Raise DatasetError when no two inputs of the space can be neighbours."""
        problem = "" if self.is_own else self.problem(self.inner)
        if problem:
            raise DatasetError(
                f"adjacency {self.describe()} fits no two inputs of {self.space.words()}: "
                f"{problem}",
                code="space-without-neighbours",
            )

    @abstractmethod
    def problem(self, space: Space) -> str:
        """Return why no two values of a space are neighbours; "" where some may be."""

    @abstractmethod
    def changes(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        """Yield changed datasets, most of them neighbours of the given one."""

    def holds(self, d1: Any, d2: Any) -> bool:
        """Return whether two different inputs are neighbours."""
        return identity(d1) != identity(d2) and self._relates(d1, d2)

    def holds_inside(self, d1: Any, d2: Any) -> bool:
        """Return whether two inputs of the space are neighbours."""
        return self.are_inside(d1, d2) and self.holds(d1, d2)

    def are_inside(self, d1: Any, d2: Any) -> bool:
        """Return whether two inputs lie in the space."""
        return self.space.contains(d1) and self.space.contains(d2)

    def _relates(self, d1: Any, d2: Any) -> bool:
        if isinstance(self.inner, Lists) and not (isinstance(d1, list) and isinstance(d2, list)):
            return False
        return holds(d1, d2, self.adjacency)

    def has_room(self, size: int) -> bool:
        """Return whether the space has lists of this number of records."""
        return self.inner.fits(size) if isinstance(self.inner, Lists) else size >= 0

    def changed(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        """Yield the neighbours of a dataset that ingredients lead to, each once."""
        known = {identity(dataset)}
        for other in self.changes(dataset, by):
            if (named := identity(other)) not in known:
                known.add(named)
                if self._relates(dataset, other):
                    yield other

    def neighbours(self, dataset: Any) -> Iterator[Any]:
        """Yield neighbours of a dataset, finitely many and each once: first those without one of
        its records, then those with an edge.

        Raises DatasetError when no two inputs of the space are neighbours.
        """
        self.check_possible()
        records = islice((edge.value for edge in self.space.of_record().edges()), _RECORDS)
        yield from self.changed(dataset, Ingredients(list(records)))

    def edge_pairs(self) -> Pairs:
        """Yield pairs of which one input, or both, are at an edge."""
        if isinstance(self.inner, Own):
            yield from self._generated_pairs(self.inner.spread(_GENERATED))
        else:
            yield from self.pairs_at_edges()

    @abstractmethod
    def pairs_at_edges(self) -> Pairs:
        """Yield the pairs at an edge of a space that is not generated by a user's code."""

    def extreme_pairs(self) -> Pairs:
        """Yield the few pairs with the most records that no small pair can replace."""
        return iter(())

    def pattern_pairs(self) -> Pairs:
        """Yield pairs of the patterns of query answers; none for relations without patterns."""
        return iter(())

    def lattice(self) -> list[Any]:
        """Return a few datasets of which many are neighbours, the smallest first: the draws for
        each of them serve several pairs."""
        inner = self.inner
        if isinstance(inner, Own):
            given = inner.spread(_VALUES)
            lists = [one for one in given if isinstance(one, list) and len(one) >= _CORNERS]
            return _subsets(lists[0][:_CORNERS]) if lists else list(distinct(given))
        if not isinstance(inner, Lists):
            values = [edge.value for edge in inner.edges() if edge.inside][:_VALUES]
            return list(distinct([inner.usual(), *inner.extremes(), *values]))
        low, high = inner.item.extremes()
        few = [inner.item.usual(), low, high, *inner.item.spread(_CORNERS)]
        records = list(distinct(few))
        corners = self.corners([records[i % len(records)] for i in range(_CORNERS)])
        if inner.is_vector:
            equal, size = [[one] * inner.most for one in corners], inner.most - 1
            return equal + [[*([corners[0]] * size), one] for one in corners[1:]]
        return [one for one in _subsets(corners) if inner.fits(len(one))]

    def corners(self, records: list[Any]) -> list[Any]:
        """Return the records whose subsets are a lattice."""
        return records

    def lattice_pairs(self) -> Pairs:
        """Yield all pairs of neighbours in the lattice; d1 is the smaller one."""
        for d1, d2 in combinations(self.lattice(), 2):
            if self.holds(d1, d2):
                yield d1, d2, "neighbours in a small lattice"

    def _generated_pairs(self, given: Sequence[Any]) -> Pairs:
        """Yield pairs of inputs that code of a user gave or accepts: neighbours, or two of them."""
        if isinstance(self.inner, Own):
            lists = [one for one in given if isinstance(one, list)]
            records = [record for dataset in lists for record in dataset]
        else:
            records = [edge.value for edge in self.space.of_record().edges()]
        scalars = [one for one in given if not isinstance(one, list)]
        by = Ingredients([*records, *scalars][:_INGREDIENTS])
        for dataset in given:
            for other in islice(self.changed(dataset, by), _CHANGES_OF_EACH):
                yield dataset, other, "a neighbour of a generated input"
        for d1, d2 in islice(permutations(given, 2), _PERMUTATIONS):
            yield d1, d2, "two inputs of the space"


def _subsets(records: list[Any]) -> list[list[Any]]:
    sizes = range(len(records) + 1)
    return list(distinct(list(some) for size in sizes for some in combinations(records, size)))


Bases = list[tuple[str, list[Any]]]
# Tables with many columns have more edges than this; then each is tried in fewer datasets ...
_MANY_EDGES = 150
# ... namely in the first ones.
_FEW_BASES = 2


def base_datasets(space: Lists, *, room: int = 0, empty: bool = True) -> Bases:
    """Return datasets to put an edge in, each with a description, the smallest first.

    room: number of records that must still fit in.  empty: whether the dataset without records is
    one of them.
    """
    item = space.item
    low, high = item.extremes()
    known = [
        ("nothing", []),
        ("one usual record", [item.usual()]),
        ("a few usual records", item.spread(FEW)),
        ("records at the lower bound", [low] * FEW),
        ("records at the upper bound", [high] * FEW),
        ("an even number of records", item.spread(FEW + 1)),
    ]
    sized = ((words, _sized(records, space, room)) for words, records in known)
    fitting = [(words, one) for words, one in sized if one is not None and (one or empty)]
    return list(distinct(fitting, key=lambda one: one[1]))


def few_bases(bases: Bases, edges: Sequence[Edge]) -> Bases:
    """Return the datasets that edges are tried in: all, or the first two for many edges."""
    return bases[:_FEW_BASES] if len(edges) > _MANY_EDGES else bases


def _sized(records: list[Any], space: Lists, room: int) -> list[Any] | None:
    """Return records, cut or filled to the sizes that the space and the room allow; None if they
    allow none."""
    most = space.most - room
    if most < space.least:
        return None
    filler = records[-1] if records else space.item.usual()
    return [*records, *([filler] * max(0, space.least - len(records)))][:most]
