"""Outcomes in which numbers count by the band that they lie in, beside the few that stand for
themselves: what sequences of answers are alike in."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dpaudit.outcomes.columns import CodeArray, Column, FloatArray, number_word
from dpaudit.outcomes.long_table import LongTable, Vocabulary
from dpaudit.outcomes.tables import Outcomes, Table, TimedOutcomes

# The label of a band starts so.
BAND = "number "


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """Bands of the numbers in some columns; frozen and picklable.

    names: of the columns.  alone: numbers that stand for themselves.  edges: (bands - 1,), rising.
    """

    names: frozenset[str]
    alone: tuple[float, ...]
    edges: tuple[float, ...]

    def __call__(self, outcomes: Outcomes) -> Outcomes:
        """Return outcomes of which the numbers of these columns are bands; tables of one shape, and
        of several, stay what they are."""
        outcomes = outcomes.plain()  # signs of zero and types are no matter of bands
        if isinstance(outcomes, TimedOutcomes):
            return TimedOutcomes(self(outcomes.outcomes), outcomes.nanoseconds)
        if isinstance(outcomes, Table):
            columns = tuple(map(self._of_column, outcomes.all_columns))
            fixed = tuple((path, self._of_entry(path.name, one)) for path, one in outcomes.fixed)
            return Table(columns, outcomes.size, outcomes.paths, fixed)
        if isinstance(outcomes, LongTable):
            return self._of_long(outcomes)
        return outcomes

    def _of_column(self, column: Column) -> Column:
        if column.name not in self.names:
            return column
        found = self._in_bands(column.numbers, column.codes, len(column.labels))
        return Column(column.name, *found, (*column.labels, *self.labels))

    def _of_entry(self, name: str, entry: str | float) -> str | float:
        """Return an entry that all outcomes have at a place of this name."""
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
        """Those of the bands, the lowest first."""
        words = [number_word(edge) for edge in self.edges]
        inner = [f"{BAND}{low} to {high}" for low, high in pairwise(words)]
        return (f"{BAND}< {words[0]}", *inner, f"{BAND}≥ {words[-1]}")

    def _in_bands(
        self, numbers: FloatArray, codes: CodeArray | None, labels: int
    ) -> tuple[FloatArray, CodeArray]:
        """Return numbers and codes, those of bands after so many other labels."""
        # Sums of bytes and of tables in place of choices entry by entry, which take four times as
        # long where they hang on luck.
        own = np.zeros(len(numbers), dtype=np.uint8)
        is_one = np.empty(len(numbers), dtype=bool)
        for place, number in enumerate(self.alone, 1):
            np.equal(numbers, number, out=is_one)
            own += is_one.view(np.uint8) * np.uint8(place)
        band = np.ones(len(numbers), dtype=np.uint8)
        for edge in self.edges:
            band += np.greater_equal(numbers, edge, out=is_one).view(np.uint8)
        found = band.astype(np.int32)
        found += np.int32(labels)
        others = own > 0
        if codes is not None:
            others |= codes > 0
        found *= ~others
        if codes is not None:
            found += codes
        return np.array([np.nan, *self.alone]).take(own.astype(np.intp)), found
