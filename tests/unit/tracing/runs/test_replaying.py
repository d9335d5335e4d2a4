"""Arrays of two runs whose lengths differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.tracing.runs.noisy_numbers import Noise
from dpaudit.tracing.runs.places import Spot
from dpaudit.tracing.runs.replaying import Draw, Replay, Use

DRAW, USE = ("draw", Spot(), 0), ("use", Spot(), 0)


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        ([1.0, 2.0], [7.0, 8.0, 9.0], [1.0, 2.0, 9.0]),
        ([1.0, 2.0, 3.0], [8.0, 9.0], [1.0, 2.0]),
        ([[1.0, 1.0], [1.0, 1.0]], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]),
    ],
)
def test_noise_is_that_of_the_first_run_as_far_as_it_goes(
    before: Any, now: Any, expected: Any
) -> None:
    draw = Draw(DRAW, "a primitive", "laplace", 1.0, {}, np.array(before), 0, None)
    assert Replay({DRAW: draw}).noise(DRAW, np.array(now), 0).tolist() == expected


def test_noisy_values_belong_together_by_what_they_hide() -> None:
    before = Use(USE, "add", np.array([1.5, 2.5, 3.5]), (), 0, 1.0, np.array([1.0, 2.0, 3.0]))
    noise = Noise(np.arange(4), 1.0, np.array([2.0, 3.0, 8.0, 9.0]))
    values = Replay({USE: before}).noised(USE, noise, np.full(4, 8.0))
    assert values.tolist() == [2.5, 3.5, 8.0, 8.0]
