"""How pandas objects are read. pandas itself is not imported: who returns one has done so."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from dpaudit.outcomes.paths import Path
from dpaudit.outcomes.reading.containers import key_word_at, read_keys
from dpaudit.outcomes.reading.reader import Reader, Rows, Values
from dpaudit.outcomes.representation import TYPE, array_word
from dpaudit.outcomes.scalars import of_mixed


def read_frames(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read DataFrames: a dict of columns, each a list or, with an index that says more than the
    place, a dict; the order of the columns is an entry of its own."""
    reader.constant(path, rows, "a DataFrame")
    tables = [_columns(one) for one in values]
    orders = [f"({', '.join(key_word_at(key, path) for key in one)})" for one in tables]
    about = path.about("order of columns")
    if len(set(orders)) == 1:
        reader.constant(about, rows, orders[0])
    else:
        reader.add(about, rows, of_mixed(orders))
    read_keys(reader, path, rows, tables)


def read_series(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read Series and indices, as lists or dicts."""
    if reader.types:  # else the type of an array belongs to the call that made a batch
        reader.forms(path.form(TYPE), rows, [array_word(one, types=True) for one in values])
    reader.read(path, rows, [_entries(one) for one in values])


def _columns(frame: Any) -> dict[Any, Any]:
    keys = _distinct(frame.columns.tolist())
    return {key: _entries(frame.iloc[:, i]) for i, key in enumerate(keys)}


def _entries(series: Any) -> list[Any] | dict[Any, Any]:
    index = getattr(series, "index", None)
    values: list[Any] = series.tolist()
    if index is None or (index.dtype.kind == "i" and np.array_equal(index, range(len(index)))):
        return values
    return dict(zip(_distinct(index.tolist()), values, strict=True))


def _distinct(keys: list[Any]) -> list[Any]:
    """Return keys that differ: one that is there again comes with how often it was before."""
    if len(set(keys)) == len(keys):
        return keys
    seen: Counter[Any] = Counter()
    found = []
    for key in keys:
        found.append((key, seen[key]) if seen[key] else key)
        seen[key] += 1
    return found
