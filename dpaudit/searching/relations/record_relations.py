"""Relations of datasets: one record is added or removed, or some records are replaced."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations
from typing import Any, ClassVar

from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.neighbouring import holds, related
from dpaudit.searching.relations.relation import (
    Ingredients,
    Pairs,
    Relation,
    base_datasets,
    few_bases,
)
from dpaudit.searching.relations.steps import stepped
from dpaudit.searching.space import Edge, Space
from dpaudit.searching.spaces.record_spaces import USUAL_RECORDS, Lists
from dpaudit.searching.spaces.user_spaces import Own
from dpaudit.searching.timeouts import within

# If a space allows at most this number of lengths, all lengths are tried.
_MAX_LENGTHS = 12
# If each dataset is a single value: largest number of pairs (d1, d2) that are proposed with an edge
# in both places. An edge is a value at which bugs are likely, such as a bound.
_MAX_EDGE_PAIRS = 100
# If a user's own function decides which datasets are neighbours, any two may be. So this number of
# datasets at which bugs are likely, such as the empty list, are also tried as neighbours of every
# dataset.
_MAX_OWN_EDGES = 40
_NO_LIST = "it is no list of records; state replace, or write list of …"
_EMPTY = "its lists are always empty; allow records, as in list of 0 to 30"


def no_room(space: Space) -> str:
    """Return why no list of a space has room for a further record; "" if some list has."""
    if not isinstance(space, Lists):
        return _NO_LIST
    if not space.max_size:
        return _EMPTY
    if space.is_vector:
        return f"it always has {space.min_size} records; state replace, or write list of 0 to 30"
    return ""


class AddRemove(Relation):
    """The relation in which two datasets are neighbours if one record is added or removed."""

    grows: ClassVar[bool] = True

    def problem(self, space: Space) -> str:
        return no_room(space)

    def changes(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        return _with_or_without_a_record(self, dataset, by)

    def pairs_at_edges(self) -> Pairs:
        space = self.inner
        assert isinstance(space, Lists)
        yield from _shapes(space)
        edges = list(space.item.edges())
        for words, base in few_bases(base_datasets(space, room=1), edges):
            for edge in edges:
                yield base, [*base, edge.value], _added(edge, words if base else "")

    def bound_pairs(self) -> Pairs:
        space = self.inner
        if isinstance(space, Lists):
            low, high = space.item.extremes()
            base = [low] * space.min_size
            words = "the smallest dataset at the lower bound, then one record more, at the"
            yield base, [*base, high], f"{words} upper bound"
            yield base, [*base, low], f"{words} lower bound"

    def extreme_pairs(self) -> Pairs:
        space = self.inner
        if not (isinstance(space, Lists) and space.max_size):
            return
        low, high = space.item.extremes()
        usual = space.item.usual()
        for record, words in ((usual, "equal"), (low, "lowest"), (high, "highest")):
            full = [record] * space.max_size
            yield full[1:], full, f"the most {words} records"
        lengths = range(space.min_size, space.max_size)
        for size in lengths if len(lengths) <= _MAX_LENGTHS else ():
            longer = [usual] * (size + 1)
            yield longer[1:], longer, f"{size:,} equal records, then one more"


def _with_or_without_a_record(relation: Relation, dataset: Any, by: Ingredients) -> Iterator[Any]:
    if not isinstance(dataset, list):
        return
    size = len(dataset)
    if relation.has_room(size - 1):
        yield from (dataset[:i] + dataset[i + 1 :] for i in range(size))
    if relation.has_room(size + 1):
        for index in dict.fromkeys((size, 0, size // 2)):
            yield from ([*dataset[:index], new, *dataset[index:]] for new in by.records)


def _added(edge: Edge, base: str) -> str:
    what = f"'s {edge.words}" if " is " in edge.words else f" is {edge.words}"
    if not base:
        return f"empty, then one record: the record{what}"
    return f"the added record{what}, next to {base}"


def _shapes(space: Lists) -> Pairs:
    """Yield pairs with an unusual length, an unusual order, or duplicate records."""
    item = space.item
    usual, few = item.usual(), item.spread(USUAL_RECORDS)
    (low, high), extra = item.extremes(), item.spread(2)[-1]
    yield [], [usual], "empty, then one record"
    yield [usual], [usual, extra], "a single record, then two"
    yield (
        [usual] * USUAL_RECORDS,
        [usual] * (USUAL_RECORDS + 1),
        "all records are equal, and one more like them",
    )
    yield few[:2], [*few[:2], few[0]], "a duplicate comes"
    yield few[:2], few, "an even number of records, then an odd one"
    yield few, [*few, usual], "an odd number of records, then an even one"
    yield few, [*few[::-1], usual], "the order of the records is reversed, and one comes"
    yield (
        [low] * USUAL_RECORDS,
        [*([low] * USUAL_RECORDS), high],
        "all at the lower bound, and one at the upper",
    )
    yield (
        [high] * USUAL_RECORDS,
        [*([high] * USUAL_RECORDS), low],
        "all at the upper bound, and one at the lower",
    )
    yield from _last_of_a_group(item, usual)
    yield from _constant_or_missing(item, usual)
    if space.max_size > USUAL_RECORDS + 1:
        full = item.spread(space.max_size)
        yield full[:-1], full, "one less than the most records, then the most"


def _last_of_a_group(item: Space, usual: Any) -> Pairs:
    """Yield pairs in which a group, such as the records of one city, loses its only record."""
    groups = [("", item.extremes())] if item.is_label() else []
    for column, space in item.by_column().items():
        if space.all_values() is not None:
            low, high = space.extremes()
            groups.append((f" ({column})", ({**usual, column: low}, {**usual, column: high})))
    for name, (low, high) in groups:
        for count in (1, USUAL_RECORDS):
            yield (
                [*([low] * count), high],
                [low] * count,
                f"the last record of a group leaves{name}",
            )


def _constant_or_missing(item: Space, usual: Any) -> Pairs:
    """Yield pairs in which a column of d1 is constant or missing, and d2 adds another value."""
    if not item.by_column():
        yield [None, None], [None, None, usual], "missing values, then one that is present"
        yield [usual, usual], [usual, usual, None], "present values, then one that is missing"
        low, high = item.extremes()
        yield [low, low], [low, low, high], "a constant column, until a record comes"
    for column, space in item.by_column().items():
        missing, (low, high) = {**usual, column: None}, space.extremes()
        yield (
            [missing, missing],
            [missing, missing, usual],
            f"missing values, then one is present ({column})",
        )
        same, different = {**usual, column: low}, {**usual, column: high}
        yield (
            [same] * 2,
            [same, same, different],
            f"a constant column, until a record comes ({column})",
        )


class Replace(Relation):
    """Datasets are neighbours if one record is replaced by another record."""

    keeps_size: ClassVar[bool] = True
    # Largest number of records in which two neighbours may differ.
    max_changes = 1

    def problem(self, space: Space) -> str:
        return _EMPTY if isinstance(space, Lists) and not space.max_size else ""

    def _relates(self, d1: Any, d2: Any) -> bool:
        # In a list of fixed length, each position has its own meaning, so a record may only be
        # replaced by a record in the same position.
        if isinstance(self.inner, Lists) and self.inner.is_vector:
            is_list = isinstance(d1, list) and isinstance(d2, list)
            return is_list and holds(d1, d2, Adjacency("hamming", self.max_changes))
        return super()._relates(d1, d2)

    def changes(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        return _with_a_record_replaced(dataset, by)

    def pairs_at_edges(self) -> Pairs:
        inner = self.inner
        yield from self._in_lists(inner) if isinstance(inner, Lists) else _exchanged(self.space)
        if inner is not self.space and self.adjacency.kind == "replace":
            special = next(self.space.edges())
            for edge in inner.edges():
                yield special.value, edge.value, f"{special.words}, then {edge.words}"

    def _in_lists(self, space: Lists) -> Pairs:
        yield from _shapes_replaced(space)
        edges = list(space.item.edges())
        bases = base_datasets(space, empty=False)
        size = min(self.max_changes, space.max_size)
        if not any(len(base) >= size for _, base in bases):
            bases.append(("records", space.item.spread(size)))
        for words, base in few_bases(bases, edges):
            count = min(self.max_changes, len(base))
            for edge in edges:
                neighbour = [*base[:-count], *([edge.value] * count)]
                yield base, neighbour, f"{words}, then {_replaced(edge, len(base), count)}"
            if count > 1:
                neighbour = [*base[:-1], space.item.simplest]
                yield base, neighbour, f"one record of {count:,}, in {words}"

    def bound_pairs(self) -> Pairs:
        space = self.inner
        if isinstance(space, Own):
            return
        if not isinstance(space, Lists):
            yield *space.extremes(), "from the lowest to the highest value"
            return
        low, high = space.item.extremes()
        size = max(1, space.min_size)
        count = min(self.max_changes, size)
        base = [low] * size
        why = "the fewest records, from the lower bound to the upper"
        yield base, [*base[count:], *([high] * count)], why

    def extreme_pairs(self) -> Pairs:
        space = self.inner
        if isinstance(space, Lists) and space.max_size:
            low, high = space.item.extremes()
            half = space.max_size // 2
            for record, new, words in ((low, high, "lowest"), (high, low, "highest")):
                head, tail = [record] * half, [record] * (space.max_size - half - 1)
                why = f"the most {words} records, the one in the middle replaced"
                yield [*head, record, *tail], [*head, new, *tail], why


def _replaced(edge: Edge, size: int, count: int) -> str:
    if count > 1:
        return f"the last {count}: {edge.words}"
    what = f"'s {edge.words}" if " is " in edge.words else f" is {edge.words}"
    return f"the {'record' if size == 1 else 'last one'}{what}"


class Hamming(Replace):
    """Datasets of equal length are neighbours if they differ in a limited number of positions."""

    def __init__(self, space: Space, adjacency: Adjacency) -> None:
        super().__init__(space, adjacency)
        self.max_changes = int(adjacency.distance)

    def problem(self, space: Space) -> str:
        return super().problem(space) if isinstance(space, Lists) else _NO_LIST

    def _relates(self, d1: Any, d2: Any) -> bool:
        return Relation._relates(self, d1, d2)

    def changes(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        if not isinstance(dataset, list):
            return
        for number in dict.fromkeys((min(self.max_changes, len(dataset)), 1)):
            for start in range(len(dataset) - number + 1):
                end = start + number
                yield from (dataset[:start] + [new] * number + dataset[end:] for new in by.records)


def _with_a_record_replaced(dataset: Any, by: Ingredients) -> Iterator[Any]:
    if not isinstance(dataset, list):
        yield from by.records
        return
    for i in range(len(dataset)):
        yield from ([*dataset[:i], new, *dataset[i + 1 :]] for new in by.records)


def _shapes_replaced(space: Lists) -> Pairs:
    item = space.item
    size = min(max(USUAL_RECORDS, space.min_size), space.max_size)
    usual, few, (low, high) = item.usual(), item.spread(size), item.extremes()
    same = [usual] * (size - 1)
    yield [low], [high], "a single record, from the lower bound to the upper"
    yield [*same, usual], [*same, high], "all records are equal, then one is another"
    yield [*([low] * (size - 1)), low], [*([low] * (size - 1)), high], "all low, then one high"
    yield [*([high] * (size - 1)), high], [*([high] * (size - 1)), low], "all high, then one low"
    yield few, [*few[:-1], few[0]], "a duplicate comes in place of another record"
    if space.fits(size + 1):
        longer = item.spread(size + 1)
        yield longer, [*longer[:-1], usual], "an even number of records, one replaced"
    if not space.is_vector:
        yield few, few[::-1], "the order of the records is reversed"
    for d1, d2, why in _last_of_a_group(item, usual):
        if len(d1) <= space.max_size:
            yield d1, [*d2, d2[0]], why.replace("leaves", "is replaced")
    for d1, d2, why in _constant_or_missing(item, usual):
        yield [*d1, d1[0]][-size:], d2[-size:], why.replace("comes", "is replaced")
    if space.max_size > size + 1:
        full = item.spread(space.max_size)
        yield full, [*full[:-1], usual], "the most records, one replaced"


def _exchanged(space: Space) -> Pairs:
    """Yield pairs of single values; in most pairs, one value or both are edges."""
    edges = list(space.edges())
    usual, (low, high) = space.usual(), space.extremes()
    yield low, high, "from the lowest to the highest value"
    for edge in edges:
        yield usual, edge.value, f"a usual value, then {edge.words}"
    inside = [edge for edge in edges if edge.inside]
    for first, second in islice(permutations(inside, 2), _MAX_EDGE_PAIRS):
        yield first.value, second.value, f"{first.words}, then {second.words}"
    for edge in edges:
        yield low, edge.value, f"the lowest value, then {edge.words}"


class Imported(Relation):
    """The relation that a function of the user defines. Any two inputs may be neighbours. So pairs
    are made by adding, removing and replacing records, and by changing numbers."""

    grows: ClassVar[bool] = True

    def problem(self, space: Space) -> str:
        return ""

    def _relates(self, d1: Any, d2: Any) -> bool:
        words = f"adjacency {self.describe()}"
        return bool(within(lambda: related(self.adjacency, d1, d2), words))

    def changes(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        yield from _with_or_without_a_record(self, dataset, by)
        yield from _with_a_record_replaced(dataset, by)
        yield from stepped(dataset, self.space, self.adjacency, by.steps)
        yield from islice((edge.value for edge in self.space.edges()), _MAX_OWN_EDGES)

    def pairs_at_edges(self) -> Pairs:
        inner = self.inner
        if isinstance(inner, Lists):
            inputs = [base for _, base in base_datasets(inner)]
        else:
            inputs = [inner.usual(), *inner.extremes()]
        return self._generated_pairs(inputs)
