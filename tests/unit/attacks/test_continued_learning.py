"""Whether further draws may show what the first ones do not."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.learning import (
    columns_that_may_refute,
    gains_by_more,
    learn_again,
    may_freeze_early,
    promises_nothing,
)
from dpaudit.attacks.objective import Objective, refutes
from dpaudit.attacks.rare_outputs import NAME as RARE
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.claims import ProfilePoint
from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import (
    BinSource,
    CellCounts,
    OrderedBins,
    RareOutputs,
    UnorderedCells,
)
from dpaudit.levels.level_map import LevelMap
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.levels.shrinkage import ExpectedDraws
from dpaudit.outcomes import Outcomes, from_raw

AIM = Objective(ProfilePoint(1.0, 1e-6), 10_000_000)
NEVER: Any = None
A_SCORE: Any = object()


class Sides(LevelMap):
    """The level of a number: 0 below ½, else 1; 2 for unseen."""

    levels = 3

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        (column,) = outcomes.columns
        return np.where(column.numbers < 0.5, 0, 1)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return str(chosen.tolist())


def cells(errors: float, common: int = 2_000, cells_of: LevelMap = NEVER) -> UnorderedCells:
    """Return an order of two cells, one of which exceeds the claim by some standard errors."""
    ratio = math.exp(1.0 + errors * math.sqrt(1.3 / common))
    often = round(ratio * common)
    counts = [[often, common], [20_000 - often, 20_000 - common], [0, 0]]
    return UnorderedCells.of("single cells", CellCounts(cells_of, np.array(counts)))


@pytest.mark.parametrize(("errors", "is_beyond_luck"), [(0.0, False), (3.5, False), (12.0, True)])
def test_a_refutation_that_may_be_luck_does_not_end_learning(
    errors: float, is_beyond_luck: bool
) -> None:
    found = cells(errors)
    # The one in the middle is sure at the deviations that a rule is frozen by, and yet is luck.
    assert refutes(found, AIM) is (errors > 2)
    assert may_freeze_early([cells(0.0), found], AIM) is is_beyond_luck


def test_a_score_that_refutes_does_not_end_learning_early() -> None:
    counts = cells(12.0).held_out
    score = OrderedBins("score", counts, tuning.PENALTY, BinSource(), scored=A_SCORE)
    assert refutes(score, AIM, tuning.DEVIATIONS_BEYOND_LUCK)
    assert not may_freeze_early([score], AIM)


def test_nothing_is_sure_to_refute_a_curve() -> None:
    assert not may_freeze_early([cells(12.0)], replace(AIM, for_delta=True))


def test_an_order_that_tells_nothing_promises_nothing() -> None:
    nothing = cells(-1.0 / math.sqrt(1.3 / 2_000))
    assert promises_nothing([nothing], AIM)
    assert promises_nothing([], AIM)
    assert not promises_nothing([nothing, cells(0.0)], AIM)


@pytest.mark.parametrize(("times", "gains"), [(1, True), (20, False)])
def test_more_counts_pay_while_it_is_open_which_cell_tells_more(times: int, gains: bool) -> None:
    """Of four million draws an eighth leaves open whether the rarer cell tells more than both."""
    telling = [(4_221, 3_576), (14_966, 13_156)]
    rest = [(46_000 - 700 * one, 46_350 - 700 * one) for one in range(5)]
    counts = times * np.array([*telling, *rest, (0, 0)])
    aim = Objective(ProfilePoint(0.182, 0.0), times * 3_500_000, counted=True)
    found = UnorderedCells.of("single cells", CellCounts(NEVER, counts))
    assert gains_by_more([found], aim) is gains


def split(d1: int, d2: int) -> RareOutputs:
    """Return an order of outcomes that came up so often, which are taken for what they were."""
    counts = np.array([[20_000 - d2, 20_000 - d1], [d2, d1], [0, 0]])[:, ::-1]
    expected = ExpectedDraws(counts[:2].astype(float), np.zeros(2))
    return RareOutputs(RARE, counts, tuning.PENALTY_ANY_ORDER, NEVER, expected=expected)


def rare_table(of_d1: int, of_d2: int) -> RareTable:
    """Return the rare outputs of 40,000 draws: 77, equally often for both inputs."""
    coins = np.arange(1_000) % 2 == 0
    rare_filter = RareFilter.of(SelectionDraws(from_raw(np.where(coins, 1.0, 0.0)), coins))
    is_d1 = np.arange(of_d1 + of_d2) < of_d1
    kept = SelectionDraws(from_raw([77.0] * (of_d1 + of_d2)), is_d1)
    return RareTable(rare_filter, kept, np.array([20_000, 20_000]))


NOTHING_RARE = rare_table(0, 0)


@pytest.mark.parametrize(
    ("d1", "d2", "epsilon", "may"),
    [
        (300, 100, 3.0, True),  # far from the claim, and more than others promise
        (300, 290, 3.0, False),
        (20, 5, 1.0, False),
        (20, 15, 1.0, False),
    ],
)
def test_a_column_that_promises_most_is_spared(d1: int, d2: int, epsilon: float, may: bool) -> None:
    aim = Objective(ProfilePoint(epsilon, 1e-6), 40_000)
    columns = [("a", split(d1, d2)), ("b", split(10, 10))]
    assert columns_that_may_refute(columns, NOTHING_RARE, [], aim) == ({"a"} if may else set())


@pytest.mark.parametrize("for_delta", [False, True])
def test_a_column_that_promises_less_than_others_do_is_not_spared(for_delta: bool) -> None:
    aim = Objective(ProfilePoint(3.0, 1e-6) if not for_delta else ProfilePoint(0.0, 0.0), 40_000)
    aim = replace(aim, for_delta=for_delta)
    columns = [("a", split(300, 100))]
    assert columns_that_may_refute(columns, NOTHING_RARE, [], aim) == {"a"}
    assert columns_that_may_refute(columns, NOTHING_RARE, [cells(10.0)], aim) == set()


@pytest.mark.parametrize(("of_d1", "of_d2", "may"), [(30, 0, True), (0, 30, True), (15, 15, False)])
def test_a_column_that_the_rare_rule_guesses_by_is_spared_whatever_others_promise(
    of_d1: int, of_d2: int, may: bool
) -> None:
    found = columns_that_may_refute([], rare_table(of_d1, of_d2), [cells(10.0)], AIM)
    assert found == ({"output"} if may else set())


@pytest.mark.parametrize(("of_d1", "of_d2"), [(30, 0), (0, 30)])
def test_what_is_learned_again_has_the_rare_rule_of_all_draws(of_d1: int, of_d2: int) -> None:
    rare = rare_table(of_d1, of_d2)
    found = learn_again([cells(0.0, cells_of=Sides())], AIM, [rare], to_bet=False)
    main, side = found.portfolio.rules
    assert (main.kind, side.kind) == ("main", "rare")
    assert [main.share, side.share] == pytest.approx([0.92, 0.08])
    assert found.rare_filter is rare.rare_filter
    assert found.promises
    guess: Literal[1, -1] = 1 if of_d1 else -1
    assert side.words(guess) == "output is 77"
    levels = found.portfolio(from_raw([0.0, 1.0, 77.0]))
    assert found.portfolio.table[1][levels].tolist() == [0, 0, guess]
