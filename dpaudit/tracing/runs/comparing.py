"""Two runs with the same noised values, side by side: what differs, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .differences import Chosen, Comparison
from .events import OPAQUE, Choice, Draw
from .hiding import hidden
from .leaves import Missing, briefly, same
from .matching import matched
from .moving import moved_at, twice
from .parting import end_of, error_of, parted
from .places import place_of, places_of
from .releasing import significant

if TYPE_CHECKING:
    from .places import Place
    from .recorder import Recorder
    from .running import Run

# Primitives that may pick records.
_PICKING = ("choice", "sample", "permutation", "integers", "binomial")


def compare(first: Run, second: Run, alignment: dict[Any, Any]) -> Comparison:
    """Return what two runs show, the second of which was given the noised values of the first."""
    pairs = matched(first.recorder, second.recorder, alignment)
    shown = significant(first)
    return Comparison(
        hidden=[
            hidden(first, one, second.recorder, other)
            for one, other in pairs
            if id(one) in shown and np.shape(one.operand) == np.shape(other.operand)
        ],
        chosen=_chosen(first.recorder, second.recorder),
        differing=_differing(first, second),
        parted=parted(first, second),
        uneven=_uneven(first.recorder, second.recorder),
        twice=twice(first, [one for one in pairs if id(one[0]) in shown]),
        moved=frozenset(moved_at(first.recorder, second.recorder, pairs)),
        unused=_unused(first.recorder),
        errors=(error_of(first), error_of(second)),
        ends=(end_of(first), end_of(second)),
        picks=bool(first.recorder.choices) or are_picked(first.recorder),
        ranges=_have_ranges(first.recorder, second.recorder),
    )


def are_picked(recorder: Recorder) -> bool:
    """Return whether records may be picked at random."""
    return any(draw.law in _PICKING for draw in recorder.draws)


def _chosen(first: Recorder, second: Recorder) -> list[Chosen]:
    found = []
    for one in first.choices:
        other = second.by_moment.get(one.moment)
        if isinstance(other, Choice) and np.shape(one.probability) == np.shape(other.probability):
            place = first.place(one.moment)
            both = np.ravel(one.probability), np.ravel(other.probability)
            found.append(
                Chosen(place, "coin", _lists(both), True, ({}, {}), places_of(one.callers))
            )
    for draw in first.draws:
        after = second.by_moment.get(draw.moment)
        if draw.outcomes is None or not isinstance(after, Draw) or after.outcomes is None:
            continue
        laws = [[p for _, p in each.outcomes or ()] for each in (draw, after)]
        parameters = dict(draw.parameters), dict(after.parameters)
        place = first.place(draw.moment)
        found.append(
            Chosen(
                place,
                draw.primitive,
                (laws[0], laws[1]),
                False,
                parameters,
                places_of(draw.callers),
            )
        )
    return found


def _lists(both: tuple[Any, Any]) -> tuple[list[float], list[float]]:
    return both[0].tolist(), both[1].tolist()


def _differing(first: Run, second: Run) -> dict[str, tuple[str, str]]:
    """Return the parts of the output that differ, with what each run has there."""
    found = {}
    for name in {**first.parts, **second.parts}:
        one, other = (run.parts.get(name, Missing) for run in (first, second))
        if one is Missing or other is Missing or not same(one, other):
            found[name] = (briefly(one), briefly(other))
    return found


def _have_ranges(first: Recorder, second: Recorder) -> bool:
    """Whether a uniform number has one range in one run and another in the other."""
    for draw in first.draws:
        after = second.by_moment.get(draw.moment) if draw.law == "uniform" else None
        if isinstance(after, Draw) and any(
            not np.array_equal(value, after.parameters.get(name, np.nan))
            for name, value in draw.parameters.items()
        ):
            return True
    return False


def _uneven(first: Recorder, second: Recorder) -> list[tuple[Place, str, int, int]]:
    """Return the primitives that were called another number of times, or for other numbers of
    values."""
    found = []
    counts: dict[Any, list[int]] = {}
    for which, recorder in enumerate((first, second)):
        for draw in recorder.draws:
            counts.setdefault((draw.moment[1], draw.primitive), [0, 0])[which] += draw.size
    for (spot, primitive), (one, other) in counts.items():
        if one != other:
            found.append((place_of(spot), primitive, one, other))
    return found


def _unused(recorder: Recorder) -> list[tuple[Place, str]]:
    """Return the draws no piece of which was added to anything, or compared."""
    used = np.zeros(len(recorder.pieces.laws), dtype=bool)
    for one in recorder.uses:
        used[np.ravel(one.ids)] = True
    for choice in recorder.choices:
        used[np.ravel(choice.ids)] = True
    for number, parts in recorder.pieces.parts.items():
        if used[number]:
            used[list(parts)] = True
    return [
        (recorder.place(draw.moment), draw.primitive)
        for draw in recorder.draws
        if draw.size
        and draw.law not in (*_PICKING, OPAQUE)
        and not used[draw.first : draw.first + draw.size].any()
    ]
