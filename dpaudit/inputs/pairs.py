"""Neighbouring inputs: the two datasets whose outputs an audit tells apart."""

from __future__ import annotations

import hashlib
import math
import numbers
import pickle
import sys
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from dpaudit.did_you_mean import did_you_mean
from dpaudit.errors import DatasetError, Given, Name
from dpaudit.import_path import located, resolve, split
from dpaudit.inputs.values import IMPORT
from dpaudit.wording import counted, shortened

EQUAL = "d1 and d2 are equal: no mechanism can tell them apart, so the audit can find nothing"
# A note is kept in results, which are read everywhere: it names options as no place spells them.
REPLACED = (
    "replacing one record means one removed and one added; a claim for add/remove needs group 2, "
    "or state adjacency replace"
)
_IF_REPLACED = (
    *(" (a replaced row is one removed and one added: state replace, or claim for ",),
    *(Given("group=2", "--group 2 (claim: {group: 2})"), ")"),
)
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

# Larger datasets are not looked through for what is only a note.
_MOST_VALUES = 100_000
# A distance of exactly the allowed size may come out a few units in the last place above it.
_ROUNDING = 1e-9


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
            raise DatasetError("adjacency user needs the column of the users; write user:COLUMN")
        for name, most in (("groups", self.groups), ("per_group", self.per_group)):
            if most is not None and (type(most) is not int or most < 1):
                raise DatasetError(f"adjacency user: {name}={most!r} must be an integer above 0")
        if self.groups is not None and self.group is None:
            raise DatasetError(
                f"adjacency user: groups={self.groups} needs the column of the groups; "
                "add group: COLUMN"
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
            )
        if not 0 < self.distance < math.inf:
            raise DatasetError(f"adjacency distance={self.distance!r} must be finite and above 0")
        if self.kind == "hamming" and self.distance != int(self.distance):
            raise DatasetError(f"adjacency hamming:{self.distance:g} must be a number of records")
        if self.kind == "user" and self.users is None:
            raise DatasetError("adjacency user needs the column of the users; write user:COLUMN")
        if self.kind == IMPORT.rstrip(":"):
            split(self.path)

    def describe(self) -> str:
        """Return the relation as a user would write it, e.g. `l1:2`."""
        if self.users is not None:
            return f"{self.kind}:{self.users.describe()}"
        if self.path:
            return f"{self.kind}:{self.path}"
        return f"{self.kind}:{self.distance:g}" if self.kind in ARGUMENTS else self.kind


@dataclass(frozen=True, slots=True)
class NeighbouringPair:
    """Two inputs of the mechanism, handed to it as they are; never changed by dpaudit.

    label: how reports call the pair, e.g. `d1 = 0, d2 = 1`.
    """

    d1: Any
    d2: Any
    adjacency: Adjacency | None = None
    label: str = ""


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
    )


def describe_pair(d1: Any, d2: Any) -> str:
    """Return a pair in a few words, e.g. `d1 = 0, d2 = 1`."""
    return f"d1 = {short(d1)}, d2 = {short(d2)}"


def check_pair(pair: NeighbouringPair, group: int = 1) -> tuple[str, ...]:
    """Return warnings: d1 equal to d2, only one of them a text, or an adjacency that cannot be
    checked, and why.

    group: in how many records the inputs may differ, or how many times the distance.
    Raises DatasetError when the declared adjacency is contradicted by the datasets.
    """
    if are_equal(pair.d1, pair.d2):
        return (EQUAL,)
    unlike = tuple(unlike_inputs(pair.d1, pair.d2))
    if pair.adjacency is None:
        return unlike
    reason = _contradiction_or_doubt(pair.d1, pair.d2, pair.adjacency, group)
    doubt = (
        () if reason is None else (f"adjacency {pair.adjacency.describe()} unchecked: {reason}",)
    )
    return (*unlike, *doubt)


def unlike_inputs(d1: Any, d2: Any) -> Iterator[str]:
    """Yield a warning where one input is a text and the other is a number, or has records: one of
    them is hardly what was meant."""
    for name, one, another, other in (("d1", d1, "d2", d2), ("d2", d2, "d1", d1)):
        is_number = isinstance(other, numbers.Number | np.generic) and not isinstance(other, str)
        if isinstance(one, str) and (is_number or _is_collection(other)):
            yield (
                f"{name} is a text, {short(one)}, and {another} is of type "
                f"{type(other).__name__}, {short(other)}: is the text what is meant?"
            )


def _is_collection(dataset: Any) -> bool:
    is_plain = isinstance(dataset, list | tuple | Mapping | np.ndarray)
    return is_plain or _is_set(dataset) or _as_pandas(dataset) is not None


def holds(d1: Any, d2: Any, adjacency: Adjacency) -> bool:
    """Return whether two inputs are known to be neighbours. Raises DatasetError when a user's own
    relation fails."""
    if adjacency.path:
        return related(adjacency, d1, d2)
    with suppress(DatasetError):
        return _contradiction_or_doubt(d1, d2, adjacency, 1) is None
    return False


def stated(pair: NeighbouringPair) -> str:
    """Return the adjacency of a pair in words, also where none was declared."""
    return "not stated" if pair.adjacency is None else pair.adjacency.describe()


def notes(pair: NeighbouringPair, group: int = 1) -> tuple[str, ...]:
    """Return what the pair says about an adjacency that was not declared, and is easily missed."""
    is_open = pair.adjacency is None and group == 1
    return (REPLACED,) if is_open and _is_replacement(pair.d1, pair.d2) else ()


def _is_replacement(d1: Any, d2: Any) -> bool:
    """Whether two datasets differ by one record that has another one in its place."""
    if not (_has_records(d1) and _has_records(d2)) or len(d1) != len(d2):
        return False
    first, second = (_rows(sorted(one, key=repr) if _is_set(one) else one) for one in (d1, d2))
    if first is None or second is None:
        return False
    changed = sum(one != other for one, other in zip(first, second, strict=True))
    return changed == 1 or (changed > 1 and _exchanged(first, second) == (1, 1))


def _has_records(dataset: Any) -> bool:
    """Whether a dataset is several records: a number is none, and a mapping may be a single one."""
    if isinstance(dataset, np.ndarray) or _as_pandas(dataset) is not None:
        return bool(dataset.ndim > 0 and dataset.size <= _MOST_VALUES)
    return (isinstance(dataset, list | tuple) or _is_set(dataset)) and len(dataset) <= _MOST_VALUES


def _is_set(dataset: Any) -> bool:
    return isinstance(dataset, set | frozenset)


def fingerprint(dataset: Any) -> str | None:
    """Return a digest that changes when a mechanism changes its input; None when there is none.

    NumPy arrays: type, shape and bytes; pandas objects: the hash of every row; others: the pickle.
    """
    with suppress(Exception):  # whatever cannot be pickled or hashed has no digest
        digest = hashlib.blake2b(digest_size=16)
        for part in _digestible(dataset):
            digest.update(part)
        return digest.hexdigest()
    return None


def _adjacency(kind: Any, distance: Any, base: Path | None = None) -> Adjacency:
    if kind == "user":
        return _of_users({"user": distance} if distance is None else _of_line(str(distance)))
    if kind == "import":
        if not distance:
            raise DatasetError(
                Name("adjacency"), f"={kind!r} needs a function; write import:my.module:relation"
            )
        return Adjacency(kind, path=located(str(distance or ""), base))
    if kind not in ARGUMENTS:
        if distance is not None and kind in ADJACENCY_KINDS:
            raise DatasetError(f"adjacency {kind} takes no distance, not {distance!r}")
        return Adjacency(str(kind))
    if distance is None:
        raise DatasetError(Name("adjacency"), f"={kind!r} needs a distance; write {kind}:1")
    with suppress(TypeError, ValueError):
        if not isinstance(distance, bool):
            return Adjacency(kind, float(distance))
    raise DatasetError(f"adjacency {kind} distance={distance!r} must be a number")


_OF_USERS = ("user", "group", "groups", "per_group")


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
                + did_you_mean(key, _OF_USERS)
            )
    column, group = value["user"], value.get("group")
    group = None if group is None else str(group)
    column = "" if column is None else str(column)
    return Adjacency(
        "user", users=Users(column, value.get("groups"), value.get("per_group"), group)
    )


def _contradiction_or_doubt(d1: Any, d2: Any, adjacency: Adjacency, group: int) -> str | None:
    """Return why the adjacency cannot be checked, None when it holds; raise when it does not."""
    if adjacency.path:
        return _check_own(d1, d2, adjacency, group)
    if adjacency.users is not None:
        return _check_users(d1, d2, adjacency.users, group)
    if adjacency.kind in DISTANCES or adjacency.kind == "coordinate":
        return _check_distance(d1, d2, adjacency, group)
    if adjacency.kind == "replace" and _is_scalar(d1) and _is_scalar(d2):
        return None  # one record, changed
    first, second = _rows(d1), _rows(d2)
    if first is None or second is None:
        return f"{_first_without(first, d1, d2)} has no rows to compare"
    if adjacency.kind == "replace":
        return _check_replace(first, second, group)
    if adjacency.kind == "hamming":
        return _check_hamming(first, second, adjacency, group)
    return _check_add_remove(first, second, group)


def _check_replace(first: Sequence[Hashable], second: Sequence[Hashable], group: int) -> str | None:
    if len(first) != len(second):
        raise DatasetError(
            f"d1 has {counted(len(first), 'row')} and d2 {len(second)}; replace keeps the number "
            "of rows (adjacency: add-remove allows one more or less)"
        )
    changed = sum(one != other for one, other in zip(first, second, strict=True))
    if changed > group and _exchanged(first, second)[0] > group:
        most = "exactly one" if group == 1 else f"in a group of {group} at most {group}"
        raise DatasetError(f"d1 and d2 differ in {counted(changed, 'row')}; replace means {most}")
    return None


def _check_hamming(
    first: Sequence[Hashable], second: Sequence[Hashable], adjacency: Adjacency, group: int
) -> str | None:
    if len(first) != len(second):
        raise DatasetError(
            f"d1 has {counted(len(first), 'row')} and d2 {len(second)}; {adjacency.describe()} "
            "keeps the number of rows (adjacency: add-remove allows one more or less)"
        )
    changed = sum(one != other for one, other in zip(first, second, strict=True))
    if changed > group * adjacency.distance:
        times = "" if group == 1 else f" in a group of {group}"
        raise DatasetError(
            f"d1 and d2 differ in {counted(changed, 'place')}; adjacency {adjacency.describe()} "
            f"allows at most {group * adjacency.distance:g}{times}"
        )
    return None


def _check_users(d1: Any, d2: Any, users: Users, group: int) -> str | None:
    first, second = _records(d1), _records(d2)
    if first is None or second is None:
        return f"{_first_without(first, d1, d2)} has no rows with named columns"
    for name, rows in (("d1", first), ("d2", second)):
        _check_contributions(name, rows, users)
    ours, theirs = _by_user(first, users), _by_user(second, users)
    changed = [one for one in {**ours, **theirs} if ours.get(one) != theirs.get(one)]
    partly = next((one for one in changed if one in ours and one in theirs), None)
    if partly is not None:
        raise DatasetError(
            f"d1 and d2 hold other rows of the user {partly!r}; adjacency user means all rows of "
            "one user more or less"
        )
    if len(changed) > group:
        most = "one user" if group == 1 else f"in a group of {group} at most {group} users"
        raise DatasetError(
            f"d1 and d2 differ in the rows of {counted(len(changed), 'user')}; adjacency user "
            f"means all rows of {most} more or less"
        )
    return None if changed else "d1 and d2 hold the same rows in another order"


def _check_contributions(name: str, rows: Sequence[Mapping[Any, Any]], users: Users) -> None:
    """Raise DatasetError where a column is missing, or a user contributes more than is allowed."""
    for column in filter(None, (users.column, users.group)):
        if any(column not in row for row in rows):
            known = [str(key) for key in next(row for row in rows if column not in row)]
            raise DatasetError(
                f"{name} has a row without the column {column!r} of adjacency user; it has "
                f"{', '.join(known)}.{did_you_mean(column, known)}"
            )
    by_group = Counter(
        (_key(row[users.column]), _key(row[users.group]) if users.group else None) for row in rows
    )
    for (user, _), records in by_group.items():
        groups = sum(one == user for one, _ in by_group) if users.groups else 0
        if records > (users.per_group or records):
            most = f"{users.per_group} in one group" if users.group else f"{users.per_group}"
            raise DatasetError(
                f"{name} has {counted(records, 'row')} of the user {user!r}; adjacency "
                f"user:{users.describe()} allows at most {most}"
            )
        if groups > (users.groups or groups):
            raise DatasetError(
                f"{name} has rows of the user {user!r} in {counted(groups, 'group')}; adjacency "
                f"user:{users.describe()} allows at most {users.groups}"
            )


def _by_user(rows: Sequence[Mapping[Any, Any]], users: Users) -> dict[Hashable, Counter[Hashable]]:
    found: dict[Hashable, Counter[Hashable]] = {}
    for row in rows:
        found.setdefault(_key(row[users.column]), Counter())[_key(row)] += 1
    return found


def _check_own(d1: Any, d2: Any, adjacency: Adjacency, group: int) -> str | None:
    if group > 1:
        return "a relation of one's own says nothing of groups"
    if not related(adjacency, d1, d2):
        raise DatasetError(
            f"d1 = {short(d1)} and d2 = {short(d2)} are no neighbours by {adjacency.describe()}"
        )
    return None


def related(adjacency: Adjacency, d1: Any, d2: Any) -> bool:
    """Return what a user's relation says of two inputs.

    Raises DatasetError when it fails, returns no bool, or says something else the other way round.
    """
    relation, words = resolve(adjacency.path), adjacency.describe()
    if not callable(relation):
        raise DatasetError(f"adjacency {words} is no function; write relation(d1, d2) -> bool")
    try:
        one, other = relation(d1, d2), relation(d2, d1)
    except (Exception, SystemExit) as error:
        raise DatasetError(
            f"adjacency {words} failed for d1 = {short(d1)}, d2 = {short(d2)}: "
            f"{type(error).__name__}: {error}"
        ) from error
    for said in (one, other):
        if not isinstance(said, bool | np.bool_):
            raise DatasetError(f"adjacency {words} returned {shortened(repr(said))}, not a bool")
    if bool(one) != bool(other):
        raise DatasetError(
            f"adjacency {words} is not symmetric: relation(d1, d2) is {bool(one)} and "
            f"relation(d2, d1) {bool(other)} for d1 = {short(d1)}, d2 = {short(d2)}"
        )
    return bool(one)


def _check_add_remove(
    first: Sequence[Hashable], second: Sequence[Hashable], group: int
) -> str | None:
    only_first, only_second = _exchanged(first, second)
    if only_first + only_second > group:
        most = "one row" if group == 1 else f"in a group of {group} at most {group} rows"
        is_replaced = only_first == only_second == 1
        raise DatasetError(
            f"d1 has {counted(only_first, 'row')} that d2 does not have, and d2 has {only_second} "
            f"that d1 does not have; add-remove means {most} more or less",
            *(_IF_REPLACED if is_replaced else ()),
        )
    return None if only_first + only_second else "d1 and d2 hold the same rows in another order"


def _exchanged(first: Sequence[Hashable], second: Sequence[Hashable]) -> tuple[int, int]:
    """Return how many rows only one of them has, whatever the order (as multisets)."""
    ours, theirs = Counter(first), Counter(second)
    return (ours - theirs).total(), (theirs - ours).total()


def _check_distance(d1: Any, d2: Any, adjacency: Adjacency, group: int) -> str | None:
    first, second = _numeric(d1), _numeric(d2)
    if first is None or second is None:
        return f"{_first_without(first, d1, d2)} is not a number or a vector of numbers"
    if first.shape != second.shape:
        raise DatasetError(
            f"d1 has shape {first.shape} and d2 {second.shape}; "
            f"adjacency {adjacency.describe()} compares vectors of one shape"
        )
    differences = _differences(first.ravel(), second.ravel())
    _check_entries(differences, adjacency, group)
    # In groups, one entry after another is changed.
    order = DISTANCES.get(adjacency.kind, 1)
    with np.errstate(over="ignore"):  # infinity is more than any relation allows
        distance = float(np.linalg.norm(differences, ord=order)) if differences.size else 0.0
    allowed = group * adjacency.distance
    if distance > allowed * (1 + _ROUNDING):
        times = "" if group == 1 else f" in a group of {group}"
        raise DatasetError(
            f"the {adjacency.kind} distance of d1 and d2 is {distance:g}; "
            f"adjacency {adjacency.describe()} allows at most {allowed:g}{times}"
        )
    return None


def _differences(first: Any, second: Any) -> Any:
    """Return the differences of entries: 0 for equal ones, NaN for a NaN, which may be infinite."""
    equal = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore", over="ignore"):
        differences = np.where(equal, 0.0, first - second)
    return np.where(np.isnan(differences), np.inf, differences)


def _check_entries(differences: Any, adjacency: Adjacency, group: int) -> None:
    changed = int(np.count_nonzero(differences))
    if adjacency.kind == "coordinate" and changed > group:
        most = "one" if group == 1 else f"in a group of {group} at most {group}"
        raise DatasetError(
            f"d1 and d2 differ in {changed} entries; adjacency coordinate means {most}"
        )


def _first_without(first: Any, d1: Any, d2: Any) -> str:
    """Return the dataset of which nothing was made, with its type; first: what was made of d1."""
    return f"d1 ({type(d1).__name__})" if first is None else f"d2 ({type(d2).__name__})"


def _numeric(value: Any) -> Any:
    with suppress(TypeError, ValueError):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
    return None


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, int | float | complex | str | bytes | np.generic)


def records_of(dataset: Any) -> list[Hashable] | None:
    """Return the records of a dataset as comparable values; None for what has none."""
    return _rows(dataset)


def _rows(dataset: Any) -> list[Hashable] | None:
    """Return the rows as comparable values; None for what has no rows."""
    if isinstance(dataset, np.ndarray):
        return [_key(row) for row in dataset.tolist()] if dataset.ndim else None
    if isinstance(dataset, list | tuple):
        return [_key(row) for row in dataset]
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(dataset, polars.DataFrame):
        return [_key(row) for row in dataset.rows()]
    frame = _as_pandas(dataset)
    if frame is None:
        return None
    values = [frame] if frame.ndim == 1 else [frame.iloc[:, i] for i in range(frame.shape[1])]
    return [_key(row) for row in zip(*(column.tolist() for column in values), strict=True)]


def _records(dataset: Any) -> list[Mapping[Any, Any]] | None:
    """Return the rows with the names of their columns; None for what has none."""
    frame = _as_pandas(dataset)
    if frame is not None:
        return frame.to_dict("records") if frame.ndim == 2 else None
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(dataset, polars.DataFrame):
        return list(dataset.to_dicts())
    is_table = isinstance(dataset, list | tuple) and all(
        isinstance(row, Mapping) for row in dataset
    )
    return list(dataset) if is_table else None


def _as_pandas(value: Any) -> Any:
    """Return a DataFrame or Series; None for anything else. Never imports pandas."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, (pandas.DataFrame, pandas.Series)):
        return None
    return value


# Most entries are of these; to ask whether one is a mapping takes longer than all the rest.
_PLAIN = frozenset({int, str, bool, type(None)})


def _key(value: Any) -> Hashable:
    kind = type(value)
    if kind in _PLAIN or (kind is float and value and value == value):  # neither a zero nor NaN
        return cast(Hashable, value)
    if kind is list:
        return tuple(map(_key, value))
    if kind is dict:
        return frozenset([(key, _key(part)) for key, part in value.items()])
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    if isinstance(value, Mapping):
        return frozenset((key, _key(part)) for key, part in value.items())
    if isinstance(value, float) and math.isnan(value):
        return "NaN"  # unequal to itself, but the same row all the same
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        return "-0.0"  # equal to 0.0, but another row: 1 / x and atan2 tell them apart
    return value if isinstance(value, Hashable) else repr(value)


def are_equal(d1: Any, d2: Any) -> bool:
    if isinstance(d1, np.ndarray) and isinstance(d2, np.ndarray):
        floats = d1.dtype.kind in "fc" and d2.dtype.kind in "fc"
        if not np.array_equal(d1, d2, equal_nan=floats):
            return False
        # −0.0 is equal to 0.0, but mechanisms may tell them apart.
        return not floats or bool(np.all((np.signbit(d1.real) == np.signbit(d2.real)) | (d1 != 0)))
    if isinstance(d1, list | tuple | dict) and type(d1) is type(d2):
        return _key(d1) == _key(d2)
    if _is_scalar(d1) and _is_scalar(d2):
        return bool(_key(d1) == _key(d2))
    digest = fingerprint(d1)
    return type(d1) is type(d2) and digest is not None and digest == fingerprint(d2)


def _digestible(dataset: Any) -> list[bytes]:
    frame = _as_pandas(dataset)
    if frame is not None:
        hashes = sys.modules["pandas"].util.hash_pandas_object(frame, index=True)
        columns = repr([(name, str(frame[name].dtype)) for name in getattr(frame, "columns", ())])
        return [hashes.to_numpy().tobytes(), columns.encode()]
    if isinstance(dataset, np.ndarray) and dataset.dtype != object:
        return [
            repr((dataset.dtype, dataset.shape)).encode(),
            np.ascontiguousarray(dataset).tobytes(),
        ]
    return [pickle.dumps(dataset, protocol=5)]


def short(value: Any) -> str:
    """Return a dataset in a few words."""
    text = value if isinstance(value, str) and value.startswith(("@", "import:")) else repr(value)
    if isinstance(value, np.ndarray) and value.size > 6:
        text = f"array of shape {value.shape}"
    return shortened(text, 30)
