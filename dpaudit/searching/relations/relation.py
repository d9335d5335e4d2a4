"""The interface of a relation: it changes an input into a neighbour, and proposes pairs that are
worth a trial."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from typing import Any, ClassVar

from dpaudit.errors import DatasetError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.neighbouring import holds
from dpaudit.searching.space import Edge, Space, distinct, identity
from dpaudit.searching.spaces.record_spaces import USUAL_RECORDS, Lists
from dpaudit.searching.spaces.user_spaces import Own

# Type of iterators of (d1, d2, description). The two inputs need not be neighbours: the caller
# checks it.
Pairs = Iterator[tuple[Any, Any, str]]

# If a user's code generates the inputs, pairs are made from this number of generated inputs.
_MAX_GENERATED = 8
# If a user's code generates the inputs, each of them is paired with at most this number of its
# neighbours.
_MAX_NEIGHBOURS = 30
# If a user's code generates the inputs: largest number of records that are taken from these inputs
# to make neighbours. Each is added to an input, or put in place of one of its records.
_MAX_INGREDIENTS = 20
# If a user's code generates the inputs: largest number of pairs (d1, d2) of two generated inputs.
# Two inputs give two pairs, since either can be d1.
_MAX_PAIRS_OF_GENERATED = 100


@dataclass(frozen=True, slots=True)
class Ingredients:
    """The material from which neighbours of a dataset are made.

    records: records to add to the dataset, or to put in place of its records.
    steps: amounts by which numbers of the dataset are moved, from −1 to 1, as multiples of the
        distance that the relation allows.
    """

    records: Sequence[Any]
    steps: Sequence[float] = (1.0, -1.0)


class Relation(ABC):
    """A relation between the inputs of a space; `inner` is the space without its missing value."""

    # Whether inputs are vectors of query answers, whose numbers change. If False, inputs are
    # datasets, whose records change.
    is_of_answers: ClassVar[bool] = False
    # Whether two neighbours have the same number of records.
    keeps_size: ClassVar[bool] = False
    # Whether, of two neighbours, one has more records: one record more, or all records of one user.
    grows: ClassVar[bool] = False

    def __init__(self, space: Space, adjacency: Adjacency) -> None:
        self.space, self.adjacency = space, adjacency
        self.inner = space.present()

    @property
    def is_own(self) -> bool:
        """Whether a user's own code, which may never return, defines the space or the relation."""
        return isinstance(self.inner, Own) or bool(self.adjacency.path)

    def describe(self) -> str:
        """Return the name of the relation in the notation of users, such as `l1:2`."""
        return self.adjacency.describe()

    def check_possible(self) -> None:
        """Raise DatasetError if no two inputs of the space can be neighbours."""
        problem = "" if self.is_own else self.problem(self.inner)
        if problem:
            raise DatasetError(
                f"adjacency {self.describe()} fits no two inputs of {self.space.words()}: "
                f"{problem}",
                code="space-without-neighbours",
            )

    @abstractmethod
    def problem(self, space: Space) -> str:
        """Return why no two values of `space` can be neighbours; "" if there is no such reason."""

    @abstractmethod
    def changes(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        """Yield changed copies of a dataset, made from `by`. Most copies are neighbours of the
        dataset; the caller checks each copy."""

    def holds(self, d1: Any, d2: Any) -> bool:
        """Return whether two inputs differ and are neighbours."""
        return identity(d1) != identity(d2) and self._relates(d1, d2)

    def holds_inside(self, d1: Any, d2: Any) -> bool:
        """Return whether two inputs both lie in the space, differ, and are neighbours."""
        return self.are_inside(d1, d2) and self.holds(d1, d2)

    def are_inside(self, d1: Any, d2: Any) -> bool:
        """Return whether both inputs lie in the space."""
        return self.space.contains(d1) and self.space.contains(d2)

    def _relates(self, d1: Any, d2: Any) -> bool:
        if isinstance(self.inner, Lists) and not (isinstance(d1, list) and isinstance(d2, list)):
            return False
        return holds(d1, d2, self.adjacency)

    def has_room(self, size: int) -> bool:
        """Return whether the space contains lists of `size` records."""
        return self.inner.fits(size) if isinstance(self.inner, Lists) else size >= 0

    def changed(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        """Yield each changed copy from `changes` that is a neighbour of the dataset, each once."""
        known = {identity(dataset)}
        for copy in self.changes(dataset, by):
            if (key := identity(copy)) not in known:
                known.add(key)
                if self._relates(dataset, copy):
                    yield copy

    def edge_pairs(self) -> Pairs:
        """Yield (d1, d2, description) for pairs in which one input or both contain an edge."""
        if isinstance(self.inner, Own):
            yield from self._generated_pairs(self.inner.spread(_MAX_GENERATED))
        else:
            yield from self.pairs_at_edges()

    @abstractmethod
    def pairs_at_edges(self) -> Pairs:
        """Yield (d1, d2, description) for pairs in which an input contains an edge. This is not
        called if a user's code generates the inputs."""

    def bound_pairs(self) -> Pairs:
        """Yield (d1, d2, description) for pairs of the smallest datasets, with records at the
        bounds, such as [0] and [1]. On many mechanisms, these leak most. By default, yield
        nothing."""
        return iter(())

    def extreme_pairs(self) -> Pairs:
        """Yield (d1, d2, description) for a few pairs with as many records as possible. They may
        show a leak that no small pair shows. By default, yield nothing."""
        return iter(())

    def pattern_pairs(self) -> Pairs:
        """Yield (d1, d2, description) for pairs that follow a pattern; by default none."""
        return iter(())

    def _generated_pairs(self, inputs: Sequence[Any]) -> Pairs:
        """Yield pairs of an input and a changed copy of it, then pairs of two of the inputs."""
        if isinstance(self.inner, Own):
            lists = [value for value in inputs if isinstance(value, list)]
            records = [record for dataset in lists for record in dataset]
        else:
            records = [edge.value for edge in self.space.of_record().edges()]
        scalars = [value for value in inputs if not isinstance(value, list)]
        by = Ingredients([*records, *scalars][:_MAX_INGREDIENTS])
        for dataset in inputs:
            for neighbour in islice(self.changed(dataset, by), _MAX_NEIGHBOURS):
                yield dataset, neighbour, "a neighbour of a generated input"
        for d1, d2 in islice(permutations(inputs, 2), _MAX_PAIRS_OF_GENERATED):
            yield d1, d2, "two inputs of the space"


Bases = list[tuple[str, list[Any]]]
# If there are more edges than this, each edge is added to only `_FEW_BASES` datasets, to save time.
# Tables with many columns may have more edges.
_MANY_EDGES = 150
# If there are more than `_MANY_EDGES` edges, each edge is added only to this number of the smallest
# datasets.
_FEW_BASES = 2


def base_datasets(space: Lists, *, room: int = 0, empty: bool = True) -> Bases:
    """Return (description, dataset) for datasets to which an edge, and `room` records, may be
    added, the smallest first. `empty` says whether the dataset without records is among them."""
    item = space.item
    low, high = item.extremes()
    smallest = ("nothing", "one usual record", "usual records")[min(space.min_size, 2)]
    known = [
        (smallest, []),
        ("one usual record", [item.usual()]),
        ("a few usual records", item.spread(USUAL_RECORDS)),
        ("records at the lower bound", [low] * USUAL_RECORDS),
        ("records at the upper bound", [high] * USUAL_RECORDS),
        ("an even number of records", item.spread(USUAL_RECORDS + 1)),
    ]
    sized = ((words, _sized(records, space, room)) for words, records in known)
    fitting = [
        (words, dataset) for words, dataset in sized if dataset is not None and (dataset or empty)
    ]
    return list(distinct(fitting, key=lambda base: base[1]))


def few_bases(bases: Bases, edges: Sequence[Edge]) -> Bases:
    """Return the datasets to which edges are added. These are all of `bases` or, if there are more
    than 150 edges, the first two, to save time."""
    return bases[:_FEW_BASES] if len(edges) > _MANY_EDGES else bases


def _sized(records: list[Any], space: Lists, room: int) -> list[Any] | None:
    """Return the records, cut or repeated so that the space allows `room` more of them, or None."""
    max_size = space.max_size - room
    if max_size < space.min_size:
        return None
    filler = records[-1] if records else space.item.usual()
    return [*records, *([filler] * max(0, space.min_size - len(records)))][:max_size]
