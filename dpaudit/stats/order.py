"""The order of numbers, and their ranks, without SciPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Of fewer, comparing takes less.
_MANY = 5_000
# What the first numbers say of how many values there are; with more values, sorting takes less.
_FIRST, _FEW = 100, 8
_SIGN, _DIGITS = np.uint64(1 << 63), 4


def stable_order(numbers: FloatArray) -> NDArray[np.intp]:
    """Return the places of numbers in rising order, of equal ones the first first; NaN is last.

    It is `np.argsort(numbers, kind="stable")`. Many that are in no order are sorted by four digits
    of 16 bits each, which takes about half of the time.
    """
    if len(numbers) < _MANY:
        return np.argsort(numbers, kind="stable")
    if (numbers[1:] >= numbers[:-1]).all():  # not beside NaN
        return np.arange(len(numbers))
    # The bits of what is not negative rise with it, those of what is fall; -0.0 becomes 0.0.
    with np.errstate(invalid="ignore"):
        bits = (numbers + 0.0).view(np.uint64)
    bits = np.where(bits >= _SIGN, ~bits, bits | _SIGN)
    bits[np.isnan(numbers)] = ~np.uint64(0)
    order = np.argsort(bits.astype(np.uint16), kind="stable")
    for digit in range(1, _DIGITS):
        own = (bits >> np.uint64(16 * digit)).astype(np.uint16)
        order = order[np.argsort(own[order], kind="stable")]
    return order


def mid_ranks(values: FloatArray) -> FloatArray:
    """Return ranks from 0, equal values sharing the mean of theirs; NaN counts as largest."""
    order = stable_order(values)
    ordered = values[order]
    is_new = np.ones(len(values), dtype=bool)
    is_new[1:] = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[:-1])
    counts = np.diff(np.append(np.flatnonzero(is_new), len(values)))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(np.cumsum(counts) - (counts + 1) / 2, counts)
    return ranks


def in_order(numbers: FloatArray) -> FloatArray:
    """Return numbers in rising order. It is `np.sort(numbers)`, but that the signs of zeros may
    differ: of few values it takes a fifth of the time."""
    few = few_values(numbers)
    return np.sort(numbers) if few is None else np.repeat(*few)


def few_values(numbers: FloatArray) -> tuple[FloatArray, NDArray[np.int64]] | None:
    """Return the values of numbers, rising, and how often each came up; None where they are not
    few, as far as the first ones tell, or some is NaN."""
    values = np.unique(numbers[:_FIRST])
    if len(values) > _FEW:
        return None
    counts = np.array([np.count_nonzero(numbers == value) for value in values], dtype=np.int64)
    return (values, counts) if counts.sum() == len(numbers) else None
