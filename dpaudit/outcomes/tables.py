"""Outcomes as a table, the plain form of it, in which every column has an entry for every outcome,
and either with how long the calls took."""

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
    Column,
    FloatArray,
    KeyArray,
    entry_keys,
    join,
    kinds_of,
    mix,
    text_key,
)
from dpaudit.outcomes.paths import ORDER, ROOT, Path
from dpaudit.outcomes.raised import RAISED
from dpaudit.outcomes.representation import (
    OF_TYPE,
    SIGN,
    orders_differ,
    sign_keys,
    signs_differ,
    types_differ,
)
from dpaudit.outcomes.units import ELAPSED
from dpaudit.outcomes.words import Entry, written

# Learning looks at no more columns than this.
WIDEST = 4096
_MANY = 64
# Columns, at least, and entries, at most, whose keys are made together.
_SEVERAL, _FEW_ENTRIES = 4, 1 << 14
_NO_LABELS = np.empty(0, dtype=np.uint64)


class Outcomes(ABC):
    """Outcomes of a mechanism: a column for every place that an outcome may have an entry at.

    Which entry an outcome has in a column of a given name depends on nothing but the outcome, so
    that a rule that was learned from one table means the same in any other.
    """

    __slots__ = ()
    size: int

    @property
    @abstractmethod
    def columns(self) -> Sequence[Column]:
        """The columns to learn from, at most some `WIDEST`; what all outcomes have in common, such
        as the length of vectors of one length, is left out."""

    @property
    @abstractmethod
    def width(self) -> int:
        """How many columns there were to choose from."""

    @property
    @abstractmethod
    def representations(self) -> Sequence[Column]:
        """The columns of what a recipient sees and Python does not compare (types, signs of zero,
        orders of keys, digits), as far as that differs between these outcomes."""

    @abstractmethod
    def plain(self) -> Outcomes:
        """Return the outcomes as Python compares them, without how they are represented."""

    @abstractmethod
    def take(self, index: NDArray[Any] | slice) -> Outcomes:
        """Return the outcomes at `index`."""

    @abstractmethod
    def trimmed(self) -> Outcomes:
        """Return the same outcomes, without the labels that none of them has: what a few of many
        need to be kept, or sent."""

    def keys(self) -> KeyArray:
        """Return a 64-bit key for every outcome; equal ones that are represented in the same way
        have equal keys, in every process, whatever the order of keys."""
        return self.keys_beside(frozenset())

    @abstractmethod
    def keys_beside(self, names: frozenset[str]) -> KeyArray:
        """Return a 64-bit key of what every outcome has at other places than those of these names;
        equal for all that have the same there. Not to be written to."""

    @abstractmethod
    def words(self, rows: Iterable[int]) -> list[str]:
        """Return outcomes as a reader would write them; an exception starts with `RAISED`."""

    @abstractmethod
    def _known(self) -> Callable[[str], Column]:
        """Return what finds a column by its name."""

    def named(self, names: Iterable[str]) -> Iterator[Column]:
        """Yield the columns of these names, one after the other, to save memory; an entry that an
        outcome does not have is `ABSENT`."""
        known = self._known()
        for name in names:
            yield made_from(name, known)

    def column(self, name: str) -> Column:
        """Return one column by its name."""
        return next(self.named([name]))

    def word(self, row: int) -> str:
        """Return one outcome as a reader would write it."""
        return self.words([row])[0]


@dataclass(frozen=True, slots=True, eq=False)
class Table(Outcomes):
    """Outcomes of one shape: scalars, vectors of one length, dicts with the same keys.

    paths: of `all_columns`. fixed: entries that all outcomes have in common: what a list is called
    and its length, and how all are represented.  forms: how outcomes are represented, where that
    differs; these columns are `ABSENT` for what is represented as usual.
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
    """Return what a column adds to the keys of outcomes: nothing where it is absent."""
    keys = mix(column.keys() + _name_key(column.name))
    if column.codes is not None and ABSENT in column.labels:
        keys[column.codes == column.labels.index(ABSENT) + 1] = 0
    return keys


def _keys_together(columns: Sequence[Column]) -> KeyArray:
    """Return the sum of the keys of columns: of few entries calls take longer than what they do, so
    that they are made for all columns at once."""
    if any(column.codes is not None for column in columns):
        keys = np.array([column.keys() for column in columns])
    else:
        keys = entry_keys(np.array([column.numbers for column in columns]), None, _NO_LABELS)
    keys += np.array([[_name_key(column.name)] for column in columns])
    return np.asarray(mix(keys).sum(axis=0, dtype=np.uint64))


@lru_cache(maxsize=1024)  # of the columns of each block
def _name_key(name: str) -> np.uint64:
    return np.uint64(text_key(name))


@dataclass(frozen=True, slots=True, eq=False)
class TimedOutcomes(Outcomes):
    """A table with one column more, the last one. What an outcome *is* (its key, its words) is the
    same as without: two equal outputs are one atom, however long they took.

    nanoseconds: (size,).
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
    """Return outcomes with the duration of every call: (size,), in nanoseconds."""
    return TimedOutcomes(outcomes, nanoseconds.astype(np.float64))


def _telling_kinds(column: Column) -> Column | None:
    """Return the kinds of a column where they differ and its labels are too many to tell them."""
    if len(column.labels) <= _MANY:
        return None
    kinds = kinds_of(column)
    return kinds if len(np.unique(kinds.codes if kinds.codes is not None else 0)) > 1 else None


def narrowed(outcomes: Outcomes) -> str | None:
    """Return in words what learning does not look at, when there are too many columns."""
    left = outcomes.width - WIDEST
    if left <= 0:
        return None
    return (
        f"outputs have entries at {outcomes.width:,} places; learning looked at the {WIDEST:,} "
        f"most frequent, the other {left:,} count only as parts of whole outputs"
    )


def fixed_key(path: Path, entry: str | float) -> int:
    """Return what an entry adds to the key of an outcome."""
    return _fixed_key(path.name, entry)


@lru_cache(maxsize=1024)  # every block of draws asks for the same few
def _fixed_key(name: str, entry: str | float) -> int:
    keys = Column.constant(name, entry, 1).keys()
    return int(mix(keys + np.uint64(text_key(name)))[0])


def _at(row: int, forms: Iterable[tuple[Path, Column]]) -> Iterator[Entry]:
    words = ((path, column.word(row)) for path, column in forms)
    return ((path, word) for path, word in words if word != ABSENT)


def need_forms(outcomes: Outcomes) -> NDArray[np.bool_]:
    """Return which outcomes another one is equal to, but for how they are represented: (size,)."""
    _, place = np.unique(outcomes.plain().keys(), return_inverse=True)
    both = np.unique(np.stack([place.astype(np.uint64), outcomes.keys()]), axis=1)
    return np.asarray((np.bincount(both[0].astype(np.intp)) > 1)[place])


def form_differs(outcomes: Outcomes, path: Path) -> bool:
    """Return whether outcomes that are alike at a place are represented in several ways there."""
    form = outcomes.column(path.name)
    if path.name.startswith(OF_TYPE):
        return types_differ(form, outcomes.column(path.name.removeprefix(OF_TYPE)))
    codes = np.zeros(outcomes.size, dtype=np.int32) if form.codes is None else form.codes
    used = [form.labels[code - 1] for code in np.flatnonzero(np.bincount(codes)) if code]
    if path.word == ORDER:
        return orders_differ(used)
    return len({*used} - {ABSENT}) + len(np.unique(form.numbers[codes == 0])) > 1


def unsigned(column: Column) -> Column:
    """Return a column in which zeros have no sign."""
    return Column(column.name, column.numbers + 0.0, column.codes, column.labels)


def are_alike(tables: Sequence[Table]) -> bool:
    """Return whether tables have the same columns, in the same order, however outcomes are
    represented."""
    first = tables[0]
    names = [column.name for column in first.all_columns]
    return all(
        (one.fixed == first.fixed or one._plain_fixed == first._plain_fixed)
        and [column.name for column in one.all_columns] == names
        for one in tables[1:]
    )


def stacked(tables: Sequence[Table]) -> Table:
    """Return tables that are alike as one."""
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
    """Return how the outcomes of several tables are represented where that is not fixed."""
    paths: dict[str, Path] = {}
    for table in tables:
        both = [*table.fixed, *table.forms]
        paths.update((path.name, path) for path, _ in both if path.step == "form")
    for path, _ in fixed:
        paths.pop(path.name, None)
    known = [table._known() for table in tables]
    return tuple((path, join([of(name) for of in known])) for name, path in paths.items())


def raised(outcomes: Outcomes) -> NDArray[np.bool_]:
    """Return which outcomes were exceptions: (size,)."""
    first = outcomes.column(ROOT.name)
    if first.codes is None:
        return np.zeros(outcomes.size, dtype=bool)
    return np.array([False, *(label.startswith(RAISED) for label in first.labels)])[first.codes]


def failures(outcomes: Outcomes) -> dict[str, int]:
    """Return how many outcomes were exceptions, by kind."""
    first = outcomes.column(ROOT.name)
    if first.codes is None or not any(label.startswith(RAISED) for label in first.labels):
        return {}
    counts = np.bincount(first.codes, minlength=len(first.labels) + 1)[1:]
    return {
        label.removeprefix(RAISED): int(count)
        for label, count in zip(first.labels, counts, strict=True)
        if label.startswith(RAISED) and count
    }
