"""Compute aspects, such as bits and decimal places of numbers, or types and kinds of entries. The
name of an aspect is a prefix and the name of the other column: `decimal places of output[2]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.columns import HIGHEST_BIT, KIND, LOWEST_BIT, Column, FloatArray, kinds_of
from dpaudit.outcomes.representation import OF_TYPE, SIGN, signs_of, types_of
from dpaudit.outcomes.scalars import Entries

SPAN, _PLACES, _LAST = "span of bits of ", "decimal places of ", "last decimal of "
# Number of bits in the significand of a float.
_PRECISION = 53
# A decimal number with at most this number of digits can be recovered from its nearest float.
_DIGITS = 15
# Value that stands for the number of decimal places of a float with more than 15 digits.
_FULL = _DIGITS + 1
_AS_MANY = "as many as fit"

Codes = NDArray[np.int64]


def made_from(name: str, known: Callable[[str], Column]) -> Column:
    """Return the column called `name`. If it is the name of an aspect, compute it from the other
    column.

    known: a function that returns a column that is no aspect, by its name.
    """
    prefix = prefix_of(name)
    if prefix is None:
        return known(name)
    column = known(name.removeprefix(prefix))
    if prefix == OF_TYPE:
        return types_of(known(name), column)
    if prefix == SIGN:
        return signs_of(column)
    return kinds_of(column) if prefix == KIND else _aspect_of(column, prefix)


@lru_cache(maxsize=1024)  # every block of draws has the same columns
def prefix_of(name: str) -> str | None:
    """Return the prefix of the name of an aspect, such as `kind of `; None for the name of any
    other column."""
    return next(
        (prefix for prefix in (KIND, OF_TYPE, SIGN, *ASPECTS) if name.startswith(prefix)), None
    )


def _aspect_of(column: Column, name: str) -> Column:
    """Return a column with a property of each number, such as its lowest set bit, in its place."""
    numbers, labels = column.numbers, (*column.labels, "zero", "infinite")
    codes = np.zeros(len(numbers), dtype=np.int32)
    if column.codes is not None:
        codes[:] = column.codes
    codes[(codes == 0) & (numbers == 0)] = len(labels) - 1
    codes[(codes == 0) & np.isinf(numbers)] = len(labels)
    usual = np.flatnonzero(codes == 0)
    entries = ASPECTS[name](numbers[usual])
    values = np.full(len(numbers), np.nan)
    values[usual] = entries.numbers
    if entries.codes is not None:
        codes[usual] = np.where(entries.codes > 0, entries.codes + len(labels), 0)
    if not codes.any():
        return Column(f"{name}{column.name}", values)
    return Column(f"{name}{column.name}", values, codes, (*labels, *entries.labels))


def _highest(numbers: FloatArray) -> Codes:
    return np.asarray(np.frexp(numbers)[1].astype(np.int64) - 1)


def _lowest(numbers: FloatArray) -> Codes:
    fraction, exponent = np.frexp(numbers)
    integer = np.ldexp(np.abs(fraction), _PRECISION).astype(np.int64)
    lowest = np.frexp((integer & -integer).astype(np.float64))[1]
    return np.asarray(exponent.astype(np.int64) + lowest - (_PRECISION + 1), dtype=np.int64)


def _span(numbers: FloatArray) -> Entries:
    """Return the sign, highest and lowest set bit of each number, `-2^3 to 2^-1` for -8.5."""
    highest = _highest(numbers)
    length = highest - _lowest(numbers)
    # Pack three facts into one integer, so that np.unique finds the distinct combinations: sign,
    # highest bit, and distance of highest and lowest bit (at most 52, so 6 bits suffice).
    spans = ((highest * 64 + length) << 1) | (numbers < 0)
    distinct, indices = np.unique(spans, return_inverse=True)
    return _labels(indices, map(_span_word, distinct.tolist()))


def _span_word(span: int) -> str:
    highest, length = divmod(span >> 1, 64)
    sign = "-" if span & 1 else ""
    return f"{sign}2^{highest} to 2^{highest - length}"


def _decimal_places(numbers: FloatArray) -> Entries:
    decimals, _ = _decimals(numbers)
    return Entries(decimals.astype(np.float64), (decimals == _FULL).astype(np.int32), (_AS_MANY,))


def _last_decimal(numbers: FloatArray) -> Entries:
    """Return the last decimal digit other than 0 of each number, such as `0.05` for 1.15."""
    decimals, digits = _decimals(numbers)
    distinct, indices = np.unique(decimals * 10 + digits, return_inverse=True)
    return _labels(indices, map(_decimal_word, distinct.tolist()))


def _decimal_word(decimal: int) -> str:
    decimals, digit = divmod(decimal, 10)
    return f"{Decimal(digit).scaleb(-decimals):f}" if digit else _AS_MANY


def _labels(indices: Codes, labels: Iterable[str]) -> Entries:
    return Entries(np.full(len(indices), np.nan), (indices + 1).astype(np.int32), tuple(labels))


def _decimals(numbers: FloatArray) -> tuple[Codes, Codes]:
    """Return (number of decimal places, last digit other than 0) of each number."""
    # Trailing zeros do not count, also before the decimal point: 0.25 has 2 decimal places, 300 has
    # -2. A number with more than 15 digits gets `_FULL` places, and 0 as its last digit.
    decimals = np.full(len(numbers), _FULL, dtype=np.int64)
    scaled = np.zeros(len(numbers), dtype=np.int64)
    pending = _with_few_digits(numbers)
    for count in range(_FULL):
        left = numbers[pending]
        ends = np.rint(left * 10.0**count) / 10.0**count == left
        ending = pending[ends]
        decimals[ending] = count
        scaled[ending] = np.rint(np.abs(numbers[ending]) * 10.0**count).astype(np.int64)
        pending = pending[~ends]
    tens = np.flatnonzero(decimals == 0)
    while len(tens):
        tens = tens[scaled[tens] % 10 == 0]
        scaled[tens] //= 10
        decimals[tens] -= 1
    return decimals, scaled % 10


def _with_few_digits(numbers: FloatArray) -> Codes:
    """Return the indices of floats that are decimals of at most 15 digits and 15 decimal places."""
    digits = np.floor(np.log10(np.abs(numbers))) + 1
    powers = 10.0 ** np.clip(_DIGITS - digits, 0, _DIGITS)
    nearest = np.rint(numbers * powers)
    return np.flatnonzero((nearest / powers == numbers) & (np.abs(nearest) < 10.0**_DIGITS))


ASPECTS: dict[str, Callable[[FloatArray], Entries]] = {
    LOWEST_BIT: lambda numbers: Entries(_lowest(numbers).astype(np.float64)),
    HIGHEST_BIT: lambda numbers: Entries(_highest(numbers).astype(np.float64)),
    SPAN: _span,
    _PLACES: _decimal_places,
    _LAST: _last_decimal,
}
