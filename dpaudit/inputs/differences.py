"""How two lists of records differ, in words: what the beginning of each does not show."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any

import numpy as np

from dpaudit.inputs.records import comparable, records_of
from dpaudit.wording import counted, on_one_line, shortened, shown

# Larger datasets are not looked through for what is only a name.
_MOST_VALUES = 100_000
# Parts of a record that are named, and letters of each value; of two that begin alike, those before
# the first one that differs.
_PARTS, _WIDTH, _BEFORE = 2, 20, 5
_SIZED = (list, tuple, dict)


def difference(d1: Any, d2: Any) -> str | None:
    """Return how two lists, or arrays, differ by one record that is changed or left out; None for
    others."""
    if not (_is_list(d1) and _is_list(d2)):
        return None
    with suppress(Exception):  # of records that cannot be compared
        return _difference(d1, d2)
    return None


def _difference(d1: Any, d2: Any) -> str | None:
    first, second = records_of(d1) or [], records_of(d2) or []
    start = _alike(first, second)
    end = min(_alike(first[::-1], second[::-1]), min(len(first), len(second)) - start)
    apart = len(first) - start - end, len(second) - start - end
    if apart == (1, 1):
        changed = _changed(*(_plain(dataset[start]) for dataset in (d1, d2)))
        return f"{counted(len(first), 'record')}; number {start + 1:,}{changed}"
    for has, name, lacks, only in ((d1, "d1", "d2", (1, 0)), (d2, "d2", "d1", (0, 1))):
        if apart == only:
            record = shown(_plain(has[start]), 2 * _WIDTH)
            of = counted(len(has), "record")
            return f"{name} has {of}; {lacks} lacks number {start + 1:,}: {record}"
    return None


def _is_list(dataset: Any) -> bool:
    """Whether a dataset is a list, or an array, of not too many values."""
    if isinstance(dataset, np.ndarray):
        return dataset.ndim > 0 and dataset.size <= _MOST_VALUES
    if not isinstance(dataset, list | tuple) or len(dataset) > _MOST_VALUES:
        return False
    return sum(len(one) if isinstance(one, _SIZED) else 1 for one in dataset) <= _MOST_VALUES and (
        sum(one.size for one in dataset if isinstance(one, np.ndarray)) <= _MOST_VALUES
    )


def _alike(first: Sequence[Hashable], second: Sequence[Hashable]) -> int:
    """Return with how many equal records two lists begin, or with how many letters two texts."""
    both = zip(first, second, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], both))


def _changed(one: Any, other: Any) -> str:
    """Return how a record differs from another one: by its parts, where both have the same."""
    parts = _parts(one, other)
    if not parts:
        return _is(one, other)
    words = ", and ".join(f"{name}{_is(*both)}" for name, both in parts[:_PARTS])
    more = f" ({len(parts) - _PARTS} more differ)" if len(parts) > _PARTS else ""
    return f": {words}{more}"


def _is(one: Any, other: Any) -> str:
    """Return what two values are, from about where they begin to differ."""
    texts = [on_one_line(repr(value)) for value in (one, other)]
    alike = _alike(*texts)
    if alike >= _WIDTH - 1 and max(map(len, texts)) > _WIDTH:
        texts = [f"…{text[alike - _BEFORE :]}" for text in texts]
    first, second = (shortened(text, _WIDTH) for text in texts)
    return f" is {first} in d1, {second} in d2"


def _parts(one: Any, other: Any) -> list[tuple[str, tuple[Any, Any]]]:
    """Return the parts in which two records of the same parts differ, by name."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        both = [(key, (value, other[key])) for key, value in one.items()]
    elif _are_rows(one, other):
        both = [(f"[{place}]", pair) for place, pair in enumerate(zip(one, other, strict=True))]
    else:
        return []
    apart = [(key, pair) for key, pair in both if comparable(pair[0]) != comparable(pair[1])]
    return [
        (shortened(key, _WIDTH) if isinstance(key, str) else shown(key, _WIDTH), pair)
        for key, pair in apart
    ]


def _are_rows(one: Any, other: Any) -> bool:
    rows = (list, tuple)
    return isinstance(one, rows) and isinstance(other, rows) and len(one) == len(other)


def _plain(value: Any) -> Any:
    """Return a value of an array as Python writes it; a time as NumPy does."""
    is_array = isinstance(value, np.ndarray | np.generic)
    return value.tolist() if is_array and value.dtype.kind not in "mM" else value
