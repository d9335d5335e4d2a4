"""Noise that is known by its effect on the output alone, since the program makes more of it than
sums: what a piece would have to be for the second input to give the output of the first."""

from __future__ import annotations

import math
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from .differences import Hidden
from .leaves import briefly, same
from .running import Run, Subject, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .events import Draw

# Pieces of noise that are tried, and steps towards the output that is wanted.
_PIECES, _STEPS = 32, 12
_STEP = 1e-6
# Between which a uniform number is looked for, and how often what lies between is halved: the
# inverse of a distribution function is steep at its ends, and may have a kink.
_BETWEEN = (1e-6, 1e-3, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98, 1 - 1e-3, 1 - 1e-6)
_HALVES = 45
# Of its distance to its nearer end, so far it is moved for a slope; and so many steps of floats the
# output has to move by then, so that rounding costs nothing.
_NEAR, _PRECISE = 1e-4, 1e6
_KNOWN = ("laplace", "normal", "logistic", "gumbel", "exponential", "cauchy")


def by_effect(
    subject: Subject,
    first: Run,
    second: Run,
    inputs: tuple[Any, Any],
    seed: int,
    strict: bool,
) -> Hidden | None:
    """Return the piece of noise that hides what differs in the output; None where no single one
    does."""
    names = [name for name in first.parts if not same(first.parts[name], second.parts.get(name))]
    name = names[0]
    if not all(isinstance(one.parts.get(name), (int, float)) for one in (first, second)):
        return None
    pieces = list(islice(_pieces(second), _PIECES))
    for draw, place, value in pieces:

        def at(number: float, which: int, entry: Any = (draw.moment, place)) -> Run:
            return run(
                subject, inputs[which], seed, reference=first, overrides={entry: number},
                has_lines=False, is_strict=strict,
            )  # fmt: skip

        is_unit = draw.law == "uniform" and not draw.parameters
        number = _bracketed(at, name, first) if is_unit and len(pieces) == 1 else None
        if number is None:
            number = _solved(at, name, value, first)
        if number is None:
            continue
        other = at(number, 1)
        if not all(same(part, other.parts.get(one)) for one, part in first.parts.items()):
            continue
        law = draw.law if draw.law in _KNOWN else "unknown"
        scales = np.broadcast_to(draw.scale or math.nan, np.size(draw.values))
        scale = float(np.ravel(scales)[place])
        slopes = (_slope(at, name, value, 0, is_unit), _slope(at, name, number, 1, is_unit))
        cost = None
        if draw.law == "uniform" and slopes[0] and slopes[1]:
            cost = abs(math.log(abs(slopes[0] / slopes[1])))
        where = first.recorder.place(draw.moment)
        return Hidden(
            draw=where,
            added=where,
            kind="effect",
            primitive=draw.primitive,
            law=law,
            operands=(briefly(first.parts[name]), briefly(second.parts[name])),
            shifts=[abs(number - value)],
            scales=([scale], [scale]),
            released=[True],
            pieces=[draw.first + place],
            parameters=(dict(draw.parameters), dict(draw.parameters)),
            cost=cost,
        )
    return None


def _pieces(second: Run) -> Iterator[tuple[Draw, int, float]]:
    """Yield the pieces of noise that are no coins: their draw, the place in it, and the value."""
    coins = {one for choice in second.recorder.choices for one in np.ravel(choice.ids).tolist()}
    for draw in second.recorder.draws:
        if draw.values is not None and np.asarray(draw.values).dtype.kind == "f":
            for place, value in enumerate(np.ravel(draw.values).tolist()):
                if draw.first + place not in coins:
                    yield draw, place, float(value)


def _solved(at: Callable[[float, int], Run], name: str, start: float, first: Run) -> float | None:
    """Return the piece of noise with which the second input gives the output of the first one."""
    wanted = float(first.parts[name])
    step = _STEP * max(1.0, abs(start))
    one, other = start, start + step
    low, high = _part(at(one, 1), name), _part(at(other, 1), name)
    for _ in range(_STEPS):
        if low is None or high is None or high == low:
            return None
        if same(high, wanted):
            return other
        one, other = other, other + (wanted - high) * (other - one) / (high - low)
        if not math.isfinite(other):
            return None
        low, high = high, _part(at(other, 1), name)
    return other if high is not None and same(high, wanted) else None


def _bracketed(at: Callable[[float, int], Run], name: str, first: Run) -> float | None:
    """Return the same of a uniform number from 0 to 1, where the output crosses the one wanted."""
    wanted = float(first.parts[name])
    ends: tuple[float, float] | None = None
    before: tuple[float, float] | None = None
    for number in _BETWEEN:
        value = _part(at(number, 1), name)
        if value is not None and before is not None and (before[1] < wanted) != (value < wanted):
            ends = before[0], number
            break
        before = None if value is None else (number, value)
    if ends is None or before is None:
        return None
    (low, high), is_rising = ends, before[1] < wanted
    # To the end: what is the same up to rounding may be steep enough to change the cost.
    for _ in range(_HALVES):
        middle = (low + high) / 2
        value = _part(at(middle, 1), name)
        if value is None:
            return None
        low, high = (middle, high) if (value < wanted) == is_rising else (low, middle)
    return low if same(_part(at(low, 1), name), wanted) else None


def _slope(
    at: Callable[[float, int], Run], name: str, number: float, which: int, is_unit: bool
) -> float | None:
    """is_unit: whether the piece is a number from 0 to 1."""
    step = _STEP * max(1.0, abs(number))
    if is_unit and 0 < number < 1:
        step = _NEAR * min(number, 1 - number)
    low, high = _part(at(number - step, which), name), _part(at(number + step, which), name)
    if low is None or high is None:
        return None
    if is_unit and abs(high - low) < _PRECISE * float(np.spacing(max(abs(low), abs(high)))):
        return None
    return (high - low) / (2 * step)


def _part(one: Run, name: str) -> float | None:
    value = one.parts.get(name)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
