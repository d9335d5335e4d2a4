"""Adjacencies, and the notation in which users state them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpaudit.errors import DatasetError, Name
from dpaudit.import_path import located, split
from dpaudit.inputs.values import IMPORT
from dpaudit.wording import did_you_mean

DISTANCES: Mapping[str, float] = {"l1": 1, "l2": 2, "linf": math.inf}
# All neighbouring relations: maps the name of a relation to its description in the documentation.
ADJACENCIES: Mapping[str, str] = {
    "add-remove": "One record more or less.",
    "replace": "One record changed for another one.",
    "l1": "Vectors whose differences add up to at most a distance: l1:1.",
    "l2": "Vectors with at most a Euclidean distance: l2:1.",
    "linf": "Vectors whose entries each differ by at most a distance: linf:1.",
    "coordinate": "Vectors that differ in one entry, by at most a distance: coordinate:1.",
    "hamming": "At most a number of records changed, each in its place: hamming:2.",
    "user": "All records of one user more or less: user:COLUMN.",
    "import": "A relation of your own, relation(d1, d2) -> bool: import:my.module:relation.",
}
# Maps the name of each relation that needs an argument to an example of the argument. A user writes
# the argument after the name and a colon, such as `l1:1`.
ARGUMENTS: Mapping[str, str] = {
    **dict.fromkeys((*DISTANCES, "coordinate", "hamming"), "1"),
    "user": "COLUMN",
    "import": "my.module:relation",
}
ADJACENCY_KINDS = tuple(ADJACENCIES)

_OF_USERS = ("user", "group", "groups", "per_group")


@dataclass(frozen=True, slots=True)
class Users:
    """The columns and limits of the relation `user`, in which all records of one user are added or
    removed. None means no limit.

    column: name of the column that identifies the user of a record.
    groups: largest number of groups, such as cities, in which one user may have records.
    per_group: largest number of records that one user may have in one group or, if `group` is None,
        in the whole dataset.
    group: name of the column that identifies the group of a record, if there is one.
    """

    column: str
    groups: int | None = None
    per_group: int | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if not self.column:
            raise _invalid(" user needs the column of the users; write user:COLUMN")
        for name, limit in (("groups", self.groups), ("per_group", self.per_group)):
            if limit is not None and (type(limit) is not int or limit < 1):
                raise _invalid(f" user: {name}={limit!r} must be an integer above 0")
        if self.groups is not None and self.group is None:
            raise _invalid(
                f" user: groups={self.groups} needs the column of the groups; add group: COLUMN"
            )

    def describe(self) -> str:
        """Return the text that follows `user:` in the notation, such as
        `id,group=city,groups=2`."""
        bounds = {"group": self.group, "groups": self.groups, "per_group": self.per_group}
        limits = [f"{name}={value}" for name, value in bounds.items() if value is not None]
        return ",".join([self.column, *limits])


@dataclass(frozen=True, slots=True)
class Adjacency:
    """The relation between neighbouring inputs.

    kind: name of the relation:
        `add-remove` (one record is added or removed),
        `replace` (one record is changed),
        `l1`, `l2`, `linf` (numeric vectors have at most this distance),
        `coordinate` (one entry of a vector changes by at most `distance`),
        `hamming` (at most `distance` records are changed, each in its place),
        `user` (all records of one user are added or removed),
        `import` (a function of the user decides).
    distance: allowed distance; finite, above 0.
    users: columns and limits, for the kind `user`.
    path: import path of the function, for the kind `import`; else "".
    """

    kind: str
    distance: float = 1.0
    users: Users | None = None
    path: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ADJACENCY_KINDS:
            raise _invalid(
                f"={self.kind!r} is not known; known: {', '.join(ADJACENCY_KINDS)}."
                + did_you_mean(self.kind, ADJACENCY_KINDS),
            )
        if not 0 < self.distance < math.inf:
            raise _invalid(f": distance={self.distance!r} must be finite and above 0")
        if self.kind == "hamming" and self.distance != int(self.distance):
            raise _invalid(f" hamming:{self.distance:g} must be a number of records")
        if self.kind == "user" and self.users is None:
            raise _invalid(" user needs the column of the users; write user:COLUMN")
        if self.kind == IMPORT.rstrip(":"):
            split(self.path)

    def describe(self) -> str:
        """Return the relation as users write it, such as `l1:2`."""
        if self.users is not None:
            return f"{self.kind}:{self.users.describe()}"
        if self.path:
            return f"{self.kind}:{self.path}"
        return f"{self.kind}:{self.distance:g}" if self.kind in ARGUMENTS else self.kind


def parse_adjacency(value: Any, base: Path | None = None) -> Adjacency | None:
    """Return the adjacency that a user states; None for None. `value` is a text, such as
    `add-remove`, `l1:1`, `user:id` or `import:my.module:relation`, or a mapping, such as `{user:
    id, groups: 2, group: city}`. Raises DatasetError, and TargetError for an invalid import
    path."""
    if value is None or isinstance(value, Adjacency):
        return value
    if isinstance(value, str):
        kind, colon, argument = value.partition(":")
        return _adjacency(kind.strip(), argument.strip() if colon else None, base)
    if isinstance(value, Mapping) and "user" in value:
        return _of_users({str(key): part for key, part in value.items()})
    if isinstance(value, Mapping) and len(value) == 1:
        return _adjacency(*next(iter(value.items())), base)
    raise _invalid(
        f"={value!r} is not known; write add-remove, replace, or a distance as l1:1",
    )


def _invalid(why: str) -> DatasetError:
    return DatasetError(Name("adjacency"), why, code="adjacency-invalid")


def _adjacency(kind: Any, distance: Any, base: Path | None = None) -> Adjacency:
    if kind == "user":
        return _of_users({"user": distance} if distance is None else _of_line(str(distance)))
    if kind == "import":
        if not distance:
            raise _invalid(f"={kind!r} needs a function; write import:my.module:relation")
        return Adjacency(kind, path=located(str(distance or ""), base))
    if kind not in ARGUMENTS:
        if distance is not None and kind in ADJACENCY_KINDS:
            raise _invalid(f" {kind} takes no distance, not {distance!r}")
        return Adjacency(str(kind))
    if distance is None:
        raise _invalid(f"={kind!r} needs a distance; write {kind}:1")
    with suppress(TypeError, ValueError):
        if not isinstance(distance, bool):
            return Adjacency(kind, float(distance))
    raise _invalid(f" {kind}: distance={distance!r} must be a number")


def _of_line(text: str) -> dict[str, Any]:
    """Convert a text after `user:`, such as `id,groups=2`, to {"user": "id", "groups": 2}."""
    column, *bounds = (part.strip() for part in text.split(","))
    parts = [bound.partition("=") for bound in bounds]
    settings = {name.strip(): value.strip() for name, _, value in parts}
    numbers = {name: int(text) if text.isdecimal() else text for name, text in settings.items()}
    return {"user": column, **numbers}


def _of_users(value: Mapping[str, Any]) -> Adjacency:
    for key in value:
        if key not in _OF_USERS:
            raise _invalid(
                f" user: {key!r} is not known; known: {', '.join(_OF_USERS)}."
                + did_you_mean(key, _OF_USERS)
            )
    column, group = value["user"], value.get("group")
    group = None if group is None else str(group)
    column = "" if column is None else str(column)
    return Adjacency(
        "user", users=Users(column, value.get("groups"), value.get("per_group"), group)
    )
