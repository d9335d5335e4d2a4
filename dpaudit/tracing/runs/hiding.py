"""What noise hides: the operands of two uses that came to the same noised values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .differences import Hidden
from .events import UNKNOWN, Draw
from .leaves import briefly
from .places import places_of
from .releasing import are_released

if TYPE_CHECKING:
    from .events import Use
    from .places import Place
    from .recorder import Recorder
    from .running import Run


def hidden(run: Run, one: Use, second: Recorder, other: Use) -> Hidden:
    """Return what a use of a run hides, and the use of the second run that belongs to it."""
    recorder = run.recorder
    ids = np.ravel(one.ids)
    draw = recorder.pieces.draw_of(int(ids[0])) if len(ids) else None
    laws = recorder.pieces.laws_of(ids)
    root = _root(recorder, one)
    # In the units in which the noise was added, whatever was done with the sum.
    unit = _unit(one, root)
    first_scales, second_scales = (
        np.abs(np.ravel(use.factor) / unit) * own.pieces.all_scales[np.ravel(use.ids)]
        for own, use in ((recorder, one), (second, other))
    )
    operands = [_ravelled(use.operand) / unit for use in (one, other)]
    shifts = _distances(*operands)
    after = None if draw is None else second.by_moment.get(draw.moment)
    is_single = np.ndim(one.operand) == 0
    added = [
        _ravelled(_before_comparing(own, use).operand) / unit
        for own, use in ((recorder, one), (second, other))
    ]
    if np.array_equal(added[0], added[1], equal_nan=True) and shifts.any():
        added = operands  # what differs is what it is compared with
    shown = [briefly(each[0] if is_single else each) for each in added]
    return Hidden(
        draw=recorder.place(one.moment if draw is None else draw.moment),
        added=recorder.place(root.moment),
        kind=one.kind,
        primitive="" if draw is None else draw.primitive,
        law=laws.pop() if len(laws) == 1 else UNKNOWN,
        operands=(shown[0], shown[1]),
        shifts=shifts.tolist(),
        scales=(first_scales.tolist(), second_scales.tolist()),
        released=are_released(run, one).tolist(),
        pieces=ids.tolist(),
        parameters=(
            {} if draw is None else dict(draw.parameters),
            dict(after.parameters) if isinstance(after, Draw) else {},
        ),
        callers=_callers(draw, root),
    )


def _before_comparing(recorder: Recorder, use: Use) -> Use:
    """Return the use whose operand is without what it is compared with."""
    is_sum = use.kind != "compare" or use.previous is None
    return use if is_sum else recorder.uses[use.previous or 0]


def _root(recorder: Recorder, use: Use) -> Use:
    while use.previous is not None:
        use = recorder.uses[use.previous]
    return use


def _unit(one: Use, root: Use) -> Any:
    """Return by what a sum was multiplied since the noise was added, an entry each."""
    factor, before = np.ravel(one.factor), np.ravel(root.factor)
    if len(before) != len(factor):
        return np.ones(len(factor))
    return np.abs(factor / before)


def _distances(one: Any, other: Any) -> Any:
    """Return how far numbers are apart: infinitely, where one alone is NaN or infinite."""
    with np.errstate(all="ignore"):
        found = np.abs(one - other)
    is_same = (one == other) | (np.isnan(one) & np.isnan(other))
    return np.where(is_same, 0.0, np.where(np.isnan(found), np.inf, found))


def _callers(draw: Draw | None, root: Use) -> tuple[Place, ...]:
    spots = [*(() if draw is None else draw.callers), *root.callers]
    return places_of(spots)


def _ravelled(operand: Any) -> Any:
    return np.ravel(np.asarray(operand, dtype=float))
