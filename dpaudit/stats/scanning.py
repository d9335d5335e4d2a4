"""Bounds from a test whose p-value is not monotone: scanned upwards, never bisected."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import ndtri

from dpaudit.stats.trinomial import ScoreTest

# Steps of a scan, and where it begins, in standard deviations of the bound.
_STEP = 1 / 64
_HEADSTART = 3.0
# Up to so many draws, the last step is taken in quarters.
_COSTLY = 20_000
# A scan stays this, over √draws, behind where it expects the bound: p has jumps, which are up to
# half of its value for tens of draws and hardly any for thousands.
_CAUTION = 15.0

# From the parameter that is scanned to (ε, hδ).
Point = Callable[[float], tuple[float, float]]


def last_refuted(
    quick: ScoreTest, exact: ScoreTest, point: Point, *, end: float, alpha: float
) -> float:
    """Return inf{x ≥ 0 : p(x) > alpha}, below `end`, rounded down to the steps of the scan.

    quick: the same test with fewer terms, whose p is no smaller; the scan begins with it.
    """
    anchor, spread = _normal_bound(quick, point, end, alpha)
    start = max(0.0, anchor - _HEADSTART * spread)
    if quick.p_value(*point(start), alpha) > alpha:
        start = 0.0
    for test in (quick, exact):
        start = _climb(test, point, start, spread, end, alpha)
    return start


def _climb(
    test: ScoreTest, point: Point, start: float, spread: float, end: float, alpha: float
) -> float:
    """Return the last x that is refuted, from `start`, before the first that is not."""
    caution = _CAUTION / math.sqrt(test.draws)
    step, finest = _STEP, _STEP if test.draws > _COSTLY else _STEP / 4
    p, reach = test.p_value(*point(start), alpha), math.inf
    if p > alpha:
        return start
    while step >= finest:
        # A point that was not refuted, beyond, halves the strides that are left.
        stride = max(step, min(_gap(p - test.gamma, alpha - test.gamma) - caution, reach))
        coming = start + stride * spread
        p_coming = test.p_value(*point(coming), alpha) if coming < end else 1.0
        if p_coming <= alpha:
            start, p = coming, p_coming
        elif stride > step:
            reach = stride / 2
        else:
            step /= 2
    return start


def _gap(p: float, alpha: float) -> float:
    """Return how far p is from alpha, in standard deviations; at most that of p = 10⁻⁹."""
    return float(ndtri(alpha) - ndtri(max(p, 1e-9)))


def _normal_bound(test: ScoreTest, point: Point, end: float, alpha: float) -> tuple[float, float]:
    """Return where the score falls to the normal quantile, and the standard deviation there."""
    quantile, low, high = -float(ndtri(alpha)), 0.0, end
    while high - low > 1e-9 * max(high, 1e-3):
        middle = (low + high) / 2
        low, high = (middle, high) if test.score(*point(middle)) > quantile else (low, middle)
    apart = 1e-6 * end
    fall = test.score(*point(low)) - test.score(*point(low + apart))
    return low, apart / max(fall, 1e-3 * apart)
