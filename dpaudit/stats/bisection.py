"""Where a condition begins to hold, by halving an interval."""

from __future__ import annotations

import math
from collections.abc import Callable


def halved(
    holds: Callable[[float], bool], low: float, high: float, times: int = 60
) -> tuple[float, float]:
    """Return what is left of an interval: the condition holds at its upper end, not at its lower.

    That this is so of the interval given is taken for granted.
    """
    for _ in range(times):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low, high


def smallest_alpha(refuted: Callable[[float], bool]) -> float:
    """Return the p-value of a test: the smallest alpha at which it refutes, rounded up.

    It is sought down to e^-700, and 1 where the test never refutes. What is refuted at one alpha
    must be so at every larger one.
    """
    if not refuted(math.exp(-1e-9)):
        return 1.0
    return math.exp(halved(lambda log_alpha: refuted(math.exp(log_alpha)), -700.0, 0.0)[1])
