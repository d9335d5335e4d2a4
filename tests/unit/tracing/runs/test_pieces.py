from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.tracing.runs.noisy_numbers import Noise
from dpaudit.tracing.runs.pieces import Pieces
from dpaudit.tracing.runs.places import Spot
from dpaudit.tracing.runs.replaying import UNKNOWN, Draw


def pieces(*laws: tuple[str, Any, int]) -> Pieces:
    """Return pieces of draws: of each the law, the scale and the size."""
    draws: list[Draw] = []
    table = Pieces(draws)
    for number, (law, scale, size) in enumerate(laws):
        moment, first = ("draw", Spot(), number), len(table.laws)
        draws.append(Draw(moment, law, law, scale, {}, np.zeros(size), first, None))
        table.add(law, scale, size)
    return table


@pytest.mark.parametrize(
    ("first", "second", "sign", "law", "scale"),
    [
        (("normal", 3.0, 1), ("normal", 4.0, 1), 1, "normal", 5.0),
        (("normal", 3.0, 1), ("normal", 4.0, 1), -1, "normal", 5.0),
        (("exponential", 2.0, 1), ("exponential", 2.0, 1), -1, "laplace", 2.0),
        (("geometric", 2.0, 1), ("geometric", 2.0, 1), -1, "discrete", 2.0),
        (("exponential", 2.0, 1), ("exponential", 2.0, 1), 1, UNKNOWN, math.nan),
        (("exponential", 2.0, 1), ("exponential", 3.0, 1), -1, UNKNOWN, math.nan),
        (("laplace", 2.0, 1), ("laplace", 2.0, 1), 1, UNKNOWN, math.nan),
    ],
)
def test_a_sum_has_the_law_that_is_known_of_it(
    first: Any, second: Any, sign: int, law: str, scale: float
) -> None:
    table = pieces(first, second)
    total = table.sum_of(Noise(0, 1.0, 10.0, 4), Noise(1, 1.0, 3.0, 7), sign, ())
    assert total == Noise(2, 1.0, 10.0 + sign * 3.0, 7)
    assert table.laws[2] == law
    assert np.array_equal(table.scales[2], scale, equal_nan=True)
    assert table.parts_of(2) == (0, 1)
    assert table.draw_of(2).first == 0
