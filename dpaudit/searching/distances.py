"""Answers of a function without noise, and the distance of two answers. Differences are exact
fractions; only the final distance is rounded. So if a computed distance exceeds a claim, the
distance of the numbers that the function returned exceeds it, too."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from dpaudit.adapters.calls import as_outcome
from dpaudit.errors import UsageError
from dpaudit.inputs.records import records_of
from dpaudit.outcomes import Raised
from dpaudit.processes.origin import FAILURES, end_if_forked
from dpaudit.searching.climbing import key
from dpaudit.wording import counted, shown

RECORDS = "records"
NORMS: Mapping[str, str] = {
    "l1": "The absolute differences, added up.",
    "l2": "The Euclidean distance.",
    "linf": "The largest absolute difference.",
    RECORDS: "Of outputs that are datasets: how many records differ.",
}
# Adjacencies under which two datasets are neighbours if one record is changed. Under other
# adjacencies, a changed record counts as two steps: a removal and an addition.
_REPLACING = ("replace", "hamming")
# To check that the user's function gives the same answer for the same dataset, `AnswerCache` calls
# it twice for each of the first datasets, up to this number. Later it is called twice only for a
# pair of datasets that refutes the claim.
_REPEATED_CALLS = 30
# Number of answers of the user's function that are kept in memory. For datasets beyond this number,
# the function is called each time that the answer is needed. Most searches need fewer answers.
_MAX_ANSWERS = 50_000
_Number = int | float | Fraction
# Type of an output after conversion to plain Python: a number, None, or a list or mapping of these.
Plain = Any


class Unreadable(UsageError):
    """Raised for an output whose distance from another output cannot be measured: it has no numbers
    or, for the norm `records`, no records."""

    code = "answer-without-distance"


@dataclass(frozen=True, slots=True)
class Distance:
    """The distance of two outputs. `words` is the reason why it is infinite; "" if it is finite."""

    value: float
    words: str = ""


class _Apart(Exception):
    """Raised for outputs that cannot be subtracted, as those of unequal length. Has the reason."""


def plain_numbers(output: Any, name: str) -> Plain:
    """Return an output in plain Python. A data frame becomes a mapping from its column names to
    lists. A pandas series whose index holds names becomes a mapping from these names to its values.
    Raises Unreadable, with the name of the function, if the output has no numbers."""
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
        named = {field.name: getattr(output, field.name) for field in fields(output)}
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
    """Return the records of an output that is a list, set, array or table. Raises Unreadable, with
    the name of the function, for other outputs."""
    is_set = isinstance(output, set | frozenset)
    records = records_of(list(output) if is_set else output)
    if records is None:
        raise Unreadable(
            f"{name} returned {shown(output, 40)} (of type {type(output).__name__}), which has no "
            "records to compare; return a list, an array or a table, or give --norm l1, l2 or linf"
        )
    return tuple(records)


def as_rows(records: tuple[Hashable, ...]) -> list[Any]:
    """Return hashable records as users write them: a row, which is a frozenset of (column, value),
    as a mapping; a tuple as a list."""
    return list(map(_row, records))


def _row(record: Hashable) -> Any:
    if isinstance(record, frozenset):
        return {name: _row(part) for name, part in sorted(record, key=repr)}
    return list(map(_row, record)) if isinstance(record, tuple) else record


def _table(output: Any) -> Any:
    """Return a data frame or series as a mapping or a list; None for other outputs."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(output, pandas.DataFrame):
        return {key: output[key] for key in output.columns} if output.columns.is_unique else None
    if pandas is not None and isinstance(output, pandas.Series):
        # A RangeIndex only numbers the rows, so the series has no names and becomes a list.
        is_named = not isinstance(output.index, pandas.RangeIndex) and output.index.is_unique
        return dict(zip(output.index, output, strict=True)) if is_named else output.tolist()
    if polars is not None and isinstance(output, polars.DataFrame):
        return output.to_dict(as_series=False)
    if polars is not None and isinstance(output, polars.Series):
        return output.to_list()
    return None


def metric(norm: str, adjacency: str) -> Callable[[Any, Any], Distance]:
    """Return a function that takes two outputs in plain Python and returns their `Distance`. `norm`
    is `l1`, `l2`, `linf` or `records`, the number of records that differ. For `records`, the
    adjacency decides whether a changed record counts as one step or as two."""
    if norm == RECORDS:
        return partial(_records_apart, is_changing=adjacency in _REPLACING)
    total = _TOTALS[norm]

    def distance(first: Plain, second: Plain) -> Distance:
        try:
            value = total(list(_differences(first, second, "")))
        except _Apart as apart:
            return Distance(math.inf, str(apart))
        except OverflowError:
            value = math.inf
        return Distance(value, "it is larger than any float" if value == math.inf else "")

    return distance


# Maps the name of a norm to a function that takes the exact absolute differences and returns the
# distance. Only the result is rounded.
_TOTALS: Mapping[str, Callable[[list[Fraction]], float]] = {
    "l1": lambda differences: float(sum(differences, Fraction(0))),
    "l2": lambda differences: math.hypot(*map(float, differences)),
    "linf": lambda differences: float(max(differences, default=Fraction(0))),
}


def _records_apart(
    first: tuple[Hashable, ...], second: tuple[Hashable, ...], *, is_changing: bool
) -> Distance:
    """Return how many records must be added or removed (or changed) to make two datasets equal."""
    ours, theirs = Counter(first), Counter(second)
    removed, added = (ours - theirs).total(), (theirs - ours).total()
    return Distance(float(max(removed, added) if is_changing else removed + added))


def _differences(first: Plain, second: Plain, at: str) -> Iterator[Fraction]:
    """Yield the absolute differences, except 0, between the numbers of two outputs."""
    if isinstance(first, list) and isinstance(second, list):
        if len(first) != len(second):
            lengths = f"{counted(len(first), 'value')} for d1 and {len(second):,} for d2"
            raise _Apart(f"the output{at} has {lengths}")
        for index, (left, right) in enumerate(zip(first, second, strict=True)):
            yield from _differences(left, right, f"{at}[{index}]")
    elif isinstance(first, dict) and isinstance(second, dict):
        for key in dict.fromkeys([*first, *second]):
            inside = f"{at}[{shown(key, 20)}]"
            # A missing key counts as 0: many functions leave out groups without records.
            ours = first[key] if key in first else _zero(second[key])
            theirs = second[key] if key in second else _zero(first[key])
            yield from _differences(ours, theirs, inside)
    elif isinstance(first, _Number) and isinstance(second, _Number):
        yield from _difference(first, second, at)
    elif first is not None or second is not None:
        raise _Apart(f"the output{at} is {_kind(first)} for d1 and {_kind(second)} for d2")


def _zero(value: Plain) -> Plain:
    """Return a copy of a value in which every number is 0. Lists and mappings keep their shape."""
    if isinstance(value, list):
        return list(map(_zero, value))
    if isinstance(value, dict):
        return {key: _zero(part) for key, part in value.items()}
    return 0 if isinstance(value, _Number) else value


def _difference(first: _Number, second: _Number, at: str) -> Iterator[Fraction]:
    if first == second:
        return
    if _is_finite(first) and _is_finite(second):
        yield abs(Fraction(first) - Fraction(second))
    elif not (first != first and second != second):  # NaN in both outputs counts as equal
        raise _Apart(f"the output{at} is {_shown(first)} for d1 and {_shown(second)} for d2")


def _is_finite(value: _Number) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _shown(value: _Number) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "-∞"
    return f"{float(value):.4g}" if isinstance(value, Fraction) else shown(value, 20)


def _kind(value: Plain) -> str:
    if value is None:
        return "None"
    if isinstance(value, list):
        return f"a sequence of {len(value)}"
    return "a mapping" if isinstance(value, dict) else f"the number {_shown(value)}"


class AnswerCache:
    """Calls one function on datasets, and keeps its answers, converted to plain Python.

    function: its only argument is the dataset.
    read: converts an output to plain Python; gets the name of the function. May raise UsageError.
    formed: copies a dataset into the form that the function takes.
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        read: Callable[[Any, str], Any],
        name: str,
        formed: Callable[[Any], Any],
    ) -> None:
        self._function, self._read, self._name, self._formed = function, read, name, formed
        self._answers: dict[str, Any] = {}
        self._calls = 0

    def __len__(self) -> int:
        """Return the number of calls so far. A `Watch` uses it to notice a call that does not
        return."""
        return self._calls

    def of(self, dataset: Any) -> Any:
        """Return the answer for a dataset, in plain Python, or a `Raised`. If the answer is kept,
        the function is not called. Raises DatasetError if the dataset cannot be converted, and
        UsageError if the output cannot be, or differs from call to call."""
        text = key(dataset)
        if text in self._answers:
            return self._answers[text]
        answer = self._called(dataset)
        if len(self._answers) < _REPEATED_CALLS:
            self._check_same(dataset, answer)
        if len(self._answers) < _MAX_ANSWERS:
            self._answers[text] = answer
        return answer

    def check(self, dataset: Any) -> None:
        """Call the function again. Raise UsageError if the answer differs from the earlier one."""
        self._check_same(dataset, self.of(dataset))

    def _check_same(self, dataset: Any, answer: Any) -> None:
        again = self._called(dataset)
        if _named(again) == _named(answer):
            return
        words = (
            f"{self._name} gave {shown(answer, 30)} and then {shown(again, 30)} for the same "
            f"input {shown(dataset, 40)}"
        )
        if _in_any_order(again) == _in_any_order(answer):
            raise UsageError(
                f"{words}: the same values in a random order, so that no distance can be computed; "
                "sort the output, or give --norm records, for which the order does not count",
                code="function-not-repeatable",
            )
        raise UsageError(
            f"{words}; a sensitivity is of a function without noise or state: name the part that "
            "computes the answer before noise is added",
            code="function-not-repeatable",
        )

    def _called(self, dataset: Any) -> Any:
        argument = self._formed(dataset)
        self._calls += 1
        owner = os.getpid()
        try:
            output = self._function(argument)
        except FAILURES as error:
            end_if_forked(owner, error)
            return as_outcome(error)
        end_if_forked(owner)
        if isinstance(output, Raised):  # the function runs in another process
            return output
        return self._read(output, self._name)


def _named(answer: Any) -> str:
    """Return a text for an answer. Answers count as equal if and only if their texts are equal."""
    # Only the type of the exception is compared: its message may contain a memory address, which
    # varies.
    if isinstance(answer, Raised):
        return answer.kind
    # A tuple holds the records of a dataset, whose order does not matter.
    return _in_any_order(answer) if isinstance(answer, tuple) else key(answer)


def _in_any_order(answer: Any) -> str:
    """Return a text that is equal for two answers with the same items, in any order."""
    if isinstance(answer, list | tuple):
        return f"[{', '.join(sorted(map(_in_any_order, answer)))}]"
    if isinstance(answer, Mapping):
        items = (f"{name!r}: {_in_any_order(part)}" for name, part in answer.items())
        return f"{{{', '.join(sorted(items))}}}"
    return key(answer)
