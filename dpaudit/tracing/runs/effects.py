"""Noise that is known by its effect on the output alone, since the program makes more of it than
sums: what a piece would have to be for the second input to give a part of the output of the first.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .differences import Hidden
from .leaves import briefly, same
from .running import Run, Subject, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .events import Draw

# Pieces of noise that are tried, and steps towards the output that is wanted.
_PIECES, _STEPS = 32, 12
# So far away, in parts of its range, another number is taken: by no symmetry the same.
_ELSEWHERE = 0.382
# Parts of the output that may differ.
_PARTS = 8
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
) -> list[Hidden]:
    """Return the pieces of noise that hide what differs in the output, one for each part of it;
    nothing where a part has no such piece."""
    names = [name for name in first.parts if not same(first.parts[name], second.parts.get(name))]
    both = [one.parts.get(name) for name in names for one in (first, second)]
    if len(names) > _PARTS or not all(isinstance(one, (int, float)) for one in both):
        return []
    pieces = list(islice(_pieces(second), _PIECES))

    def run_with(overrides: dict[Any, float], which: int) -> Run:
        return run(
            subject, inputs[which], seed, reference=first, overrides=overrides,
            has_lines=False, is_strict=strict,
        )  # fmt: skip

    is_several = len(pieces) > 1
    moved = [run_with({one.entry: one.elsewhere}, 1) for one in pieces] if is_several else []
    found: dict[Any, tuple[_Piece, float]] = {}
    hidden: list[Hidden] = []
    for name in names:
        own = [
            one
            for place, one in enumerate(pieces)
            if not moved or not same(second.parts[name], moved[place].parts.get(name))
        ]
        for one in own:
            at = partial(_at, run_with, one.entry)
            number = found[one.entry][1] if one.entry in found else None
            if number is None and one.law == "uniform" and len(own) == 1:
                number = _bracketed(at, name, first, one)
            if number is None:
                number = _solved(at, name, one.value, first)
            if number is not None and same(first.parts[name], at(number, 1).parts.get(name)):
                found[one.entry] = one, number
                hidden.append(_hidden(first, second, name, one, number, at, len(own) == 1))
                break
        else:
            return []
    other = run_with({entry: number for entry, (_, number) in found.items()}, 1)
    is_all = all(same(part, other.parts.get(name)) for name, part in first.parts.items())
    return hidden if is_all else []


class _Piece(NamedTuple):
    """A number that was drawn. place: in the values of its draw.  ends: between which it lies."""

    draw: Draw
    place: int
    value: float
    ends: tuple[float, float] | None

    @property
    def entry(self) -> Any:
        return self.draw.moment, self.place

    @property
    def law(self) -> str:
        return self.draw.law

    @property
    def elsewhere(self) -> float:
        """Another number that may be drawn."""
        if self.ends is not None:
            low, width = self.ends[0], self.ends[1] - self.ends[0]
            return low + ((self.value - low) / width + _ELSEWHERE) % 1 * width
        return self.value + max(1.0, abs(self.value))


def _at(run_with: Callable[..., Run], entry: Any, number: float, which: int) -> Run:
    return run_with({entry: number}, which)


def _hidden(
    first: Run,
    second: Run,
    name: str,
    one: _Piece,
    number: float,
    at: Callable[[float, int], Run],
    is_alone: bool,
) -> Hidden:
    """Return what a piece of noise hides. is_alone: whether the part of the output depends on no
    other noise, whose law would make a mixture of it."""
    draw = one.draw
    slopes = (_slope(at, name, one.value, 0, one), _slope(at, name, number, 1, one))
    cost = None
    if draw.law == "uniform" and slopes[0] and slopes[1]:
        cost = abs(math.log(abs(slopes[0] / slopes[1])))
    scales = np.broadcast_to(draw.scale or math.nan, np.shape(draw.values))
    scale = float(np.ravel(scales)[one.place])
    where = first.recorder.place(draw.moment)
    return Hidden(
        draw=where,
        added=where,
        kind="effect",
        primitive=draw.primitive,
        law=draw.law if draw.law in _KNOWN else "unknown",
        operands=(briefly(first.parts[name]), briefly(second.parts[name])),
        shifts=[abs(number - one.value)],
        scales=([scale], [scale]),
        released=[is_alone],
        pieces=[draw.first + one.place],
        parameters=(dict(draw.parameters), dict(draw.parameters)),
        cost=cost,
    )


def _pieces(second: Run) -> Iterator[_Piece]:
    """Yield the pieces of noise that the output may depend on by more than a coin."""
    for draw in second.recorder.draws:
        if draw.values is not None and np.asarray(draw.values).dtype.kind == "f":
            shape = np.shape(draw.values)
            low = np.ravel(np.broadcast_to(draw.parameters.get("low", 0.0), shape))
            width = np.ravel(np.broadcast_to(draw.scale or math.nan, shape))
            for place, value in enumerate(np.ravel(draw.values).tolist()):
                ends = None
                if draw.law == "uniform" and width[place] > 0:
                    ends = float(low[place]), float(low[place] + width[place])
                yield _Piece(draw, place, float(value), ends)


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


def _bracketed(at: Callable[[float, int], Run], name: str, first: Run, one: _Piece) -> float | None:
    """Return the same of a uniform number, where the output crosses the one wanted."""
    if one.ends is None:
        return None
    start, width = one.ends[0], one.ends[1] - one.ends[0]
    wanted = float(first.parts[name])
    ends: tuple[float, float] | None = None
    before: tuple[float, float] | None = None
    for share in _BETWEEN:
        number = start + share * width
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
    at: Callable[[float, int], Run], name: str, number: float, which: int, one: _Piece
) -> float | None:
    step = _STEP * max(1.0, abs(number))
    is_unit = one.ends is not None
    if one.ends is not None and one.ends[0] < number < one.ends[1]:
        step = _NEAR * min(number - one.ends[0], one.ends[1] - number)
    low, high = _part(at(number - step, which), name), _part(at(number + step, which), name)
    if low is None or high is None:
        return None
    if is_unit and abs(high - low) < _PRECISE * float(np.spacing(max(abs(low), abs(high)))):
        return None
    return (high - low) / (2 * step)


def _part(one: Run, name: str) -> float | None:
    value = one.parts.get(name)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
