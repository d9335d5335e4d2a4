"""Find noise that the output shows only indirectly: a uniform number that the program turns into
noise with an inverse distribution function. Run the mechanism on the second input with other
uniform numbers, until one of them gives the output of the first input. Other functions set noise to
chosen values, to find out whether the output contains a uniform number, and whether noise decides a
value."""

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


# To find the drawn number that hides the difference of two outputs, each drawn number of a run is
# changed in a further run. If a run draws more numbers than this, the search is not made.
_PIECES = 32
# To see whether the output depends on a uniform number, the number is increased by this share of
# the width of its range (modulo the width). The share is no simple fraction, since the output of a
# program with a sign or a period may be equal after, say, half the width.
_ELSEWHERE = 0.382
# If more entries of the output than this differ between two runs, no search is made for the uniform
# numbers that hide the differences.
_PARTS = 8
# The uniform number that gives the wanted output is first located between two neighbouring points
# of this grid (shares of the width of its range), then by bisection. Methods with derivatives may
# fail: inverse distribution functions are steep at the ends of the range, and may have a kink.
_BETWEEN = (1e-6, 1e-3, 0.02, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 0.98, 1 - 1e-3, 1 - 1e-6)
# Number of bisection steps that locate a uniform number. After 45 steps, the interval is smaller
# than 1e-14 of the range.
_HALVES = 45
# Step of the numerical derivative of the output with respect to a uniform number, as a share of the
# number's distance to the nearer end of its range.
_NEAR = 1e-4
# A numerical derivative of the output is used only if the output changes by at least this number of
# spacings of floats: rounding errors are then negligible.
_PRECISE = 1e6


def by_effect(coupler: Coupler, first: Run, second: Run) -> list[Hidden]:
    """Find, for each entry of the output that differs between two runs, the uniform number that
    hides the difference: the entry depends on this drawn number alone, and with another value of it
    the second input gives the entry of the first run. Return one `Hidden` for each such entry.
    Return an empty list if an entry depends on several drawn numbers, or if there is no such
    value."""
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
    """A number that a run draws.

    draw: The record of the call that draws it.
    place: The index of the number among the numbers of this call.
    value: The number.
    ends: The lower and upper end of its range if the number is uniform; None for another
        distribution.
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
        """Another possible value of the number. A run with this value shows whether the output
        depends on the number."""
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
    """Return the record of a uniform number that hides the difference of one entry of the output.

    name: The name of the entry, such as `output[1]`.
    one: The uniform number that the first run drew.
    number: The value of the uniform number with which the second input gives the first run's entry.
    at: A function from a value of the uniform number and the index of an input (0 or 1) to a run on
        this input, in which the uniform number has this value.
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
    """Yield a `_Piece` for each float that a run draws; drawn integers are skipped."""
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
    """Return the value of a uniform number with which the second input gives the output of the
    first run. It is found by bisection. Return None if no interval of the grid `_BETWEEN` contains
    it.

    at: A function from a value of the uniform number and the index of an input (0 or 1) to a run on
        this input, in which the uniform number has this value.
    name: The name of the entry of the output that is compared, such as `output[1]`.
    ends: The lower and upper end of the range of the uniform number.
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
    # Make all steps, even after the output is equal up to rounding: where the output is steep, a
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


# To test whether the output contains a uniform number, the number is set to values this close to
# both ends of its range (as a share of the width of the range).
_NEAR_END = 1e-6


def by_range(coupler: Coupler, comparison: Comparison, first: Run) -> Comparison:
    """Return the comparison of two runs with a corrected `released` for uniform noise: whether the
    output contains the sum of noise and a number. The output may contain the sum in one run by
    chance, such as the sum modulo another number. So each uniform number is set to a value near the
    lower end of its range, then near the upper end, in runs on both inputs. `released` remains true
    only if the output of all four runs contains the sum."""
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
    if draw.values is None:
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
    """Return the instructions of a run that add a drawn number to a number, or compare it with a
    number, if the output contains the resulting noisy value.

    number: The id of the drawn number in the records of the run.
    """
    uses = [use for use in one.recorder.uses if number in np.ravel(use.ids)]
    return {
        use.moment[1] for use in uses if are_released(one, use)[np.ravel(use.ids) == number].any()
    }


# Largest number of drawn numbers that are set to rare values, among the drawn numbers that the run
# compares with other numbers.
_DECIDING_PIECES = 32
# Maps each distribution to its quantiles for the probabilities 10⁻⁴ and 1 - 10⁻⁴, at scale 1.
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
    """Return whether noise decides a value: whether each input, with some rare value of the noise,
    gives a value that the other input gave in its runs. A value that is constant in a few runs may
    still depend on noise in a comparison. So each input is run again with the noise of its
    comparisons set to the quantiles for 10⁻⁴ and 1 - 10⁻⁴.

    both: The runs on d1 and the runs on d2. The first run of each has the coupler's seed.
    valued: A function from a run to the value in question.
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
    """Yield settings of the noise for further runs, as mappings from drawn numbers to values. The
    key of a drawn number is (moment of the draw, index in the draw); a moment is (kind,
    instruction, number of earlier draws there). Only drawn numbers that the run compares with
    another number are set to rare values: to their quantiles for the probability 10⁻⁴ or 1 - 10⁻⁴,
    each one alone, then all of them together."""
    pieces = list(islice(_compared(recorder), _DECIDING_PIECES))
    for end in (0, 1):
        yield from ({entry: ends[end]} for entry, ends in pieces)
        if len(pieces) > 1:
            yield {entry: ends[end] for entry, ends in pieces}


def _compared(recorder: Recorder) -> Iterator[tuple[Entry, tuple[float, float]]]:
    """Yield (key, quantiles) for each drawn number that a run compares with another number. The key
    identifies the drawn number: the moment of its draw (kind, instruction, number of earlier draws
    there), and its index in the draw. The quantiles are those of its distribution for the
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
