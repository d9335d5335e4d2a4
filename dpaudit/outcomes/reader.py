"""`Reader`: makes a table of raw outputs, place by place.

The functions in `dpaudit.outcomes.raw_outputs` read the values of each type. Most methods have two
parameters in common: `rows`, the indices of the outcomes that have a value at the place, or None
for all outcomes; and `values`, these values.
"""

from __future__ import annotations

import dataclasses
import math
from collections import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismError, Name
from dpaudit.outcomes.columns import (
    ABSENT,
    Column,
    FloatArray,
    PlaceEntries,
    PlacePath,
    RowArray,
    at,
    recoded,
)
from dpaudit.outcomes.frames import is_frame, is_series
from dpaudit.outcomes.representation import DICT, LIST, TYPE, is_array_type, type_word
from dpaudit.outcomes.scalars import (
    MAX_EXACT,
    Entries,
    of_booleans,
    of_floats,
    of_mixed,
    of_text_array,
    values_of,
)
from dpaudit.outcomes.tables import Outcomes, Table

# A matrix is transposed in blocks of this number of rows, which fit into the processor's cache.
_ROWS_PER_BLOCK = 4_096
# A matrix with more than 24 columns (`_WIDE_COLUMNS`) is transposed in blocks of this number of
# rows, which fit into the processor's cache.
_ROWS_PER_WIDE_BLOCK = 1_024
# A matrix with more columns than this is transposed in blocks of `_ROWS_PER_WIDE_BLOCK` rows, fewer
# than `_ROWS_PER_BLOCK`, so that a block fits into the processor's cache.
_WIDE_COLUMNS = 24
# Largest number of entries of one output, at all depths together. Larger outputs are refused, since
# many outputs are kept in memory.
MAX_ENTRIES = 100_000
# In the limit on the number of entries of an output (`MAX_ENTRIES`), a string counts as one
# entry for each group of this number of characters or bytes.
_CHARACTERS_PER_ENTRY = 8
# Number of significant bits of a rounded fraction, about 12 digits. A float has 53; the last ones
# differ between two orders of the same sum.
_BITS = 40
# `checked_length` counts entries down to this depth of nested containers. It need not go deeper:
# reading refuses outputs with more than 50 levels.
_MAX_DEPTH = 100

Rows = RowArray | None
Values = Sequence[Any]
Read = Callable[["Reader", PlacePath, Rows, Values], None]


class Reader:
    """Collects the entries of outcomes place by place: first at `output`, then at `output["age"]`,
    and so on. `table` makes a table of them."""

    def __init__(
        self,
        size: int,
        reader_of: Callable[[type, PlacePath], Read],
        *,
        types: bool = True,
        text_orders: bool = True,
        rounds: bool = False,
    ) -> None:
        """Create a reader of `size` outcomes, without entries.

        reader_of: returns the function that reads values of a type at a path.
        types: whether the types of numbers, strings and Booleans are part of an outcome, so that 1
            and 1.0 differ.
        text_orders: whether the order of the string keys of a dict may be part of an outcome. False
            for outcomes from a process with another hash seed: this process then cannot decide
            whether the order is that of a set of strings, which is random and reveals nothing.
        rounds: whether fractions are rounded, so that they do not differ in their last bits.
        """
        self.size = size
        self.types, self.text_orders, self._rounds = types, text_orders, rounds
        self._reader_of = reader_of
        self._parts: list[PlaceEntries] = []
        self._fixed: list[tuple[PlacePath, str | float]] = []

    def read(self, path: PlacePath, rows: Rows, values: Values) -> None:
        """Add the entries for the values at a place. The type of a value decides which function
        reads it (`reader_of`)."""
        # A dict keeps the types in the order in which they first occur. The order of a set of types
        # would differ from process to process.
        kinds = dict.fromkeys(map(type, values))
        by_kind = {kind: self._reader_of(kind, path) for kind in kinds}
        readers = dict.fromkeys(by_kind.values())
        if len(readers) == 1:
            next(iter(readers))(self, path, rows, values)
        else:
            for read in readers:
                indices = [i for i, value in enumerate(values) if by_kind[type(value)] is read]
                read(self, path, at(rows, indices), [values[i] for i in indices])
        self._keep_types(path, rows, values, list(by_kind))

    def _keep_types(
        self, path: PlacePath, rows: Rows, values: Values, kinds: Sequence[type]
    ) -> None:
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
        """Return a context in which `types` tells whether types are part of outcomes, so that 1 and
        1.0 differ."""
        previous, self.types = self.types, types
        try:
            yield
        finally:
            self.types = previous

    def forms(self, path: PlacePath, rows: Rows, entries: Sequence[str | float | None]) -> None:
        """Add forms at their path, such as `type of output`. None stands for the usual form, for
        which no entry is added."""
        first = entries[0]
        if first is not None and all(entry == first for entry in entries):
            self.constant(path, rows, first)
            return
        indices = [i for i, entry in enumerate(entries) if entry is not None]
        if indices:
            there = [entry for entry in entries if entry is not None]
            self.add(path, at(rows, indices), of_mixed(there))

    def read_array(self, path: PlacePath, rows: Rows, array: NDArray[Any]) -> None:
        """Add the entries for an array with one value for each row along its first dimension.
        Further dimensions are read as lists, and the fields of a structured array as keys of a
        dict."""
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

    def add(self, path: PlacePath, rows: Rows, entries: Entries) -> None:
        """Add entries at a place."""
        numbers = _rounded(entries.numbers) if self._rounds else entries.numbers
        column = Column(path.name, numbers, entries.codes, entries.labels)
        self._parts.append(PlaceEntries(path, rows, column))

    def constant(self, path: PlacePath, rows: Rows, entry: str | float) -> None:
        """Add the same entry, such as `a list`, for each of the rows at a place."""
        if rows is None:
            self._fixed.append((path, entry))
        else:
            self._parts.append(
                PlaceEntries(path, rows, Column.constant(path.name, entry, len(rows)))
            )

    def lengths(self, path: PlacePath, rows: Rows, values: Values) -> NDArray[np.int64]:
        """Add a column with the lengths of the values, and return them: (values,)."""
        lengths = np.fromiter(map(len, values), dtype=np.int64, count=len(values))
        about = path.about("length")
        if (lengths == lengths[0]).all():
            self.constant(about, rows, float(lengths[0]))
        else:
            self.add(about, rows, Entries(lengths.astype(np.float64)))
        return lengths

    def table(self) -> Outcomes:
        """Return the table of all outcomes, made from the entries that were added."""
        # If learning cannot look at all columns, it prefers values to the contents of texts.
        self._parts.sort(key=lambda part: bool(part.path.texts))
        parts = _by_path(part for part in self._parts if part.path.step != "form")
        size = self.size
        if any(sum(len(part.column.numbers) for part in group) != size for group in parts.values()):
            from dpaudit.outcomes.long_table import long_table  # only for different shapes

            fixed = [
                PlaceEntries(path, None, Column.constant(path.name, entry, size))
                for path, entry in self._fixed
            ]
            return long_table([*fixed, *self._parts], size)
        by_form = _by_path(part for part in self._parts if part.path.step == "form").values()
        forms = tuple((group[0].path, _where_there(group, self.size)) for group in by_form)
        if not parts:
            path, entry = self._fixed[0]
            column = Column.constant(path.name, entry, self.size)
            return Table((column,), self.size, (path,), tuple(self._fixed[1:]), forms)
        columns = tuple(_joined(group, self.size) for group in parts.values())
        paths = tuple(group[0].path for group in parts.values())
        return Table(columns, self.size, paths, tuple(self._fixed), forms)


def _is_plain(array: NDArray[Any]) -> bool:
    kind = array.dtype.kind
    return array.ndim == 2 and (kind in "iu" or (kind == "f" and array.itemsize <= 8))


def _by_column(array: NDArray[Any]) -> tuple[FloatArray | None, bool]:
    """Return (transpose as floats or None, whether it has no NaN); None if inexact."""
    # To read one column after the other would read the memory of the whole matrix for each.
    columns, are_numbers = np.empty(array.shape[::-1]), True
    is_float = array.dtype.kind == "f"
    size = _ROWS_PER_BLOCK if array.shape[1] <= _WIDE_COLUMNS else _ROWS_PER_WIDE_BLOCK
    for start in range(0, len(array), size):
        piece = array[start : start + size]
        if not is_float and not _exact(piece):
            return None, False
        if is_float and are_numbers:
            are_numbers = not piece.size or not np.isnan(piece.min())
        columns[:, start : start + size] = piece.T
    return columns, are_numbers


def _rounded(numbers: FloatArray) -> FloatArray:
    """Return numbers with fractions rounded to `_BITS` significant bits, and -0.0 as 0.0."""
    mantissas, exponents = np.frexp(numbers)
    short = np.ldexp(np.rint(np.ldexp(mantissas, _BITS)), exponents - _BITS)
    return np.where(numbers == np.rint(numbers), numbers, short) + 0.0


def _exact(values: NDArray[Any]) -> bool:
    return values.size == 0 or bool(values.max() <= MAX_EXACT and values.min() >= -MAX_EXACT)


def _by_path(parts: Iterable[PlaceEntries]) -> dict[str, list[PlaceEntries]]:
    parts_by_path: dict[str, list[PlaceEntries]] = {}
    for part in parts:
        parts_by_path.setdefault(part.path.name, []).append(part)
    return parts_by_path


def _where_there(parts: list[PlaceEntries], size: int) -> Column:
    """Return one column with the entries in `parts`, and `absent` for every other outcome."""
    path, rows = parts[0].path, np.arange(size, dtype=np.int32)
    return _joined(
        [PlaceEntries(path, rows, Column.constant(path.name, ABSENT, size)), *parts], size
    )


def _joined(parts: list[PlaceEntries], size: int) -> Column:
    """Return one column with the entries in `parts`, which cover every outcome."""
    if parts[0].rows is None:
        return parts[0].column
    numbers, codes = np.full(size, np.nan), np.zeros(size, dtype=np.int32)
    known: dict[str, int] = {}
    for part in parts:
        column = part.column
        numbers[part.rows] = column.numbers
        codes[part.rows] = recoded(known, column.labels, column.codes, len(column.numbers))
    return Column(parts[0].path.name, numbers, codes if known else None, tuple(known))


def checked_length(output: Any) -> int:
    """Return the number of entries of one output, at all depths; at least 1. Raise MechanismError
    if there are more than 100,000. Callers check the first outputs so, before they keep many in
    memory."""
    total, stack = 0, [(output, 0)]
    while stack:
        value, depth = stack.pop()
        entries, parts = _entries_and_parts(value)
        total += entries + len(parts)
        if total > MAX_ENTRIES:
            raise _too_long(output)
        if depth > _MAX_DEPTH:  # it may contain itself; reading it raises an error
            break
        stack.extend((part, depth + 1) for part in parts)
    return max(1, total)


def _entries_and_parts(value: Any) -> tuple[int, abc.Collection[Any]]:
    """Return (number of entries of a value, parts of it whose entries must still be counted)."""
    if isinstance(value, str | bytes | bytearray):
        return len(value) // _CHARACTERS_PER_ENTRY, ()
    if isinstance(value, np.ndarray):
        return (0, value.ravel()) if value.dtype.hasobject else (value.size, ())
    if isinstance(value, abc.Mapping):
        return _too_many(value) or (0, [*value.keys(), *value.values()])
    if isinstance(value, abc.Sequence | abc.Set):
        return _too_many(value) or (0, value)
    if dataclasses.is_dataclass(value):
        return 0, [getattr(value, attribute.name, None) for attribute in dataclasses.fields(value)]
    if is_frame(type(value)):
        return math.prod(value.shape), ()
    return len(value) if is_series(type(value)) else 0, ()


def _too_many(value: abc.Collection[Any]) -> tuple[int, abc.Collection[Any]] | None:
    try:
        return (len(value), ()) if len(value) > MAX_ENTRIES else None
    except OverflowError:  # the length exceeds the largest index
        return MAX_ENTRIES + 1, ()


def _too_long(output: Any) -> MechanismError:
    kind = type(output).__name__
    what = f" (a {kind})"
    with suppress(TypeError, OverflowError):  # no length, or a length above any index
        what = f" (a {kind} of {len(output):,})"
    return MechanismError(
        f"the mechanism returns an output that is too long{what}: up to {MAX_ENTRIES:,} "
        f"entries, or {MAX_ENTRIES * _CHARACTERS_PER_ENTRY:,} characters, can be audited; give ",
        Name("post_process"),
        " a function that makes it shorter, e.g. its sum, or the places where d1 and d2 differ",
        code="output-too-large",
    )
