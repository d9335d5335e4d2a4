"""The catalogue of edge neighbours: where bugs sit, by what a space allows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations
from typing import Any

from dpaudit.inputs.adjacency import Adjacency, Users
from dpaudit.searching.neighbours import (
    Ingredients,
    allowed,
    changed,
    contributions,
    entries,
    group_columns,
    has_few_values,
    item_of,
    new_user,
    present,
)
from dpaudit.searching.proposals.hosts import Hosts, extremes, hosts, with_columns
from dpaudit.searching.space import Edge, Space, different
from dpaudit.searching.spaces.categories import Categories
from dpaudit.searching.spaces.lists import FEW, Lists
from dpaudit.searching.spaces.numbers import Booleans, Integers
from dpaudit.searching.spaces.own import Own
from dpaudit.searching.spaces.records import Records

# d1, d2 and why; whether they are neighbours is looked at afterwards.
Pairs = Iterator[tuple[Any, Any, str]]

_MANY = 10
# All lengths are tried where there are no more than these, and one.
_LENGTHS = 12
# Of entries outside the space, not every step is tried.
_FEW_OUTSIDE = 4
# Of so many edges, as tables with many columns have them, each is tried only in the first datasets.
_MANY_EDGES, _FEW_HOSTS = 150, 2
# Of the inputs that a user's generator gave, and of what changes each.
_GENERATED, _CHANGES_OF_EACH = 8, 30


def edge_pairs(space: Space, adjacency: Adjacency) -> Pairs:
    """Yield pairs with an edge in one of them, or in both."""
    inner = present(space)
    if isinstance(inner, Own) or adjacency.path:
        yield from _generated(space, adjacency)
    elif adjacency.users is not None and isinstance(inner, Lists):
        yield from _of_users(inner, adjacency.users)
    elif adjacency.kind == "add-remove" and isinstance(inner, Lists):
        yield from _added(inner)
    elif adjacency.kind in ("replace", "hamming"):
        yield from _replaced(space, adjacency)
    else:
        yield from _moved(space, adjacency)
    if inner is not space and adjacency.kind == "replace":
        special = next(space.edges())
        words = f"{special.words} beside"
        yield from ((special.value, edge.value, f"{words} {edge.words}") for edge in inner.edges())


def _added(space: Lists) -> Pairs:
    yield from _structures(space)
    edges = list(space.item.edges())
    for words, host in hosts(space, room=1)[: _hosts_for(edges)]:
        for edge in edges:
            yield host, [*host, edge.value], _added_words(edge, words if host else "")


def _hosts_for(edges: list[Edge]) -> int | None:
    """Return in how many datasets edges are tried; None for all."""
    return _FEW_HOSTS if len(edges) > _MANY_EDGES else None


def _added_words(edge: Edge, host: str) -> str:
    what = f"'s {edge.words}" if " is " in edge.words else f" is {edge.words}"
    if not host:
        return f"empty beside one record: the record{what}"
    return f"the added record{what}, beside {host}"


def _structures(space: Lists) -> Pairs:
    """Yield pairs of which the shape of the dataset is the edge, not a value."""
    item = space.item
    usual, few = item.usual(), item.spread(FEW)
    (low, high), other = extremes(item), item.spread(2)[-1]
    yield [], [usual], "empty beside one record"
    yield [usual], [usual, other], "a single record, then two"
    yield [usual] * FEW, [usual] * (FEW + 1), "all records are equal, and one more like them"
    yield few[:2], [*few[:2], few[0]], "a duplicate comes"
    yield few[:2], few, "an even number of records, then an odd one"
    yield few, [*few, usual], "an odd number of records, then an even one"
    yield few, [*few[::-1], usual], "the order of the records is reversed, and one comes"
    yield [low] * FEW, [*([low] * FEW), high], "all at the lower bound, and one at the upper"
    yield [high] * FEW, [*([high] * FEW), low], "all at the upper bound, and one at the lower"
    yield from _of_groups(item, usual)
    yield from _of_columns(item, usual)
    if space.most > FEW + 1:
        most = item.spread(space.most)
        yield most[:-1], most, "one less than the most records, then the most"


def _of_groups(item: Space, usual: Any) -> Pairs:
    """Yield pairs in which the last record of a group leaves."""
    for name, (one, other) in _grouped(item, usual):
        for rest in (1, FEW):
            yield [*([one] * rest), other], [one] * rest, f"the last record of a group leaves{name}"


def _grouped(item: Space, usual: Any) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield two records of different groups: of categories, or of columns of such."""
    if isinstance(present(item), Categories | Booleans):
        yield "", extremes(item)
    for column, space in with_columns(item):
        if has_few_values(space):
            one, other = extremes(space)
            yield f" ({column})", ({**usual, column: one}, {**usual, column: other})


def _of_columns(item: Space, usual: Any) -> Pairs:
    if not isinstance(present(item), Records):
        yield [None, None], [None, None, usual], "missing values, then one that is present"
        yield [usual, usual], [usual, usual, None], "present values, then one that is missing"
        low, high = extremes(item)
        yield [low, low], [low, low, high], "a constant column, until a record comes"
        return
    for column, space in with_columns(item):
        gone, (low, high) = {**usual, column: None}, extremes(space)
        yield [gone, gone], [gone, gone, usual], f"missing values, then one is present ({column})"
        same = {**usual, column: low}
        other = {**usual, column: high}
        yield [same] * 2, [same, same, other], f"a constant column, until a record comes ({column})"


def _replaced(space: Space, adjacency: Adjacency) -> Pairs:
    inner = present(space)
    if not isinstance(inner, Lists):
        yield from _exchanged(space)
        return
    yield from _structures_replaced(inner)
    number = int(adjacency.distance) if adjacency.kind == "hamming" else 1
    edges = list(inner.item.edges())
    for words, host in _larger(inner, number)[: _hosts_for(edges)]:
        many = min(number, len(host))
        for edge in edges:
            why = edge.words if " is " in edge.words else f"is {edge.words}"
            yield (
                host,
                [*host[:-many], *([edge.value] * many)],
                f"the other record: {why}, in {words}",
            )
        if many > 1:
            yield host, [*host[:-1], inner.item.simplest], f"one record of {many}, in {words}"


def _larger(space: Lists, number: int) -> Hosts:
    """Return datasets with a record to replace, and with several where several may be replaced."""
    found = hosts(space, empty=False)
    size = min(max(number, 1), space.most)
    usual = space.item.spread(size)
    return found if any(len(one) >= size for _, one in found) else [*found, ("records", usual)]


def _structures_replaced(space: Lists) -> Pairs:
    item = space.item
    size = min(max(FEW, space.least), space.most)
    usual, few, (low, high) = item.usual(), item.spread(size), extremes(item)
    same = [usual] * (size - 1)
    yield [low], [high], "a single record, from the lower bound to the upper"
    yield [*same, usual], [*same, high], "all records are equal, then one is another"
    yield [*([low] * (size - 1)), low], [*([low] * (size - 1)), high], "all low, then one high"
    yield [*([high] * (size - 1)), high], [*([high] * (size - 1)), low], "all high, then one low"
    yield few, [*few[:-1], few[0]], "a duplicate comes in place of another record"
    if space.fits(size + 1):
        more = item.spread(size + 1)
        yield more, [*more[:-1], usual], "an even number of records, one replaced"
    if not space.is_vector:
        yield few, few[::-1], "the order of the records is reversed"
    for one, other, why in _of_groups(item, usual):
        if len(one) <= space.most:
            yield one, [*other, other[0]], why.replace("leaves", "is replaced")
    for one, other, why in _of_columns(item, usual):
        yield [*one, one[0]][-size:], other[-size:], why.replace("comes", "is replaced")
    if space.most > size + 1:
        most = item.spread(space.most)
        yield most, [*most[:-1], usual], "as many records as there may be, one replaced"


def _exchanged(space: Space) -> Pairs:
    """Yield pairs of values that are one record each."""
    edges = list(space.edges())
    usual, (low, high) = space.usual(), extremes(space)
    yield low, high, "from the lowest to the highest value"
    for edge in edges:
        yield usual, edge.value, f"a usual value beside {edge.words}"
    inside = [one for one in edges if one.inside]
    for one, other in islice(permutations(inside, 2), _MANY**2):
        yield one.value, other.value, f"{one.words} beside {other.words}"
    for edge in edges:
        yield low, edge.value, f"the lowest value beside {edge.words}"


def _moved(space: Space, adjacency: Adjacency) -> Pairs:
    """Yield pairs of vectors, or of numbers, in which entries move by as much as they may."""
    for words, host in _vectors(space):
        most = _MANY if space.contains(host) else _FEW_OUTSIDE
        for other in islice(changed(host, space, adjacency, Ingredients([])), most):
            size = len(entries(host))
            yield host, other, f"one step from {words}" if size < 2 else f"steps from {words}"


def _vectors(space: Space) -> Iterator[tuple[str, Any]]:
    inner = present(space)
    if not isinstance(inner, Lists):
        low, high = extremes(inner)
        yield from (("a usual value", inner.usual()), ("the lowest", low), ("the highest", high))
        yield from ((edge.words, edge.value) for edge in inner.edges())
        yield from (("just inside of 2^53", one) for one in (2.0**53 - 1,) if inner.contains(one))
        return
    yield "usual entries", inner.usual()
    known = hosts(inner, empty=False)
    yield from ((words.replace("records", "entries"), host) for words, host in known)
    size = len(inner.usual())
    for edge in inner.item.edges():
        yield f"entries that are {edge.words}", [edge.value] * size
        yield f"entries of which one is {edge.words}", [*inner.item.spread(size)[:-1], edge.value]


def _of_users(space: Lists, users: Users) -> Pairs:
    item = space.item
    one, *others = _ids(item, users)
    usual = {**item.usual(), users.column: one}
    beside = [{**usual, users.column: user} for user in others]
    yield [], [usual], "empty beside one user with one record"
    for column, groups in group_columns(item, users):
        low, high = extremes(groups)
        yield from _in_groups(usual, beside[0], (column, low, high))
    edges = list(item.edges())
    few = [edge.value for edge in edges if edge.inside][:FEW] or [item.usual()]
    for words, host in (("nobody", []), ("another user", beside[:1]), ("several users", beside)):
        for edge in edges:
            added = [{**edge.value, users.column: one}] if isinstance(edge.value, dict) else []
            yield host, host + added, f"the user's {edge.words}, beside {words}"
        for rows in contributions(item, users, one, few):
            if len(rows) > 1:
                yield host, host + rows, f"a user with {len(rows)} records, beside {words}"
    many = [dict(usual) for _ in range(users.per_group or _MANY)]
    yield [], many, "empty beside a user with many records"
    yield beside[:1], [*beside[:1], *many], "a user with many records, and one with one"


def extreme_pairs(space: Space, adjacency: Adjacency) -> Pairs:
    """Yield the few pairs with as many records as there may be that no small pair stands for: one
    user with a record in every category, and the most equal records; and equal records of every
    length where there are few lengths."""
    inner = present(space)
    if not isinstance(inner, Lists) or adjacency.path:
        return
    low, high = extremes(inner.item)
    if adjacency.users is not None:
        yield from _in_every_category(inner, adjacency.users)
    elif adjacency.kind == "add-remove" and inner.most:
        for one, words in ((inner.item.usual(), "equal"), (low, "lowest"), (high, "highest")):
            yield [one] * (inner.most - 1), [one] * inner.most, f"the most {words} records"
        lengths = range(inner.least, inner.most)
        for size in lengths if len(lengths) <= _LENGTHS else ():
            records = [inner.item.usual()] * (size + 1)
            yield records[1:], records, f"{size} equal records, then one more"
    elif adjacency.kind in ("replace", "hamming") and inner.most:
        half = inner.most // 2
        for one, other, words in ((low, high, "lowest"), (high, low, "highest")):
            before, after = [one] * half, [one] * (inner.most - half - 1)
            why = f"the most {words} records, the one in the middle replaced"
            yield [*before, one, *after], [*before, other, *after], why


def _in_every_category(space: Lists, users: Users) -> Pairs:
    """Yield pairs of no records of a user and one record in every category, as far as a table has
    room and the relation allows it: of all columns together, then of each column."""
    item = space.item
    columns = dict(with_columns(item))
    one, other, *_ = _ids(item, users)
    host = [{**item.usual(), users.column: other}] * space.least
    room = space.most - space.least
    values = {name: _all_values(column, room) for name, column in columns.items()}
    values[users.column] = [one]
    usual = {name: some[0] for name, some in values.items()} if room else {}
    by_column = [
        [{**usual, name: value} for value in some]
        for name, some in values.items()
        if name != users.column
    ]
    longest = max(map(len, values.values()))
    everywhere = [
        {name: some[place % len(some)] for name, some in values.items()} for place in range(longest)
    ]
    for rows in (everywhere, *by_column):
        some = allowed(rows, users)
        yield host, [*host, *some], f"no records of a user, then {len(some)} in different groups"


def _all_values(space: Space, most: int) -> list[Any]:
    """Return all values of a column with few, or different ones of others; not more than `most`."""
    inner = present(space)
    if isinstance(inner, Categories):
        return list(inner.values[:most])
    if isinstance(inner, Integers) and has_few_values(inner):
        assert inner.low is not None
        assert inner.high is not None
        return list(range(inner.low, inner.high + 1))[:most]
    return list(different(inner.spread(most)))


def _in_groups(usual: Any, other: Any, group: tuple[str, Any, Any]) -> Pairs:
    """Yield pairs of what a user has in two groups of a column, low and high."""
    column, low, high = group
    at = [{**usual, column: low}, {**usual, column: high}]
    beside = [{**other, column: low}, {**other, column: high}]
    yield beside[:1], [*beside[:1], at[1]], f"a user alone in a group ({column})"
    yield [], at, f"empty beside a user with two groups ({column})"
    why = f"a user with two groups, alone in one of them ({column})"
    yield beside[:1], [*beside[:1], *at], why
    yield beside, [*beside, *at], f"a user with two groups ({column})"


def _ids(item: Space, users: Users) -> list[Any]:
    """Return a user and a few others."""
    found: list[Any] = []
    while len(found) < 1 + FEW:
        found.append(new_user(found, item, users.column))
    return found


def _generated(space: Space, adjacency: Adjacency) -> Pairs:
    """Yield pairs of which one input is a user's own, or the relation is."""
    inner = present(space)
    given = inner.spread(_GENERATED) if isinstance(inner, Own) else _all_hosts(space)
    records = [one for dataset in given for one in (dataset if isinstance(dataset, list) else [])]
    if not isinstance(inner, Own):
        records = [edge.value for edge in item_of(space).edges()]
    scalars = [one for one in given if not isinstance(one, list)]
    by = Ingredients([*records, *scalars][: _MANY * 2])
    for dataset in given:
        for other in islice(changed(dataset, space, adjacency, by), _CHANGES_OF_EACH):
            yield dataset, other, "a neighbour of a generated input"
    for one, other in islice(permutations(given, 2), _MANY**2):
        yield one, other, "two inputs of the space"


def _all_hosts(space: Space) -> list[Any]:
    inner = present(space)
    if isinstance(inner, Lists):
        return [host for _, host in hosts(inner)]
    return [inner.usual(), *extremes(inner)]
