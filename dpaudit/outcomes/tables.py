"""Tables of outcomes: the interface `Outcomes`, `Table` and `TimedOutcomes`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.aspects import made_from
from dpaudit.outcomes.columns import (
    ABSENT,
    ELAPSED,
    ORDER,
    RAISED,
    ROOT,
    Column,
    FloatArray,
    KeyArray,
    PlacePath,
    entry_keys,
    join,
    kinds_of,
    mix,
    text_key,
)
from dpaudit.outcomes.representation import (
    OF_TYPE,
    SIGN,
    Entry,
    orders_differ,
    sign_keys,
    signs_differ,
    types_differ,
    written,
)

# Largest number of columns of a table from which events are learned.
MAX_WIDTH = 4096
# If a column has more than this number of different texts, events are also learned from a further
# column with the kinds of its entries, such as `a string`.
_MANY_TEXTS = 64
# A column with at most this number of different texts, each in four outcomes on average, tells all
# that the contents of its texts tell.
_FEW_TEXTS, _MIN_PER_TEXT = 64, 4
# The content of texts counts as read if at least this share of them has a structure or numbers.
READ_SHARE = 0.98
# If a table has at least this number of columns, and at most `_MAX_JOINT_ENTRIES` entries in all,
# the hashes of all columns are computed in one array: with few entries, NumPy calls for each column
# would take most of the time. Otherwise each column is hashed by itself.
_MIN_JOINT_COLUMNS = 4
# The hashes of several columns are computed in one array only if the columns have at most this
# number of entries in total. Otherwise, each column is hashed by itself.
_MAX_JOINT_ENTRIES = 1 << 14
_NO_LABELS = np.empty(0, dtype=np.uint64)


class Outcomes(ABC):
    """A table of `size` outcomes. An entry depends only on the outcome and on the name of the
    column, so a rule that was learned from one table has the same meaning for every other table."""

    __slots__ = ()
    size: int

    @property
    @abstractmethod
    def columns(self) -> Sequence[Column]:
        """The columns from which an attack learns events, about 4,096 at most. Columns with the
        same entry for all outcomes, such as a common length, are left out."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of all columns, including those that `columns` leaves out."""

    @property
    @abstractmethod
    def contents(self) -> frozenset[str]:
        """The kinds of content that texts in `columns` have: "json", "numbers", "words"."""

    @property
    @abstractmethod
    def texts_read(self) -> frozenset[str]:
        """Names of the columns of texts in which nearly all texts have contents with columns of
        their own."""

    @property
    @abstractmethod
    def representations(self) -> Sequence[Column]:
        """The columns of forms and signs of zero that differ between outcomes that are equal by
        ==."""

    @abstractmethod
    def plain(self) -> Outcomes:
        """Return the outcomes without representations, so that 1 and 1.0 are the same outcome."""

    @abstractmethod
    def take(self, index: NDArray[Any] | slice) -> Outcomes:
        """Return a table with some of the outcomes. index: index array, mask or slice."""

    @abstractmethod
    def trimmed(self) -> Outcomes:
        """Return the outcomes without the labels that no entry uses, to save memory after
        `take`."""

    def keys(self) -> KeyArray:
        """Return a hash of each outcome, (size,). Hashes are equal if outcomes are equal by == and
        have the same types, signs of zero and digits; the order of the keys of dicts does not
        count."""
        return self.keys_beside(frozenset())

    @abstractmethod
    def keys_beside(self, names: frozenset[str]) -> KeyArray:
        """Return a hash of each outcome, (size,), that ignores the named columns. Callers must not
        change the array."""

    @abstractmethod
    def words(self, rows: Iterable[int]) -> list[str]:
        """Return the texts of some outcomes, such as `{"a": (1, 2)}`, or `raised ...` for an
        exception."""

    @abstractmethod
    def _known(self) -> Callable[[str], Column]:
        """Return a function that takes the name of a column and returns the column."""

    def named(self, names: Iterable[str]) -> Iterator[Column]:
        """Yield the columns with the given names. A column that the table does not have is all
        `absent`. Each is made when it is needed, to save memory."""
        known = self._known()
        for name in names:
            yield made_from(name, known)

    def column(self, name: str) -> Column:
        """Return the column with a name. A column that the table does not have is all `absent`."""
        return next(self.named([name]))

    def word(self, row: int) -> str:
        """Return the text of one outcome, such as `{"a": (1, 2)}`. row: index of the outcome."""
        return self.words([row])[0]


class NamedColumns(Sequence[Column]):
    """A sequence of the columns of a table with certain names. A column is computed when it is
    accessed."""

    def __init__(self, table: Outcomes, names: list[str]) -> None:
        self._table, self._names = table, names

    def __len__(self) -> int:
        return len(self._names)

    @overload
    def __getitem__(self, index: int) -> Column: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Column]: ...
    def __getitem__(self, index: int | slice) -> Column | Sequence[Column]:
        if isinstance(index, slice):
            return NamedColumns(self._table, self._names[index])
        return self._table.column(self._names[index])


@dataclass(frozen=True, slots=True, eq=False)
class Table(Outcomes):
    """Outcomes of one shape, such as numbers, vectors of one length, or dicts with the same keys.

    all_columns, paths: columns with `size` entries each, and their places.
    fixed: (place, entry) for each entry that all outcomes share, such as `a list`.
    forms: (place, column) for each form that differs between outcomes; `absent` for the usual one.
    """

    all_columns: tuple[Column, ...]
    size: int
    paths: tuple[PlacePath, ...] = (ROOT,)
    fixed: tuple[tuple[PlacePath, str | float], ...] = ()
    forms: tuple[tuple[PlacePath, Column], ...] = ()

    @property
    def columns(self) -> Sequence[Column]:
        columns = self.all_columns
        repeated = self._repeated_texts()
        if repeated:
            pairs = zip(self.paths, columns, strict=True)
            columns = tuple(column for path, column in pairs if repeated.isdisjoint(path.texts))
        columns = columns[:MAX_WIDTH]
        return (*columns, *filter(None, map(_telling_kinds, columns)))

    def _repeated_texts(self) -> set[str]:
        """Return the columns of texts that repeat so often that contents tell nothing more."""
        texts = {name for path in self.paths for name in path.texts}
        columns = (column for column in self.all_columns if column.name in texts)
        return {column.name for column in columns if is_repeated(len(column.labels), self.size)}

    @property
    def contents(self) -> frozenset[str]:
        repeated = self._repeated_texts()
        return frozenset(
            word for path in self.paths if repeated.isdisjoint(path.texts) for word in path.contents
        )

    @property
    def texts_read(self) -> frozenset[str]:
        texts = {name for path, _ in self.fixed for name in path.texts}
        texts.update(name for path in self.paths for name in path.texts)
        return frozenset(texts - self._repeated_texts())

    @property
    def width(self) -> int:
        return len(self.all_columns)

    def _known(self) -> Callable[[str], Column]:
        known = {column.name: column for column in self.all_columns}
        known.update((path.name, column) for path, column in self.forms)
        return lambda name: known[name] if name in known else self._constant(name)

    def _constant(self, name: str) -> Column:
        entry = next((entry for path, entry in self.fixed if path.name == name), ABSENT)
        return Column.constant(name, entry, self.size)

    def take(self, index: NDArray[Any] | slice) -> Table:
        columns = tuple(column.take(index) for column in self.all_columns)
        forms = tuple((path, column.take(index)) for path, column in self.forms)
        return Table(columns, len(columns[0].numbers), self.paths, self.fixed, forms)

    def trimmed(self) -> Table:
        columns = tuple(column.trimmed() for column in self.all_columns)
        forms = tuple((path, column.trimmed()) for path, column in self.forms)
        return Table(columns, self.size, self.paths, self.fixed, forms)

    @property
    def representations(self) -> Sequence[Column]:
        columns = self.all_columns[:MAX_WIDTH]
        signed = [column.name for column in columns if signs_differ(column.numbers)]
        forms = [path for path, _ in self.forms[:MAX_WIDTH] if form_differs(self, path)]
        return tuple(
            self.named([*(SIGN + name for name in signed), *(path.name for path in forms)])
        )

    def plain(self) -> Table:
        columns = tuple(map(unsigned, self.all_columns))
        return Table(columns, self.size, self.paths, self._plain_fixed)

    @property
    def _plain_fixed(self) -> tuple[tuple[PlacePath, str | float], ...]:
        return tuple((path, entry) for path, entry in self.fixed if path.step != "form")

    def keys_beside(self, names: frozenset[str]) -> KeyArray:
        fixed = [
            _fixed_key(path.name, entry)
            for path, entry in self.fixed
            if path.name not in names and path.is_in_keys
        ]
        fixed_keys = np.uint64(sum(fixed) % 2**64)
        columns = [column for column in self.all_columns if column.name not in names]
        forms = [column for path, column in self.forms if path.is_in_keys]
        more = [_form_keys(column) for column in forms if column.name not in names]
        left = (column for column in self.all_columns if column.name in names)
        more += [
            keys for column in left if (keys := sign_keys(column.name, column.numbers)) is not None
        ]
        if not columns and not more:
            return np.broadcast_to(fixed_keys, self.size)
        if len(columns) >= _MIN_JOINT_COLUMNS and len(columns) * self.size <= _MAX_JOINT_ENTRIES:
            total = fixed_keys + _keys_together(columns)
        else:
            total = np.full(self.size, fixed_keys)
            for column in columns:
                total += mix(column.keys() + _name_key(column.name))
        for keys in more:
            total += keys
        return total

    def words(self, rows: Iterable[int]) -> list[str]:
        telling = [path for path, _ in self.forms if form_differs(self, path)]
        forms = [(path, self.column(path.name)) for path in telling]
        shown = need_forms(self) if telling else None
        return [
            written([*self._entries(row), *_at(row, forms if shown is None or shown[row] else ())])
            for row in rows
        ]

    def _entries(self, row: int) -> Iterator[Entry]:
        yield from self._plain_fixed
        for path, column in zip(self.paths, self.all_columns, strict=True):
            yield path, column.word(row)


def _form_keys(column: Column) -> KeyArray:
    """Return what a form adds to the 64-bit hashes of outcomes; 0 for `absent`."""
    keys = mix(column.keys() + _name_key(column.name))
    if column.codes is not None and ABSENT in column.labels:
        keys[column.codes == column.labels.index(ABSENT) + 1] = 0
    return keys


def _keys_together(columns: Sequence[Column]) -> KeyArray:
    """Return the sum of the scrambled hashes of each outcome's entries, (outcomes,)."""
    if any(column.codes is not None for column in columns):
        keys = np.array([column.keys() for column in columns])
    else:
        keys = entry_keys(np.array([column.numbers for column in columns]), None, _NO_LABELS)
    keys += np.array([[_name_key(column.name)] for column in columns])
    return np.asarray(mix(keys).sum(axis=0, dtype=np.uint64))


@lru_cache(maxsize=1024)  # every block of draws has the same columns
def _name_key(name: str) -> np.uint64:
    return np.uint64(text_key(name))


@dataclass(frozen=True, slots=True, eq=False)
class TimedOutcomes(Outcomes):
    """A table of outcomes with one more column at the end: the duration of each call, (size,).
    Hashes and texts ignore the durations, so that equal outputs are equal however long the calls
    took."""

    outcomes: Outcomes
    nanoseconds: FloatArray
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.outcomes.size)

    @property
    def columns(self) -> Sequence[Column]:
        return (*self.outcomes.columns, self._elapsed)

    @property
    def width(self) -> int:
        return self.outcomes.width

    @property
    def contents(self) -> frozenset[str]:
        return self.outcomes.contents

    @property
    def texts_read(self) -> frozenset[str]:
        return self.outcomes.texts_read

    @property
    def representations(self) -> Sequence[Column]:
        return self.outcomes.representations

    def plain(self) -> TimedOutcomes:
        return TimedOutcomes(self.outcomes.plain(), self.nanoseconds)

    def keys_beside(self, names: frozenset[str]) -> KeyArray:
        return self.outcomes.keys_beside(names)

    def words(self, rows: Iterable[int]) -> list[str]:
        return self.outcomes.words(rows)

    def trimmed(self) -> TimedOutcomes:
        return TimedOutcomes(self.outcomes.trimmed(), self.nanoseconds)

    def take(self, index: NDArray[Any] | slice) -> TimedOutcomes:
        return TimedOutcomes(self.outcomes.take(index), self.nanoseconds[index])

    @property
    def _elapsed(self) -> Column:
        return Column(ELAPSED, self.nanoseconds)

    def _known(self) -> Callable[[str], Column]:
        known = self.outcomes._known()
        return lambda name: self._elapsed if name == ELAPSED else known(name)


def timed(outcomes: Outcomes, nanoseconds: NDArray[np.int64]) -> TimedOutcomes:
    """Return the outcomes with the durations of their calls, (size,)."""
    return TimedOutcomes(outcomes, nanoseconds.astype(np.float64))


def _telling_kinds(column: Column) -> Column | None:
    """Return a column with the kind of each entry; None if kinds would add nothing."""
    if len(column.labels) <= _MANY_TEXTS:
        return None
    kinds = kinds_of(column)
    return kinds if len(np.unique(kinds.codes if kinds.codes is not None else 0)) > 1 else None


def is_repeated(texts: int, size: int) -> bool:
    """Return whether there are so few different texts that their contents would tell nothing more.
    `size` is the number of outcomes."""
    return texts <= min(_FEW_TEXTS, size // _MIN_PER_TEXT)


def narrowed(outcomes: Outcomes) -> str | None:
    """Return a warning if a table has more than the 4,096 columns that learning uses; else None."""
    left = outcomes.width - MAX_WIDTH
    if left <= 0:
        return None
    return (
        f"outputs have entries at {outcomes.width:,} places; learning looked at the {MAX_WIDTH:,} "
        f"most frequent, the other {left:,} count only as parts of whole outputs"
    )


@lru_cache(maxsize=1024)  # every block of draws has the same fixed entries
def _fixed_key(name: str, entry: str | float) -> int:
    """Return what an entry at a path adds to the 64-bit hash of an outcome, modulo 2**64."""
    keys = Column.constant(name, entry, 1).keys()
    return int(mix(keys + np.uint64(text_key(name)))[0])


def _at(row: int, forms: Iterable[tuple[PlacePath, Column]]) -> Iterator[Entry]:
    words = ((path, column.word(row)) for path, column in forms)
    return ((path, word) for path, word in words if word != ABSENT)


def need_forms(outcomes: Outcomes) -> NDArray[np.bool_]:
    """Return a mask, (size,), of the outcomes whose text must also show forms, since another
    outcome with another form is equal to them by ==."""
    _, indices = np.unique(outcomes.plain().keys(), return_inverse=True)
    pairs = np.unique(np.stack([indices.astype(np.uint64), outcomes.keys()]), axis=1)
    return np.asarray((np.bincount(pairs[0].astype(np.intp)) > 1)[indices])


def form_differs(outcomes: Outcomes, path: PlacePath) -> bool:
    """Return whether a form, given by its path, such as `type of output[0]`, differs between two
    outcomes. Types are compared only between entries of one kind, such as the numbers 1 and 1.0,
    and orders of keys only between dicts with the same keys."""
    form = outcomes.column(path.name)
    if path.name.startswith(OF_TYPE):
        return types_differ(form, outcomes.column(path.name.removeprefix(OF_TYPE)))
    codes = np.zeros(outcomes.size, dtype=np.int32) if form.codes is None else form.codes
    used = [form.labels[code - 1] for code in np.flatnonzero(np.bincount(codes)) if code]
    if path.word == ORDER:
        return orders_differ(used)
    return len({*used} - {ABSENT}) + len(np.unique(form.numbers[codes == 0])) > 1


def unsigned(column: Column) -> Column:
    """Return a copy of a column in which -0.0 is replaced by 0.0."""
    return Column(column.name, column.numbers + 0.0, column.codes, column.labels)


def are_alike(tables: Sequence[Table]) -> bool:
    """Return whether tables have the same columns in the same order, and the same fixed entries.
    Their forms may differ."""
    first = tables[0]
    names = [column.name for column in first.all_columns]
    return all(
        (table.fixed == first.fixed or table._plain_fixed == first._plain_fixed)
        and [column.name for column in table.all_columns] == names
        for table in tables[1:]
    )


def stacked(tables: Sequence[Table]) -> Table:
    """Return one table with the outcomes of several tables that `are_alike`, in their order."""
    joined = zip(*(table.all_columns for table in tables), strict=True)
    first = tables[0]
    size = sum(table.size for table in tables)
    columns = tuple(map(join, joined))
    if all(table.fixed == first.fixed and not table.forms for table in tables):
        return Table(columns, size, first.paths, first.fixed)
    every = [{path.name: entry for path, entry in table.fixed} for table in tables]
    fixed = tuple(
        (path, entry)
        for path, entry in first.fixed
        if all(entries.get(path.name) == entry for entries in every)
    )
    return Table(columns, size, first.paths, fixed, _stacked_forms(tables, fixed))


def _stacked_forms(
    tables: Sequence[Table], fixed: Sequence[tuple[PlacePath, str | float]]
) -> tuple[tuple[PlacePath, Column], ...]:
    """Return (path, column over all tables) for each property that is not fixed."""
    paths: dict[str, PlacePath] = {}
    for table in tables:
        pairs = [*table.fixed, *table.forms]
        paths.update((path.name, path) for path, _ in pairs if path.step == "form")
    for path, _ in fixed:
        paths.pop(path.name, None)
    known = [table._known() for table in tables]
    return tuple((path, join([of(name) for of in known])) for name, path in paths.items())


def raised(outcomes: Outcomes) -> NDArray[np.bool_]:
    """Return a mask of the outcomes that are exceptions, shape (size,)."""
    first = outcomes.column(ROOT.name)
    if first.codes is None:
        return np.zeros(outcomes.size, dtype=bool)
    return np.array([False, *(label.startswith(RAISED) for label in first.labels)])[first.codes]


def failures(outcomes: Outcomes) -> dict[str, int]:
    """Return the number of outcomes that are exceptions, by the name of the exception's type."""
    first = outcomes.column(ROOT.name)
    if first.codes is None or not any(label.startswith(RAISED) for label in first.labels):
        return {}
    counts = np.bincount(first.codes, minlength=len(first.labels) + 1)[1:]
    return {
        label.removeprefix(RAISED): int(count)
        for label, count in zip(first.labels, counts, strict=True)
        if label.startswith(RAISED) and count
    }
