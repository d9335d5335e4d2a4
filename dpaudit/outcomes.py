"""Whatever a mechanism returned, as a table of columns.

Every entry of a column is a number, or a label: a word for anything that is not a number (a
string, a Boolean, None, NaN, the type of an exception). Nothing is rounded or merged, so that the
definitions which are not closed under post-processing can be tested on the same table.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import MechanismError

FloatArray = NDArray[np.float64]
CodeArray = NDArray[np.int32]
KeyArray = NDArray[np.uint64]

# Integers beyond it are not all floats: they become labels, so that none are merged.
_LARGEST_EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception of the mechanism, which is an outcome like any other; `kind` is its type."""

    kind: str
    message: str


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """One coordinate of every outcome.

    name: `output`, or `output[2]`.
    numbers: (size,), NaN where the entry is a label.
    codes: (size,), 0 for a number, k for `labels[k - 1]`; None when all entries are numbers.
    """

    name: str
    numbers: FloatArray
    codes: CodeArray | None = None
    labels: tuple[str, ...] = ()

    def take(self, index: NDArray[Any] | slice) -> Column:
        """Return the entries at `index`."""
        codes = None if self.codes is None else self.codes[index]
        return Column(self.name, self.numbers[index], codes, self.labels)

    def keys(self) -> KeyArray:
        """Return a 64-bit key for every entry; equal entries have equal keys."""
        # Adding zero makes -0.0 and 0.0, which compare equal, one key.
        keys = (self.numbers + 0.0).view(np.uint64)
        if self.codes is None:
            return keys
        known = np.array([0, *map(_label_key, self.labels)], dtype=np.uint64)
        return np.where(self.codes > 0, known[self.codes], keys)

    def word(self, row: int) -> str:
        """Return one entry as a reader would write it."""
        if self.codes is not None and self.codes[row] > 0:
            return self.labels[int(self.codes[row]) - 1]
        return number_word(float(self.numbers[row]))


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Outcomes of a mechanism: columns of equal length."""

    columns: tuple[Column, ...]
    size: int

    def take(self, index: NDArray[Any] | slice) -> Outcomes:
        """Return the outcomes at `index`."""
        columns = tuple(column.take(index) for column in self.columns)
        size = len(columns[0].numbers) if columns else 0
        return Outcomes(columns, size)

    def keys(self) -> KeyArray:
        """Return a 64-bit key for every outcome; equal outcomes have equal keys."""
        keys = self.columns[0].keys()
        for column in self.columns[1:]:
            keys = _mix(keys) + column.keys()
        return _mix(keys)

    def word(self, row: int) -> str:
        """Return one outcome as a reader would write it; an exception starts with `RAISED`."""
        words = [column.word(row) for column in self.columns]
        is_whole = len(words) == 1 or words[0].startswith(RAISED)
        return words[0] if is_whole else f"({', '.join(words)})"


def number_word(number: float) -> str:
    """Return the shortest decimal that is this number, integers without a point."""
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number)


def concatenate(tables: Sequence[Outcomes]) -> Outcomes:
    """Return all outcomes in one table. Raises MechanismError when their columns differ."""
    tables = alike([table for table in tables if table.size] or list(tables[:1]))
    if not tables:
        return from_raw([])
    joined = zip(*(table.columns for table in tables), strict=True)
    return Outcomes(tuple(map(_join, joined)), sum(table.size for table in tables))


def alike(tables: Sequence[Outcomes]) -> list[Outcomes]:
    """Return the tables with equal columns: one of nothing but exceptions is as wide as the others.

    Raises MechanismError when their columns differ.
    """
    lengths = {_length(table) for table in tables if not _all_raised(table)}
    if len(lengths) > 1:
        raise _unequal(lengths)
    length = lengths.pop() if lengths else 0
    return [_widened(table, length) for table in tables]


def from_raw(raw: Sequence[Any] | NDArray[Any]) -> Outcomes:
    """Return the table of `raw`, one outcome an entry (an array: one a row).

    Scalars (int, float, bool, str, None, NumPy's) and vectors of scalars of one length; an entry
    may be `Raised`. Raises MechanismError, which names the type, for anything else.
    """
    if isinstance(raw, np.ndarray) and raw.dtype != object:
        return _from_array(raw)
    entries = raw if isinstance(raw, list) else list(raw)
    kinds = set(map(type, entries))
    if np.ndarray in kinds:
        entries = [_unwrapped(entry) for entry in entries]
        kinds = set(map(type, entries))
    if not any(map(_is_vector, kinds)):
        return Outcomes((_column("output", entries, kinds),), len(entries))
    return _from_vectors(entries)


def failures(outcomes: Outcomes) -> dict[str, int]:
    """Return how many outcomes were exceptions, by kind."""
    first = outcomes.columns[0]
    if first.codes is None:
        return {}
    counts = np.bincount(first.codes, minlength=len(first.labels) + 1)[1:]
    return {
        label.removeprefix(RAISED): int(count)
        for label, count in zip(first.labels, counts, strict=True)
        if label.startswith(RAISED) and count
    }


RAISED = "raised "


def _all_raised(table: Outcomes) -> bool:
    return len(table.columns) == 1 and sum(failures(table).values()) == table.size


def _length(table: Outcomes) -> int:
    """Return the length of the vectors in a table, 0 for scalars."""
    return 0 if table.columns[0].name == "output" else len(table.columns)


def _widened(table: Outcomes, length: int) -> Outcomes:
    """Give a table of nothing but exceptions the columns that the other tables have."""
    if _length(table) == length:
        return table
    only = table.columns[0]
    names = [f"output[{i}]" for i in range(length)]
    columns = tuple(Column(name, only.numbers, only.codes, only.labels) for name in names)
    return Outcomes(columns, table.size)


def _from_array(raw: NDArray[Any]) -> Outcomes:
    if raw.ndim == 1:
        return Outcomes((_array_column("output", raw),), len(raw))
    if raw.ndim != 2 or raw.shape[1] == 0:
        raise _too_many_dimensions(raw.shape[1:])
    names = [f"output[{i}]" for i in range(raw.shape[1])]
    return Outcomes(tuple(_array_column(name, raw[:, i]) for i, name in enumerate(names)), len(raw))


def _from_vectors(entries: list[Any]) -> Outcomes:
    vectors = [entry for entry in entries if _is_vector(type(entry))]
    others = [entry for entry in entries if not _is_vector(type(entry))]
    lengths = set(map(len, vectors)) | {0 for entry in others if not isinstance(entry, Raised)}
    if any(len(vector) == 0 for vector in vectors):
        raise MechanismError("the mechanism returns a vector without entries; return at least one")
    if len(lengths) != 1:
        raise _unequal(lengths)
    if not others and _are_alike(vectors):
        return _from_array(np.stack(vectors))
    (length,) = lengths
    rows = [[entry] * length if isinstance(entry, Raised) else entry for entry in entries]
    columns = tuple(_column(f"output[{i}]", [row[i] for row in rows]) for i in range(length))
    return Outcomes(columns, len(entries))


def _unequal(lengths: Iterable[int]) -> MechanismError:
    words = ["a scalar" if length == 0 else f"length {length}" for length in sorted(lengths)]
    return MechanismError(
        f"the mechanism returns outputs of different shapes ({', '.join(words)}); "
        "return vectors of one length, or give post_process a function that makes them so"
    )


def _is_vector(kind: type) -> bool:
    return issubclass(kind, list | tuple | np.ndarray)


def _unwrapped(entry: Any) -> Any:
    """Return the scalar of a 0-d array, vectors and all else as they are."""
    if isinstance(entry, np.ndarray):
        if entry.ndim > 1:
            raise _too_many_dimensions(entry.shape)
        return entry if entry.ndim else entry[()]
    return entry


def _too_many_dimensions(shape: tuple[int, ...]) -> MechanismError:
    return MechanismError(
        f"the mechanism returns arrays of shape {shape}; "
        "supported outputs are scalars and vectors of scalars"
    )


def _are_alike(vectors: list[Any]) -> bool:
    """Return whether these are arrays of one type, which NumPy can stack without any change."""
    if {type(one) for one in vectors} != {np.ndarray}:
        return False
    dtypes = {one.dtype for one in vectors}
    return len(dtypes) == 1 and not dtypes.pop().hasobject


def _array_column(name: str, values: NDArray[Any]) -> Column:
    kind = values.dtype.kind
    if kind == "f" and values.dtype.itemsize <= 8:
        numbers = np.ascontiguousarray(values, dtype=np.float64)
        return Column(name, numbers) if not np.isnan(numbers).any() else _with_nan(name, numbers)
    if kind in "iu" and (len(values) == 0 or _exact(values)):
        return Column(name, values.astype(np.float64))
    if kind == "b":
        nothing = np.full(len(values), np.nan)
        return Column(name, nothing, values.astype(np.int32) + 1, ("False", "True"))
    return _column(name, values.tolist())


def _exact(values: NDArray[Any]) -> bool:
    return bool(values.max() <= _LARGEST_EXACT and values.min() >= -_LARGEST_EXACT)


def _with_nan(name: str, numbers: FloatArray) -> Column:
    return Column(name, numbers, np.isnan(numbers).astype(np.int32), ("NaN",))


def _column(name: str, entries: list[Any], kinds: set[type] | None = None) -> Column:
    kinds = set(map(type, entries)) if kinds is None else kinds
    if kinds and kinds <= {float, np.float64}:
        return _array_column(name, np.array(entries, dtype=np.float64))
    if kinds == {int} and max(map(abs, entries)) <= _LARGEST_EXACT:
        return Column(name, np.array(entries, dtype=np.float64))
    return _mixed_column(name, entries)


def _mixed_column(name: str, entries: list[Any]) -> Column:
    numbers = np.full(len(entries), np.nan)
    codes = np.zeros(len(entries), dtype=np.int32)
    known: dict[str, int] = {}
    for row, entry in enumerate(entries):
        label = _label(entry)
        if label is None:
            numbers[row] = float(entry)
        else:
            codes[row] = known.setdefault(label, len(known) + 1)
    return Column(name, numbers, codes if known else None, tuple(known))


def _label(entry: Any) -> str | None:
    """Return the word for an entry that is not an exact number, None for a number."""
    if isinstance(entry, np.ndarray | np.generic) and getattr(entry, "ndim", 0) == 0:
        entry = entry.item()
    if isinstance(entry, bool | None):
        return str(entry)
    if isinstance(entry, float):
        return "NaN" if math.isnan(entry) else None
    if isinstance(entry, int):
        return None if abs(entry) <= _LARGEST_EXACT else str(entry)
    if isinstance(entry, str):
        return str.__repr__(entry)
    if isinstance(entry, Raised):
        return RAISED + entry.kind
    kind = f"{type(entry).__module__}.{type(entry).__qualname__}".removeprefix("builtins.")
    raise MechanismError(
        f"the mechanism returns {kind} objects; "
        "supported outputs are numbers, strings, Booleans, None and vectors of these: "
        "give post_process a function that turns an output into one"
    )


def _join(columns: Sequence[Column]) -> Column:
    numbers = np.concatenate([column.numbers for column in columns])
    if all(column.codes is None for column in columns):
        return Column(columns[0].name, numbers)
    known: dict[str, int] = {}
    parts = []
    for column in columns:
        places = [0] + [known.setdefault(label, len(known) + 1) for label in column.labels]
        codes = np.zeros(len(column.numbers), np.int32) if column.codes is None else column.codes
        parts.append(np.array(places, dtype=np.int32)[codes])
    return Column(columns[0].name, numbers, np.concatenate(parts), tuple(known))


def _label_key(label: str) -> int:
    return int.from_bytes(hashlib.blake2b(label.encode(), digest_size=8).digest(), "little")


def _mix(keys: KeyArray) -> KeyArray:
    """Spread 64-bit keys (the finaliser of SplitMix64), so that sums of columns do not collide."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)), dtype=np.uint64)
