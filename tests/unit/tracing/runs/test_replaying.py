from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.tracing.runs.places import Spot
from dpaudit.tracing.runs.replaying import OPAQUE, Choice, Draw, Repetition, Use
from dpaudit.tracing.runs.values import Noise

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
    again = Repetition({MOMENT: drawn(before)})
    assert np.array_equal(again.noise(MOMENT, now, 0), wanted)
    assert np.array_equal(again.outcome(MOMENT, now), wanted)
    other = ("draw", HERE, 1)  # the first run did not come here
    assert again.noise(other, now, 0) is now


def test_what_is_overridden_goes_its_own_way() -> None:
    use = used(10.5, 10.0)
    other = Use(("use", HERE, 1), "add", 10.5, (), 3, 1.0, 10.0)
    before = {MOMENT: drawn(0.5), use.moment: use, other.moment: other}
    again = Repetition(before, {(MOMENT, 0): 4.0})
    assert again.noised(use.moment, Noise(0, 1.0, 20.0), 20.5) == 10.5
    assert again.noise(MOMENT, 0.25, 0) == 4.0
    # The noise is no longer that of the first run, and neither is what it is added to.
    assert again.noised(use.moment, Noise(0, 1.0, 20.0), 24.0) == 24.0
    # Other noise comes at its turn.
    assert again.noised(use.moment, Noise(3, 1.0, 20.0), 24.0) == 24.0
    assert again.noised(other.moment, Noise(3, 1.0, 20.0), 24.0) == 10.5


def test_coins_keep_their_kind_when_they_fall_otherwise() -> None:
    coins = Choice(MOMENT, 0.5, np.array([True, False]), np.array([0, 1]), None, False)
    again = Repetition({MOMENT: coins}, {(MOMENT, 1): 1})
    found = again.outcome(MOMENT, np.array([False, False]))
    assert found.tolist() == [True, True]
    assert found.dtype == bool
    assert coins.values.tolist() == [True, False]


def test_noised_values_of_two_lists_belong_together_by_what_they_hide() -> None:
    before = used(np.array([1.5, 2.5, 3.5]), np.array([1.0, 2.0, 3.0]))
    again = Repetition({before.moment: before})
    noise = Noise(np.array([0, 1]), 1.0, np.array([1.0, 3.0]))
    assert again.noised(before.moment, noise, np.array([1.7, 3.7])).tolist() == [1.5, 3.5]
    more = Noise(np.arange(4), 1.0, np.array([1.0, 2.0, 2.5, 3.0]))
    found = again.noised(before.moment, more, np.array([8.0, 8.0, 8.0, 8.0]))
    assert found.tolist() == [1.5, 2.5, 8.0, 3.5]


def test_a_use_is_the_one_that_it_was_aligned_with() -> None:
    uses = [used(1.5, 1.0), used(2.5, 2.0, 1)]
    alignment = {("use", HERE): [1, None]}
    again = Repetition({one.moment: one for one in uses}, alignment=alignment)
    values = [again.noised(("use", HERE, n), Noise(0, 1.0, 9.0), 9.5) for n in range(3)]
    assert values == [2.5, 9.5, 9.5]


def test_what_a_library_makes_of_unseen_data_is_given_again_where_it_is_plain() -> None:
    whole, plain = object(), [1.0, {"a": "x"}]
    for before, now, is_whole, wanted in (
        (whole, whole, True, whole),
        (whole, object(), False, None),
        (plain, [3.0], False, plain),
        (np.array([None]), [3.0], False, None),
    ):
        again = Repetition({MOMENT: drawn(before, OPAQUE)})
        found = again.opaque(MOMENT, now, is_whole=is_whole)
        assert found == (now if wanted is None else wanted)
    # A copy, since the mechanism may go on with it.
    again = Repetition({MOMENT: drawn(plain, OPAQUE)})
    assert again.opaque(MOMENT, [3.0], is_whole=False) is not plain
    assert Repetition({MOMENT: drawn(plain)}).opaque(MOMENT, [3.0], is_whole=True) == [3.0]
