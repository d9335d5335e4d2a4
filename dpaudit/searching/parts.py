"""What two neighbouring datasets have in common, record by record, and in what they differ."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

# Digits of a moved number; rounding errors decide the others.
_DIGITS = 12


def key(value: Any) -> str:
    """Return what tells plain Python values apart: -0.0 is not 0.0, True is not 1, NaN is NaN."""
    return repr(value)


def matched(d1: Any, d2: Any) -> list[tuple[int, int]]:
    """Return the places of records that both lists have, in order: from the front, from the back,
    then whatever else is alike. Nothing for datasets that are no lists."""
    if not (isinstance(d1, list) and isinstance(d2, list)):
        return []
    first, second = [key(one) for one in d1], [key(one) for one in d2]
    shorter = min(len(first), len(second))
    front = next((i for i in range(shorter) if first[i] != second[i]), shorter)
    most = shorter - front
    back = next((i for i in range(most) if first[-1 - i] != second[-1 - i]), most)
    found = [(i, i) for i in range(front)]
    inner: dict[str, list[int]] = {}
    for place in range(front, len(second) - back):
        inner.setdefault(second[place], []).append(place)
    for place in range(front, len(first) - back):
        if inner.get(first[place]):
            found.append((place, inner[first[place]].pop(0)))
    found += [(len(first) - i, len(second) - i) for i in range(back, 0, -1)]
    return found


def records(pair: Iterable[Any]) -> int:
    """Return how many records two datasets have together."""
    return sum(len(one) if isinstance(one, list) else 1 for one in pair)


def unmatched(d1: Any, d2: Any) -> tuple[list[int], list[int]]:
    """Return the places of records that only one of two lists has."""
    if not (isinstance(d1, list) and isinstance(d2, list)):
        return [], []
    common = matched(d1, d2)
    ours, theirs = {one for one, _ in common}, {other for _, other in common}
    return (
        [place for place in range(len(d1)) if place not in ours],
        [place for place in range(len(d2)) if place not in theirs],
    )


def without(dataset: list[Any], *places: int) -> list[Any]:
    """Return a list without some of its records."""
    return [record for place, record in enumerate(dataset) if place not in places]


def changed(dataset: list[Any], record: Any, *places: int) -> list[Any]:
    """Return a list with one record in some places."""
    return [record if place in places else one for place, one in enumerate(dataset)]


def moved_alike(old: Any, new: Any, other: Any) -> Iterator[Any]:
    """Yield what becomes of a second value when the first goes from old to new and both move
    alike: numbers by as much, rounded first, then exactly; rows and lists where they changed.
    Nothing for others."""
    if isinstance(old, dict) and isinstance(new, dict) and isinstance(other, dict):
        names = [one for one in old if one in new and key(old[one]) != key(new[one])]
        if names and all(name in other for name in names):
            parts = {name: _moved(old[name], new[name], other[name]) for name in names}
            yield {**other, **parts}
    elif _is_finite(old) and _is_finite(new) and _is_finite(other):
        with suppress(OverflowError):
            total = Fraction(other) + Fraction(new) - Fraction(old)
            is_whole = isinstance(old, int) and isinstance(new, int) and isinstance(other, int)
            moved: float = int(total) if is_whole else float(total)
            if not is_whole and (short := float(f"{moved:.{_DIGITS}g}")) != moved:
                yield short
            yield moved


def _moved(old: Any, new: Any, other: Any) -> Any:
    """Return the same value where two were the same, else one moved alike if there is such."""
    if key(old) == key(other):
        return new
    return next(moved_alike(old, new, other), other)


def _is_finite(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and (isinstance(value, int) or math.isfinite(value))
