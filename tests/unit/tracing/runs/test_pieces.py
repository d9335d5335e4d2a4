from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.tracing.runs.pieces import Pieces, multiplied, shifted
from dpaudit.tracing.runs.places import Spot
from dpaudit.tracing.runs.replaying import UNKNOWN, Draw, TooLong
from dpaudit.tracing.runs.values import Noise


def pieces(*laws: tuple[str, Any, int]) -> Pieces:
    """Return pieces of draws: of each the law, the scale and the size."""
    draws: list[Draw] = []
    found = Pieces(draws)
    for number, (law, scale, size) in enumerate(laws):
        moment, first = ("draw", Spot(), number), len(found.laws)
        draws.append(Draw(moment, law, law, scale, {}, np.zeros(size), first, None))
        found.add(law, scale, size)
    return found


def test_they_are_numbered_as_they_were_drawn() -> None:
    found = pieces(("laplace", 2.0, 1), ("normal", [1.0, 3.0], 2), ("uniform", None, 1))
    assert found.laws == ["laplace", "normal", "normal", "uniform"]
    assert np.array_equal(found.all_scales, [2.0, 1.0, 3.0, math.nan], equal_nan=True)
    assert found.laws_of([0, 1, 2]) == {"laplace", "normal"}
    assert [found.law_of(Noise(ids, 1.0)) for ids in (3, np.array([[2, 0]]))] == [
        "uniform",
        "normal",
    ]
    draws = [found.draw_of(number) for number in range(4)]
    assert [one.law for one in draws] == ["laplace", "normal", "normal", "uniform"]


def test_more_than_a_trace_can_show_end_the_run() -> None:
    found = pieces(("laplace", 1.0, 199_999))
    found.add("laplace", 1.0, 1)
    with pytest.raises(TooLong, match="more than 200,000 pieces"):
        found.add("laplace", 1.0, 1)


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
    found = pieces(first, second)
    both = found.sum_of(Noise(0, 1.0, 10.0, 4), Noise(1, 1.0, 3.0, 7), sign, ())
    assert both == Noise(2, 1.0, 10.0 + sign * 3.0, 7)
    assert found.laws[2] == law
    assert np.array_equal(found.scales[2], scale, equal_nan=True)
    assert found.parts_of(2) == (0, 1)
    drawn = found.draw_of(2)
    assert drawn.first == 0


def test_a_sum_of_sums_is_made_of_what_was_drawn() -> None:
    found = pieces(*[("normal", 1.0, 1)] * 3)
    two = found.sum_of(Noise(0, 1.0), Noise(1, 2.0), 1, ())
    assert two is not None
    three = found.sum_of(two, Noise(2, 2.0), 1, ())
    assert three is not None
    assert found.parts_of(three.ids) == (0, 1, 2)
    assert found.scales[three.ids] == pytest.approx(3.0)


def test_the_same_noise_adds_up_or_cancels_out() -> None:
    found = pieces(("laplace", 1.0, 2))
    noise = Noise(np.array([0, 1]), np.array([1.0, 2.0]))
    assert found.sum_of(noise, noise, -1, (2,)) is None
    twice = found.sum_of(noise, noise, 1, (2,))
    assert twice is not None
    assert twice.ids.tolist() == [0, 1]
    assert twice.factor.tolist() == [2.0, 4.0]
    assert found.laws == ["laplace"] * 2


def test_noise_is_shifted_and_multiplied_with_what_it_was_added_to() -> None:
    assert shifted(Noise(0, 2.0), 5.0) == Noise(0, 2.0, 5.0)
    assert multiplied(shifted(Noise(0, 2.0, 5.0), 1.0), 3.0) == Noise(0, 6.0, 18.0)
    assert multiplied(Noise(0, 2.0), 3.0) == Noise(0, 6.0)
