"""Turn data frames, series and Arrow tables into plain values.

Processes that draw also run this file, so it works in Python 3.8 and imports nothing of dpaudit.
These processes send objects of pandas, Polars and Arrow as `Frame` and `Series`, so that the
auditing process does not need these libraries. This module does not import the libraries either: a
mechanism that returns their objects has already imported them.
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
    """A data frame as plain values.

    word: type of the data frame in words, such as `a DataFrame`.
    columns: name of a column -> its entries. The entries are a list, or a dict (index -> entry) if
        the data frame has an index other than 0, 1, 2, ...
    """

    def __init__(self, word: str, columns: dict[Any, Entries]) -> None:
        self.word, self.columns = word, columns

    @property
    def shape(self) -> tuple[int, int]:
        return max(map(len, self.columns.values()), default=0), len(self.columns)


class Series:
    """A series as plain values.

    word: type and dtype in words, such as `Series of int64`.
    entries: entries of the series, in the form of a column of `Frame`.
    """

    def __init__(self, word: str, entries: Entries) -> None:
        self.word, self.entries = word, entries

    def __len__(self) -> int:
        return len(self.entries)


def is_frame(kind: type) -> bool:
    return issubclass(kind, Frame) or _library(kind, _FRAMES) is not None


def is_series(kind: type) -> bool:
    return issubclass(kind, Series) or _library(kind, _SERIES) is not None


def as_frame(value: Any) -> Frame:
    """Return a data frame or an Arrow table as a `Frame` (plain values by column). Repeated names
    of columns get a number."""
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


def as_series(value: Any) -> Series:
    """Return a series, an index or an Arrow array as a `Series` (plain values)."""
    library, name = _library(type(value), _SERIES), type(value).__qualname__
    if library == "pandas":
        return Series(f"{name} of {value.dtype}", _entries(value))
    if library == "polars":
        return Series(f"polars.{name} of {value.dtype}", value.to_list())
    if library == "pyarrow":
        return Series(f"pyarrow.{name} of {value.type}", value.to_pylist())
    return value  # type: ignore[no-any-return]  # it is a Series


def scalar_parts(value: Any) -> tuple[str, list[Any]] | None:
    """Return (kind, plain parts) of a time stamp, a duration or a missing value of pandas.

    The kind is "moment", "duration" or "missing". Return None for any other value.
    """
    pandas = sys.modules.get("pandas")
    name = type(value).__name__
    missing = () if pandas is None else (getattr(pandas, "NA", None), getattr(pandas, "NaT", None))
    if any(value is one for one in missing if one is not None):
        return "missing", [name, str(value)]
    if isinstance(value, datetime.datetime) and hasattr(value, "nanosecond"):
        moment: Any = value
        return "moment", [name, moment.replace(nanosecond=0).isoformat(), moment.nanosecond]
    if isinstance(value, datetime.timedelta) and hasattr(value, "nanoseconds"):
        days, seconds, microseconds = value.days, value.seconds, value.microseconds
        return "duration", [name, days, seconds, microseconds, value.nanoseconds]
    return None


def content(value: Any) -> bytes:
    """Return bytes that change when a value changes.

    For a pandas object, the bytes are names, types and hashes of the rows, since the pickle of a
    pandas object changes when the object is read (pandas caches results). For any other value, the
    bytes are the pickle. Raises the errors of hashing or pickling.
    """
    kind = type(value)
    if "pandas" not in (_library(kind, _FRAMES), _library(kind, _SERIES)):
        return pickle.dumps(value)
    rows = sys.modules["pandas"].util.hash_pandas_object(value, index=True)
    is_table = hasattr(value, "columns")
    names, types = (value.columns, value.dtypes) if is_table else (value.name, [value.dtype])
    about = repr((kind.__name__, list(names) if is_table else names, list(map(str, types))))
    return about.encode() + bytes(rows.to_numpy().tobytes())


def _library(kind: type, names: dict[str, list[str]]) -> str | None:
    """Return the name of the library that defines a type; None for a type not in `names`.

    names: name of a library -> names of its classes; subclasses count, too.
    """
    for library, classes in names.items():
        module: Any = sys.modules.get(library)
        for one in classes if module is not None else ():
            found = getattr(module, one, None)
            if isinstance(found, type) and issubclass(kind, found):
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
    """Return keys in which a repeated key is replaced by (key, number of earlier copies), so that
    no two are equal."""
    if len(set(keys)) == len(keys):
        return keys
    seen: Counter[Any] = Counter()
    found = []
    for key in keys:
        found.append((key, seen[key]) if seen[key] else key)
        seen[key] += 1
    return found
