"""Whether two inputs are neighbours, by the relation that was declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dpaudit.errors import DatasetError, Given
from dpaudit.import_path import resolve
from dpaudit.inputs.adjacency import DISTANCES, Adjacency, Users
from dpaudit.inputs.equality import are_equal
from dpaudit.inputs.pairs import NeighbouringPair, several_more, short, unlike_inputs
from dpaudit.inputs.records import comparable, exchanged, is_scalar, named_records, records_of
from dpaudit.wording import counted, did_you_mean, shortened

# Why an audit of equal inputs is under-powered; EQUAL is the warning of a pair.
EQUAL_INPUTS = "d1 and d2 are equal, so nothing can tell them apart; give two neighbouring inputs"
EQUAL = "d1 and d2 are equal: no mechanism can tell them apart, so the audit can find nothing"
_IF_REPLACED = (
    *(" (a replaced row is one removed and one added: state replace, or claim for ",),
    *(Given("group=2", "--group 2 (claim: {group: 2})"), ")"),
)
# A distance of exactly the allowed size may come out a few units in the last place above it.
_ROUNDING = 1e-9


def check_pair(pair: NeighbouringPair, group: int = 1) -> tuple[str, ...]:
    """Return warnings: d1 equal to d2, only one of them a text, several records more in one of
    them, or an adjacency that cannot be checked, and why.

    group: in how many records the inputs may differ, or how many times the distance.
    Raises DatasetError when the declared adjacency is contradicted by the datasets.
    """
    if are_equal(pair.d1, pair.d2):
        return (EQUAL,)
    unlike = tuple(unlike_inputs(pair.d1, pair.d2))
    if pair.adjacency is None:
        return (*unlike, *several_more(pair, group))
    reason = _contradiction_or_doubt(pair.d1, pair.d2, pair.adjacency, group)
    doubt = (
        () if reason is None else (f"adjacency {pair.adjacency.describe()} unchecked: {reason}",)
    )
    return (*unlike, *doubt)


def holds(d1: Any, d2: Any, adjacency: Adjacency) -> bool:
    """Return whether two inputs are known to be neighbours. Raises DatasetError when a user's own
    relation fails."""
    if adjacency.path:
        return related(adjacency, d1, d2)
    with suppress(DatasetError):
        return _contradiction_or_doubt(d1, d2, adjacency, 1) is None
    return False


def related(adjacency: Adjacency, d1: Any, d2: Any) -> bool:
    """Return what a user's relation says of two inputs.

    Raises DatasetError when it fails, returns no bool, or says something else the other way round.
    """
    relation, words = resolve(adjacency.path), adjacency.describe()
    if not callable(relation):
        raise DatasetError(
            f"adjacency {words} is no function; write relation(d1, d2) -> bool",
            code="adjacency-invalid",
        )
    try:
        one, other = relation(d1, d2), relation(d2, d1)
    except (Exception, SystemExit) as error:
        raise DatasetError(
            f"adjacency {words} failed for d1 = {short(d1)}, d2 = {short(d2)}: "
            f"{type(error).__name__}: {error}",
            code="adjacency-failed",
        ) from error
    for said in (one, other):
        if not isinstance(said, bool | np.bool_):
            raise DatasetError(
                f"adjacency {words} returned {shortened(repr(said))}, not a bool",
                code="adjacency-failed",
            )
    if bool(one) != bool(other):
        raise DatasetError(
            f"adjacency {words} is not symmetric: relation(d1, d2) is {bool(one)} and "
            f"relation(d2, d1) {bool(other)} for d1 = {short(d1)}, d2 = {short(d2)}",
            code="adjacency-failed",
        )
    return bool(one)


def _contradiction_or_doubt(d1: Any, d2: Any, adjacency: Adjacency, group: int) -> str | None:
    """Return why the adjacency cannot be checked, None when it holds; raise when it does not."""
    if adjacency.path:
        return _check_own(d1, d2, adjacency, group)
    if adjacency.users is not None:
        return _check_users(d1, d2, adjacency.users, group)
    if adjacency.kind in DISTANCES or adjacency.kind == "coordinate":
        return _check_distance(d1, d2, adjacency, group)
    if adjacency.kind == "replace" and is_scalar(d1) and is_scalar(d2):
        return None  # one record, changed
    first, second = records_of(d1), records_of(d2)
    if first is None or second is None:
        _check_form(first, second, d1, d2, "rows", adjacency.describe())
        return f"{_first_without(first, d1, d2)} has no rows to compare"
    if adjacency.kind == "replace":
        return _check_replace(first, second, group)
    if adjacency.kind == "hamming":
        return _check_hamming(first, second, adjacency, group)
    return _check_add_remove(first, second, group)


def _check_own(d1: Any, d2: Any, adjacency: Adjacency, group: int) -> str | None:
    if group > 1:
        return "a relation of one's own says nothing of groups"
    if not related(adjacency, d1, d2):
        raise DatasetError(
            f"d1 = {short(d1)} and d2 = {short(d2)} are no neighbours by {adjacency.describe()}",
            code="pair-not-neighbours",
        )
    return None


def _check_add_remove(
    first: Sequence[Hashable], second: Sequence[Hashable], group: int
) -> str | None:
    only_first, only_second = exchanged(first, second)
    if only_first + only_second > group:
        most = "one row" if group == 1 else f"in a group of {group} at most {group} rows"
        is_replaced = only_first == only_second == 1
        raise DatasetError(
            f"d1 has {counted(only_first, 'row')} that d2 does not have, and d2 has {only_second} "
            f"that d1 does not have; add-remove means {most} more or less",
            *(_IF_REPLACED if is_replaced else ()),
            code="pair-not-neighbours",
        )
    return None if only_first + only_second else "d1 and d2 hold the same rows in another order"


def _check_replace(first: Sequence[Hashable], second: Sequence[Hashable], group: int) -> str | None:
    if len(first) != len(second):
        raise DatasetError(
            f"d1 has {counted(len(first), 'row')} and d2 {len(second)}; replace keeps the number "
            "of rows (adjacency: add-remove allows one more or less)",
            code="pair-not-neighbours",
        )
    changed = sum(one != other for one, other in zip(first, second, strict=True))
    if changed > group and exchanged(first, second)[0] > group:
        most = "exactly one" if group == 1 else f"in a group of {group} at most {group}"
        raise DatasetError(
            f"d1 and d2 differ in {counted(changed, 'row')}; replace means {most}",
            code="pair-not-neighbours",
        )
    return None


def _check_hamming(
    first: Sequence[Hashable], second: Sequence[Hashable], adjacency: Adjacency, group: int
) -> str | None:
    if len(first) != len(second):
        raise DatasetError(
            f"d1 has {counted(len(first), 'row')} and d2 {len(second)}; {adjacency.describe()} "
            "keeps the number of rows (adjacency: add-remove allows one more or less)",
            code="pair-not-neighbours",
        )
    changed = sum(one != other for one, other in zip(first, second, strict=True))
    if changed > group * adjacency.distance:
        times = "" if group == 1 else f" in a group of {group}"
        raise DatasetError(
            f"d1 and d2 differ in {counted(changed, 'place')}; adjacency {adjacency.describe()} "
            f"allows at most {group * adjacency.distance:g}{times}",
            code="pair-not-neighbours",
        )
    return None


def _check_users(d1: Any, d2: Any, users: Users, group: int) -> str | None:
    first, second = named_records(d1), named_records(d2)
    if first is None or second is None:
        _check_form(first, second, d1, d2, "rows", f"user:{users.describe()}")
        return f"{_first_without(first, d1, d2)} has no rows with named columns"
    for name, rows in (("d1", first), ("d2", second)):
        _check_contributions(name, rows, users)
    ours, theirs = _by_user(first, users), _by_user(second, users)
    changed = [one for one in {**ours, **theirs} if ours.get(one) != theirs.get(one)]
    partly = next((one for one in changed if one in ours and one in theirs), None)
    if partly is not None:
        raise DatasetError(
            f"d1 and d2 hold other rows of the user {partly!r}; adjacency user means all rows of "
            "one user more or less",
            code="pair-not-neighbours",
        )
    if len(changed) > group:
        most = "one user" if group == 1 else f"in a group of {group} at most {group} users"
        raise DatasetError(
            f"d1 and d2 differ in the rows of {counted(len(changed), 'user')}; adjacency user "
            f"means all rows of {most} more or less",
            code="pair-not-neighbours",
        )
    return None if changed else "d1 and d2 hold the same rows in another order"


def _check_contributions(name: str, rows: Sequence[Mapping[Any, Any]], users: Users) -> None:
    """Raise DatasetError where a column is missing, or a user contributes more than is allowed."""
    for column in filter(None, (users.column, users.group)):
        if any(column not in row for row in rows):
            known = [str(key) for key in next(row for row in rows if column not in row)]
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
        groups = sum(one == user for one, _ in by_group) if users.groups else 0
        if records > (users.per_group or records):
            most = f"{users.per_group} in one group" if users.group else f"{users.per_group}"
            raise DatasetError(
                f"{name} has {counted(records, 'row')} of the user {user!r}; adjacency "
                f"user:{users.describe()} allows at most {most}",
                code="pair-not-neighbours",
            )
        if groups > (users.groups or groups):
            raise DatasetError(
                f"{name} has rows of the user {user!r} in {counted(groups, 'group')}; adjacency "
                f"user:{users.describe()} allows at most {users.groups}",
                code="pair-not-neighbours",
            )


def _by_user(rows: Sequence[Mapping[Any, Any]], users: Users) -> dict[Hashable, Counter[Hashable]]:
    found: dict[Hashable, Counter[Hashable]] = {}
    for row in rows:
        found.setdefault(comparable(row[users.column]), Counter())[comparable(row)] += 1
    return found


def _check_distance(d1: Any, d2: Any, adjacency: Adjacency, group: int) -> str | None:
    first, second = _numeric(d1), _numeric(d2)
    if first is None or second is None:
        _check_form(first, second, d1, d2, "numbers", adjacency.describe())
        return f"{_first_without(first, d1, d2)} is not a number or a vector of numbers"
    if first.shape != second.shape:
        raise DatasetError(
            f"d1 has shape {first.shape} and d2 {second.shape}; "
            f"adjacency {adjacency.describe()} compares vectors of one shape",
            code="pair-not-neighbours",
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
            f"adjacency {adjacency.describe()} allows at most {allowed:g}{times}",
            code="pair-not-neighbours",
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
            f"d1 and d2 differ in {changed} entries; adjacency coordinate means {most}",
            code="pair-not-neighbours",
        )


def _numeric(value: Any) -> Any:
    with suppress(TypeError, ValueError):
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
    return None


def _check_form(first: Any, second: Any, d1: Any, d2: Any, parts: str, adjacency: str) -> None:
    """Raise DatasetError where one input has rows, or numbers, and the other is a single value or a
    mapping: no change of rows makes one of the other. (Objects of other types may have rows that
    are not known here.)

    first, second: what was made of d1 and d2, None where nothing was.
    """
    if first is None and second is None:
        return
    without = d1 if first is None else d2
    if not is_scalar(without) and not isinstance(without, Mapping):
        return
    one, other = ("d2", "d1") if first is None else ("d1", "d2")
    raise DatasetError(
        f"{one} has {parts}, and {other} = {short(without)} has none: they are no neighbours by "
        f"{adjacency}. Give both inputs in one form, or leave out adjacency",
        code="pair-not-neighbours",
    )


def _first_without(first: Any, d1: Any, d2: Any) -> str:
    """Return the dataset of which nothing was made, with its type; first: what was made of d1."""
    return f"d1 ({type(d1).__name__})" if first is None else f"d2 ({type(d2).__name__})"
