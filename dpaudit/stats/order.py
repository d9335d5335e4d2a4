"""The order of numbers, and their ranks, without SciPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Of fewer, comparing takes less.
_MANY = 5_000
# What the first numbers say of how many values there are; with more values, sorting takes less.
_FIRST, _FEW = 100, 8


def stable_order(numbers: FloatArray) -> NDArray[np.intp]:
    """Return the places of numbers in rising order, of equal ones the first first; NaN is last.

    It is `np.argsort(numbers, kind="stable")`. Many are put in order without regard to equal ones,
    then these, by where they stand: all of it takes about half of the time.
    """
    size = len(numbers)
    if size < _MANY:
        return np.argsort(numbers, kind="stable")
    if (numbers[1:] >= numbers[:-1]).all():  # not beside NaN
        return np.arange(size)
    order = np.argsort(numbers)
    ordered = numbers.take(order)
    is_new = _is_new(ordered)
    if is_new.all():
        return order
    # How many smaller values there are, and then the place: no two are alike.
    smaller = (np.cumsum(is_new) - 1) * size
    order += smaller
    order.sort()
    order -= smaller
    return order


def mid_ranks(values: FloatArray) -> FloatArray:
    """Return ranks from 0, equal values sharing the mean of theirs; NaN counts as largest."""
    order = np.argsort(values)
    is_new = _is_new(values.take(order))
    counts = np.diff(np.append(np.flatnonzero(is_new), len(values)))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(np.cumsum(counts) - (counts + 1) / 2, counts)
    return ranks


def _is_new(ordered: FloatArray) -> NDArray[np.bool_]:
    """Return which of numbers in order differ from the one before; NaN equals NaN."""
    found = np.ones(len(ordered), dtype=bool)
    found[1:] = (ordered[1:] != ordered[:-1]) & ~np.isnan(ordered[:-1])
    return found


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
