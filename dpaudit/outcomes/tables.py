"""Tables of outcomes: the interface `Outcomes`, `Table` (one shape), `TimedOutcomes` (durations).

In this module, a *representation* is a property of an outcome that == does not compare: a type, a
sign of zero, the order of a dict's keys, the digits of a Decimal (see `representation.py`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

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
    Path,
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

# Learning uses at most 4,096 columns of a table.
WIDEST = 4096
# For a column with more than 64 labels, the kinds of its entries are a further column.
_MANY = 64
# Keys of several columns are computed in one array if there are at least 4 columns and at most
# 16,384 entries: with few entries, the overhead of NumPy calls takes most of the time.
_SEVERAL, _FEW_ENTRIES = 4, 1 << 14
_NO_LABELS = np.empty(0, dtype=np.uint64)


class Outcomes(ABC):
    """A table of outcomes, with one row per outcome and one column per place in the outcomes.

    An entry depends only on the outcome and on the name of the column. So a rule that was learned
    from one table has the same meaning in every other table.

    size: number of outcomes.
    """

    __slots__ = ()
    size: int

    @property
    @abstractmethod
    def columns(self) -> Sequence[Column]:
        """The columns from which an attack learns events, at most about `WIDEST`.

        Columns whose entry is the same in all outcomes, such as a common length, are left out.
        """

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of columns of the table, from which `columns` is a selection."""

    @property
    @abstractmethod
    def representations(self) -> Sequence[Column]:
        """The columns of representations (types, signs of zero, orders of keys, digits) that differ
        between outcomes of this table that are equal otherwise."""

    @abstractmethod
    def plain(self) -> Outcomes:
        """Return the outcomes without representations, so that 1 and 1.0 are the same outcome."""

    @abstractmethod
    def take(self, index: NDArray[Any] | slice) -> Outcomes:
        """Return a table of the outcomes in some rows. index: an index array, a mask or a slice."""

    @abstractmethod
    def trimmed(self) -> Outcomes:
        """Return the same outcomes without unused labels (texts of entries that are no numbers), to
        save memory after `take`."""

    def keys(self) -> KeyArray:
        """Return 64-bit keys (hashes) of the outcomes, shape (size,).

        In every process, outcomes have the same key if they are equal and have the same
        representation, except that the order of a dict's keys does not matter.
        """
        return self.keys_beside(frozenset())

    @abstractmethod
    def keys_beside(self, names: frozenset[str]) -> KeyArray:
        """Return 64-bit keys (hashes) of the outcomes, shape (size,), computed without the entries
        in some columns. Callers must not change the array.

        names: names of these columns.
        """

    @abstractmethod
    def words(self, rows: Iterable[int]) -> list[str]:
        """Return the texts of the outcomes in `rows`, such as `{"a": (1, 2)}`.

        The text of an exception starts with `RAISED`.
        """

    @abstractmethod
    def _known(self) -> Callable[[str], Column]:
        """Return a function from the name of a column to the column."""

    def named(self, names: Iterable[str]) -> Iterator[Column]:
        """Yield the columns with the given names, one at a time to save memory.

        If the table has no column of a name, all entries of the column are `ABSENT`.
        """
        known = self._known()
        for name in names:
            yield made_from(name, known)

    def column(self, name: str) -> Column:
        """Return the column with the given name; all entries are `ABSENT` for an unknown name."""
        return next(self.named([name]))

    def word(self, row: int) -> str:
        """Return the text of one outcome, such as `{"a": (1, 2)}`. row: number of the outcome, from
        0."""
        return self.words([row])[0]


@dataclass(frozen=True, slots=True, eq=False)
class Table(Outcomes):
    """Outcomes of one shape, such as scalars, vectors of one length, or dicts with the same keys.

    all_columns: columns of `size` entries each.
    size: number of outcomes.
    paths: path of each column.
    fixed: entries that all outcomes share, such as `a list`, its length and its type.
    forms: columns of representations that differ between outcomes; `ABSENT` where a value has the
        usual representation.
    """

    all_columns: tuple[Column, ...]
    size: int
    paths: tuple[Path, ...] = (ROOT,)
    fixed: tuple[tuple[Path, str | float], ...] = ()
    forms: tuple[tuple[Path, Column], ...] = ()

    @property
    def columns(self) -> Sequence[Column]:
        columns = self.all_columns[:WIDEST]
        return (*columns, *filter(None, map(_telling_kinds, columns)))

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
        signed = [one.name for one in self.all_columns[:WIDEST] if signs_differ(one.numbers)]
        forms = [path for path, _ in self.forms[:WIDEST] if form_differs(self, path)]
        return tuple(self.named([*(SIGN + name for name in signed), *(one.name for one in forms)]))

    def plain(self) -> Table:
        columns = tuple(map(unsigned, self.all_columns))
        return Table(columns, self.size, self.paths, self._plain_fixed)

    @property
    def _plain_fixed(self) -> tuple[tuple[Path, str | float], ...]:
        return tuple((path, entry) for path, entry in self.fixed if path.step != "form")

    def keys_beside(self, names: frozenset[str]) -> KeyArray:
        fixed = [
            fixed_key(path, entry)
            for path, entry in self.fixed
            if path.name not in names and path.is_in_keys
        ]
        both = np.uint64(sum(fixed) % 2**64)
        others = [column for column in self.all_columns if column.name not in names]
        forms = [one for path, one in self.forms if path.is_in_keys]
        more = [_form_keys(one) for one in forms if one.name not in names]
        left = (one for one in self.all_columns if one.name in names)
        more += [keys for one in left if (keys := sign_keys(one.name, one.numbers)) is not None]
        if not others and not more:
            return np.broadcast_to(both, self.size)
        if len(others) >= _SEVERAL and len(others) * self.size <= _FEW_ENTRIES:
            total = both + _keys_together(others)
        else:
            total = np.full(self.size, both)
            for column in others:
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
    """Return the numbers that a column of representations adds to the keys (64-bit hashes) of
    outcomes, shape (outcomes,); 0 where the entry is absent."""
    keys = mix(column.keys() + _name_key(column.name))
    if column.codes is not None and ABSENT in column.labels:
        keys[column.codes == column.labels.index(ABSENT) + 1] = 0
    return keys


def _keys_together(columns: Sequence[Column]) -> KeyArray:
    """Return, for each outcome, the sum of the scrambled keys (64-bit hashes) of its entries in
    these columns, shape (outcomes,)."""
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
    """A table of outcomes with one further column at the end: the duration of each call.

    Keys and texts ignore the duration, so that equal outputs are equal however long the calls took.

    outcomes: the table without durations.
    nanoseconds: (size,), the durations.
    """

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
    """Return outcomes together with the durations of their calls. nanoseconds: (size,)."""
    return TimedOutcomes(outcomes, nanoseconds.astype(np.float64))


def _telling_kinds(column: Column) -> Column | None:
    """Return the column of the kinds of entries, such as `a string`, if the kinds differ and the
    column has more than 64 labels; else None."""
    if len(column.labels) <= _MANY:
        return None
    kinds = kinds_of(column)
    return kinds if len(np.unique(kinds.codes if kinds.codes is not None else 0)) > 1 else None


def narrowed(outcomes: Outcomes) -> str | None:
    """Return a warning if a table has more columns than learning uses (`WIDEST`), else None."""
    left = outcomes.width - WIDEST
    if left <= 0:
        return None
    return (
        f"outputs have entries at {outcomes.width:,} places; learning looked at the {WIDEST:,} "
        f"most frequent, the other {left:,} count only as parts of whole outputs"
    )


def fixed_key(path: Path, entry: str | float) -> int:
    """Return the number that an entry at a path adds to the key (64-bit hash) of an outcome, modulo
    2**64."""
    return _fixed_key(path.name, entry)


@lru_cache(maxsize=1024)  # every block of draws has the same fixed entries
def _fixed_key(name: str, entry: str | float) -> int:
    keys = Column.constant(name, entry, 1).keys()
    return int(mix(keys + np.uint64(text_key(name)))[0])


def _at(row: int, forms: Iterable[tuple[Path, Column]]) -> Iterator[Entry]:
    words = ((path, column.word(row)) for path, column in forms)
    return ((path, word) for path, word in words if word != ABSENT)


def need_forms(outcomes: Outcomes) -> NDArray[np.bool_]:
    """Return a mask, (size,), of the outcomes whose text must show their representation, such as
    the type of a number.

    These are the outcomes that are equal to an outcome with another representation.
    """
    _, place = np.unique(outcomes.plain().keys(), return_inverse=True)
    both = np.unique(np.stack([place.astype(np.uint64), outcomes.keys()]), axis=1)
    return np.asarray((np.bincount(both[0].astype(np.intp)) > 1)[place])


def form_differs(outcomes: Outcomes, path: Path) -> bool:
    """Return whether equal entries have several representations of one sort, such as types.

    path: path of the representation, such as `type of output[0]`.
    """
    form = outcomes.column(path.name)
    if path.name.startswith(OF_TYPE):
        return types_differ(form, outcomes.column(path.name.removeprefix(OF_TYPE)))
    codes = np.zeros(outcomes.size, dtype=np.int32) if form.codes is None else form.codes
    used = [form.labels[code - 1] for code in np.flatnonzero(np.bincount(codes)) if code]
    if path.word == ORDER:
        return orders_differ(used)
    return len({*used} - {ABSENT}) + len(np.unique(form.numbers[codes == 0])) > 1


def unsigned(column: Column) -> Column:
    """Return a column in which -0.0 is replaced by 0.0."""
    return Column(column.name, column.numbers + 0.0, column.codes, column.labels)


def are_alike(tables: Sequence[Table]) -> bool:
    """Return whether tables have the same columns in the same order. Their columns of
    representations (types, signs of zero, orders of keys) may differ."""
    first = tables[0]
    names = [column.name for column in first.all_columns]
    return all(
        (one.fixed == first.fixed or one._plain_fixed == first._plain_fixed)
        and [column.name for column in one.all_columns] == names
        for one in tables[1:]
    )


def stacked(tables: Sequence[Table]) -> Table:
    """Return one table with the outcomes of several tables, for which `are_alike` is true."""
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
        if all(one.get(path.name) == entry for one in every)
    )
    return Table(columns, size, first.paths, fixed, _stacked_forms(tables, fixed))


def _stacked_forms(
    tables: Sequence[Table], fixed: Sequence[tuple[Path, str | float]]
) -> tuple[tuple[Path, Column], ...]:
    """Return the columns of representations of all tables; entries in `fixed` need no column."""
    paths: dict[str, Path] = {}
    for table in tables:
        both = [*table.fixed, *table.forms]
        paths.update((path.name, path) for path, _ in both if path.step == "form")
    for path, _ in fixed:
        paths.pop(path.name, None)
    known = [table._known() for table in tables]
    return tuple((path, join([of(name) for of in known])) for name, path in paths.items())


def raised(outcomes: Outcomes) -> NDArray[np.bool_]:
    """Return a mask, shape (size,), of the outcomes that are exceptions."""
    first = outcomes.column(ROOT.name)
    if first.codes is None:
        return np.zeros(outcomes.size, dtype=bool)
    return np.array([False, *(label.startswith(RAISED) for label in first.labels)])[first.codes]


def failures(outcomes: Outcomes) -> dict[str, int]:
    """Return the number of outcomes for each kind of exception, as name of the type -> number."""
    first = outcomes.column(ROOT.name)
    if first.codes is None or not any(label.startswith(RAISED) for label in first.labels):
        return {}
    counts = np.bincount(first.codes, minlength=len(first.labels) + 1)[1:]
    return {
        label.removeprefix(RAISED): int(count)
        for label, count in zip(first.labels, counts, strict=True)
        if label.startswith(RAISED) and count
    }
