"""The few entries that a column has, as small numbers: what outcomes are told apart by fast."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.bands import Bands
from dpaudit.outcomes.columns import Column

Symbols = NDArray[np.uint8]
# What compares numbers with one, and what is added, in bytes, where that is true.
Rise = tuple[np.ufunc, float, np.uint8]


@dataclass(frozen=True, slots=True)
class Alphabet:
    """The place of an entry among `values`, their number for any other.

    bands: those that numbers count by, whose labels are among the values; None where they count by
    themselves.
    """

    name: str
    values: tuple[float | str, ...]
    bands: Bands | None = None

    @classmethod
    def of(cls, column: Column) -> Alphabet:
        """Return all the entries of a column: numbers, rising, then labels."""
        if column.codes is None:
            return cls(column.name, tuple(np.unique(column.numbers).tolist()))
        numbers = np.unique(column.numbers[column.codes == 0]).tolist()
        used = np.unique(column.codes[column.codes > 0]).tolist()
        return cls(column.name, (*numbers, *(column.labels[code - 1] for code in used)))

    def through(self, bands: Bands) -> Alphabet:
        """Return what reads of a column what this one reads of its bands."""
        return replace(self, bands=bands) if self.name in bands.names else self

    def __call__(self, column: Column) -> Symbols:
        many = len(self.values)
        known, lowest, steps = _reading(self)
        # In bytes, which come round: sums take a fifth of the time of choices.
        found = np.full(len(column.numbers), lowest, dtype=np.uint8)
        is_there = np.empty(len(found), dtype=bool)
        as_bytes = is_there.view(np.uint8)
        for reaches, number, more in steps:
            reaches(column.numbers, number, out=is_there)
            np.multiply(as_bytes, more, out=as_bytes)
            found += as_bytes
        if column.codes is not None:
            # Of a label the number is NaN, which reaches nothing.
            own = [known.get(label, 0) - lowest for label in column.labels]
            found += np.array([0, *own]).astype(np.uint8).take(column.codes)
        return np.subtract(np.uint8(many), found, out=found)


@lru_cache(maxsize=1024)  # of the entries of each block
def _reading(own: Alphabet) -> tuple[dict[float | str, int], int, list[Rise]]:
    """Return how far the place of each value is from the last one, how far that of the lowest
    numbers is, and by how much farther those are that reach another one, or are equal to it."""
    known = {value: len(own.values) - place for place, value in enumerate(own.values)}
    if own.bands is None:
        numbers = [(value, more) for value, more in known.items() if isinstance(value, float)]
        return known, 0, [(np.equal, value, np.uint8(more)) for value, more in numbers]
    edges, alone = own.bands.edges, own.bands.alone
    by_band = [known.get(label, 0) for label in own.bands.labels]
    rises = [upper - lower for lower, upper in pairwise(by_band)]
    beside = [known.get(one, 0) - by_band[bisect_right(edges, one)] for one in alone]
    steps: list[tuple[np.ufunc, float, int]] = [
        *((np.greater_equal, edge, more) for edge, more in zip(edges, rises, strict=True)),
        *((np.equal, one, more) for one, more in zip(alone, beside, strict=True)),
    ]
    return known, by_band[0], [(by, one, np.uint8(more % 256)) for by, one, more in steps if more]
