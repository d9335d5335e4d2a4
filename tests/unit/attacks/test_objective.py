"""The best rule of a candidate, and the best candidate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.objective import (
    Objective,
    best_predicted,
    plainest,
    plainness,
    refutes,
)
from dpaudit.claims import ProfilePoint
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, fixed
from dpaudit.levels.level_map import LevelMap
from dpaudit.levels.scores import Scored

AIM = Objective(ProfilePoint(1.0, 0.0), 1_000_000)

UNUSED = fixed(cast(LevelMap, None))


def order(*counts: tuple[int, int], is_smooth: bool = False) -> Candidate:
    held_out = np.array([*counts, (0, 0)])
    return Candidate("sums", held_out, UNUSED, is_smooth=is_smooth)


def sides(ratio_of_d2: float, ratio_of_d1: float, draws: int = 10_000) -> Candidate:
    """Return an order of three levels; each ratio is right to wrong guesses at one end."""
    low, high = (round(draws / (1 + one)) for one in (ratio_of_d2, ratio_of_d1))
    return order((low, draws - low), (5 * draws, 5 * draws), (draws - high, high))


# Standard errors of a log-ratio of a side, of 10,000 draws with e^1 times as many right ones.
ERROR = 1 / np.sqrt(10_000 * 0.73 * 0.27)


@pytest.mark.parametrize("apart", [0.0, 1.0, 2.0, -1.0, -2.0])
def test_sides_that_differ_by_luck_are_both_guessed(apart: float) -> None:
    low, high, bound = AIM.best_rule(sides(math.e, math.e * np.exp(apart * ERROR)))
    assert (low, high) == (1, 2)
    assert 0.8 < bound < 1.1


@pytest.mark.parametrize(("of_d2", "of_d1", "rule"), [
    (math.e, math.e * np.exp(12 * ERROR), (0, 2)), (math.e * np.exp(12 * ERROR), math.e, (1, 3)),
])  # fmt: skip
def test_of_sides_that_are_apart_the_better_one_is(
    of_d2: float, of_d1: float, rule: tuple[int, int]
) -> None:
    assert AIM.best_rule(sides(of_d2, of_d1))[:2] == rule


def named(
    events: tuple[int, int] | None, *counts: tuple[int, int], score: bool = False
) -> Candidate:
    """Return an order each event of which consists of (values, intervals)."""

    class Levels:
        def alternatives(self, chosen: NDArray[np.bool_]) -> tuple[int, int] | None:
            return events if chosen.any() else (0, 0)

    level_map = fixed(cast(LevelMap, Levels()))
    scored = cast(Scored, object()) if score else None
    return Candidate("", np.array([*counts, (0, 0)]), level_map, scored=scored)


BOTH = (2_000, 6_000), (6_000, 2_000)


def test_values_are_plainer_than_intervals_and_these_than_several_and_scores() -> None:
    events = (1, 0), (0, 1), (1, 1), (6, 0), (0, 7), None
    orders = [*(named(event, *BOTH) for event in events), named((1, 0), *BOTH, score=True)]
    assert [plainness(one, AIM) for one in orders] == [0, 1, 2, 2, 3, 3, 3]


def test_a_plainer_order_within_a_standard_error_is_chosen() -> None:
    score = named(None, *BOTH, score=True)
    lowered = float(np.max(AIM.bounds(score, further=1.0)))
    value, interval = named((1, 0), (2_010, 5_990), (5_990, 2_010)), named((0, 1), *BOTH)
    far = named((1, 0), (2_100, 5_900), (5_900, 2_100))
    assert best_predicted(far, AIM) < lowered < best_predicted(value, AIM)
    assert best_predicted(value, AIM) < best_predicted(score, AIM)
    assert plainest(score, [far, interval, score, value], AIM) is value
    assert plainest(score, [far, interval, score], AIM) is interval
    assert plainest(score, [far, score], AIM) is score
    assert plainest(interval, [value, interval], AIM) is interval


def test_a_plainer_order_that_may_not_refute_is_not_chosen() -> None:
    score, value = named(None, *BOTH, score=True), named((1, 0), (2_010, 5_990), (5_990, 2_010))
    claimed = (best_predicted(value, AIM) + best_predicted(score, AIM)) / 2
    aim = replace(AIM, point=ProfilePoint(claimed, 0.0))
    assert plainest(score, [score, value], aim) is score


# The predicted δ is 0.13 at ε = 0 and 0.10 at ε = 1: more than the first ε, less than the second.
@pytest.mark.parametrize(("epsilon", "delta", "is_refuted"), [(0.0, 0.5, False), (1.0, 0.05, True)])
def test_a_predicted_delta_is_compared_with_the_claimed_delta(
    epsilon: float, delta: float, is_refuted: bool
) -> None:
    point = ProfilePoint(epsilon, delta)
    objective = Objective(point, 1_000_000, (point,))
    candidate = sides(9.0, 9.0)
    for deviations in (tuning.DEVIATIONS, tuning.DEVIATIONS_BEYOND_LUCK):
        assert refutes(candidate, objective, deviations) is is_refuted


def test_a_predicted_epsilon_is_compared_with_the_claimed_epsilon() -> None:
    candidate = sides(9.0, 9.0)
    assert refutes(candidate, AIM)
    assert not refutes(candidate, replace(AIM, point=ProfilePoint(2.5, 0.0)))
