"""The relation that a claim protects: which there are, and how a user writes one."""

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
# All relations, each in a sentence.
ADJACENCIES: Mapping[str, str] = {
    "add-remove": "One record more or less.",
    "replace": "One record changed for another one.",
    "l1": "Vectors whose differences add up to at most so much: l1:1.",
    "l2": "Vectors with a Euclidean distance of at most so much: l2:1.",
    "linf": "Vectors of which no entry differs by more than so much: linf:1.",
    "coordinate": "Vectors that differ in one entry, by at most so much: coordinate:1.",
    "hamming": "At most so many records changed, each in its place: hamming:2.",
    "user": "All records of one user more or less: user:COLUMN.",
    "import": "A relation of your own, relation(d1, d2) -> bool: import:my.module:relation.",
}
# What is written after the name and a colon.
ARGUMENTS: Mapping[str, str] = {
    **dict.fromkeys((*DISTANCES, "coordinate", "hamming"), "1"),
    "user": "COLUMN",
    "import": "my.module:relation",
}
ADJACENCY_KINDS = tuple(ADJACENCIES)

_OF_USERS = ("user", "group", "groups", "per_group")


@dataclass(frozen=True, slots=True)
class Users:
    """Whose records go together, and what each user contributes at most, in both inputs.

    column: names the user.  groups: in how many groups one user has records, `group` being their
    column.  per_group: how many records one user has in one group, or in all if there are none.
    """

    column: str
    groups: int | None = None
    per_group: int | None = None
    group: str | None = None

    def __post_init__(self) -> None:
        if not self.column:
            raise DatasetError(
                "adjacency user needs the column of the users; write user:COLUMN",
                code="adjacency-invalid",
            )
        for name, most in (("groups", self.groups), ("per_group", self.per_group)):
            if most is not None and (type(most) is not int or most < 1):
                raise DatasetError(
                    f"adjacency user: {name}={most!r} must be an integer above 0",
                    code="adjacency-invalid",
                )
        if self.groups is not None and self.group is None:
            raise DatasetError(
                f"adjacency user: groups={self.groups} needs the column of the groups; "
                "add group: COLUMN",
                code="adjacency-invalid",
            )

    def describe(self) -> str:
        """Return it as a user would write it, e.g. `id,group=city,groups=2`."""
        bounds = {"group": self.group, "groups": self.groups, "per_group": self.per_group}
        said = [f"{name}={value}" for name, value in bounds.items() if value is not None]
        return ",".join([self.column, *said])


@dataclass(frozen=True, slots=True)
class Adjacency:
    """The relation that a claim protects.

    kind: `add-remove` (one row more or less), `replace` (one row changed), a distance between
    numeric vectors, `l1`, `l2` or `linf`, of at most `distance` (> 0, finite), `coordinate` (one
    entry changed by at most `distance`), `hamming` (at most `distance` rows changed, each in its
    place), `user` (all rows of one of `users`) or `import` (the function that `path` names).
    """

    kind: str
    distance: float = 1.0
    users: Users | None = None
    path: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ADJACENCY_KINDS:
            raise DatasetError(
                Name("adjacency"),
                f"={self.kind!r} is not known; known: {', '.join(ADJACENCY_KINDS)}."
                + did_you_mean(self.kind, ADJACENCY_KINDS),
                code="adjacency-invalid",
            )
        if not 0 < self.distance < math.inf:
            raise DatasetError(
                f"adjacency distance={self.distance!r} must be finite and above 0",
                code="adjacency-invalid",
            )
        if self.kind == "hamming" and self.distance != int(self.distance):
            raise DatasetError(
                f"adjacency hamming:{self.distance:g} must be a number of records",
                code="adjacency-invalid",
            )
        if self.kind == "user" and self.users is None:
            raise DatasetError(
                "adjacency user needs the column of the users; write user:COLUMN",
                code="adjacency-invalid",
            )
        if self.kind == IMPORT.rstrip(":"):
            split(self.path)

    def describe(self) -> str:
        """Return the relation as a user would write it, e.g. `l1:2`."""
        if self.users is not None:
            return f"{self.kind}:{self.users.describe()}"
        if self.path:
            return f"{self.kind}:{self.path}"
        return f"{self.kind}:{self.distance:g}" if self.kind in ARGUMENTS else self.kind


def parse_adjacency(value: Any, base: Path | None = None) -> Adjacency | None:
    """Return the relation that a user wrote: `add-remove`, `l1:1`, `{l1: 1}`, `user:id`,
    `{user: id, groups: 2, group: city}`, `import:my.module:relation`.

    base: where a relative file of an import path is looked for, after the working directory.
    None stands for a relation that was not declared. Raises DatasetError, or TargetError for what
    is no import path.
    """
    if value is None or isinstance(value, Adjacency):
        return value
    if isinstance(value, str):
        kind, colon, argument = value.partition(":")
        return _adjacency(kind.strip(), argument.strip() if colon else None, base)
    if isinstance(value, Mapping) and "user" in value:
        return _of_users({str(key): part for key, part in value.items()})
    if isinstance(value, Mapping) and len(value) == 1:
        return _adjacency(*next(iter(value.items())), base)
    raise DatasetError(
        Name("adjacency"),
        f"={value!r} is not known; write add-remove, replace, or a distance as l1:1",
        code="adjacency-invalid",
    )


def _adjacency(kind: Any, distance: Any, base: Path | None = None) -> Adjacency:
    if kind == "user":
        return _of_users({"user": distance} if distance is None else _of_line(str(distance)))
    if kind == "import":
        if not distance:
            raise DatasetError(
                Name("adjacency"),
                f"={kind!r} needs a function; write import:my.module:relation",
                code="adjacency-invalid",
            )
        return Adjacency(kind, path=located(str(distance or ""), base))
    if kind not in ARGUMENTS:
        if distance is not None and kind in ADJACENCY_KINDS:
            raise DatasetError(
                f"adjacency {kind} takes no distance, not {distance!r}", code="adjacency-invalid"
            )
        return Adjacency(str(kind))
    if distance is None:
        raise DatasetError(
            Name("adjacency"),
            f"={kind!r} needs a distance; write {kind}:1",
            code="adjacency-invalid",
        )
    with suppress(TypeError, ValueError):
        if not isinstance(distance, bool):
            return Adjacency(kind, float(distance))
    raise DatasetError(
        f"adjacency {kind} distance={distance!r} must be a number", code="adjacency-invalid"
    )


def _of_line(text: str) -> dict[str, Any]:
    """Return `id,groups=2` as a mapping; numbers as such."""
    column, *bounds = (part.strip() for part in text.split(","))
    parts = [bound.partition("=") for bound in bounds]
    found = {name.strip(): value.strip() for name, _, value in parts}
    numbers = {name: int(one) if one.isdecimal() else one for name, one in found.items()}
    return {"user": column, **numbers}


def _of_users(value: Mapping[str, Any]) -> Adjacency:
    for key in value:
        if key not in _OF_USERS:
            raise DatasetError(
                f"adjacency user: {key!r} is not known; known: {', '.join(_OF_USERS)}."
                + did_you_mean(key, _OF_USERS),
                code="adjacency-invalid",
            )
    column, group = value["user"], value.get("group")
    group = None if group is None else str(group)
    column = "" if column is None else str(column)
    return Adjacency(
        "user", users=Users(column, value.get("groups"), value.get("per_group"), group)
    )
