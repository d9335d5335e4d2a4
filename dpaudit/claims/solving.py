"""Root finding and maximisation for functions of one variable, without SciPy. Every command of
dpaudit makes claims, and the import of `scipy.optimize` would make all commands slower."""

from __future__ import annotations

import math
from collections.abc import Callable

Function = Callable[[float], float]

_GOLDEN = (math.sqrt(5) - 1) / 2


def crossing(function: Function, low: float, high: float, tolerance: float) -> tuple[float, float]:
    """Return the ends (low, high) of a small interval in which a rising function crosses zero. It
    is at most `tolerance` long.

    The given and the returned ends satisfy function(low) ≤ 0 < function(high). The method is ITP
    (Oliveira & Takahashi 2021), which takes at most one step more than bisection, and converges as
    fast as the secant method for smooth functions.
    """
    at_low, at_high = function(low), function(high)
    steps = max(0, math.ceil(math.log2(max(high - low, tolerance) / tolerance))) + 1
    weight = 0.2 / (high - low) if high > low else 0.0
    for step in range(2 * steps):
        if high - low <= tolerance:
            break
        middle = (low + high) / 2
        reach = max(0.0, tolerance / 2 * 2 ** max(0, steps - step) - (high - low) / 2)
        guess = (at_high * low - at_low * high) / (at_high - at_low) if at_high > at_low else middle
        nudged = _within(middle, guess, weight * (high - low) ** 2)
        point = _within(nudged, middle, reach)
        if not low < point < high:
            point = middle
        value = function(point)
        low, at_low, high, at_high = (
            (point, value, high, at_high) if value <= 0 else (low, at_low, point, value)
        )
    return low, high


def peak(
    function: Function, low: float, high: float, tolerance: float, enough: float = math.inf
) -> float:
    """Return the x in [low, high] at which a function with a single peak is largest, up to
    `tolerance`. The search stops early at an x with function(x) ≥ enough.

    The method is Brent's (1973, chapter 5): parabolas through the three highest points, and golden
    sections where parabolas fail, for example at a corner.
    """
    least = tolerance / 4  # smallest distance between two points
    best = second = third = low + (1 - _GOLDEN) * (high - low)
    at_best = at_second = at_third = function(best)
    step = previous = 0.0
    # `not >=` is used instead of `<`, so that NaN does not end the search.
    while not at_best >= enough and abs(best - (low + high) / 2) + (high - low) / 2 > 2 * least:
        # Go from `best` to the top of the parabola through the three highest points. If the top
        # lies outside the interval, or if this step is not shorter than half of the step before the
        # last, go to the golden section of the longer part of the interval: from `best` to `low`,
        # or from `best` to `high`.
        to_second = (best - second) * (at_best - at_third)
        to_third = (best - third) * (at_best - at_second)
        bend = 2 * (to_second - to_third)
        top = (best - third) * to_third - (best - second) * to_second
        leap = top / bend if bend else math.inf
        previous, last = step, previous
        if abs(leap) < abs(last) / 2 and low < best + leap < high:
            step = leap
            if min(best + step - low, high - best - step) < 2 * least:
                step = math.copysign(least, (low + high) / 2 - best)
        else:
            previous = (low if best > (low + high) / 2 else high) - best
            step = (1 - _GOLDEN) * previous
        point = best + (step if abs(step) > least else math.copysign(least, step))
        value = function(point)
        if value >= at_best:
            low, high = (best, high) if point > best else (low, best)
            third, at_third, second, at_second = second, at_second, best, at_best
            best, at_best = point, value
            continue
        low, high = (low, point) if point > best else (point, high)
        if value >= at_second or second == best:
            third, at_third, second, at_second = second, at_second, point, value
        elif value >= at_third or third in (best, second):
            third, at_third = point, value
    return best


def largest_parameter(
    delta_of: Function, delta_lower: float, high: float, near: float = math.inf
) -> float:
    """Return the largest x in (0, high] with delta_of(x) ≤ delta_lower; 0 if there is none. It is
    rounded down, by a relative error of at most 10⁻⁶.

    delta_of: function from a parameter x to δ > 0 at a fixed ε; it rises with x.
    near: an estimate of the result, which affects only the time of the search.
    """
    if delta_lower <= 0:  # δ > 0 in theory, but a tiny δ may be rounded to 0
        return 0.0
    least = high * 1e-9
    for factor in (1e-5, 1e-3):
        below, above = near * (1 - factor), near * (1 + factor)
        if least < below and above < high and delta_of(below) <= delta_lower < delta_of(above):
            least, high = below, above
            break
    else:
        if delta_of(high) <= delta_lower:
            return high
        if delta_of(least) > delta_lower:
            return 0.0
    low, _ = crossing(
        lambda log: delta_of(math.exp(log)) - delta_lower, math.log(least), math.log(high), 1e-6
    )
    return math.exp(low)


def _within(point: float, centre: float, reach: float) -> float:
    """Return the number nearest to `point` in [centre - reach, centre + reach]."""
    if abs(point - centre) <= reach:
        return point
    return centre + math.copysign(reach, point - centre)
