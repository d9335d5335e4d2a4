from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.tracing.runs.noisy_numbers import Noise
from dpaudit.tracing.runs.places import Spot
from dpaudit.tracing.runs.replaying import Draw, Replay, Use

HERE = Spot()
MOMENT = ("draw", HERE, 0)


def drawn(values: Any, law: str = "laplace") -> Draw:
    return Draw(MOMENT, "a primitive", law, 1.0, {}, values, 0, None)


def used(value: Any, operand: Any, number: int = 0) -> Use:
    return Use(("use", HERE, number), "add", value, (), 0, 1.0, operand)


@pytest.mark.parametrize(
    ("before", "now", "wanted"),
    [
        (0.25, 0.5, 0.25),
        (7, 3, 7),
        (np.array([1.0, 2.0]), np.array([8.0, 9.0]), [1.0, 2.0]),
        (np.array([1.0, 2.0]), np.array([7.0, 8.0, 9.0]), [1.0, 2.0, 9.0]),
        (np.array([1.0, 2.0, 3.0]), np.array([8.0, 9.0]), [1.0, 2.0]),
        (np.ones((2, 2)), np.zeros(3), [0.0, 0.0, 0.0]),
    ],
)
def test_noise_is_that_of_the_first_run_as_far_as_it_goes(
    before: Any, now: Any, wanted: Any
) -> None:
    again = Replay({MOMENT: drawn(before)})
    assert np.array_equal(again.noise(MOMENT, now, 0), wanted)
    assert np.array_equal(again.outcome(MOMENT, now), wanted)
    other = ("draw", HERE, 1)  # the first run did not come here
    assert again.noise(other, now, 0) is now


def test_noised_values_of_two_lists_belong_together_by_what_they_hide() -> None:
    before = used(np.array([1.5, 2.5, 3.5]), np.array([1.0, 2.0, 3.0]))
    again = Replay({before.moment: before})
    noise = Noise(np.array([0, 1]), 1.0, np.array([1.0, 3.0]))
    assert again.noised(before.moment, noise, np.array([1.7, 3.7])).tolist() == [1.5, 3.5]
    more = Noise(np.arange(4), 1.0, np.array([1.0, 2.0, 2.5, 3.0]))
    found = again.noised(before.moment, more, np.array([8.0, 8.0, 8.0, 8.0]))
    assert found.tolist() == [1.5, 2.5, 8.0, 3.5]


def test_a_use_is_the_one_that_it_was_aligned_with() -> None:
    uses = [used(1.5, 1.0), used(2.5, 2.0, 1)]
    alignment = {("use", HERE): [1, None]}
    again = Replay({one.moment: one for one in uses}, alignment=alignment)
    values = [again.noised(("use", HERE, n), Noise(0, 1.0, 9.0), 9.5) for n in range(3)]
    assert values == [2.5, 9.5, 9.5]
