"""Neighbouring inputs: the two datasets whose outputs an audit tells apart, and how they are said
to differ."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.differences import difference
from dpaudit.inputs.records import as_pandas, exchanged, is_set, records_of
from dpaudit.wording import shortened

# A note is kept in results, which are read everywhere: it names options as no place spells them.
REPLACED = (
    "replacing one record means one removed and one added; a claim for add/remove needs group 2, "
    "or state adjacency replace"
)
SEVERAL = (
    "{} has {:,} records more than {}; a claim is of one record, unless group says of how many"
)

_ARRAY = "array of shape"
# Larger datasets are not looked through for what is only a note.
_MOST_VALUES = 100_000


@dataclass(frozen=True, slots=True)
class NeighbouringPair:
    """Two inputs of the mechanism, handed to it as they are; never changed by dpaudit.

    label: how reports call the pair, e.g. `d1 = 0, d2 = 1`.
    """

    d1: Any
    d2: Any
    adjacency: Adjacency | None = None
    label: str = ""


def describe_pair(d1: Any, d2: Any) -> str:
    """Return a pair in a few words, e.g. `d1 = 0, d2 = 1`; of long lists how they differ."""
    first, second = short(d1), short(d2)
    is_cut = any(one.endswith("…") or one.startswith(_ARRAY) for one in (first, second))
    found = difference(d1, d2) if is_cut else None
    return found or f"d1 = {first}, d2 = {second}"


def short(value: Any) -> str:
    """Return a dataset in a few words."""
    text = value if isinstance(value, str) and value.startswith(("@", "import:")) else repr(value)
    if isinstance(value, np.ndarray) and value.size > 6:
        text = f"{_ARRAY} {value.shape}"
    return shortened(text, 30)


def stated(pair: NeighbouringPair) -> str:
    """Return the adjacency of a pair in words, also where none was declared."""
    return "not stated" if pair.adjacency is None else pair.adjacency.describe()


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


def differ_in_type(d1: Any, d2: Any) -> bool:
    """Return whether two inputs, or all records of one and all of the other, differ in type: null,
    text, number, list, array, table. Missing records have the type of any other."""
    if _type_name(d1) != _type_name(d2):
        return True
    kinds = [_record_types(one) for one in (d1, d2)]
    return all(kinds) and kinds[0].isdisjoint(kinds[1])


def with_type(dataset: Any) -> str:
    """Return an input with its type in words, as `a list of text, ['a', 'b']`."""
    if dataset is None:
        return "null"
    name, records = _type_name(dataset), _record_types(dataset)
    article = "an" if name[0].lower() in "aeiou" else "a"
    of = f" of {' and '.join(sorted(records))}" if records else ""
    return f"{article} {name}{of}, {short(dataset)}"


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return "text"
    if isinstance(value, numbers.Number | np.bool_ | np.number):
        return "number"
    return {"ndarray": "array"}.get(type(value).__name__, type(value).__name__)


def _record_types(dataset: Any) -> set[str]:
    if not isinstance(dataset, list | tuple) or len(dataset) > _MOST_VALUES:
        return set()
    return set(map(_type_name, dataset)) - {"null"}


def _is_collection(dataset: Any) -> bool:
    is_plain = isinstance(dataset, list | tuple | Mapping | np.ndarray)
    return is_plain or is_set(dataset) or as_pandas(dataset) is not None


def notes(pair: NeighbouringPair, group: int = 1) -> tuple[str, ...]:
    """Return what the pair says about an adjacency that was not declared, and is easily missed."""
    if pair.adjacency is not None or group > 1:
        return ()
    if _is_replacement(pair.d1, pair.d2):
        return (REPLACED,)
    more = _more_records(pair.d1, pair.d2)
    return (SEVERAL.format(*more),) if more else ()


def _more_records(d1: Any, d2: Any) -> tuple[str, int, str] | None:
    """Return which of two datasets has more records, how many more, and the other one; None where
    it is at most one more."""
    if not (_has_records(d1) and _has_records(d2)) or abs(len(d1) - len(d2)) < 2:
        return None
    return ("d1", len(d1) - len(d2), "d2") if len(d1) > len(d2) else ("d2", len(d2) - len(d1), "d1")


def _is_replacement(d1: Any, d2: Any) -> bool:
    """Whether two datasets differ by one record that has another one in its place."""
    if not (_has_records(d1) and _has_records(d2)) or len(d1) != len(d2):
        return False
    first, second = (records_of(sorted(one, key=repr) if is_set(one) else one) for one in (d1, d2))
    if first is None or second is None:
        return False
    changed = sum(one != other for one, other in zip(first, second, strict=True))
    return changed == 1 or (changed > 1 and exchanged(first, second) == (1, 1))


def _has_records(dataset: Any) -> bool:
    """Whether a dataset is several records: a number is none, and a mapping may be a single one."""
    if isinstance(dataset, np.ndarray) or as_pandas(dataset) is not None:
        return bool(dataset.ndim > 0 and dataset.size <= _MOST_VALUES)
    return (isinstance(dataset, list | tuple) or is_set(dataset)) and len(dataset) <= _MOST_VALUES
