"""How far two outputs of a function are apart: norms of numbers, or the records that differ.

Differences are exact, in fractions, and rounded once: what is above a claim is so in the numbers
that the function has returned.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpaudit.errors import UsageError
from dpaudit.inputs.records import records_of
from dpaudit.wording import counted, shown

RECORDS = "records"
NORMS: Mapping[str, str] = {
    "l1": "The absolute differences, added up.",
    "l2": "The Euclidean distance.",
    "linf": "The largest absolute difference.",
    RECORDS: "Of outputs that are datasets: how many records differ.",
}
# Relations under which a record is changed, not added: a change is then one step, not two.
_CHANGING = ("replace", "hamming")
_Number = int | float | Fraction
# An output as plain Python: numbers, None, and lists and mappings of them.
Plain = Any


class Unreadable(UsageError):
    """An output that a norm says nothing about."""

    code = "answer-without-distance"


@dataclass(frozen=True, slots=True)
class Distance:
    """How far two outputs are apart. words: why it is infinite, with d1 and d2; empty if it is
    not."""

    value: float
    words: str = ""


class _Apart(Exception):
    """Outputs of which no difference can be taken. Its text says why."""


def plain_numbers(output: Any, name: str) -> Plain:
    """Return an output as plain Python, which later changes of the output do not reach.

    Tables and series with an index of their own are mappings. Raises Unreadable. name: of the
    function, for messages.
    """
    if isinstance(output, np.ndarray | np.generic) and output.dtype.kind in "biufO":
        listed = output.tolist()
        return plain_numbers(listed, name) if output.dtype.kind == "O" else listed
    if output is None or isinstance(output, _Number):
        return output
    if isinstance(output, Decimal):
        return Fraction(output) if output.is_finite() else float(output)
    if isinstance(output, Mapping):
        return {key: plain_numbers(part, name) for key, part in output.items()}
    if isinstance(output, list | tuple | range):
        return [plain_numbers(part, name) for part in output]
    if is_dataclass(output) and not isinstance(output, type):
        named = {one.name: getattr(output, one.name) for one in fields(output)}
        return plain_numbers(named, name)
    table = _table(output)
    if table is not None:
        return plain_numbers(table, name)
    raise Unreadable(
        f"{name} returned {shown(output, 40)} (of type {type(output).__name__}), and norms are of "
        "numbers, sequences, arrays, tables and mappings of them; return numbers, or give --norm "
        "records for a function that returns a dataset"
    )


def plain_records(output: Any, name: str) -> tuple[Hashable, ...]:
    """Return the records of an output that is a dataset. Raises Unreadable for any other."""
    is_set = isinstance(output, set | frozenset)
    found = records_of(list(output) if is_set else output)
    if found is None:
        raise Unreadable(
            f"{name} returned {shown(output, 40)} (of type {type(output).__name__}), which has no "
            "records to compare; return a list, an array or a table, or give --norm l1, l2 or linf"
        )
    return tuple(found)


def as_rows(records: tuple[Hashable, ...]) -> list[Any]:
    """Return records as a reader would write them: rows as mappings, sequences as lists."""
    return [_row(one) for one in records]


def _row(record: Hashable) -> Any:
    if isinstance(record, frozenset):
        return {name: _row(part) for name, part in sorted(record, key=repr)}
    return [_row(one) for one in record] if isinstance(record, tuple) else record


def _table(output: Any) -> Any:
    """Return a table or a series as mappings and lists; None for anything else. Imports nothing."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(output, pandas.DataFrame):
        return {key: output[key] for key in output.columns} if output.columns.is_unique else None
    if pandas is not None and isinstance(output, pandas.Series):
        # An index that counts the rows names nothing.
        is_named = not isinstance(output.index, pandas.RangeIndex) and output.index.is_unique
        return dict(zip(output.index, output, strict=True)) if is_named else output.tolist()
    if polars is not None and isinstance(output, polars.DataFrame):
        return output.to_dict(as_series=False)
    if polars is not None and isinstance(output, polars.Series):
        return output.to_list()
    return None


def metric(norm: str, adjacency: str) -> Callable[[Any, Any], Distance]:
    """Return what measures how far two plain outputs are apart. adjacency: the kind of relation,
    which says what one step between datasets is."""
    if norm == RECORDS:
        return _changed if adjacency in _CHANGING else _added
    total = {"l1": _l1, "l2": _l2, "linf": _linf}[norm]

    def distance(first: Plain, second: Plain) -> Distance:
        try:
            return _rounded(total, list(_differences(first, second, "")))
        except _Apart as apart:
            return Distance(math.inf, str(apart))

    return distance


def _added(first: tuple[Hashable, ...], second: tuple[Hashable, ...]) -> Distance:
    """How many records have to be added or removed."""
    ours, theirs = Counter(first), Counter(second)
    return Distance(float((ours - theirs).total() + (theirs - ours).total()))


def _changed(first: tuple[Hashable, ...], second: tuple[Hashable, ...]) -> Distance:
    """How many records have to be replaced, added or removed."""
    ours, theirs = Counter(first), Counter(second)
    return Distance(float(max((ours - theirs).total(), (theirs - ours).total())))


def _l1(differences: list[Fraction]) -> float:
    return float(sum(differences, Fraction(0)))


def _linf(differences: list[Fraction]) -> float:
    return float(max(differences, default=Fraction(0)))


def _l2(differences: list[Fraction]) -> float:
    return math.hypot(*map(float, differences))


def _rounded(total: Callable[[list[Fraction]], float], differences: list[Fraction]) -> Distance:
    try:
        value = total(differences)
    except OverflowError:
        value = math.inf
    return Distance(value, "it is larger than any float" if value == math.inf else "")


def _differences(first: Plain, second: Plain, at: str) -> Iterator[Fraction]:
    """Yield the absolute differences that are not 0. Raises _Apart."""
    if isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            lengths = f"{counted(len(first), 'value')} for d1 and {len(second)} for d2"
            raise _Apart(f"the output{at} has {lengths}")
        for place, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from _differences(one, other, f"{at}[{place}]")
    elif isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys([*first, *second]):
            inside = f"{at}[{shown(key, 20)}]"
            # A count of nothing, which many functions leave out.
            one = first[key] if key in first else _zero(second[key])
            other = second[key] if key in second else _zero(first[key])
            yield from _differences(one, other, inside)
    elif isinstance(first, _Number) and isinstance(second, _Number):
        yield from _difference(first, second, at)
    elif first is not None or second is not None:
        raise _Apart(f"the output{at} is {_kind(first)} for d1 and {_kind(second)} for d2")


def _zero(value: Plain) -> Plain:
    """Return a value of the same shape in which all numbers are 0."""
    if isinstance(value, list):
        return [_zero(one) for one in value]
    if isinstance(value, dict):
        return {key: _zero(one) for key, one in value.items()}
    return 0 if isinstance(value, _Number) else value


def _difference(first: _Number, second: _Number, at: str) -> Iterator[Fraction]:
    if first == second:
        return
    if _is_finite(first) and _is_finite(second):
        yield abs(Fraction(first) - Fraction(second))
    elif not (first != first and second != second):  # NaN in both is no difference
        raise _Apart(f"the output{at} is {_said(first)} for d1 and {_said(second)} for d2")


def _is_finite(value: _Number) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _said(value: _Number) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    return f"{float(value):.4g}" if isinstance(value, Fraction) else shown(value, 20)


def _kind(value: Plain) -> str:
    if value is None:
        return "None"
    if isinstance(value, list):
        return f"a sequence of {len(value)}"
    return "a mapping" if isinstance(value, dict) else f"the number {_said(value)}"
