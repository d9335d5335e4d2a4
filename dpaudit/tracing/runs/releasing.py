"""Which noised values the output shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from .events import Use
    from .running import Run

# Noised values that are rounded by less, in scales of the noise, are released still.
_ROUNDED = 0.002


def are_released(run: Run, use: Use) -> Any:
    """Return which noised values the output shows, at any step of a calculation, and rounded a
    little perhaps."""
    recorder, numbers = run.recorder, _numbers(run)
    found = np.zeros(np.size(use.value), dtype=bool)
    at: Use | None = use
    while at is not None:
        if np.size(at.value) == len(found):
            scales = recorder.pieces.all_scales[np.ravel(at.ids)]
            tolerance = np.nan_to_num(_ROUNDED * scales * np.abs(np.ravel(at.factor)))
            found |= _are_among(np.ravel(at.value), numbers, tolerance)
        at = None if at.previous is None else recorder.uses[at.previous]
    return found


def significant(run: Run) -> set[int]:
    """Return the uses that nothing goes on with, or whose noised values the output shows."""
    uses, numbers = run.recorder.uses, _numbers(run)
    gone_on = {one.previous for one in uses if one.previous is not None}
    among = {
        place: np.ravel(_are_among(one.value, numbers))
        for place, one in enumerate(uses)
        if place in gone_on
    }
    found = {id(one) for place, one in enumerate(uses) if place not in gone_on}
    if not any(each.any() for each in among.values()):
        return found
    # What came later of every piece of noise: a sum with 0 shows nothing new.
    later: dict[int, set[float]] = {}
    for place, one in reversed(list(enumerate(uses))):
        pieces = list(zip(np.ravel(one.ids).tolist(), np.ravel(one.value).tolist()))
        is_shown = among.get(place, ())
        if any(
            shown and float(value) not in later.get(number, ())
            for (number, value), shown in zip(pieces, is_shown)
        ):
            found.add(id(one))
        for number, value in pieces:
            later.setdefault(number, set()).add(float(value))
    return found


def _numbers(run: Run) -> Any:
    numbers = [one for one in run.parts.values() if isinstance(one, (int, float))]
    return np.unique(np.array([one for one in numbers if not isinstance(one, bool)], dtype=float))


def _are_among(values: Any, numbers: Any, tolerance: Any = 0.0) -> Any:
    """Return which values are among some numbers, in order, or as close to one as the tolerance;
    NaN is not."""
    array = np.asarray(values, dtype=float)
    if not len(numbers):
        return np.zeros(array.shape, dtype=bool)
    after = np.clip(np.searchsorted(numbers, array), 0, len(numbers) - 1)
    with np.errstate(invalid="ignore"):
        distance = np.minimum(
            np.abs(numbers[after] - array), np.abs(numbers[np.maximum(0, after - 1)] - array)
        )
        return np.asarray(distance <= tolerance)
