"""Check whether two inputs are neighbours under the relation that the user states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpaudit.errors import DatasetError, Given
from dpaudit.import_path import resolve
from dpaudit.inputs.adjacency import DISTANCES, Adjacency, Users
from dpaudit.inputs.pairs import NeighbouringPair, several_more, short, unlike_inputs
from dpaudit.inputs.records import (
    are_equal,
    comparable,
    exchanged,
    is_scalar,
    named_records,
    records_of,
)
from dpaudit.wording import counted, did_you_mean, shortened

# Reason why an audit of two equal inputs has no power.
EQUAL_INPUTS = "d1 and d2 are equal, so nothing can tell them apart; give two neighbouring inputs"
# Warning about a pair of equal inputs.
EQUAL = "d1 and d2 are equal: no mechanism can tell them apart, so the audit can find nothing"
_IF_REPLACED = (
    *(" (a replaced row is one removed and one added: state replace, or claim for ",),
    *(Given("group=2", "--group 2 (claim: {group: 2})"), ")"),
)
_OTHER_ORDER = "d1 and d2 hold the same rows in another order"
# Largest allowed excess of a computed distance, because of rounding errors, as a share of the
# allowed distance.
_ROUNDING_SHARE = 1e-9

Records = Sequence[Hashable]


def check_pair(pair: NeighbouringPair, group: int = 1) -> tuple[str, ...]:
    """Return warnings about a pair. There is a warning if the inputs are equal, if their types
    differ, if the adjacency cannot be checked, and if none is stated and an input has several
    records more. Raises DatasetError if the inputs are farther apart than `group` times the
    distance between neighbours."""
    if are_equal(pair.d1, pair.d2):
        return (EQUAL,)
    unlike = tuple(unlike_inputs(pair.d1, pair.d2))
    if pair.adjacency is None:
        return (*unlike, *several_more(pair, group))
    doubt = _doubt(pair.d1, pair.d2, pair.adjacency, group)
    if doubt is None:
        return unlike
    return (*unlike, f"adjacency {pair.adjacency.describe()} unchecked: {doubt}")


def holds(d1: Any, d2: Any, adjacency: Adjacency) -> bool:
    """Return whether two inputs are neighbours. Return False if that cannot be checked. Raises
    DatasetError if the relation is a function of the user that fails."""
    if adjacency.path:
        return related(adjacency, d1, d2)
    with suppress(DatasetError):
        return _doubt(d1, d2, adjacency, 1) is None
    return False


def related(adjacency: Adjacency, d1: Any, d2: Any) -> bool:
    """Return whether two inputs are neighbours by the user's function. Raises DatasetError if the
    function fails or returns no bool, or if its result changes when the two inputs are swapped."""
    relation, words = resolve(adjacency.path), adjacency.describe()
    if not callable(relation):
        raise DatasetError(
            f"adjacency {words} is no function; write relation(d1, d2) -> bool",
            code="adjacency-invalid",
        )
    try:
        results = relation(d1, d2), relation(d2, d1)
    except (Exception, SystemExit) as error:
        raise DatasetError(
            f"adjacency {words} failed for d1 = {short(d1)}, d2 = {short(d2)}: "
            f"{type(error).__name__}: {error}",
            code="adjacency-failed",
        ) from error
    for value in results:
        if not isinstance(value, bool | np.bool_):
            raise DatasetError(
                f"adjacency {words} returned {shortened(repr(value))}, not a bool",
                code="adjacency-failed",
            )
    first, second = map(bool, results)
    if first != second:
        raise DatasetError(
            f"adjacency {words} is not symmetric: relation(d1, d2) is {first} and "
            f"relation(d2, d1) {second} for d1 = {short(d1)}, d2 = {short(d2)}",
            code="adjacency-failed",
        )
    return first


def _doubt(d1: Any, d2: Any, adjacency: Adjacency, group: int) -> str | None:
    """Return why two inputs cannot be checked, or None. Raises DatasetError for no neighbours."""
    words = adjacency.describe()
    if adjacency.path:
        if group > 1:
            return "a relation of one's own says nothing of groups"
        if not related(adjacency, d1, d2):
            raise _no_neighbours(
                f"d1 = {short(d1)} and d2 = {short(d2)} are no neighbours by {words}"
            )
        return None
    if adjacency.users is not None:
        return _check_users(d1, d2, adjacency.users, group)
    if adjacency.kind in DISTANCES or adjacency.kind == "coordinate":
        return _check_distance(d1, d2, adjacency, group)
    if adjacency.kind == "replace" and is_scalar(d1) and is_scalar(d2):
        return None  # both inputs are one record, which is changed
    first, second = records_of(d1), records_of(d2)
    if first is None or second is None:
        return _without(first, second, d1, d2, "rows", words, "has no rows to compare")
    if adjacency.kind == "add-remove":
        return _check_add_remove(first, second, group)
    return _check_changed(first, second, adjacency, group)


def _no_neighbours(*parts: str) -> DatasetError:
    return DatasetError(*parts, code="pair-not-neighbours")


def _check_add_remove(first: Records, second: Records, group: int) -> str | None:
    only_first, only_second = exchanged(first, second)
    if only_first + only_second > group:
        limit = "one row" if group == 1 else f"in a group of {group} at most {group} rows"
        raise _no_neighbours(
            f"d1 has {counted(only_first, 'row')} that d2 does not have, and d2 has {only_second} "
            f"that d1 does not have; add-remove means {limit} more or less",
            *(_IF_REPLACED if only_first == only_second == 1 else ()),
        )
    return None if only_first + only_second else _OTHER_ORDER


def _check_changed(first: Records, second: Records, adjacency: Adjacency, group: int) -> str | None:
    """Raise DatasetError if two datasets differ in more records than allowed."""
    words = adjacency.describe()
    if len(first) != len(second):
        raise _no_neighbours(
            f"d1 has {counted(len(first), 'row')} and d2 {len(second):,}; {words} keeps the number "
            "of rows (add-remove allows one more or less)"
        )
    changed = sum(left != right for left, right in zip(first, second, strict=True))
    allowed = group * adjacency.distance
    if changed <= allowed or (
        adjacency.kind == "replace" and exchanged(first, second)[0] <= allowed
    ):
        return None
    raise _no_neighbours(
        f"d1 and d2 differ in {counted(changed, 'row')}; adjacency {words} allows at most "
        f"{allowed:g}{_in_group(group)}"
    )


def _in_group(group: int) -> str:
    return "" if group == 1 else f" in a group of {group}"


def _check_users(d1: Any, d2: Any, users: Users, group: int) -> str | None:
    first, second = named_records(d1), named_records(d2)
    if first is None or second is None:
        words = f"user:{users.describe()}"
        return _without(first, second, d1, d2, "rows", words, "has no rows with named columns")
    for name, rows in (("d1", first), ("d2", second)):
        _check_contributions(name, rows, users)
    ours, theirs = _by_user(first, users), _by_user(second, users)
    changed = [user for user in {**ours, **theirs} if ours.get(user) != theirs.get(user)]
    partly = next((user for user in changed if user in ours and user in theirs), None)
    if partly is not None:
        raise _no_neighbours(
            f"d1 and d2 hold other rows of the user {partly!r}; adjacency user means all rows of "
            "one user more or less"
        )
    if len(changed) > group:
        limit = "one user" if group == 1 else f"in a group of {group} at most {group} users"
        raise _no_neighbours(
            f"d1 and d2 differ in the rows of {counted(len(changed), 'user')}; adjacency user "
            f"means all rows of {limit} more or less"
        )
    return None if changed else _OTHER_ORDER


def _check_contributions(name: str, rows: Sequence[Mapping[Any, Any]], users: Users) -> None:
    """Raise DatasetError if a dataset lacks a column of `users`, or exceeds their limits."""
    for column in filter(None, (users.column, users.group)):
        row = next((row for row in rows if column not in row), None)
        if row is not None:
            known = list(map(str, row))
            raise DatasetError(
                f"{name} has a row without the column {column!r} of adjacency user; it has "
                f"{', '.join(known)}.{did_you_mean(column, known)}",
                code="column-unknown",
            )
    by_group = Counter(
        (comparable(row[users.column]), comparable(row[users.group]) if users.group else None)
        for row in rows
    )
    for (user, _), records in by_group.items():
        groups = sum(member == user for member, _ in by_group) if users.groups else 0
        if records > (users.per_group or records):
            limit = f"{users.per_group} in one group" if users.group else f"{users.per_group}"
            raise _no_neighbours(
                f"{name} has {counted(records, 'row')} of the user {user!r}; adjacency "
                f"user:{users.describe()} allows at most {limit}"
            )
        if groups > (users.groups or groups):
            raise _no_neighbours(
                f"{name} has rows of the user {user!r} in {counted(groups, 'group')}; adjacency "
                f"user:{users.describe()} allows at most {users.groups}"
            )


def _by_user(rows: Sequence[Mapping[Any, Any]], users: Users) -> dict[Hashable, Counter[Hashable]]:
    records: dict[Hashable, Counter[Hashable]] = {}
    for row in rows:
        records.setdefault(comparable(row[users.column]), Counter())[comparable(row)] += 1
    return records


def _check_distance(d1: Any, d2: Any, adjacency: Adjacency, group: int) -> str | None:
    first, second, words = _numeric(d1), _numeric(d2), adjacency.describe()
    if first is None or second is None:
        what = "is not a number or a vector of numbers"
        return _without(first, second, d1, d2, "numbers", words, what)
    if first.shape != second.shape:
        raise _no_neighbours(
            f"d1 has shape {first.shape} and d2 {second.shape}; adjacency {words} compares vectors "
            "of one shape"
        )
    differences = _differences(first.ravel(), second.ravel())
    changed = int(np.count_nonzero(differences))
    if adjacency.kind == "coordinate" and changed > group:
        limit = "one" if group == 1 else f"in a group of {group} at most {group}"
        raise _no_neighbours(
            f"d1 and d2 differ in {changed} entries; adjacency coordinate means {limit}"
        )
    # `order` is the p of the Lp norm of the adjacency. A group of k records may change k times,
    # each time by at most the allowed distance. So d1 and d2 are at most k times this distance
    # apart.
    order = DISTANCES.get(adjacency.kind, 1)
    with np.errstate(over="ignore"):  # an infinite distance exceeds every allowed distance
        distance = float(np.linalg.norm(differences, ord=order)) if differences.size else 0.0
    allowed = group * adjacency.distance
    if distance > allowed * (1 + _ROUNDING_SHARE):
        raise _no_neighbours(
            f"the {adjacency.kind} distance of d1 and d2 is {distance:g}; adjacency {words} allows "
            f"at most {allowed:g}{_in_group(group)}"
        )
    return None


def _differences(first: Any, second: Any) -> Any:
    """Return the differences of two arrays. They are 0 for two NaNs, and ∞ if only one is NaN."""
    equal = (first == second) | (np.isnan(first) & np.isnan(second))
    with np.errstate(invalid="ignore", over="ignore"):
        differences = np.where(equal, 0.0, first - second)
    return np.where(np.isnan(differences), np.inf, differences)


def _numeric(value: Any) -> Any:
    with suppress(TypeError, ValueError):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
    return None


def _without(
    first: Any, second: Any, d1: Any, d2: Any, parts: str, adjacency: str, what: str
) -> str:
    """Return why two inputs cannot be compared. Raises DatasetError if they are not neighbours."""
    # An input that is neither a single value nor a mapping may have rows that this module cannot
    # find, so d1 and d2 may be neighbours.
    name, other_name, without = ("d1", "d2", d1) if first is None else ("d2", "d1", d2)
    both_lack = first is None and second is None
    if not both_lack and (is_scalar(without) or isinstance(without, Mapping)):
        raise _no_neighbours(
            f"{other_name} has {parts}, and {name} = {short(without)} has none: they are no "
            f"neighbours by {adjacency}. Give both inputs in one form, or leave out adjacency"
        )
    return f"{name} ({type(without).__name__}) {what}"
