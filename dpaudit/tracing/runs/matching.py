"""Which uses of two runs belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .aligning import aligned
from .events import Use

if TYPE_CHECKING:
    from .events import Moment
    from .recorder import Recorder
    from .running import Run


def matched(first: Recorder, second: Recorder, alignment: dict[Any, Any]) -> list[tuple[Use, Use]]:
    """Return the uses of both runs that belong together."""
    found = []
    for other in second.uses:
        kind, spot, number = other.moment
        if (kind, spot) in alignment:
            places = alignment[kind, spot]
            place = places[number] if number < len(places) else None
            if place is None:
                continue
            number = place
        one = first.by_moment.get((kind, spot, number))
        if isinstance(one, Use):
            found.append((one, other))
    return found


def alignment_of(first: Run, second: Run) -> dict[Any, Any]:
    """Return which uses of the second run belong to which of the first, where there are more of
    one than of the other."""
    one, other = _moments(first.recorder), _moments(second.recorder)
    found = {}
    for spot in one.keys() & other.keys():
        if len(one[spot]) != len(other[spot]):
            is_one = all(
                len({tuple(np.ravel(use.ids).tolist()) for use in _at(each, every[spot])}) == 1
                for each, every in ((first, one), (second, other))
            )
            if is_one:  # a sum that begins with the noise: its ends belong together
                places: list[int | None] = [None] * len(other[spot])
                places[-1] = len(one[spot]) - 1
                found[spot] = places
                continue
            operands = [
                [_key(use) for use in _at(each, every[spot])]
                for each, every in ((first, one), (second, other))
            ]
            found[spot] = aligned(*operands)
    return found


def _moments(recorder: Recorder) -> dict[Any, list[Moment]]:
    """Return the uses of a run by their kinds and spots."""
    found: dict[Any, list[Moment]] = {}
    for one in recorder.uses:
        found.setdefault(one.moment[:2], []).append(one.moment)
    return found


def _at(one: Run, places: list[Any]) -> list[Use]:
    return [one.recorder.by_moment[moment] for moment in places]


def _key(use: Use) -> Any:
    return tuple(np.ravel(use.operand).tolist())
