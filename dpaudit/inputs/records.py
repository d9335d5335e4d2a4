"""The records of a dataset, as values that can be compared."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, cast

import numpy as np

# Most entries are of these; to ask whether one is a mapping takes longer than all the rest.
_PLAIN = frozenset({int, str, bool, type(None)})


def records_of(dataset: Any) -> list[Hashable] | None:
    """Return the records of a dataset as comparable values; None for what has none."""
    if isinstance(dataset, np.ndarray):
        return [comparable(row) for row in dataset.tolist()] if dataset.ndim else None
    if isinstance(dataset, list | tuple):
        return [comparable(row) for row in dataset]
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(dataset, polars.DataFrame):
        return [comparable(row) for row in dataset.rows()]
    frame = as_pandas(dataset)
    if frame is None:
        return None
    values = [frame] if frame.ndim == 1 else [frame.iloc[:, i] for i in range(frame.shape[1])]
    return [comparable(row) for row in zip(*(column.tolist() for column in values), strict=True)]


def named_records(dataset: Any) -> list[Mapping[Any, Any]] | None:
    """Return the rows with the names of their columns; None for what has none."""
    frame = as_pandas(dataset)
    if frame is not None:
        return frame.to_dict("records") if frame.ndim == 2 else None
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(dataset, polars.DataFrame):
        return list(dataset.to_dicts())
    is_table = isinstance(dataset, list | tuple) and all(
        isinstance(row, Mapping) for row in dataset
    )
    return list(dataset) if is_table else None


def exchanged(first: Sequence[Hashable], second: Sequence[Hashable]) -> tuple[int, int]:
    """Return how many rows only one of them has, whatever the order (as multisets)."""
    ours, theirs = Counter(first), Counter(second)
    return (ours - theirs).total(), (theirs - ours).total()


def comparable(value: Any) -> Hashable:
    """Return what equals another if the values are the same: NaN and NaN, but not 0.0 and −0.0."""
    kind = type(value)
    if kind in _PLAIN or (kind is float and value and value == value):  # neither a zero nor NaN
        return cast(Hashable, value)
    if kind is list:
        return tuple(map(comparable, value))
    if kind is dict:
        return frozenset([(key, comparable(part)) for key, part in value.items()])
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return tuple(map(comparable, value))
    if isinstance(value, Mapping):
        return frozenset((key, comparable(part)) for key, part in value.items())
    if isinstance(value, float) and math.isnan(value):
        return "NaN"  # unequal to itself, but the same row all the same
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        return "-0.0"  # equal to 0.0, but another row: 1 / x and atan2 tell them apart
    return value if isinstance(value, Hashable) else repr(value)


def is_scalar(value: Any) -> bool:
    """Return whether a dataset is a single value."""
    return value is None or isinstance(value, int | float | complex | str | bytes | np.generic)


def is_set(dataset: Any) -> bool:
    """Return whether the records of a dataset have no order."""
    return isinstance(dataset, set | frozenset)


def as_pandas(value: Any) -> Any:
    """Return a DataFrame or Series; None for anything else. Never imports pandas."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(value, (pandas.DataFrame, pandas.Series)):
        return None
    return value
