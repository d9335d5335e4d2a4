"""Outcomes found among known ones: by their keys or, where each place has few values, by these,
which takes less than half of the time for many outcomes at once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.alphabets import Alphabet, Symbols
from dpaudit.outcomes.bands import Bands
from dpaudit.outcomes.columns import Column, KeyArray, find, is_negative_zero
from dpaudit.outcomes.paths import Path
from dpaudit.outcomes.tables import Outcomes, Table

PlaceArray = NDArray[np.intp]
Tables = tuple[NDArray[np.int32] | None, ...]

# Values of one column, and combinations of those of all, at most, so that tables are few.
_FEW, _COMBINATIONS = 8, 1 << 60
# Combinations that a table has room for, at most.
_TABLE = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Known outcomes. keys: (known,), rising.  entries: what to find them by, if not by keys.

    bands: those that numbers count by; None where they count by themselves.
    """

    keys: KeyArray
    entries: Entries | None = None
    bands: Bands | None = None

    @classmethod
    def of(cls, keys: KeyArray, outcomes: Outcomes) -> Known:
        """Return outcomes with their keys, which rise."""
        return cls(keys, Entries.of(outcomes))

    def through(self, bands: Bands) -> Known:
        """Return what finds outcomes by their bands, which are what is known."""
        entries = None if self.entries is None else self.entries.through(bands)
        return Known(self.keys, entries, bands)

    def places(self, outcomes: Outcomes) -> PlaceArray:
        """Return the place of every outcome among the known ones, len(keys) for those not there."""
        found = None if self.entries is None else self.entries.places(outcomes)
        if found is not None:
            return found
        return find(self.keys, (outcomes if self.bands is None else self.bands(outcomes)).keys())


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Tables by what stands in their columns, of which each has few values.

    fixed: what all outcomes have in common.  symbols: of every known outcome in each column that
    has several values, (those columns, known).
    """

    columns: tuple[Alphabet, ...]
    fixed: tuple[tuple[Path, str | float], ...]
    symbols: Symbols
    # By column that has several values, once places are asked for: nothing, or all of them.
    _made: list[Tables] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(cls, known: Outcomes) -> Entries | None:
        """Return what known outcomes are found by; None where that are too many combinations."""
        if not isinstance(known, Table) or known.size == 0 or _has_signs(known):
            return None
        columns, symbols, combinations = [], [np.empty((0, known.size), np.uint8)], 1
        for column in _columns(known):
            own = Alphabet.of(column)
            many = len(own.values)
            combinations *= many
            if many > _FEW or combinations > _COMBINATIONS:
                return None
            found = own(column)
            if (found == many).any():
                return None
            columns.append(own)
            if many > 1:
                symbols.append(found[None])
        return cls(tuple(columns), _fixed(known), np.concatenate(symbols))

    def through(self, bands: Bands) -> Entries:
        """Return what finds outcomes by their bands."""
        columns = tuple(one.through(bands) for one in self.columns)
        return replace(self, columns=columns)

    def places(self, outcomes: Outcomes) -> PlaceArray | None:
        """Return the place of every outcome, how many are known for others; None where outcomes
        are of another shape, or have more labels than there are outcomes."""
        if not isinstance(outcomes, Table) or _fixed(outcomes) != self.fixed:
            return None
        columns = _columns(outcomes)
        if [column.name for column in columns] != [one.name for one in self.columns]:
            return None
        if any(len(column.labels) > outcomes.size for column in columns) or _has_signs(outcomes):
            return None
        numbers, is_other = np.zeros(outcomes.size, dtype=np.int32), np.zeros(outcomes.size, bool)
        tables, has_spare = iter(self._tables()), self._has_spare
        for alphabet, column in zip(self.columns, columns, strict=True):
            many, symbols = len(alphabet.values), alphabet(column)
            if many == 1 or not has_spare:
                is_other |= symbols == many
            if many > 1:
                numbers *= many + has_spare
                numbers += symbols
                table = next(tables)
                if table is not None:
                    if not has_spare:  # what is not known may be beyond the table
                        numbers *= ~is_other
                    numbers = table.take(numbers.astype(np.intp))
        found = numbers.astype(np.intp)
        return np.where(is_other, self.symbols.shape[1], found) if is_other.any() else found

    @property
    def _has_spare(self) -> bool:
        """Whether what is not known counts as a value of its own, so that it is not asked for: not
        where one table has room for all combinations of those that are."""
        return math.prod(len(one.values) for one in self.columns) > _TABLE

    def _tables(self) -> Tables:
        """Return what the numbers of combinations so far become after each column that has several
        values: where the next would make too many, those of known outcomes are counted anew; and
        after the last one they are places. All that is not known shares the number after these."""
        if self._made:
            return self._made[0]
        found: list[NDArray[np.int32] | None] = []
        values = [len(one.values) for one in self.columns]
        several = [many + self._has_spare for many in values if many > 1]
        known = self.symbols.shape[1]
        numbers, combinations = np.zeros(known, dtype=np.intp), 1
        for place, (own, many) in enumerate(zip(self.symbols, several, strict=True), 1):
            numbers, combinations = numbers * many + own, combinations * many
            is_last = place == len(several)
            if not is_last and combinations * several[place] <= _TABLE:
                found.append(None)
                continue
            distinct, places = np.unique(numbers, return_inverse=True)
            if is_last:
                distinct, places = numbers, np.arange(known)
            table = np.full(combinations, len(distinct), dtype=np.int32)
            table[distinct] = np.arange(len(distinct))
            found.append(table)
            numbers, combinations = places, len(distinct) + 1
        self._made.append(tuple(found))
        return self._made[0]

    def __reduce__(self) -> tuple[type[Entries], tuple[object, ...]]:
        """Travel without the tables, which are many times larger than what they are made from."""
        return Entries, (self.columns, self.fixed, self.symbols)


def _columns(table: Table) -> list[Column]:
    """Return all that outcomes of a table differ by, but for signs of zero."""
    return [*table.all_columns, *(column for path, column in table.forms if path.is_in_keys)]


def _fixed(table: Table) -> tuple[tuple[Path, str | float], ...]:
    return tuple((path, entry) for path, entry in table.fixed if path.is_in_keys)


def _has_signs(table: Table) -> bool:
    """Return whether there are zeros that equal numbers, in a table of these, are not."""
    return any(is_negative_zero(column.numbers) is not None for column in table.all_columns)
