"""Outcomes found among known ones: by their keys or, where each place has few values, by these,
which takes less than half of the time for many outcomes at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.alphabets import Alphabet
from dpaudit.outcomes.bands import Bands
from dpaudit.outcomes.columns import KeyArray, find
from dpaudit.outcomes.paths import Path
from dpaudit.outcomes.tables import Outcomes, Table

PlaceArray = NDArray[np.intp]

# Values of one column, and combinations of those of all, at most; of so many there is a table.
_FEW, _COMBINATIONS, _TABLE = 8, 1 << 60, 1 << 18


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

    fixed: what all outcomes have in common.  numbers: (known,), the combination of each.
    combinations: how many there may be.
    """

    columns: tuple[Alphabet, ...]
    fixed: tuple[tuple[Path, str | float], ...]
    numbers: NDArray[np.signedinteger]
    combinations: int
    # By combination the place of the outcome, or what rises and the places; once one is asked for.
    _made: list[PlaceArray] = field(default_factory=list, init=False, repr=False)

    @classmethod
    def of(cls, known: Outcomes) -> Entries | None:
        """Return what known outcomes are found by; None where that are too many combinations."""
        if not isinstance(known, Table) or known.size == 0:
            return None
        columns, combinations = [], 1
        for column in known.all_columns:
            own = Alphabet.of(column)
            combinations *= len(own.values)
            if len(own.values) > _FEW or combinations > _COMBINATIONS:
                return None
            columns.append(own)
        numbers, are_known = _combined(columns, known, combinations)
        made = cls(tuple(columns), known.fixed, numbers, combinations)
        return made if are_known.all() else None

    def through(self, bands: Bands) -> Entries:
        """Return what finds outcomes by their bands."""
        columns = tuple(one.through(bands) for one in self.columns)
        return replace(self, columns=columns)

    def places(self, outcomes: Outcomes) -> PlaceArray | None:
        """Return the place of every outcome, how many are known for others; None where outcomes
        are of another shape, or have more labels than there are outcomes."""
        if not isinstance(outcomes, Table) or outcomes.fixed != self.fixed:
            return None
        columns = outcomes.all_columns
        if [column.name for column in columns] != [one.name for one in self.columns]:
            return None
        if any(len(column.labels) > outcomes.size for column in columns):
            return None
        numbers, are_known = _combined(self.columns, outcomes, self.combinations)
        if not are_known.all():
            numbers = np.where(are_known, numbers, self.numbers[0])
        found = self._places(numbers)
        return found if are_known.all() else np.where(are_known, found, len(self.numbers))

    def _places(self, numbers: NDArray[np.signedinteger]) -> PlaceArray:
        """Return the places of combinations."""
        many = len(self.numbers)
        if self.combinations > _TABLE:
            if not self._made:
                order = np.argsort(self.numbers)
                self._made.extend([self.numbers[order], np.append(order, many)])
            return self._made[1].take(find(self._made[0], numbers))
        if not self._made:
            self._made.append(np.full(self.combinations, many, dtype=np.intp))
            self._made[0][self.numbers] = np.arange(many)
        return self._made[0].take(numbers.astype(np.intp))

    def __reduce__(self) -> tuple[type[Entries], tuple[object, ...]]:
        """Travel without the places, which are many times more than the outcomes."""
        return Entries, (self.columns, self.fixed, self.numbers, self.combinations)


def _combined(
    columns: Sequence[Alphabet], outcomes: Table, combinations: int
) -> tuple[NDArray[np.signedinteger], NDArray[np.bool_]]:
    """Return the number of every outcome's combination, and whether all of it is known."""
    kind = np.int32 if combinations <= _TABLE else np.int64
    numbers: NDArray[np.signedinteger] = np.zeros(outcomes.size, dtype=kind)
    are_known = np.ones(outcomes.size, dtype=bool)
    for alphabet, column in zip(columns, outcomes.all_columns, strict=True):
        symbols, many = alphabet(column), len(alphabet.values)
        are_known &= symbols < many
        if many > 1:
            numbers *= many
            numbers += symbols
    return numbers, are_known
