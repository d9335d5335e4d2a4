"""Noise that is known only by its effect on the output: a uniform number that the program turns
into noise by an inverse distribution function. Further runs find the value of the uniform number
with which the second input gives the output of the first input. Runs with chosen noise also show
whether the output shows a uniform number, and whether noise decides the output."""

from __future__ import annotations

import math
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .comparing import are_released
from .differences import Hidden
from .running import briefly, same, same_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .differences import Comparison
    from .places import Spot
    from .recording import Recorder
    from .replaying import Draw, Entry
    from .running import Coupler, Run


# A uniform number is sought only in runs with at most this number of pieces of noise (drawn
# numbers).
_PIECES = 32
# To see its effect, a uniform number is moved by this amount, in widths of its range. It is no
# simple fraction, so that a symmetry of the program, such as a sign or a period, does not undo it.
_ELSEWHERE = 0.382
# Noise is sought by its effect only if at most this number of parts (entries) of the output differ.
_PARTS = 8
# Bisection seeks a uniform number between two neighbouring points of this grid, in widths of its
# range. `_HALVES` is the number of steps. An inverse distribution function is steep at the ends of
# the range, and may have a kink, so that methods with derivatives may fail.
_BETWEEN = (1e-6, 1e-3, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98, 1 - 1e-3, 1 - 1e-6)
_HALVES = 45
# To differentiate the output by a uniform number, the number is moved by this share of its distance
# to the nearer end of its range; rounding does not matter if the output then changes by at least
# this many spacings of floats.
_NEAR, _PRECISE = 1e-4, 1e6


def by_effect(coupler: Coupler, first: Run, second: Run) -> list[Hidden]:
    """Return, as noise, the uniform numbers that hide the difference of two outputs: for each part
    (entry) that differs, the only piece of noise (drawn number) on which the part depends. Return
    an empty list if some part depends on other noise, or on several pieces."""
    names = [name for name in first.parts if not same(first.parts[name], second.parts.get(name))]
    both = [one.parts.get(name) for name in names for one in (first, second)]
    pieces = list(islice(_pieces(second), _PIECES + 1))
    are_numbers = all(isinstance(one, (int, float)) for one in both)
    if len(names) > _PARTS or len(pieces) > _PIECES or not are_numbers:
        return []

    def run_with(overrides: dict[Any, float], which: int) -> Run:
        return coupler.run(which, overrides, reference=first)

    moved = [run_with({one.entry: one.elsewhere}, 1) for one in pieces] if len(pieces) > 1 else []
    found: dict[Any, float] = {}
    hidden: list[Hidden] = []
    for name in names:
        own = [
            one
            for place, one in enumerate(pieces)
            if not moved or not same(second.parts[name], moved[place].parts.get(name))
        ]
        one = own[0] if len(own) == 1 else None
        if one is None or one.ends is None:
            return []
        at = partial(_at, run_with, one.entry)
        if one.entry not in found:
            number = _bracketed(at, name, first, one.ends)
            if number is None:
                return []
            found[one.entry] = number
        hidden.append(_hidden(first, second, name, one, found[one.entry], at))
    return hidden if same_output(first, run_with(found, 1)) else []


class _Piece(NamedTuple):
    """A piece of noise: one drawn number.

    draw: The draw that the number belongs to.
    place: The index of the number among the values of its draw.
    value: The number.
    ends: The ends of the range of a uniform number; None for another law.
    """

    draw: Draw
    place: int
    value: float
    ends: tuple[float, float] | None

    @property
    def entry(self) -> Any:
        return self.draw.moment, self.place

    @property
    def elsewhere(self) -> float:
        """Another value that the drawn number can have."""
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
) -> Hidden:
    """Return a uniform number as noise that hides a part of the output, with its cost.

    name: The name of the part, such as `output[1]`.
    one: The uniform number in the first run.
    number: The uniform number with which the second input gives the output of the first.
    at: A function from a uniform number and the index of an input to the run with this number.
    """
    draw = one.draw
    slopes = _slope(at, name, one.value, 0, one), _slope(at, name, number, 1, one)
    cost = abs(math.log(abs(slopes[0] / slopes[1]))) if slopes[0] and slopes[1] else None
    scales = np.broadcast_to(draw.scale or math.nan, np.shape(draw.values))
    scale = float(np.ravel(scales)[one.place])
    where = first.recorder.place(draw.moment)
    return Hidden(
        draw=where,
        added=where,
        kind="effect",
        primitive=draw.primitive,
        law="unknown" if cost is None else draw.law,
        operands=(briefly(first.parts[name]), briefly(second.parts[name])),
        shifts=[abs(number - one.value)],
        scales=([scale], [scale]),
        released=[True],
        pieces=[draw.first + one.place],
        parameters=(dict(draw.parameters), dict(draw.parameters)),
        cost=cost,
    )


def _pieces(second: Run) -> Iterator[_Piece]:
    """Yield the pieces of noise (drawn numbers) of a run that are floats; integers are skipped."""
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


def _bracketed(
    at: Callable[[float, int], Run], name: str, first: Run, ends: tuple[float, float]
) -> float | None:
    """Return the uniform number with which the second input gives the output of the first run,
    found by bisection; None if no grid interval brackets it.

    at: A function from a uniform number and the index of an input to the run with this number.
    name: The name of the part of the output that is compared.
    ends: The ends of the range of the uniform number.
    """
    start, width = ends[0], ends[1] - ends[0]
    wanted = float(first.parts[name])
    bracket: tuple[float, float] | None = None
    before: tuple[float, float] | None = None
    for share in _BETWEEN:
        number = start + share * width
        value = _part(at(number, 1), name)
        if value is not None and before is not None and (before[1] < wanted) != (value < wanted):
            bracket = before[0], number
            break
        before = None if value is None else (number, value)
    if bracket is None or before is None:
        return None
    (low, high), is_rising = bracket, before[1] < wanted
    # Run all steps, even after the output is equal up to rounding: where the output is steep, a
    # small error of the number changes the slope, and so the cost.
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
    assert one.ends is not None
    step = _NEAR * min(number - one.ends[0], one.ends[1] - number)
    low, high = _part(at(number - step, which), name), _part(at(number + step, which), name)
    if low is None or high is None or step <= 0:
        return None
    if abs(high - low) < _PRECISE * float(np.spacing(max(abs(low), abs(high)))):
        return None
    return (high - low) / (2 * step)


def _part(one: Run, name: str) -> float | None:
    value = one.parts.get(name)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


# Distance of the tried values from the ends of the range of uniform noise, in widths of the range.
_NEAR_END = 1e-6


def by_range(coupler: Coupler, comparison: Comparison, first: Run) -> Comparison:
    """Return a comparison of two runs in which uniform noise counts as released only if the output
    shows it at both ends of its range, for both inputs. The output does not show noise that is
    added modulo a number, or that only picks one of several outcomes."""
    hidden = [
        one._replace(released=[False] * len(one.released))
        if _may_be_released(one) and not _is_at_its_ends(coupler, one, first)
        else one
        for one in comparison.hidden
    ]
    return comparison._replace(hidden=hidden)


def _may_be_released(one: Hidden) -> bool:
    is_moved = any(map(all, zip(one.released, one.shifts)))
    return one.law == "uniform" and one.kind != "effect" and is_moved


def _is_at_its_ends(coupler: Coupler, one: Hidden, first: Run) -> bool:
    number = one.pieces[[*map(all, zip(one.released, one.shifts))].index(True)]
    draw = first.recorder.pieces.draw_of(number)
    if draw is None or draw.values is None:
        return False
    place, shape = number - draw.first, np.shape(draw.values)
    low, width = (
        float(np.ravel(np.broadcast_to(each, shape))[place])
        for each in (draw.parameters.get("low", 0.0), draw.scale)
    )
    for end in (low + _NEAR_END * width, low + (1 - _NEAR_END) * width):
        for which in (0, 1):
            other = coupler.run(which, {(draw.moment, place): end})
            if _shown(other, number) != _shown(first, number):
                return False
    return True


def _shown(one: Run, number: int) -> set[Spot]:
    """Return the spots (instructions) of a run at which a piece of noise (drawn number) is added to
    or compared with a number, if the output shows the result. number: The number of the piece."""
    uses = [use for use in one.recorder.uses if number in np.ravel(use.ids)]
    return {
        use.moment[1] for use in uses if are_released(one, use)[np.ravel(use.ids) == number].any()
    }


# Largest number of pieces of noise (drawn numbers) that are set to rare values, of the pieces that
# the run compares with other numbers.
_DECIDING_PIECES = 32
# Quantiles of noise of scale 1 for the probabilities 10⁻⁴ and 1 - 10⁻⁴, by law.
_RARE = {
    "laplace": (-8.5, 8.5),
    "normal": (-3.7, 3.7),
    "logistic": (-9.2, 9.2),
    "gumbel": (-2.2, 9.2),
    "exponential": (0.0, 9.2),
    "geometric": (1.0, 10.2),
    "cauchy": (-3200.0, 3200.0),
}


def is_decided(
    coupler: Coupler, both: tuple[Sequence[Run], Sequence[Run]], valued: Callable[[Run], Any]
) -> bool:
    """Return whether rare noise decides a value: with it, each input gives a value that the other
    input gave in its runs.

    In a few runs, a value may be constant on each input, and so seem to have no noise, although
    noise in a comparison decides it. So each input is run again with this noise at its quantiles
    for the probabilities 10⁻⁴ and 1 - 10⁻⁴.

    both: The runs of d1 and the runs of d2. The first run of each has the coupler's seed.
    valued: A function that returns the value in a run.
    """
    for which in (0, 1):
        wanted = [valued(one) for one in both[1 - which]]
        tried = (valued(coupler.run(which, one)) for one in _rare(both[which][0].recorder))
        if not any(_alike(one, other) for one in tried for other in wanted):
            return False
    return True


def _alike(one: Any, other: Any) -> bool:
    return type(one) is type(other) and same(one, other)


def _rare(recorder: Recorder) -> Iterator[dict[Entry, float]]:
    """Yield overrides (value by entry: moment of the draw and index) that set the noise in
    comparisons of a run to rare values: its quantiles for the probabilities 10⁻⁴ and 1 - 10⁻⁴. For
    each quantile, each drawn number is set alone, then all together."""
    pieces = list(islice(_compared(recorder), _DECIDING_PIECES))
    for end in (0, 1):
        yield from ({entry: ends[end]} for entry, ends in pieces)
        if len(pieces) > 1:
            yield {entry: ends[end] for entry, ends in pieces}


def _compared(recorder: Recorder) -> Iterator[tuple[Entry, tuple[float, float]]]:
    """Yield (entry, quantiles) for each drawn number that a run compares with another number. The
    entry is the moment of its draw and its index in the draw. The two quantiles of its law have the
    probabilities 10⁻⁴ and 1 - 10⁻⁴."""
    compared = {
        piece
        for use in recorder.uses
        if use.kind == "compare"
        for number in np.ravel(use.ids).tolist()
        for piece in recorder.pieces.parts_of(number)
    }
    for draw in recorder.draws:
        if draw.law not in _RARE or draw.scale is None:
            continue
        low, high = _RARE[draw.law]
        scales = np.ravel(np.broadcast_to(draw.scale, np.shape(draw.values))).tolist()
        for place, scale in enumerate(scales):
            if draw.first + place in compared:
                yield (draw.moment, place), (low * scale, high * scale)
