"""Collects the entries of all outcomes at once, place by place, and makes them a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.columns import ABSENT, Column, FloatArray, recoded
from dpaudit.outcomes.long_table import Part, RowArray, at, long_table
from dpaudit.outcomes.paths import Path
from dpaudit.outcomes.representation import TYPE, is_array_type, type_word
from dpaudit.outcomes.scalars import (
    LARGEST_EXACT,
    Entries,
    of_booleans,
    of_floats,
    of_mixed,
    of_text_array,
    values_of,
)
from dpaudit.outcomes.tables import Outcomes, Table
from dpaudit.outcomes.words import DICT, LIST

# Rows of a matrix that are turned into columns at a time: fewer of a wide one, to stay in the
# cache.
_PIECE, _PIECE_OF_WIDE, _WIDE = 4_096, 1_024, 24

Rows = RowArray | None
Values = Sequence[Any]
Read = Callable[["Reader", Path, Rows, Values], None]


class Reader:
    """Collects entries by place; `rows` of None stands for all rows."""

    def __init__(
        self,
        size: int,
        reader_of: Callable[[type, Path], Read],
        *,
        types: bool = True,
        text_orders: bool = True,
    ) -> None:
        """reader_of: returns what reads the values of a type that stand at a place.  types: whether
        the types of numbers, texts and Booleans belong to each outcome by itself.  text_orders:
        whether text keys were hashed with the seed of this process, so that their orders count."""
        self.size = size
        self.types, self.text_orders = types, text_orders
        self._reader_of = reader_of
        self._parts: list[Part] = []
        self._fixed: list[tuple[Path, str | float]] = []

    def read(self, path: Path, rows: Rows, values: Values) -> None:
        """Read the values at one place, a value a row."""
        # In the order in which they come up: that of a set hangs on addresses.
        kinds = dict.fromkeys(map(type, values))
        by_kind = {kind: self._reader_of(kind, path) for kind in kinds}
        readers = dict.fromkeys(by_kind.values())
        if len(readers) == 1:
            next(iter(readers))(self, path, rows, values)
        else:
            for read in readers:
                place = [i for i, value in enumerate(values) if by_kind[type(value)] is read]
                read(self, path, at(rows, place), [values[i] for i in place])
        self._keep_types(path, rows, values, list(by_kind))

    def _keep_types(self, path: Path, rows: Rows, values: Values, kinds: Sequence[type]) -> None:
        """Keep the types of values where they are not the usual ones, if types count."""
        if not self.types:
            return
        words = {kind: None if is_array_type(kind) else type_word(kind) for kind in kinds}
        if len(kinds) == 1:
            word = words[kinds[0]]
            if word is not None:
                self.constant(path.form(TYPE), rows, word)
        elif any(words.values()):
            self.forms(path.form(TYPE), rows, [words[type(value)] for value in values])

    @contextmanager
    def counting(self, *, types: bool) -> Iterator[None]:
        """Read values whose types count, or do not."""
        before, self.types = self.types, types
        try:
            yield
        finally:
            self.types = before

    def forms(self, path: Path, rows: Rows, entries: Sequence[str | float | None]) -> None:
        """Keep how values are represented, where that is not None."""
        first = entries[0]
        if first is not None and all(entry == first for entry in entries):
            self.constant(path, rows, first)
            return
        place = [i for i, entry in enumerate(entries) if entry is not None]
        if place:
            there = [entry for entry in entries if entry is not None]
            self.add(path, at(rows, place), of_mixed(there))

    def read_array(self, path: Path, rows: Rows, array: NDArray[Any]) -> None:
        """Read an array, a value a row; a structured one as a dict, further dimensions as lists."""
        kind = array.dtype.kind
        if array.dtype.names:
            self.constant(path, rows, DICT)
            self.constant(path.about("length"), rows, float(len(array.dtype.names)))
            for name in array.dtype.names:
                self.read_array(path.key(name), rows, array[name])
        elif array.ndim > 1:
            self.constant(path, rows, LIST)
            self.constant(path.about("length"), rows, float(array.shape[1]))
            columns, are_numbers = _by_column(array) if _is_plain(array) else (None, False)
            for i, column in enumerate(np.moveaxis(array, 1, 0) if columns is None else columns):
                if are_numbers:
                    self.add(path.item(i), rows, Entries(column))
                else:
                    self.read_array(path.item(i), rows, column)
        elif kind == "f" and array.itemsize <= 8:
            self.add(path, rows, of_floats(array))
        elif kind in "iu" and _exact(array):
            self.add(path, rows, Entries(array.astype(np.float64)))
        elif kind == "b":
            self.add(path, rows, of_booleans(array))
        elif kind == "U" and (texts := of_text_array(array)) is not None:
            self.add(path, rows, texts)
        else:
            self.read(path, rows, values_of(array))

    def add(self, path: Path, rows: Rows, entries: Entries) -> None:
        """Keep entries of one place."""
        self._parts.append(Part(path, rows, entries.numbers, entries.codes, entries.labels))

    def constant(self, path: Path, rows: Rows, entry: str | float) -> None:
        """Keep an entry that all these rows have: what a whole is called, and its length."""
        if rows is None:
            self._fixed.append((path, entry))
        else:
            self._parts.append(_constant_part(path, rows, entry, len(rows)))

    def lengths(self, path: Path, rows: Rows, values: Values) -> NDArray[np.int64]:
        """Keep, and return, how long the values at one place are."""
        lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
        about = path.about("length")
        if (lengths == lengths[0]).all():
            self.constant(about, rows, float(lengths[0]))
        else:
            self.add(about, rows, Entries(lengths.astype(np.float64)))
        return lengths

    def table(self) -> Outcomes:
        """Return all that was read."""
        parts = _by_path(part for part in self._parts if part.path.step != "form")
        if any(sum(len(one.numbers) for one in each) != self.size for each in parts.values()):
            fixed = [_constant_part(path, None, entry, self.size) for path, entry in self._fixed]
            return long_table([*fixed, *self._parts], self.size)
        own = _by_path(part for part in self._parts if part.path.step == "form").values()
        forms = tuple((each[0].path, _where_there(each, self.size)) for each in own)
        if not parts:
            path, entry = self._fixed[0]
            column = Column.constant(path.name, entry, self.size)
            return Table((column,), self.size, (path,), tuple(self._fixed[1:]), forms)
        columns = tuple(_whole(each, self.size) for each in parts.values())
        paths = tuple(each[0].path for each in parts.values())
        return Table(columns, self.size, paths, tuple(self._fixed), forms)


def _is_plain(array: NDArray[Any]) -> bool:
    """Return whether an array is a matrix of numbers that may all be floats."""
    kind = array.dtype.kind
    return array.ndim == 2 and (kind in "iu" or (kind == "f" and array.itemsize <= 8))


def _by_column(array: NDArray[Any]) -> tuple[FloatArray | None, bool]:
    """Return a matrix by column in memory, (columns, size), and whether it has no NaN; no matrix if
    an integer is too large for that. Piece by piece, since each column by itself, or another look,
    would touch all of it."""
    found, are_numbers = np.empty(array.shape[::-1]), True
    is_float = array.dtype.kind == "f"
    size = _PIECE if array.shape[1] <= _WIDE else _PIECE_OF_WIDE
    for start in range(0, len(array), size):
        piece = array[start : start + size]
        if not is_float and not _exact(piece):
            return None, False
        if is_float and are_numbers:
            are_numbers = not piece.size or not np.isnan(piece.min())
        found[:, start : start + size] = piece.T
    return found, are_numbers


def _exact(values: NDArray[Any]) -> bool:
    return values.size == 0 or bool(
        values.max() <= LARGEST_EXACT and values.min() >= -LARGEST_EXACT
    )


def _constant_part(path: Path, rows: Rows, entry: str | float, size: int) -> Part:
    one = Column.constant(path.name, entry, size)
    return Part(path, rows, one.numbers, one.codes, one.labels)


def _by_path(parts: Iterable[Part]) -> dict[str, list[Part]]:
    found: dict[str, list[Part]] = {}
    for part in parts:
        found.setdefault(part.path.name, []).append(part)
    return found


def _where_there(parts: list[Part], size: int) -> Column:
    """Return parts as one column, which is absent elsewhere."""
    absent = Column.constant(parts[0].path.name, ABSENT, size)
    rows = np.arange(size, dtype=np.int32)
    return _whole(
        [Part(parts[0].path, rows, absent.numbers, absent.codes, absent.labels), *parts], size
    )


def _whole(parts: list[Part], size: int) -> Column:
    """Return parts that make up a column as one."""
    first = parts[0]
    if first.rows is None:
        return Column(first.path.name, first.numbers, first.codes, first.labels)
    numbers, codes = np.full(size, np.nan), np.zeros(size, dtype=np.int32)
    known: dict[str, int] = {}
    for part in parts:
        numbers[part.rows] = part.numbers
        codes[part.rows] = recoded(known, part.labels, part.codes, len(part.numbers))
    return Column(first.path.name, numbers, codes if known else None, tuple(known))
