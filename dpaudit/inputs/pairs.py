"""Pairs of neighbouring inputs: their descriptions, and warnings about likely mistakes."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.records import as_pandas, difference, exchanged, is_set, records_of
from dpaudit.wording import nearest, shortened

# Users read this text and the text `SEVERAL` on the command line, in files of results and in
# Python. So the texts name options in words, not as flags or keyword arguments.
REPLACED = (
    "replacing one record means one removed and one added; a claim for add/remove needs group 2, "
    "or state adjacency replace"
)
SEVERAL = (
    "{} has {:,} records more than {}; a claim is of one record: give inputs that differ in one, "
    "or state the number of records as group"
)

_ARRAY = "array of shape"
# A place is a tuple that names a part of a dataset. This tuple stands for the records, and `("[]",
# "age")` for their column `age`.
_RECORD = ("[]",)
# Maps the `kind` of a NumPy dtype, such as "f", to the type of the entries in words.
_KINDS = {**dict.fromkeys("biufc", "number"), **dict.fromkeys("US", "text")}
# Largest number of values of a dataset that is checked for mistakes. Larger datasets would take too
# long.
_MAX_VALUES = 100_000


@dataclass(frozen=True, slots=True)
class NeighbouringPair:
    """Two inputs of the mechanism. dpaudit never changes them.

    adjacency: adjacency that the user states, if any.
    label: description of the pair in reports, such as `d1 = 0, d2 = 1`.
    """

    d1: Any
    d2: Any
    adjacency: Adjacency | None = None
    label: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """An input of a comparison of two mechanisms: a dataset, and whether B gets it, or A."""

    is_b: bool
    dataset: Any


def sides(inputs: Sequence[Any], inputs_of_b: Sequence[Any]) -> tuple[NeighbouringPair, ...]:
    """Return the pair (A on d, B on d) for each input d. The inputs of A and B have equal contents;
    they may be different objects if A and B run under different interpreters."""
    numbers = [f" {number}" if len(inputs) > 1 else "" for number in range(1, len(inputs) + 1)]
    return tuple(
        NeighbouringPair(Side(False, d), Side(True, d_of_b), label=f"input{number} = {short(d)}")
        for d, d_of_b, number in zip(inputs, inputs_of_b, numbers, strict=True)
    )


def describe_pair(d1: Any, d2: Any) -> str:
    """Return a short description of a pair, such as `d1 = 0, d2 = 1`. If the inputs are long lists
    that differ in one record, describe only the difference."""
    first, second = short(d1), short(d2)
    is_cut = any(text.endswith("…") or text.startswith(_ARRAY) for text in (first, second))
    change = difference(d1, d2) if is_cut else None
    return change or f"d1 = {first}, d2 = {second}"


def short(value: Any) -> str:
    """Return a dataset as a text of at most 30 characters."""
    text = value if isinstance(value, str) and value.startswith(("@", "import:")) else repr(value)
    if isinstance(value, np.ndarray) and value.size > 6:
        text = f"{_ARRAY} {value.shape}"
    return shortened(text, 30)


def stated(pair: NeighbouringPair) -> str:
    """Return the neighbouring relation of a pair in words; `not stated` if the user states none."""
    if isinstance(pair.d1, Side):
        return "same input"
    return "not stated" if pair.adjacency is None else pair.adjacency.describe()


def unlike_inputs(d1: Any, d2: Any) -> Iterator[str]:
    """Yield a warning if two inputs differ in type and neither is null. Yield a warning if each
    input has a column that the other lacks, and these columns have similar names."""
    if d1 is not None and d2 is not None and differ_in_type(d1, d2):
        yield (
            f"d1 is {with_type(d1)}, and d2 is {with_type(d2)}: unless this is meant, give inputs "
            "of one type"
        )
    first, second = (_columns(dataset) for dataset in (d1, d2))
    for name, columns, another, other_columns in (
        ("d1", first, "d2", second),
        ("d2", second, "d1", first),
    ):
        for column in columns - other_columns:
            near = nearest(column, other_columns - columns)
            if near is not None:
                yield f"{name} has a column {column!r}, and {another} has {near!r}: name it alike"
                return


def differ_in_type(d1: Any, d2: Any) -> bool:
    """Return whether two inputs, their records or their columns differ in type, such as null, text,
    number, list or array. A missing record or cell differs in type from no other."""
    if _type_name(d1) != _type_name(d2):
        return True
    first, second = dict(_types(d1)), dict(_types(d2))
    return any(first[path] != second[path] for path in first.keys() & second.keys())


def with_type(dataset: Any) -> str:
    """Return a description of an input with its type, such as `a list of numbers, [1, 2]`."""
    if dataset is None:
        return "null"
    name, records = _type_name(dataset), dict(_types(dataset)).get(_RECORD, set())
    if name == "text":
        return f"text, {short(dataset)}"
    listed = [kind if kind == "text" else f"{kind}s" for kind in sorted(records)]
    of = f" of {' and '.join(listed)}" if listed else ""
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}{of}, {short(dataset)}"


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return "text"
    if isinstance(value, numbers.Number | np.bool_ | np.number):
        return "number"
    return {"ndarray": "array"}.get(type(value).__name__, type(value).__name__)


def _types(dataset: Any) -> Iterator[tuple[tuple[Any, ...], set[str]]]:
    """Yield (path, types of the values at this path), such as (("[]", "age"), {"number"})."""
    types_at: dict[tuple[Any, ...], set[str]] = {}
    stack: list[tuple[tuple[Any, ...], Any]] = [((), dataset)]
    visits = 0
    while stack and visits < _MAX_VALUES:
        path, value = stack.pop()
        visits += 1
        if path and value is not None:
            types_at.setdefault(path, set()).add(_type_name(value))
        if isinstance(value, np.ndarray) and value.size and value.dtype.kind in _KINDS:
            types_at.setdefault((*path, *_RECORD), set()).add(_KINDS[value.dtype.kind])
        elif isinstance(value, np.ndarray) and value.dtype == object:
            stack += [((*path, *_RECORD), part) for part in value.ravel()[:_MAX_VALUES]]
        elif isinstance(value, list | tuple) and len(value) <= _MAX_VALUES:
            stack += [((*path, *_RECORD), part) for part in value]
        elif isinstance(value, Mapping):
            stack += [((*path, key), part) for key, part in value.items()]
        elif (frame := as_pandas(value)) is not None and frame.ndim == 2:
            kinds = {name: _column_types(column) for name, column in frame.items()}
            types_at.update({(*path, name): types for name, types in kinds.items() if types})
    yield from types_at.items()


def _column_types(column: Any) -> set[str]:
    """Return the set of the types of the cells in a pandas column."""
    # Missing cells are ignored, since one may turn a column of integers into a column of floats.
    cells, kind = column.dropna(), column.dtype.kind
    if kind == "O":
        return set(map(_type_name, cells.head(_MAX_VALUES)))
    return {_KINDS.get(kind, kind)} if len(cells) else set()


def _columns(dataset: Any) -> set[str]:
    """Return the names of the columns that every record has; an empty set without a table."""
    frame = as_pandas(dataset)
    if frame is not None and frame.ndim == 2:
        return {name for name in frame.columns if isinstance(name, str)}
    if not isinstance(dataset, list | tuple) or not 0 < len(dataset) <= _MAX_VALUES:
        return set()
    if not all(isinstance(row, Mapping) for row in dataset):
        return set()
    return {
        name for name in dataset[0] if isinstance(name, str) and all(name in row for row in dataset)
    }


def notes(pair: NeighbouringPair, group: int = 1) -> tuple[str, ...]:
    """Return a note that replacing a record counts as removing one and adding one. Return () unless
    d2 equals d1 after one record is replaced, the user states no adjacency, and the group is 1."""
    if pair.adjacency is not None or group > 1:
        return ()
    return (REPLACED,) if _is_replacement(pair.d1, pair.d2) else ()


def several_more(pair: NeighbouringPair, group: int = 1) -> tuple[str, ...]:
    """Return a warning that a dataset has at least two records more than the other. Return ()
    unless that is so, the user states no adjacency, and the group is 1."""
    d1, d2 = pair.d1, pair.d2
    if pair.adjacency is not None or group > 1 or not (_has_records(d1) and _has_records(d2)):
        return ()
    more = len(d1) - len(d2)
    longer, shorter = ("d1", "d2") if more > 0 else ("d2", "d1")
    return (SEVERAL.format(longer, abs(more), shorter),) if abs(more) > 1 else ()


def _is_replacement(d1: Any, d2: Any) -> bool:
    """Return whether d2 equals d1, in any order, after one record is replaced."""
    if not (_has_records(d1) and _has_records(d2)) or len(d1) != len(d2):
        return False
    first, second = (
        records_of(sorted(dataset, key=repr) if is_set(dataset) else dataset)
        for dataset in (d1, d2)
    )
    if first is None or second is None:
        return False
    changed = sum(left != right for left, right in zip(first, second, strict=True))
    return changed == 1 or (changed > 1 and exchanged(first, second) == (1, 1))


def _has_records(dataset: Any) -> bool:
    """Return whether a dataset is a collection of records that is small enough to be checked."""
    # A mapping may be a single record.
    if isinstance(dataset, np.ndarray) or as_pandas(dataset) is not None:
        return bool(dataset.ndim > 0 and dataset.size <= _MAX_VALUES)
    return (isinstance(dataset, list | tuple) or is_set(dataset)) and len(dataset) <= _MAX_VALUES
