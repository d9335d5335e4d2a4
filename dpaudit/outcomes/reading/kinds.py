"""From what a mechanism returned to a table of columns: which function reads values of a type."""

from __future__ import annotations

import dataclasses
import types
from collections import abc
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismError
from dpaudit.outcomes.frames import is_frame, is_series
from dpaudit.outcomes.long_table import at
from dpaudit.outcomes.paths import ROOT, Path
from dpaudit.outcomes.raised import RAISED, Raised
from dpaudit.outcomes.reading.containers import (
    read_arrays,
    read_dicts,
    read_lists,
    read_records,
    read_sets,
)
from dpaudit.outcomes.reading.frames import read_frames, read_series
from dpaudit.outcomes.reading.reader import Read, Reader, Rows, Values
from dpaudit.outcomes.scalars import (
    LARGEST_EXACT,
    LONG,
    Entries,
    bytes_label,
    of_booleans,
    of_floats,
    of_mixed,
    of_texts,
)
from dpaudit.outcomes.special import Describe, describe_numpy_time, describer, exact_integer
from dpaudit.outcomes.tables import Outcomes
from dpaudit.torch_use import is_tensor, readable
from dpaudit.watching import Watch, step
from dpaudit.wording import FILE_PREFIX

# Bytes have a column each, as far as these go.
_BYTES = 32

# So that it is said once.
_watch = Watch()


def from_raw(
    raw: abc.Sequence[Any] | NDArray[Any], *, types: bool = True, text_orders: bool = True
) -> Outcomes:
    """Return the table of `raw`, one outcome an entry (an array: one a row).

    types: whether outcomes 1 and 1.0 differ. The type of an array is never one of its rows: one
    float among integers changes it for all.  text_orders: whether orders of text keys count, where
    this process has a fixed hash seed: not those of another process, which may have another seed.

    Numbers, strings, bytes, Booleans, None, dates, fractions, complex numbers, members of
    enumerations, UUIDs, NumPy's scalars; lists, tuples, sets, dicts, arrays, dataclasses, named
    tuples, data frames and series (pandas, Polars, Arrow) of these, of any size and depth; an entry
    may be `Raised`. Raises MechanismError, which names the type and the place, for anything else.
    """
    # Those of very many entries.
    with step("reading outputs of the mechanism", _watch):
        reader = Reader(len(raw), _reader_of, types=types, text_orders=text_orders)
        if isinstance(raw, np.ndarray) and raw.dtype != object:
            reader.read_array(ROOT, None, raw)
        elif len(raw):
            reader.read(ROOT, None, raw if isinstance(raw, list) else list(raw))
        else:
            reader.add(ROOT, None, Entries(np.empty(0)))
        return reader.table()


def _reader_of(kind: type, path: Path) -> Read:
    """Return what reads values of a type. Raises MechanismError when nothing does."""
    read = _EXACTLY.get(kind) or _by_base(kind)
    if read is None:
        is_plain = kind.__module__ == "builtins" or kind.__module__.startswith(FILE_PREFIX)
        name = kind.__qualname__ if is_plain else f"{kind.__module__}.{kind.__qualname__}"
        place = "" if path.parent is None else f" (as {path.name})"
        raise MechanismError(
            f"the mechanism returns a value of type {name}{place}; supported outputs are numbers, "
            "strings, bytes, Booleans, None, dates, and lists, sets, dicts, arrays, dataclasses "
            f"and data frames of these: {_remedy(kind)}",
            code="output-unsupported",
        )
    return read


def _remedy(kind: type) -> str:
    if issubclass(kind, abc.Iterator):
        return "let it return list(…) of all, or give --post-process builtins:list (post_process)"
    if issubclass(kind, types.FunctionType):
        return "if it is a factory, which makes the mechanism, give --factory (YAML: factory: true)"
    return "give post_process a function that turns an output into one"


def _by_base(kind: type) -> Read | None:
    for bases, read in _BY_BASE:
        if issubclass(kind, bases):
            return read
    if dataclasses.is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return read_records
    if is_frame(kind):
        return read_frames
    if is_series(kind):
        return read_series
    describe = describer(kind)
    if describe is not None:
        return partial(_read_special, describe)
    if is_tensor(kind):
        return _read_tensors
    if hasattr(kind, "__array__"):
        return read_arrays
    return next((read for base, read in _BY_PROTOCOL if issubclass(kind, base)), None)


def _read_tensors(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    read_arrays(reader, path, rows, list(map(readable, values)))


def _read_floats(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    reader.add(path, rows, of_floats(np.array(values, dtype=np.float64)))


def _read_integers(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    if min(values) >= -LARGEST_EXACT and max(values) <= LARGEST_EXACT:
        reader.add(path, rows, Entries(np.array(values, dtype=np.float64)))
    else:
        _read_special(exact_integer, reader, path, rows, values)


def _read_booleans(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    reader.add(path, rows, of_booleans(np.array(values, dtype=np.bool_)))


def _read_nothing(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    reader.add(path, rows, of_mixed(["None"] * len(values)))


def _read_raised(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    reader.add(path, rows, of_mixed([RAISED + one.kind for one in values]))


def _read_texts(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    reader.add(path, rows, of_texts(values))
    long = [i for i, length in enumerate(map(len, values)) if length > LONG]
    if long:
        lengths = np.array([len(values[i]) for i in long], dtype=np.float64)
        reader.add(path.about("length"), at(rows, long), Entries(lengths))


def _read_bytes(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    data = list(map(bytes, values))
    reader.add(path, rows, of_mixed(list(map(bytes_label, data))))
    lengths = reader.lengths(path, rows, data)
    for length in np.unique(lengths):
        place = np.flatnonzero(lengths == length)
        inside = rows if len(place) == len(data) else at(rows, place)
        every = np.frombuffer(b"".join([data[i] for i in place]), dtype=np.uint8)
        table = every.reshape(len(place), length).astype(np.float64)
        for i in range(min(int(length), _BYTES)):
            reader.add(path.item(i), inside, Entries(np.ascontiguousarray(table[:, i])))


def _read_special(
    describe: Describe, reader: Reader, path: Path, rows: Rows, values: Values
) -> None:
    described = list(map(describe, values))
    reader.add(path, rows, of_mixed([one.entry for one in described]))
    for aspect in dict.fromkeys(word for one in described for word in one.beside):
        place = [i for i, one in enumerate(described) if aspect in one.beside]
        inside = rows if len(place) == len(described) else at(rows, place)
        entries = of_mixed([described[i].beside[aspect] for i in place])
        reader.add(path.about(aspect), inside, entries)
    for form in dict.fromkeys(word for one in described for word in one.forms):
        reader.forms(path.form(form), rows, [one.forms.get(form) for one in described])


_EXACTLY: dict[type, Read] = {
    float: _read_floats,
    int: _read_integers,
    str: _read_texts,
    bool: _read_booleans,
    dict: read_dicts,
    list: read_lists,
    tuple: read_lists,
    set: read_sets,
    frozenset: read_sets,
    np.ndarray: read_arrays,
    np.float64: _read_floats,
    Raised: _read_raised,
    type(None): _read_nothing,
}
_Bases = tuple[type | tuple[type, ...], Read]
_BY_BASE: tuple[_Bases, ...] = (
    (np.timedelta64, partial(_read_special, describe_numpy_time)),  # to NumPy it is an integer too
    ((float, np.float16, np.float32), _read_floats),
    ((int, np.integer), _read_integers),
    (str, _read_texts),
    (np.bool_, _read_booleans),
    ((bytes, bytearray, memoryview), _read_bytes),
    ((np.ndarray, np.void), read_arrays),
)
_BY_PROTOCOL: tuple[_Bases, ...] = (
    (abc.Mapping, read_dicts),
    (abc.Set, read_sets),
    (tuple, read_lists),
    (abc.Sequence, read_lists),
)
