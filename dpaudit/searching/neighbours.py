"""The neighbours of a dataset under a relation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

from dpaudit.errors import DatasetError
from dpaudit.inputs.adjacency import DISTANCES, Adjacency, Users
from dpaudit.inputs.neighbouring import holds, related
from dpaudit.searching.space import Space, different, identity
from dpaudit.searching.spaces.categories import Categories
from dpaudit.searching.spaces.lists import Lists
from dpaudit.searching.spaces.missing import OrMissing
from dpaudit.searching.spaces.numbers import Booleans, Integers, Numbers
from dpaudit.searching.spaces.own import Own
from dpaudit.searching.spaces.records import Records
from dpaudit.searching.waiting import within
from dpaudit.wording import did_you_mean

NUMERIC = (*DISTANCES, "coordinate")
# A dataset has at most about so many neighbours times its records that are worth a look.
_RECORDS = 40
# Groups that one user has records in, at most, where the relation does not limit them.
MANY_GROUPS = 30
# Part of a step that an entry may be off by, so that it has few digits.
_ROUNDING = 1e-12
# Of a vector with more entries, only the first, the middle and the last one move alone.
_PLACES = 50


@dataclass(frozen=True, slots=True)
class Ingredients:
    """What changes a dataset: records to add or to put in another's place, and steps of entries,
    as parts of the allowed distance from −1 to 1."""

    records: Sequence[Any]
    steps: Sequence[float] = (1.0, -1.0)


def neighbours(dataset: Any, space: Space, adjacency: Adjacency) -> Iterator[Any]:
    """Yield neighbours of a dataset, finitely many and each once: records leave, then values where
    bugs sit come.

    Raises DatasetError when no two inputs of the space are neighbours.
    """
    check_possible(space, adjacency)
    records = islice((edge.value for edge in item_of(space).edges()), _RECORDS)
    yield from changed(dataset, space, adjacency, Ingredients(list(records)))


def changed(dataset: Any, space: Space, adjacency: Adjacency, by: Ingredients) -> Iterator[Any]:
    """Yield the neighbours of a dataset that some ingredients make."""
    known = {identity(dataset)}
    for other in candidates(dataset, space, adjacency, by):
        if (key := identity(other)) not in known:
            known.add(key)
            if _are_related(dataset, other, adjacency, space):
                yield other


def candidates(dataset: Any, space: Space, adjacency: Adjacency, by: Ingredients) -> Iterator[Any]:
    """Yield what some ingredients make of a dataset; not all of it is a neighbour."""
    yield from _CHANGES.get(adjacency.kind, _by_steps)(dataset, space, adjacency, by)


def are_neighbours(d1: Any, d2: Any, adjacency: Adjacency, space: Space) -> bool:
    """Return whether two different inputs are neighbours. In a vector each place means something,
    so that there a replaced record is one in the same place."""
    return identity(d1) != identity(d2) and _are_related(d1, d2, adjacency, space)


def _are_related(d1: Any, d2: Any, adjacency: Adjacency, space: Space) -> bool:
    if adjacency.path:
        words = f"adjacency {adjacency.describe()}"
        return bool(within(lambda: related(adjacency, d1, d2), words))
    inner = present(space)
    if isinstance(inner, Lists):
        if not (isinstance(d1, list) and isinstance(d2, list)):
            return False
        if adjacency.kind == "replace" and inner.is_vector:
            adjacency = Adjacency("hamming")
    return holds(d1, d2, adjacency)


def present(space: Space) -> Space:
    """Return the space of what is not missing."""
    return present(space.space) if isinstance(space, OrMissing) else space


def item_of(space: Space) -> Space:
    """Return the space of one record; that of a scalar itself."""
    inner = present(space)
    return inner.item if isinstance(inner, Lists) else inner


def check_possible(space: Space, adjacency: Adjacency) -> None:
    """Raise DatasetError when no two inputs of a space can be neighbours."""
    inner = present(space)
    if isinstance(inner, Own) or adjacency.path:
        return
    problem = _IMPOSSIBLE.get(adjacency.kind, _no_numbers)(inner, adjacency)
    if problem:
        raise DatasetError(
            f"adjacency {adjacency.describe()} fits no two inputs of {space.words()}: {problem}",
            code="space-without-neighbours",
        )


def _no_room(space: Space, _: Adjacency) -> str:
    if not isinstance(space, Lists):
        return "it is no list of records; state replace, or write list of …"
    if not space.most:
        return "its lists are always empty; allow records, as in list of 0 to 30"
    if space.is_vector:
        return f"it always has {space.least} records; state replace, or write list of 0 to 30"
    return ""


def _no_record(space: Space, _: Adjacency) -> str:
    if isinstance(space, Lists) and not space.most:
        return "its lists are always empty; allow records, as in list of 0 to 30"
    return ""


def _no_place(space: Space, _: Adjacency) -> str:
    if not isinstance(space, Lists):
        return "it is no list of records; state replace, or write list of …"
    return _no_record(space, _)


def _no_user(space: Space, adjacency: Adjacency) -> str:
    item = present(space.item) if isinstance(space, Lists) else None
    users = adjacency.users
    if not isinstance(item, Records) or users is None:
        return "it is no table; write table {id: user, …}"
    for column in filter(None, (users.column, users.group)):
        if column not in item.columns:
            near = did_you_mean(column, item.columns)
            return f"it has no column {column!r}; it has {', '.join(item.columns)}.{near}"
    return _no_room(space, adjacency)


def _no_numbers(space: Space, adjacency: Adjacency) -> str:
    if not is_numeric(space):
        return "it holds no numbers; state replace or add-remove"
    if isinstance(space, Lists) and not space.most:
        return "its lists are always empty; write vector of 5 number"
    least = _least_step(space)
    if least > adjacency.distance:
        return f"different values are at least {least:g} apart; state {adjacency.kind}:{least:g}"
    return ""


_IMPOSSIBLE: Mapping[str, Callable[[Space, Adjacency], str]] = {
    "add-remove": _no_room,
    "replace": _no_record,
    "hamming": _no_place,
    "user": _no_user,
}


def is_numeric(space: Space) -> bool:
    """Return whether a space holds numbers, or lists of them."""
    space = present(space)
    if isinstance(space, Lists):
        return is_numeric(space.item)
    if isinstance(space, Categories):
        return not isinstance(space.values[0], str)
    return isinstance(space, Numbers | Integers | Booleans | Own)


def _least_step(space: Space) -> float:
    """Return by how much two entries differ at least."""
    space = present(space)
    if isinstance(space, Lists):
        return _least_step(space.item)
    if isinstance(space, Integers | Booleans):
        return 1.0
    if isinstance(space, Categories) and len(space.values) > 1:
        values = sorted(map(float, space.values))
        return min(high - low for low, high in pairwise(values))
    return 0.0


def _by_adding(dataset: Any, space: Space, _: Adjacency, by: Ingredients) -> Iterator[Any]:
    if not isinstance(dataset, list):
        return
    size = len(dataset)
    if _fits(space, size - 1):
        yield from (dataset[:i] + dataset[i + 1 :] for i in range(size))
    if _fits(space, size + 1):
        for place in dict.fromkeys((size, 0, size // 2)):
            yield from ([*dataset[:place], one, *dataset[place:]] for one in by.records)


def _by_replacing(dataset: Any, _: Space, __: Adjacency, by: Ingredients) -> Iterator[Any]:
    if not isinstance(dataset, list):
        yield from by.records
        return
    for i in range(len(dataset)):
        yield from ([*dataset[:i], one, *dataset[i + 1 :]] for one in by.records)


def _by_places(dataset: Any, _: Space, adjacency: Adjacency, by: Ingredients) -> Iterator[Any]:
    if not isinstance(dataset, list):
        return
    most = min(int(adjacency.distance), len(dataset))
    for number in dict.fromkeys((most, 1)):
        for start in range(len(dataset) - number + 1):
            end = start + number
            yield from (dataset[:start] + [one] * number + dataset[end:] for one in by.records)


def _by_users(dataset: Any, space: Space, adjacency: Adjacency, by: Ingredients) -> Iterator[Any]:
    users, item = adjacency.users, item_of(space)
    if users is None or not isinstance(dataset, list):
        return
    if not _names(dataset, users.column, users.group):
        return
    known = list(different(row[users.column] for row in dataset))
    for user in known:
        others = [row for row in dataset if identity(row[users.column]) != identity(user)]
        if _fits(space, len(others)):
            yield others
    new = new_user(known, item, users.column)
    for rows in contributions(item, users, new, by.records):
        if _fits(space, len(dataset) + len(rows)):
            yield dataset + rows


def new_user(known: Sequence[Any], item: Space, column: str) -> Any:
    """Return who has no records yet."""
    space = item.columns[column] if isinstance(item, Records) else None
    if space is None:
        return _unheard_of(known)
    free = [one for one in space.spread(len(known) + 1) if one not in known]
    return free[0] if free else _unheard_of(known)


def allowed(dataset: Any, users: Users) -> Any:
    """Return a table without the rows by which a user contributes too much."""
    if not isinstance(dataset, list) or not _names(dataset, users.column, users.group):
        return dataset
    counts: Counter[Hashable] = Counter()
    groups: dict[Hashable, set[Hashable]] = {}
    kept = []
    for row in dataset:
        user = identity(row[users.column])
        group = identity(row[users.group]) if users.group else None
        of_user = groups.get(user, set()) | {group}
        is_full = counts[user, group] == users.per_group
        if not is_full and (users.groups is None or len(of_user) <= users.groups):
            counts[user, group] += 1
            groups[user] = of_user
            kept.append(row)
    return kept


def _names(dataset: list[Any], *columns: str | None) -> bool:
    wanted = set(filter(None, columns))
    return all(isinstance(row, dict) and wanted <= row.keys() for row in dataset)


def _unheard_of(known: Sequence[Any]) -> Any:
    numbers = [one for one in known if isinstance(one, int)]
    return max(numbers, default=0) + 1 if len(numbers) == len(known) else "new user"


def contributions(
    item: Space, users: Users, user: Any, records: Iterable[Any]
) -> Iterator[list[dict[str, Any]]]:
    """Yield what a user may contribute: each record alone, in two groups, as much as is allowed."""
    rows = [{**row, users.column: user} for row in records if isinstance(row, dict)]
    yield from ([row] for row in rows)
    if not rows:
        return
    first = rows[0]
    many = users.per_group or _RECORDS // 4
    yield from ([dict(first) for _ in range(number)] for number in dict.fromkeys((2, many)))
    for column, space in group_columns(item, users):
        groups = list(different(space.spread(users.groups or MANY_GROUPS)))
        for number in dict.fromkeys((2, len(groups))):
            yield [{**first, column: one} for one in groups[:number]]
        twice = groups if users.groups else groups[:2]
        yield [{**first, column: one} for one in twice for _ in range(users.per_group or 2)]


def group_columns(item: Space, users: Users) -> list[tuple[str, Space]]:
    """Return the columns of groups: the named column, or all columns with few different values."""
    columns = item.columns if isinstance(item, Records) else {}
    if users.group:
        return [(users.group, columns[users.group])] if users.group in columns else []
    return [
        (name, space)
        for name, space in columns.items()
        if name != users.column and has_few_values(space)
    ]


def has_few_values(space: Space) -> bool:
    """Return whether a column has few different values, so that records form groups by it."""
    inner = present(space)
    if isinstance(inner, Integers):
        low, high = inner.low, inner.high
        return low is not None and high is not None and high - low < MANY_GROUPS
    return isinstance(inner, Categories | Booleans)


def _by_steps(dataset: Any, space: Space, adjacency: Adjacency, by: Ingredients) -> Iterator[Any]:
    for other in _stepped(dataset, adjacency, by):
        yield _inside(other, space)
        yield other


def _stepped(dataset: Any, adjacency: Adjacency, by: Ingredients) -> Iterator[Any]:
    values = entries(dataset)
    size = len(values)
    places = range(size) if size <= _PLACES else (0, size // 2, size - 1)
    for part in by.steps:
        for i in places:
            step = [0.0] * size
            step[i] = part * adjacency.distance
            yield moved(dataset, step)
        if adjacency.kind != "coordinate" and size > 1:
            share = _each(adjacency, size) * part
            yield moved(dataset, [share] * size)
            yield moved(dataset, [share if i % 2 else -share for i in range(size)])


def _inside(dataset: Any, space: Space) -> Any:
    """Return a dataset whose entries do not step over the bounds; they only come nearer by that."""
    inner = present(space)
    if isinstance(inner, Lists) and isinstance(dataset, list):
        return [_inside(one, inner.item) for one in dataset]
    if not isinstance(inner, Numbers | Integers) or not isinstance(dataset, int | float):
        return dataset
    low, high = inner.low, inner.high
    if low is not None and dataset < low:
        return low
    return high if high is not None and dataset > high else dataset


def _each(adjacency: Adjacency, number: int) -> float:
    """Return by how much each of so many entries may move."""
    shares = {"l1": number, "l2": math.sqrt(number)}
    return adjacency.distance / shares.get(adjacency.kind, 1)


def _by_anything(
    dataset: Any, space: Space, adjacency: Adjacency, by: Ingredients
) -> Iterator[Any]:
    """Yield what may be a neighbour by a user's own relation."""
    yield from _by_adding(dataset, space, adjacency, by)
    yield from _by_replacing(dataset, space, adjacency, by)
    yield from _by_steps(dataset, space, adjacency, by)
    yield from islice((edge.value for edge in space.edges()), _RECORDS)


_CHANGES: Mapping[str, Callable[[Any, Space, Adjacency, Ingredients], Iterator[Any]]] = {
    "add-remove": _by_adding,
    "replace": _by_replacing,
    "hamming": _by_places,
    "user": _by_users,
    "import": _by_anything,
}


def _fits(space: Space, size: int) -> bool:
    inner = present(space)
    return inner.fits(size) if isinstance(inner, Lists) else size >= 0


def entries(dataset: Any) -> list[Any]:
    """Return the numbers of a scalar or of nested lists, in order; none where something else is."""
    if isinstance(dataset, list):
        parts = [entries(one) for one in dataset]
        return [] if any(not one for one in parts) else [one for part in parts for one in part]
    return [dataset] if isinstance(dataset, int | float) else []


def moved(dataset: Any, steps: Sequence[float]) -> Any:
    """Return a dataset whose entries are moved by steps; of integers, by whole ones."""
    return _moved(dataset, iter(steps))


def _moved(dataset: Any, steps: Iterator[float]) -> Any:
    if isinstance(dataset, list):
        return [_moved(one, steps) for one in dataset]
    step = next(steps)
    if isinstance(dataset, bool):
        return dataset if abs(step) < 1 else not dataset
    if isinstance(dataset, int):
        return dataset + math.trunc(step)
    if not step:  # leaves −0.0 as it is
        return dataset
    total = dataset + step
    # 0.3 for 0.30000000000000004, where no step is lost by it.
    short = float(f"{total:.12g}")
    return short if abs(short - total) <= abs(step) * _ROUNDING else total
