"""The relation of users: all records of one user are added or removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from dpaudit.inputs.adjacency import Adjacency, Users
from dpaudit.searching.relations.record_relations import no_room
from dpaudit.searching.relations.relation import Ingredients, Pairs, Relation
from dpaudit.searching.space import Space, distinct, identity
from dpaudit.searching.spaces.record_spaces import USUAL_RECORDS, Lists
from dpaudit.wording import did_you_mean

# A user with records in many groups, such as cities, gets this number of groups if the relation
# sets no limit.
_USUAL_GROUPS = 30
# Some proposed pairs add a user with many records: as many as the relation allows a user in one
# group or, if the relation sets no limit, this number.
_USUAL_RECORDS = 10


class OneUser(Relation):
    """Tables are neighbours if all records of one user are added or removed."""

    grows: ClassVar[bool] = True

    def __init__(self, space: Space, adjacency: Adjacency) -> None:
        super().__init__(space, adjacency)
        assert adjacency.users is not None
        self.users: Users = adjacency.users
        self.item = space.of_record()

    def problem(self, space: Space) -> str:
        columns = space.of_record().by_column() if isinstance(space, Lists) else {}
        if not columns:
            return "it is no table; write table {id: user, …}"
        for column in filter(None, (self.users.column, self.users.group)):
            if column not in columns:
                near = did_you_mean(column, columns)
                return f"it has no column {column!r}; it has {', '.join(columns)}.{near}"
        return no_room(space)

    def changes(self, dataset: Any, by: Ingredients) -> Iterator[Any]:
        if not (isinstance(dataset, list) and _has_columns(dataset, self.users)):
            return
        column = self.users.column
        known = list(distinct(row[column] for row in dataset))
        for user in known:
            remaining = [row for row in dataset if identity(row[column]) != identity(user)]
            if self.has_room(len(remaining)):
                yield remaining
        new = self._new_user(known)
        for rows in self._contributions(new, by.records):
            if self.has_room(len(dataset) + len(rows)):
                yield dataset + rows

    def _new_user(self, known: Sequence[Any]) -> Any:
        """Return the name of a user who is not among the `known` users."""
        space = self.item.by_column().get(self.users.column)
        spread = [] if space is None else space.spread(len(known) + 1)
        free = next((user for user in spread if user not in known), None)
        if free is not None:
            return free
        numbers = [user for user in known if isinstance(user, int)]
        return max(numbers, default=0) + 1 if len(numbers) == len(known) else "new user"

    def _contributions(self, user: Any, records: Iterable[Any]) -> Iterator[list[dict[str, Any]]]:
        """Yield lists of records that one user may have, in one group or in several."""
        # The numbers of copies and of groups are 2, and the largest that the relation allows.
        users = self.users
        rows = [{**row, users.column: user} for row in records if isinstance(row, dict)]
        yield from ([row] for row in rows)
        if not rows:
            return
        first = rows[0]
        for number in dict.fromkeys((2, users.per_group or _USUAL_RECORDS)):
            yield [dict(first) for _ in range(number)]
        for column, space in self._group_columns():
            groups = list(distinct(space.spread(users.groups or _USUAL_GROUPS)))
            for number in dict.fromkeys((2, len(groups))):
                yield [{**first, column: group} for group in groups[:number]]
            twice = groups if users.groups else groups[:2]
            yield [{**first, column: group} for group in twice for _ in range(users.per_group or 2)]

    def _group_columns(self) -> list[tuple[str, Space]]:
        """Return (name, possible values) of the columns that define groups of records."""
        columns, users = self.item.by_column(), self.users
        if users.group:
            return [(users.group, columns[users.group])] if users.group in columns else []
        return [
            (name, space)
            for name, space in columns.items()
            if name != users.column and space.all_values() is not None
        ]

    def _some_users(self) -> list[Any]:
        users: list[Any] = []
        while len(users) < 1 + USUAL_RECORDS:
            users.append(self._new_user(users))
        return users

    def pairs_at_edges(self) -> Pairs:
        item, users = self.item, self.users
        user, *other_users = self._some_users()
        usual = {**item.usual(), users.column: user}
        of_others = [{**usual, users.column: other_user} for other_user in other_users]
        yield [], [usual], "empty, then one user with one record"
        for column, groups in self._group_columns():
            yield from _in_groups(usual, of_others[0], column, groups)
        edges = list(item.edges())
        few = [edge.value for edge in edges if edge.inside][:USUAL_RECORDS] or [item.usual()]
        for words, base in (
            ("no other user", []),
            ("another user", of_others[:1]),
            ("several users", of_others),
        ):
            for edge in edges:
                added = [{**edge.value, users.column: user}] if isinstance(edge.value, dict) else []
                yield base, base + added, f"the user's {edge.words}, next to {words}"
            for rows in self._contributions(user, few):
                if len(rows) > 1:
                    yield base, base + rows, f"a user with {len(rows):,} records, next to {words}"
        records = [dict(usual) for _ in range(users.per_group or _USUAL_RECORDS)]
        yield [], records, "empty, then a user with many records"
        yield (
            of_others[:1],
            [*of_others[:1], *records],
            "a user with many records, and one with one",
        )

    def extreme_pairs(self) -> Pairs:
        """Yield (d1, d2, description) for pairs in which a user has no records in d1, and one
        record in every group, such as every city, in d2.

        In the first pair, these records differ from each other in all columns; in each further
        pair, in a single column. The space and the relation limit the number of records.
        """
        space, users = self.inner, self.users
        if not isinstance(space, Lists):
            return
        user, other_user, *_ = self._some_users()
        base = [{**space.item.usual(), users.column: other_user}] * space.min_size
        room = space.max_size - space.min_size
        values = {
            name: _values(column_space, room)
            for name, column_space in self.item.by_column().items()
        }
        values[users.column] = [user]
        usual = {name: column_values[0] for name, column_values in values.items()} if room else {}
        by_column = [
            [{**usual, name: value} for value in column_values]
            for name, column_values in values.items()
            if name != users.column
        ]
        everywhere = [
            {
                name: column_values[index % len(column_values)]
                for name, column_values in values.items()
            }
            for index in range(max(map(len, values.values())))
        ]
        for rows in (everywhere, *by_column):
            contribution = allowed(rows, users)
            yield (
                base,
                [*base, *contribution],
                f"no records of a user, then {len(contribution)} in different groups",
            )


def _has_columns(dataset: list[Any], users: Users) -> bool:
    wanted = set(filter(None, (users.column, users.group)))
    return all(isinstance(row, dict) and wanted <= row.keys() for row in dataset)


def allowed(dataset: Any, users: Users) -> Any:
    """Return a table without the rows by which users exceed the limits of the relation, on groups
    per user and on records per group. The first rows of each user are kept."""
    if not (isinstance(dataset, list) and _has_columns(dataset, users)):
        return dataset
    counts: Counter[Hashable] = Counter()
    groups: dict[Hashable, set[Hashable]] = {}
    rows = []
    for row in dataset:
        user = identity(row[users.column])
        group = identity(row[users.group]) if users.group else None
        of_user = groups.get(user, set()) | {group}
        is_full = counts[user, group] == users.per_group
        if not is_full and (users.groups is None or len(of_user) <= users.groups):
            counts[user, group] += 1
            groups[user] = of_user
            rows.append(row)
    return rows


def _values(space: Space, count: int) -> list[Any]:
    """Return at most `count` different values of a column."""
    return (space.all_values() or list(distinct(space.spread(count))))[:count]


def _in_groups(usual: Any, other_record: Any, column: str, groups: Space) -> Pairs:
    """Yield pairs in which a user is added with a record in the highest group, or in two groups."""
    low, high = groups.extremes()
    records = [{**usual, column: low}, {**usual, column: high}]
    of_other = [{**other_record, column: low}, {**other_record, column: high}]
    yield of_other[:1], [*of_other[:1], records[1]], f"a user alone in a group ({column})"
    yield [], records, f"empty, then a user with two groups ({column})"
    why = f"a user with two groups, alone in one of them ({column})"
    yield of_other[:1], [*of_other[:1], *records], why
    yield of_other, [*of_other, *records], f"a user with two groups ({column})"
