"""Whether further draws may show what the first ones do not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dpaudit.attacks.choosing.surely import is_telling

from dpaudit.attacks.choosing.aim import Aim, surely_refutes
from dpaudit.attacks.choosing.going_on import (
    gains_by_more,
    is_undecided,
    that_may_tell,
)
from dpaudit.attacks.rare import NAME as RARE
from dpaudit.claims import ProfilePoint
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate, Fine, of_cells
from dpaudit.levels.level_map import LevelMap
from dpaudit.levels.shrinkage import ShrunkLevels

# So many times the draws are still to come.
MORE = 100.0
AIM = Aim(ProfilePoint(1.0, 1e-6), 10_000_000)
NEVER: Any = None


def never_frozen() -> LevelMap:
    raise AssertionError


def cells(errors: float, common: int = 2_000) -> Candidate:
    """Return an order of two cells, of which the claim allows the log-ratio of one but for so many
    standard errors."""
    ratio = math.exp(1.0 + errors * math.sqrt(1.3 / common))
    often = round(ratio * common)
    counts = [[often, common], [20_000 - often, 20_000 - common], [0, 0]]
    return of_cells("single cells", Fine(NEVER, np.array(counts)))


def rare(seen: int) -> Candidate:
    """Return an order of outcomes of which one input alone has given one, so many times."""
    counts = np.array([[0, seen], [20_000, 20_000 - seen], [0, 0]])
    expected = counts[:2].astype(float)
    expected[0, 0] = 0.01
    shrunk = ShrunkLevels(expected, np.array([0.0, 0.0]))
    return Candidate(RARE, counts, tuning.PENALTY_ANY_ORDER, never_frozen, shrunk=shrunk)


@pytest.mark.parametrize(("errors", "is_open"), [(0.0, True), (3.5, True), (12.0, False)])
def test_what_luck_refutes_does_not_end_the_look_for_what_is_rare(
    errors: float, is_open: bool
) -> None:
    found = cells(errors)
    # The one in the middle is sure at the deviations that a rule is frozen by, and yet is luck.
    assert surely_refutes(found, AIM) is (errors > 2)
    assert is_undecided([found, rare(4)], AIM, MORE) is is_open


def test_without_anything_rare_no_draws_are_awaited() -> None:
    assert not is_undecided([cells(0.0)], AIM, MORE)
    assert not is_undecided([cells(0.0), rare(0)], AIM, MORE)


def mixed(*counts: tuple[int, int]) -> Candidate:
    """Return an order of rare outcomes, of which both inputs have given some."""
    rows = [*counts, (20_000, 20_000)]
    held_out = np.array([*rows, (0, 0)])
    shrunk = ShrunkLevels(np.array(rows, dtype=float), np.zeros(len(rows)))
    return Candidate(RARE, held_out, tuning.PENALTY_ANY_ORDER, never_frozen, shrunk=shrunk)


def shrunk_away(of_one: int, others: int = 20) -> Candidate:
    """Return an order of what one input alone gave so often, beside some that both gave, which make
    it look like luck."""
    counts = np.array([[of_one, 0], *[[50, 50]] * others, [20_000, 20_000], [0, 0]])
    expected = counts[:-1].astype(float)
    expected[0] = of_one / 2, of_one / 2
    shrunk = ShrunkLevels(expected, np.zeros(len(expected)))
    return Candidate(RARE, counts, tuning.PENALTY_ANY_ORDER, never_frozen, shrunk=shrunk)


def test_what_one_input_alone_gave_more_often_than_luck_does_is_waited_for() -> None:
    """Of 22 cells that both give as often, one in four has a cell that one alone gave 6 times."""
    assert not is_undecided([cells(0.0), shrunk_away(5)], AIM, MORE)
    assert is_undecided([cells(0.0), shrunk_away(6)], AIM, MORE)
    assert not is_undecided([cells(0.0), shrunk_away(6, others=80)], AIM, MORE)
    assert not is_telling(shrunk_away(6), AIM)


def test_what_both_inputs_gave_is_waited_for_if_it_is_more_than_the_luckiest_of_some() -> None:
    """At ε = 1 an input gives at most 2.7 times as many as the other one."""
    assert not is_undecided([cells(0.0), mixed((20, 80))], AIM, MORE)
    assert is_undecided([cells(0.0), mixed((20, 110))], AIM, MORE)


def test_what_came_so_seldom_from_one_input_alone_may_be_luck() -> None:
    assert not is_undecided([cells(0.0), rare(3)], AIM, MORE)


@pytest.mark.parametrize(("times", "gains"), [(1, True), (20, False)])
def test_more_counts_pay_while_it_is_open_which_cell_tells_more(times: int, gains: bool) -> None:
    """Of four million draws an eighth leaves open whether the rarer cell tells more than both."""
    telling = [(4_221, 3_576), (14_966, 13_156)]
    rest = [(46_000 - 700 * one, 46_350 - 700 * one) for one in range(5)]
    counts = times * np.array([*telling, *rest, (0, 0)])
    aim = Aim(ProfilePoint(0.182, 0.0), times * 3_500_000, counted=True)
    found = of_cells("single cells", Fine(NEVER, counts))
    assert gains_by_more([found], aim) is gains


def split(d1: int, d2: int) -> Candidate:
    """Return an order of outcomes that came up so often, which are taken for what they were."""
    counts = np.array([[20_000 - d2, 20_000 - d1], [d2, d1], [0, 0]])[:, ::-1]
    shrunk = ShrunkLevels(counts[:2].astype(float), np.zeros(2))
    return Candidate(RARE, counts, tuning.PENALTY_ANY_ORDER, never_frozen, shrunk=shrunk)


@pytest.mark.parametrize(
    ("d1", "d2", "epsilon", "more", "may"),
    [
        (300, 100, 3.0, 1.0, True),  # far from the claim, and more than others promise
        (300, 290, 3.0, 1.0, False),
        (20, 5, 1.0, 1.0, False),  # what both give: only more draws may tell
        (20, 5, 1.0, 8.0, True),
        (20, 15, 1.0, 8.0, False),
    ],
)
def test_what_may_tell(d1: int, d2: int, epsilon: float, more: float, may: bool) -> None:
    aim = Aim(ProfilePoint(epsilon, 1e-6), 40_000)
    columns = [("a", split(d1, d2)), ("b", split(10, 10))]
    assert that_may_tell(columns, [], aim, more) == ({"a"} if may else set())


@pytest.mark.parametrize("for_delta", [False, True])
def test_what_promises_less_than_others_do_tells_nothing(for_delta: bool) -> None:
    aim = Aim(ProfilePoint(3.0, 1e-6) if not for_delta else ProfilePoint(0.0, 0.0), 40_000)
    aim = replace(aim, for_delta=for_delta)
    columns = [("a", split(300, 100))]
    assert that_may_tell(columns, [], aim, 1.0) == {"a"}
    assert that_may_tell(columns, [cells(10.0)], aim, 1.0) == set()
