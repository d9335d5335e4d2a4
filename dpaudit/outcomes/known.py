"""Find the outcomes of a table among known outcomes.

An outcome is found by its hash. If every column has few distinct entries, it is found by symbols,
in less than half of the time: `Alphabet` maps the entries of each column to symbols, and tables map
combinations of symbols to known outcomes. `Bands` first replaces numbers by bands.
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
    PlacePath,
    find,
    is_negative_zero,
    number_word,
)
from dpaudit.outcomes.long_table import LongTable, Vocabulary
from dpaudit.outcomes.tables import Outcomes, Table, TimedOutcomes

PlaceArray = NDArray[np.intp]
Symbols = NDArray[np.uint8]
Tables = tuple[NDArray[np.int32] | None, ...]
# One step by which `Alphabet` maps numbers to small integers: (comparison, number, integer). If the
# comparison of an entry with the number is true, the integer is added, modulo 256.
Rise = tuple[np.ufunc, float, np.uint8]

# Start of the text that names an interval of numbers, such as `number < 3`.
BAND = "number "
# `Known` finds outcomes by small integers, which is faster than by hashes, only if each column has
# at most this number of distinct entries.
_MAX_DISTINCT = 8
# `Known` numbers the combinations of column entries, and finds outcomes by these numbers, if there
# are at most this many combinations: a number must fit in 64 bits. With more combinations, it finds
# outcomes by hashes.
_MAX_COMBINATIONS = 1 << 60
# Largest number of combinations of column entries in one lookup table. With 4 bytes each, a table
# takes at most 1 MiB.
_MAX_TABLE = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """A function that replaces numbers in a table of outcomes by bands. It can be pickled.

    names: names of the columns whose numbers are replaced.
    alone: single numbers that stay numbers.
    edges: boundaries of the bands, rising. A number that equals a boundary belongs to the band
        above.
    """

    names: frozenset[str]
    alone: tuple[float, ...]
    edges: tuple[float, ...]

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        """Return the outcomes with bands in place of numbers, and without forms and signs of
        zero."""
        outcomes = outcomes.plain()
        if isinstance(outcomes, TimedOutcomes):
            return TimedOutcomes(self(outcomes.outcomes), outcomes.nanoseconds)
        if isinstance(outcomes, Table):
            columns = tuple(map(self._of_column, outcomes.all_columns))
            fixed = tuple(
                (path, self._of_entry(path.name, entry)) for path, entry in outcomes.fixed
            )
            return Table(columns, outcomes.size, outcomes.paths, fixed)
        return self._of_long(outcomes) if isinstance(outcomes, LongTable) else outcomes

    def _of_column(self, column: Column) -> Column:
        if column.name not in self.names:
            return column
        entries = self._in_bands(column.numbers, column.codes, len(column.labels))
        return Column(column.name, *entries, (*column.labels, *self.labels))

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
        """The labels of the bands, from the lowest to the highest."""
        words = [number_word(edge) for edge in self.edges]
        inner = [f"{BAND}{low} to {high}" for low, high in pairwise(words)]
        return (f"{BAND}< {words[0]}", *inner, f"{BAND}≥ {words[-1]}")

    def _in_bands(
        self, numbers: FloatArray, codes: CodeArray | None, labels: int
    ) -> tuple[FloatArray, CodeArray]:
        """Return (numbers, codes) after texts that name intervals replace numbers."""
        # The texts for intervals get the codes from `labels` + 1 on.
        # Add up Boolean masks, as bytes, to number the values. For columns of random entries,
        # np.where would take four times as long.
        positions = np.zeros(len(numbers), dtype=np.uint8)
        is_true = np.empty(len(numbers), dtype=bool)
        for position, number in enumerate(self.alone, 1):
            np.equal(numbers, number, out=is_true)
            positions += is_true.view(np.uint8) * np.uint8(position)
        band = np.ones(len(numbers), dtype=np.uint8)
        for edge in self.edges:
            band += np.greater_equal(numbers, edge, out=is_true).view(np.uint8)
        new_codes = band.astype(np.int32)
        new_codes += np.int32(labels)
        is_kept = positions > 0
        if codes is not None:
            is_kept |= codes > 0
        new_codes *= ~is_kept
        if codes is not None:
            new_codes += codes
        return np.array([np.nan, *self.alone]).take(positions.astype(np.intp)), new_codes


@dataclass(frozen=True, slots=True)
class Alphabet:
    """A function from the entries of a column to symbols: the index in `values`, or `len(values)`.

    name: name of the column.
    values: distinct entries of the column.
    bands: replaces numbers by bands first; None: entries are used unchanged.
    """

    name: str
    values: tuple[float | str, ...]
    bands: Bands | None = None

    @classmethod
    def of(cls, column: Column) -> Alphabet:
        """Return the `Alphabet` of all entries of a column: the numbers, rising, then the
        labels."""
        if column.codes is None:
            return cls(column.name, tuple(np.unique(column.numbers).tolist()))
        numbers = np.unique(column.numbers[column.codes == 0]).tolist()
        used = np.unique(column.codes[column.codes > 0]).tolist()
        return cls(column.name, (*numbers, *(column.labels[code - 1] for code in used)))

    def through(self, bands: Bands) -> Alphabet:
        """Return the `Alphabet` of a column whose numbers `bands` replaces; the same object if it
        replaces none in this column."""
        return replace(self, bands=bands) if self.name in bands.names else self

    def __call__(self, column: Column) -> Symbols:
        """Return the symbol of each entry of a column, (size,)."""
        size = len(self.values)
        known, lowest, steps = _reading(self)
        # Each comparison below gives a mask of entries (true or false). The mask, times a number,
        # is added to `ranks` as bytes, in a fifth of the time of np.where. Sums in between may
        # overflow (they are modulo 256), but the final sum is right, since it is at most 255.
        ranks = np.full(len(column.numbers), lowest, dtype=np.uint8)
        is_true = np.empty(len(ranks), dtype=bool)
        as_bytes = is_true.view(np.uint8)
        for compare, number, rise in steps:
            compare(column.numbers, number, out=is_true)
            np.multiply(as_bytes, rise, out=as_bytes)
            ranks += as_bytes
        if column.codes is not None:
            # An entry that is a text has NaN as its number, for which all comparisons above are
            # false. So `ranks` still contains `lowest` there; replace it by the number of the text
            # in `known`.
            label_ranks = [known.get(label, 0) - lowest for label in column.labels]
            ranks += np.array([0, *label_ranks]).astype(np.uint8).take(column.codes)
        return np.subtract(np.uint8(size), ranks, out=ranks)


@lru_cache(maxsize=1024)  # the same alphabets read every block of draws
def _reading(alphabet: Alphabet) -> tuple[dict[float | str, int], int, list[Rise]]:
    """Return (known, start, steps), by which an `Alphabet` finds the symbol of an entry."""
    # The small integer of an entry is `len(values)` minus its number r. `known` maps entries to r,
    # for texts (0 for any other text). A number has r = `start`, plus the increase of each step
    # (comparison, number, increase) whose comparison is true.
    known = {value: len(alphabet.values) - index for index, value in enumerate(alphabet.values)}
    if alphabet.bands is None:
        numbers = [(value, rise) for value, rise in known.items() if isinstance(value, float)]
        return known, 0, [(np.equal, value, np.uint8(rise)) for value, rise in numbers]
    edges, alone = alphabet.bands.edges, alphabet.bands.alone
    by_band = [known.get(label, 0) for label in alphabet.bands.labels]
    rises = [upper - lower for lower, upper in pairwise(by_band)]
    beside = [known.get(number, 0) - by_band[bisect_right(edges, number)] for number in alone]
    steps: list[tuple[np.ufunc, float, int]] = [
        *((np.greater_equal, edge, rise) for edge, rise in zip(edges, rises, strict=True)),
        *((np.equal, number, rise) for number, rise in zip(alone, beside, strict=True)),
    ]
    return (
        known,
        by_band[0],
        [(by, number, np.uint8(rise % 256)) for by, number, rise in steps if rise],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A set of known outcomes, among which `places` finds the outcomes of a table.

    keys: hashes of the known outcomes, rising.
    entries: finds outcomes by symbols; None: they are found by hashes.
    bands: replaces numbers in the outcomes to find; None: numbers stay.
    """

    keys: KeyArray
    entries: KnownEntries | None = None
    bands: Bands | None = None

    @classmethod
    def of(cls, keys: KeyArray, outcomes: Outcomes) -> Known:
        """Return the `Known` of these outcomes. `keys` are their hashes, rising."""
        return cls(keys, KnownEntries.of(outcomes))

    def through(self, bands: Bands) -> Known:
        """Return a copy that first applies `bands` to the outcomes to find. In the known outcomes,
        numbers must already have been replaced by these bands."""
        entries = None if self.entries is None else self.entries.through(bands)
        return Known(self.keys, entries, bands)

    def places(self, outcomes: Outcomes) -> PlaceArray:
        """Return the index of each outcome among the known ones, (size,); `len(keys)` for an
        unknown one."""
        indices = None if self.entries is None else self.entries.places(outcomes)
        if indices is not None:
            return indices
        return find(self.keys, (outcomes if self.bands is None else self.bands(outcomes)).keys())


@dataclass(frozen=True, slots=True, eq=False)
class KnownEntries:
    """Known outcomes of one shape, with few distinct entries in each column, stored as symbols.

    columns: for each column, the function that maps its entries to symbols.
    fixed: entries that all known outcomes share.
    symbols: symbols of the known outcomes, with a row for each column that has at least two
        distinct entries.
    """

    columns: tuple[Alphabet, ...]
    fixed: tuple[tuple[PlacePath, str | float], ...]
    symbols: Symbols
    # Cache of the result of `_tables`: a list that contains only this result; empty before the
    # first call.
    _cache: list[Tables] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(cls, known: Outcomes) -> KnownEntries | None:
        """Return `KnownEntries` of the known outcomes; None if they differ in shape, have too many
        combinations of entries, or contain -0.0."""
        if not isinstance(known, Table) or known.size == 0 or _has_signs(known):
            return None
        columns, symbols, combinations = [], [np.empty((0, known.size), np.uint8)], 1
        for column in _columns(known):
            alphabet = Alphabet.of(column)
            size = len(alphabet.values)
            combinations *= size
            if size > _MAX_DISTINCT or combinations > _MAX_COMBINATIONS:
                return None
            column_symbols = alphabet(column)
            if (column_symbols == size).any():
                return None
            columns.append(alphabet)
            if size > 1:
                symbols.append(column_symbols[None])
        return cls(tuple(columns), _fixed(known), np.concatenate(symbols))

    def through(self, bands: Bands) -> KnownEntries:
        return replace(self, columns=tuple(alphabet.through(bands) for alphabet in self.columns))

    def places(self, outcomes: Outcomes) -> PlaceArray | None:
        """Return the index of each outcome among the known ones, (size,); their number for an
        unknown one.

        Return None if the outcomes must be found by hashes instead. This is so if they have another
        shape, if they contain -0.0, or if a column has more labels than there are outcomes, as
        after a selection of few outcomes.
        """
        if not isinstance(outcomes, Table) or _fixed(outcomes) != self.fixed:
            return None
        columns = _columns(outcomes)
        if [column.name for column in columns] != [alphabet.name for alphabet in self.columns]:
            return None
        if any(len(column.labels) > outcomes.size for column in columns) or _has_signs(outcomes):
            return None
        numbers, is_other = np.zeros(outcomes.size, dtype=np.int32), np.zeros(outcomes.size, bool)
        tables, has_spare = iter(self._tables()), self._has_spare
        for alphabet, column in zip(self.columns, columns, strict=True):
            size, symbols = len(alphabet.values), alphabet(column)
            if size == 1 or not has_spare:
                is_other |= symbols == size
            if size > 1:
                numbers *= size + has_spare
                numbers += symbols
                table = next(tables)
                if table is not None:
                    if not has_spare:  # the number of an unknown outcome may exceed the table
                        numbers *= ~is_other
                    numbers = table.take(numbers.astype(np.intp))
        indices = numbers.astype(np.intp)
        return np.where(is_other, self.symbols.shape[1], indices) if is_other.any() else indices

    @property
    def _has_spare(self) -> bool:
        """Whether the symbols of each column include one for unknown entries."""
        # With several lookup tables, the tables map unknown outcomes to an index of their own. With
        # one table, `places` marks unknown outcomes in a mask instead.
        return math.prod(len(alphabet.values) for alphabet in self.columns) > _MAX_TABLE

    def _tables(self) -> Tables:
        """Return the tables of `places`: for each column with several entries, a table or None."""
        # `places` combines the integers of the first columns, one column at a time, into one
        # number. If the next column would give more than `_MAX_TABLE` numbers, a table first
        # replaces them by smaller ones: each combination in a known outcome gets a number of its
        # own, and all others share one. The table of the last column maps numbers to indices of
        # known outcomes.
        if self._cache:
            return self._cache[0]
        tables: list[NDArray[np.int32] | None] = []
        values = [len(alphabet.values) for alphabet in self.columns]
        several = [size + self._has_spare for size in values if size > 1]
        known = self.symbols.shape[1]
        numbers, combinations = np.zeros(known, dtype=np.intp), 1
        for position, (symbols, size) in enumerate(zip(self.symbols, several, strict=True), 1):
            numbers, combinations = numbers * size + symbols, combinations * size
            is_last = position == len(several)
            if not is_last and combinations * several[position] <= _MAX_TABLE:
                tables.append(None)
                continue
            distinct, indices = np.unique(numbers, return_inverse=True)
            if is_last:
                distinct, indices = numbers, np.arange(known)
            table = np.full(combinations, len(distinct), dtype=np.int32)
            table[distinct] = np.arange(len(distinct))
            tables.append(table)
            numbers, combinations = indices, len(distinct) + 1
        self._cache.append(tuple(tables))
        return self._cache[0]

    def __reduce__(self) -> tuple[type[KnownEntries], tuple[object, ...]]:
        """Pickle the fields without the cached tables, which are much larger."""
        return KnownEntries, (self.columns, self.fixed, self.symbols)


def _columns(table: Table) -> list[Column]:
    """Return the columns on which the 64-bit hash of an outcome depends."""
    return [*table.all_columns, *(column for path, column in table.forms if path.is_in_keys)]


def _fixed(table: Table) -> tuple[tuple[PlacePath, str | float], ...]:
    return tuple((path, entry) for path, entry in table.fixed if path.is_in_keys)


def _has_signs(table: Table) -> bool:
    """Return whether a table contains -0.0, whose hash differs from the hash of 0.0."""
    return any(is_negative_zero(column.numbers) is not None for column in table.all_columns)
