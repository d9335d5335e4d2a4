"""Convert data frames, series and Arrow tables to plain Python values, under Python 3.8 and without
dpaudit.

The processes that call the mechanism send objects of pandas, Polars and Arrow as `Frame` and
`PlainSeries`, so that the auditing process does not need these libraries. This module imports none
of them: a mechanism that returns their objects has already imported them.
"""

from __future__ import annotations

import datetime
import pickle
import sys
from collections import Counter

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from typing import Any

    Entries = list[Any] | dict[Any, Any]

_FRAMES = {"pandas": ["DataFrame"], "polars": ["DataFrame"], "pyarrow": ["Table", "RecordBatch"]}
_SERIES = {
    "pandas": ["Series", "Index"],
    "polars": ["Series"],
    "pyarrow": ["Array", "ChunkedArray"],
}


class Frame:
    """A data frame, converted to plain Python values.

    word: type of the data frame in words, such as `a DataFrame`.
    columns: the values of each column, by its name: a list, or a mapping from index to value if the
        index is not 0, 1, 2, ...
    """

    def __init__(self, word: str, columns: dict[Any, Entries]) -> None:
        self.word, self.columns = word, columns

    @property
    def shape(self) -> tuple[int, int]:
        return max(map(len, self.columns.values()), default=0), len(self.columns)


class PlainSeries:
    """A series, converted to plain Python values.

    word: type and dtype in words, such as `Series of int64`.
    entries: a list, or a mapping from index to value if the index is not 0, 1, 2, ...
    """

    def __init__(self, word: str, entries: Entries) -> None:
        self.word, self.entries = word, entries

    def __len__(self) -> int:
        return len(self.entries)


def is_frame(kind: type) -> bool:
    return issubclass(kind, Frame) or _library(kind, _FRAMES) is not None


def is_series(kind: type) -> bool:
    return issubclass(kind, PlainSeries) or _library(kind, _SERIES) is not None


def as_frame(value: Any) -> Frame:
    """Convert a data frame or an Arrow table to a `Frame`. If several columns have the same name,
    numbers are added to it."""
    library = _library(type(value), _FRAMES)
    if library == "pandas":
        keys = _distinct(value.columns.tolist())
        columns = {key: _entries(value.iloc[:, i]) for i, key in enumerate(keys)}
        return Frame("a DataFrame", columns)
    if library == "polars":
        return Frame(
            "a polars.DataFrame", {key: value.get_column(key).to_list() for key in value.columns}
        )
    if library == "pyarrow":
        keys = _distinct(value.schema.names)
        lists = (value.column(i).to_pylist() for i in range(len(keys)))
        return Frame("a pyarrow." + type(value).__name__, dict(zip(keys, lists)))  # noqa: B905  # Python 3.8
    return value  # type: ignore[no-any-return]  # it is a Frame


def as_series(value: Any) -> PlainSeries:
    """Convert a series, an index or an Arrow array to a `PlainSeries`."""
    library, name = _library(type(value), _SERIES), type(value).__qualname__
    if library == "pandas":
        return PlainSeries(f"{name} of {value.dtype}", _entries(value))
    if library == "polars":
        return PlainSeries(f"polars.{name} of {value.dtype}", value.to_list())
    if library == "pyarrow":
        return PlainSeries(f"pyarrow.{name} of {value.type}", value.to_pylist())
    return value  # type: ignore[no-any-return]  # it is a Series


def scalar_parts(value: Any) -> tuple[str, list[Any]] | None:
    """Describe a time stamp, a duration or a missing value of pandas: return (kind, plain values).
    The kind is "moment", "duration" or "missing". Return None for any other value."""
    pandas = sys.modules.get("pandas")
    name = type(value).__name__
    missing = () if pandas is None else (getattr(pandas, "NA", None), getattr(pandas, "NaT", None))
    if any(value is constant for constant in missing if constant is not None):
        return "missing", [name, str(value)]
    if isinstance(value, datetime.datetime) and hasattr(value, "nanosecond"):
        moment: Any = value
        return "moment", [name, moment.replace(nanosecond=0).isoformat(), moment.nanosecond]
    if isinstance(value, datetime.timedelta) and hasattr(value, "nanoseconds"):
        days, seconds, microseconds = value.days, value.seconds, value.microseconds
        return "duration", [name, days, seconds, microseconds, value.nanoseconds]
    return None


def content(value: Any) -> bytes:
    """Return bytes that change if a value is changed: its pickle. For a pandas object, they are its
    names and types, and hashes of its rows, since its pickle changes even when it is only read.
    Exceptions of hashing and pickling are not caught."""
    kind = type(value)
    if "pandas" not in (_library(kind, _FRAMES), _library(kind, _SERIES)):
        return pickle.dumps(value)
    rows = sys.modules["pandas"].util.hash_pandas_object(value, index=True)
    is_table = hasattr(value, "columns")
    names, types = (value.columns, value.dtypes) if is_table else (value.name, [value.dtype])
    about = repr((kind.__name__, list(names) if is_table else names, list(map(str, types))))
    return about.encode() + bytes(rows.to_numpy().tobytes())


def _library(kind: type, names: dict[str, list[str]]) -> str | None:
    """Return the library that defines a class or one of its bases; None if there is none."""
    for library, classes in names.items():
        module: Any = sys.modules.get(library)
        for class_name in classes if module is not None else ():
            base = getattr(module, class_name, None)
            if isinstance(base, type) and issubclass(kind, base):
                return library
    return None


def _entries(series: Any) -> Entries:
    index = getattr(series, "index", None)
    values: list[Any] = series.tolist()
    if index is None:
        return values
    keys = index.tolist()
    if index.dtype.kind == "i" and keys == list(range(len(keys))):
        return values
    return dict(zip(_distinct(keys), values))  # noqa: B905  # Python 3.8


def _distinct(keys: list[Any]) -> list[Any]:
    """Replace each key that occurred n > 0 times before in the list by (key, n)."""
    if len(set(keys)) == len(keys):
        return keys
    counts: Counter[Any] = Counter()
    distinct = []
    for key in keys:
        distinct.append((key, counts[key]) if counts[key] else key)
        counts[key] += 1
    return distinct
