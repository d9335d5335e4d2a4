"""Where a function of one variable is largest."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product

from dpaudit.claims.solving import peak

LOW, HIGH, NEAR = -40.0, 10.0, 1e-6

Function = Callable[[float], float]
SHAPES: dict[str, Function] = {
    "a parabola": lambda x: -(x**2),
    "of fourth order": lambda x: -(x**4),
    "a corner": lambda x: -abs(x),
    "a corner of unequal sides": lambda x: min(x, -100 * x),
    "a half parabola, and a fall": lambda x: -(x**2) if x < 0 else -50 * x,
    "a cusp": lambda x: -math.sqrt(abs(x)),
    "flat tails": lambda x: math.exp(-(x**2)),
    "one steep side": lambda x: x - math.exp(x) + 1,
}


def test_the_peak_is_located_within_the_tolerance() -> None:
    for shape, where in product(SHAPES.values(), [LOW, -39.5, -13.7, 0.0, 3.3, HIGH]):
        calls = 0

        def function(x: float, shape: Function = shape, where: float = where) -> float:
            nonlocal calls
            calls += 1
            assert LOW <= x <= HIGH
            return shape(x - where)

        argument = peak(function, LOW, HIGH, NEAR)
        # Near a flat top, the values of the function are equal as floats.
        assert abs(argument - where) <= NEAR / 2 or shape(argument - where) == shape(0.0)
        assert calls <= 80
