"""Find outcomes among known outcomes, by exact values or by intervals (bands) of their numbers.

An outcome is found by its key (64-bit hash) or, if every column has few distinct entries, by small
integers, which takes less than half of the time: each column maps its entries to 0, 1, 2, ...
(`Alphabet`), and tables map the combinations of these integers to known outcomes. `Bands` replaces
each number by the interval that contains it, so that sequences of numbers can be compared.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.columns import (
    CodeArray,
    Column,
    FloatArray,
    KeyArray,
    Path,
    find,
    is_negative_zero,
    number_word,
)
from dpaudit.outcomes.long_table import LongTable, Vocabulary
from dpaudit.outcomes.tables import Outcomes, Table, TimedOutcomes

PlaceArray = NDArray[np.intp]
Symbols = NDArray[np.uint8]
Tables = tuple[NDArray[np.int32] | None, ...]
# One step in which `Alphabet` maps numbers to small integers: a comparison such as `np.greater`,
# the number to compare with, and the integer that is added, modulo 256, where it is true.
Rise = tuple[np.ufunc, float, np.uint8]

# Prefix of the label of a band.
BAND = "number "
# Small integers are used if each column has at most 8 distinct entries, ...
_FEW = 8
# ... and if there are at most 2^60 combinations of entries, which can be numbered with 64 bits.
_COMBINATIONS = 1 << 60
# Limit of the size of a table of combinations, in entries of 4 bytes (1 MiB in all).
_TABLE = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """A function from a table of outcomes to a table in which numbers of some columns are replaced
    by the labels of intervals (bands), such as `number < 3`. It can be pickled.

    names: names of the columns whose numbers are replaced.
    alone: numbers that are not replaced.
    edges: (bands - 1,), boundaries of the intervals, rising; a number equal to an edge is in the
        band above the edge.
    """

    names: frozenset[str]
    alone: tuple[float, ...]
    edges: tuple[float, ...]

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        """Return the outcomes with labels of bands (intervals) instead of numbers. Columns of
        representations (types, signs of zero, orders of keys) are left out."""
        outcomes = outcomes.plain()
        if isinstance(outcomes, TimedOutcomes):
            return TimedOutcomes(self(outcomes.outcomes), outcomes.nanoseconds)
        if isinstance(outcomes, Table):
            columns = tuple(map(self._of_column, outcomes.all_columns))
            fixed = tuple((path, self._of_entry(path.name, one)) for path, one in outcomes.fixed)
            return Table(columns, outcomes.size, outcomes.paths, fixed)
        return self._of_long(outcomes) if isinstance(outcomes, LongTable) else outcomes

    def _of_column(self, column: Column) -> Column:
        if column.name not in self.names:
            return column
        found = self._in_bands(column.numbers, column.codes, len(column.labels))
        return Column(column.name, *found, (*column.labels, *self.labels))

    def _of_entry(self, name: str, entry: str | float) -> str | float:
        if name not in self.names or isinstance(entry, str) or entry in self.alone:
            return entry
        return self.labels[bisect_right(self.edges, entry)]

    def _of_long(self, table: LongTable) -> LongTable:
        known = table.vocabulary
        inside = [path.name in self.names for path in known.paths]
        is_inside = np.repeat(inside, np.diff(table.offsets))
        numbers, codes = self._in_bands(table.numbers, table.codes, len(known.labels))
        vocabulary = Vocabulary(known.paths, (*known.labels, *self.labels))
        numbers = np.where(is_inside, numbers, table.numbers)
        codes = np.where(is_inside, codes, table.codes)
        return LongTable(vocabulary, table.offsets, table.rows, numbers, codes, table.size)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the bands (intervals of numbers), from the lowest band to the highest."""
        words = [number_word(edge) for edge in self.edges]
        inner = [f"{BAND}{low} to {high}" for low, high in pairwise(words)]
        return (f"{BAND}< {words[0]}", *inner, f"{BAND}≥ {words[-1]}")

    def _in_bands(
        self, numbers: FloatArray, codes: CodeArray | None, labels: int
    ) -> tuple[FloatArray, CodeArray]:
        """Return the numbers and codes of a column after its numbers are replaced by bands
        (intervals).

        numbers, codes: as in `Column`.
        labels: number of labels that the column has already; codes of bands follow their codes.
        """
        # Sums of bytes instead of np.where, which takes four times as long on random entries.
        own = np.zeros(len(numbers), dtype=np.uint8)
        is_true = np.empty(len(numbers), dtype=bool)
        for place, number in enumerate(self.alone, 1):
            np.equal(numbers, number, out=is_true)
            own += is_true.view(np.uint8) * np.uint8(place)
        band = np.ones(len(numbers), dtype=np.uint8)
        for edge in self.edges:
            band += np.greater_equal(numbers, edge, out=is_true).view(np.uint8)
        found = band.astype(np.int32)
        found += np.int32(labels)
        others = own > 0
        if codes is not None:
            others |= codes > 0
        found *= ~others
        if codes is not None:
            found += codes
        return np.array([np.nan, *self.alone]).take(own.astype(np.intp)), found


@dataclass(frozen=True, slots=True)
class Alphabet:
    """A map from the entries of a column to small integers.

    The integer of an entry is its index in `values`; for any other entry it is `len(values)`.

    name: name of the column.
    values: distinct entries: numbers and labels.
    bands: map that is applied to the entries first, so that `values` holds labels of bands; None:
        entries are used as they are.
    """

    name: str
    values: tuple[float | str, ...]
    bands: Bands | None = None

    @classmethod
    def of(cls, column: Column) -> Alphabet:
        """Return the alphabet of all entries of a column: numbers in rising order, then labels."""
        if column.codes is None:
            return cls(column.name, tuple(np.unique(column.numbers).tolist()))
        numbers = np.unique(column.numbers[column.codes == 0]).tolist()
        used = np.unique(column.codes[column.codes > 0]).tolist()
        return cls(column.name, (*numbers, *(column.labels[code - 1] for code in used)))

    def through(self, bands: Bands) -> Alphabet:
        """Return an alphabet that applies `bands` to entries before it maps them to integers; this
        alphabet if `bands` does not change its column."""
        return replace(self, bands=bands) if self.name in bands.names else self

    def __call__(self, column: Column) -> Symbols:
        """Return the small integer of each entry of a column, shape (outcomes,)."""
        many = len(self.values)
        known, lowest, steps = _reading(self)
        # Sums of bytes modulo 256 take a fifth of the time of np.where.
        found = np.full(len(column.numbers), lowest, dtype=np.uint8)
        is_true = np.empty(len(found), dtype=bool)
        as_bytes = is_true.view(np.uint8)
        for compare, number, rise in steps:
            compare(column.numbers, number, out=is_true)
            np.multiply(as_bytes, rise, out=as_bytes)
            found += as_bytes
        if column.codes is not None:
            # A label has the number NaN, for which all comparisons are false.
            own = [known.get(label, 0) - lowest for label in column.labels]
            found += np.array([0, *own]).astype(np.uint8).take(column.codes)
        return np.subtract(np.uint8(many), found, out=found)


@lru_cache(maxsize=1024)  # the same alphabets read every block of draws
def _reading(own: Alphabet) -> tuple[dict[float | str, int], int, list[Rise]]:
    """Return (known, start, steps), from which the small integer of each entry of a column is
    computed. They give r = len(values) - (integer of the entry).

    known: entry -> r; used for labels.
    start: r of a number for which no comparison in `steps` is true.
    steps: comparisons of a number with an edge or a value; each true comparison adds to r.
    """
    known = {value: len(own.values) - place for place, value in enumerate(own.values)}
    if own.bands is None:
        numbers = [(value, rise) for value, rise in known.items() if isinstance(value, float)]
        return known, 0, [(np.equal, value, np.uint8(rise)) for value, rise in numbers]
    edges, alone = own.bands.edges, own.bands.alone
    by_band = [known.get(label, 0) for label in own.bands.labels]
    rises = [upper - lower for lower, upper in pairwise(by_band)]
    beside = [known.get(one, 0) - by_band[bisect_right(edges, one)] for one in alone]
    steps: list[tuple[np.ufunc, float, int]] = [
        *((np.greater_equal, edge, rise) for edge, rise in zip(edges, rises, strict=True)),
        *((np.equal, one, rise) for one, rise in zip(alone, beside, strict=True)),
    ]
    return known, by_band[0], [(by, one, np.uint8(rise % 256)) for by, one, rise in steps if rise]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A set of known outcomes. `places` returns the index of each outcome of a table among them.

    keys: (known,), the keys of the known outcomes, rising.
    entries: finds outcomes by small integers, which is faster; None: outcomes are found by keys.
    bands: map that is applied to an outcome before the search; None: no map is applied.
    """

    keys: KeyArray
    entries: Entries | None = None
    bands: Bands | None = None

    @classmethod
    def of(cls, keys: KeyArray, outcomes: Outcomes) -> Known:
        """Return a `Known` that finds outcomes among the given outcomes. keys: 64-bit hashes of
        these outcomes, rising."""
        return cls(keys, Entries.of(outcomes))

    def through(self, bands: Bands) -> Known:
        """Return a `Known` that applies `bands` to outcomes before it looks for them.

        The known outcomes already have bands (intervals) instead of numbers.
        """
        entries = None if self.entries is None else self.entries.through(bands)
        return Known(self.keys, entries, bands)

    def places(self, outcomes: Outcomes) -> PlaceArray:
        """Return the index of each outcome among the known outcomes, shape (outcomes,).

        An unknown outcome gets the index `len(keys)`.
        """
        found = None if self.entries is None else self.entries.places(outcomes)
        if found is not None:
            return found
        return find(self.keys, (outcomes if self.bands is None else self.bands(outcomes)).keys())


@dataclass(frozen=True, slots=True, eq=False)
class Entries:
    """Known outcomes of one shape, with few distinct entries in each column.

    columns: for each column, the map from its entries to small integers.
    fixed: entries that all known outcomes share.
    symbols: (columns with at least two distinct entries, known), integers of the known outcomes.
    """

    columns: tuple[Alphabet, ...]
    fixed: tuple[tuple[Path, str | float], ...]
    symbols: Symbols
    # The result of `_tables` as the only item of a list; the list is empty until the first call.
    _made: list[Tables] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(cls, known: Outcomes) -> Entries | None:
        """Return an `Entries` that finds outcomes among known outcomes by small integers; None if
        small integers cannot represent the known outcomes.

        They cannot if the outcomes have several shapes, too many combinations of entries, or -0.0.
        """
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
        return replace(self, columns=tuple(one.through(bands) for one in self.columns))

    def places(self, outcomes: Outcomes) -> PlaceArray | None:
        """Return the index of each outcome among the known outcomes, shape (outcomes,).

        An unknown outcome gets the number of known outcomes as its index. Returns None if the
        outcomes must be found by keys: they have another shape, more labels than outcomes, or -0.0.
        """
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
                    if not has_spare:  # the number of an unknown outcome may exceed the table
                        numbers *= ~is_other
                    numbers = table.take(numbers.astype(np.intp))
        found = numbers.astype(np.intp)
        return np.where(is_other, self.symbols.shape[1], found) if is_other.any() else found

    @property
    def _has_spare(self) -> bool:
        """Whether, in each column, one integer more than the number of known entries is used: it
        stands for all unknown entries.

        True if the combinations of entries do not fit into one table. With the further integers,
        `places` needs no mask of unknown outcomes.
        """
        return math.prod(len(one.values) for one in self.columns) > _TABLE

    def _tables(self) -> Tables:
        """Return a table (or None) for each column with at least two distinct entries.

        `places` combines the integers of the columns one after the other. Where one more column
        would make more than `_TABLE` combinations, a table renumbers the combinations so far: each
        combination of a known outcome gets a number of its own, and all other combinations share
        the next number. At other columns the table is None. The last table maps combinations to
        indices of known outcomes.
        """
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
        """Leave the tables out of the pickle, since they are much larger than the fields."""
        return Entries, (self.columns, self.fixed, self.symbols)


def _columns(table: Table) -> list[Column]:
    """Return the columns of a table that determine the keys (64-bit hashes) of its outcomes. The
    signs of zeros, which keys also depend on, have no column."""
    return [*table.all_columns, *(column for path, column in table.forms if path.is_in_keys)]


def _fixed(table: Table) -> tuple[tuple[Path, str | float], ...]:
    return tuple((path, entry) for path, entry in table.fixed if path.is_in_keys)


def _has_signs(table: Table) -> bool:
    """Return whether a table has an entry -0.0. Its key (hash) differs from the key of 0.0,
    although -0.0 == 0.0."""
    return any(is_negative_zero(column.numbers) is not None for column in table.all_columns)
