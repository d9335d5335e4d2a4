"""How data frames and series are read, of pandas, Polars and Arrow, also from another process."""

from __future__ import annotations

from dpaudit.outcomes.frames import as_frame, as_series
from dpaudit.outcomes.paths import Path
from dpaudit.outcomes.reading.containers import key_word_at, read_keys
from dpaudit.outcomes.reading.reader import Reader, Rows, Values
from dpaudit.outcomes.representation import TYPE
from dpaudit.outcomes.scalars import of_mixed


def read_frames(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read data frames: a dict of columns, each a list or, with an index that says more than the
    place, a dict; the order of the columns is an entry of its own."""
    frames = [as_frame(one) for one in values]
    words = [one.word for one in frames]
    if len(set(words)) == 1:
        reader.constant(path, rows, words[0])
    else:
        reader.add(path, rows, of_mixed(words))
    tables = [one.columns for one in frames]
    orders = [f"({', '.join(key_word_at(key, path) for key in one)})" for one in tables]
    about = path.about("order of columns")
    if len(set(orders)) == 1:
        reader.constant(about, rows, orders[0])
    else:
        reader.add(about, rows, of_mixed(orders))
    read_keys(reader, path, rows, tables)


def read_series(reader: Reader, path: Path, rows: Rows, values: Values) -> None:
    """Read series and indices, as lists or dicts."""
    series = [as_series(one) for one in values]
    if reader.types:  # else the type of an array belongs to the call that made a batch
        reader.forms(path.form(TYPE), rows, [one.word for one in series])
    reader.read(path, rows, [one.entries for one in series])
