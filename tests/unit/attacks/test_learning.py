"""What is learned from selection draws: orders, cut-offs, beliefs; and when further counts end."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.additive import additive
from dpaudit.attacks.learning import (
    _OF_ONE_COLUMN,
    columns_worth_counting,
    learn,
    may_freeze_early,
    relearn,
)
from dpaudit.attacks.objective import Objective, refutes
from dpaudit.attacks.rare_outputs import NAME as RARE
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.attacks.scorers import OPTIONAL, SCORERS
from dpaudit.attacks.single_columns import one_dimensional
from dpaudit.attacks.single_outputs import atoms, choose_single_outputs, has_atoms
from dpaudit.attacks.trees import trees
from dpaudit.claims import ProfilePoint
from dpaudit.config.building import build_spec
from dpaudit.draws import FreshDraws, LevelArray, SelectionDraws
from dpaudit.levels.candidates import Candidate, CellOrder, fixed
from dpaudit.levels.level_map import LevelMap, cut_by_mass
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.levels.rule_tables import (
    RuleTable,
    guesses_of,
    never_abstaining,
)
from dpaudit.levels.shrinkage import ExpectedDraws
from dpaudit.outcomes import Outcomes, Raised, from_raw
from dpaudit.stats.game import Game

Arms = NDArray[np.bool_]
Family = Callable[[np.random.Generator, Arms], object]
METHOD = Path(__file__).parents[3] / "docs" / "method.md"


def selection(family: Family, size: int, seed: int = 0) -> SelectionDraws:
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(size) < 0.5
    return SelectionDraws(from_raw(family(rng, is_d1)), is_d1)  # type: ignore[arg-type]  # any family


def laplace(rng: np.random.Generator, is_d1: Arms) -> object:
    return rng.laplace(size=len(is_d1)) + ~is_d1


def vectors(rng: np.random.Generator, is_d1: Arms) -> object:
    noise = rng.laplace(size=(len(is_d1), 5))
    noise[:, 2] += ~is_d1
    return noise


def words_of_rr(rng: np.random.Generator, is_d1: Arms) -> object:
    truthful = rng.random(len(is_d1)) < 0.75
    return ["yes" if one else "no" for one in (is_d1 == truthful)]


def played(family: Family, draws: SelectionDraws, seed: int = 99) -> Game:
    """Return the game of what was learned, on a hundred thousand other draws."""
    learned = learn(draws, Objective(ProfilePoint(0.1, 0.0), 100_000)).portfolio
    other = selection(family, 100_000, seed)
    fresh = FreshDraws(other.outcomes, other.is_d1)
    (tally,) = fresh.looks(learned, learned.levels, 100_000)
    return tally.game(learned.guesses)


@pytest.mark.parametrize("family", [laplace, vectors, words_of_rr])
def test_what_is_learned_tells_the_inputs_apart(family: Family) -> None:
    game = played(family, selection(family, 20_000))
    share = game.correct / (game.correct + game.wrong)
    best = 0.75 if family is words_of_rr else math.e / (1 + math.e)
    assert share == pytest.approx(best, abs=0.025)
    assert game.correct + game.wrong > 50_000


def test_scorers_of_one_column_have_the_order_of_all_scorers() -> None:
    assert tuple(one for one in SCORERS if one in _OF_ONE_COLUMN) == _OF_ONE_COLUMN


@pytest.mark.parametrize("name", OPTIONAL)
def test_the_option_of_a_scorer_switches_it_on(name: str) -> None:
    given = {"mechanism": "mechanisms.laplace:laplace", "d1": 0, "d2": 1, "claim": {"epsilon": 1}}
    assert build_spec(given).switches == set()
    assert build_spec({**given, name: 2 if name == "repeat" else True}).switches == {name}


def test_docs_describe_every_scorer() -> None:
    section = METHOD.read_text("utf-8").partition("**Scorers.**")[2].partition("**Candidates.**")[0]
    described = [
        name
        for names in re.findall(r"^\* (`\w+`(?:, `\w+`)*)", section, flags=re.MULTILINE)
        for name in re.findall(r"\w+", names)
    ]
    every: list[Any] = [*SCORERS, *OPTIONAL.values(), trees]
    assert sorted(described) == sorted(one.__name__ for one in every)


def test_held_out_tallies_count_every_draw_once() -> None:
    for family, attack in ((laplace, one_dimensional), (vectors, additive), (words_of_rr, atoms)):
        draws = selection(family, 3_000)
        for candidate in attack(draws):
            assert candidate.counts.sum(axis=0).tolist() == [
                int(draws.is_d1.sum()),
                int((~draws.is_d1).sum()),
            ]
            level = candidate.level_map()
            assert level.levels == len(candidate.counts) <= 66
            place = level(draws.outcomes)
            assert place.max() < level.levels
            assert np.array_equal(
                level.tally(draws.outcomes), np.bincount(place, minlength=level.levels)
            )


def test_levels_are_cut_by_mass_and_keep_ties_together() -> None:
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal(size=(6, 300)), 1)
    masses = rng.integers(0, 40, size=300).astype(float)
    level, levels = cut_by_mass(scores, masses)
    assert level.shape == (6, 300)
    assert level.max() < levels <= 64
    last = scores[-1]
    for one, other in itertools.pairwise(np.unique(last)):
        assert level[-1, last == one].max() <= level[-1, last == other].min()
        assert len(set(level[-1, last == one].tolist())) == 1


def test_the_table_of_rules_is_every_rule_played() -> None:
    held_out = np.array([[1, 30], [4, 25], [9, 21], [15, 16], [20, 8], [28, 3], [2, 5]])
    table = RuleTable.of(held_out)
    for low, high in itertools.product(range(7), repeat=2):
        if low > high:
            assert not table.possible[low, high]
            continue
        rule = guesses_of((low, high), 7)
        assert rule.tolist() == [-1] * low + [0] * (high - low) + [1] * (6 - high) + [0]
        right = held_out[rule > 0, 0].sum() + held_out[rule < 0, 1].sum()
        wrong = held_out[rule > 0, 1].sum() + held_out[rule < 0, 0].sum()
        played = table.correct[low, high], table.wrong[low, high]
        assert played == pytest.approx((right, wrong))
        both = (rule > 0).any() and (rule < 0).any()
        assert table.h[low, high] == (1.0 if both else 0.5)
    always = np.unravel_index(int(np.argmax(never_abstaining(table))), table.correct.shape)
    assert always[0] == always[1]


def test_an_input_that_came_up_more_often_makes_no_event_look_better() -> None:
    # d1 happened to be drawn a tenth more often.
    held_out = np.array([[110, 272], [990, 728], [0, 0]])
    even = np.array([[100, 272], [900, 728], [0, 0]])
    balanced, table = RuleTable.of_balanced(held_out), RuleTable.of(even)
    assert balanced.correct == pytest.approx(1.05 * table.correct, rel=0.01)
    assert balanced.wrong == pytest.approx(1.05 * table.wrong, rel=0.01)


def leaky(rng: np.random.Generator, is_d1: Arms) -> object:
    """`0` is evidence for d1, `3` for d2, and d2 raises now and then."""
    outcome = rng.choice(4, size=len(is_d1), p=[0.2, 0.4, 0.4, 0.0])
    other = rng.choice(4, size=len(is_d1), p=[0.0, 0.4, 0.4, 0.2])
    raised = ~is_d1 & (rng.random(len(is_d1)) < 0.1)
    picked = np.where(is_d1, outcome, other).tolist()
    return [Raised("E", "") if bad else one for one, bad in zip(picked, raised, strict=True)]


def test_atoms_are_accused_for_their_own_input_and_exceptions_never() -> None:
    draws = selection(leaky, 5_000)
    assert has_atoms(draws)
    accused = choose_single_outputs(draws, ProfilePoint(1.0, 0.05))
    named = dict(zip(accused.words, zip(accused.for_d1, accused.for_d2, strict=True), strict=True))
    assert named["0"] == (True, False)
    assert named["3"] == (False, True)
    assert not any("raised" in word for word in named)
    assert not has_atoms(selection(laplace, 2_000))


def revealing(rng: np.random.Generator, is_d1: Arms) -> object:
    """A randomised response, in which d1 alone gives a third answer, with probability 1 %."""
    answers = np.where(rng.random(len(is_d1)) < 0.75, is_d1, ~is_d1).astype(float)
    answers[is_d1 & (rng.random(len(is_d1)) < 0.01)] = 7.0
    return answers


@pytest.mark.parametrize(("delta", "bets"), [(1e-3, 2), (0.0, 1)])
def test_of_all_that_is_kept_the_last_rules_bet_on_what_one_input_alone_gave(
    delta: float, bets: int
) -> None:
    draws, aim = selection(revealing, 4_000), Objective(ProfilePoint(1.1, delta), 100_000)
    usual, learned = (learn(draws, replace(aim, reserve=kept)) for kept in (False, True))
    levels = learned.portfolio(from_raw(np.array([0.0, 1.0, 7.0]))).astype(np.intp)
    rules = learned.beliefs.rules[:, levels].tolist()
    assert rules[len(usual.beliefs.rules) :] == [[0, 0, 1]] * bets


AIM = Objective(ProfilePoint(1.0, 1e-6), 10_000_000)
NEVER: Any = None


class Sides(LevelMap):
    """The level of a number: 0 below ½, else 1; 2 for unseen."""

    levels = 3

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        (column,) = outcomes.columns
        return np.where(column.numbers < 0.5, 0, 1)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return str(chosen.tolist())


def cells(errors: float, common: int = 2_000, cells_of: LevelMap = NEVER) -> Candidate:
    """Return an order of two cells, one of which exceeds the claim by some standard errors."""
    ratio = math.exp(1.0 + errors * math.sqrt(1.3 / common))
    often = round(ratio * common)
    counts = [[often, common], [20_000 - often, 20_000 - common], [0, 0]]
    return CellOrder(cells_of, np.array(counts)).candidate("single cells")


@pytest.mark.parametrize(("errors", "is_beyond_luck"), [(0.0, False), (3.5, False), (12.0, True)])
def test_a_refutation_that_may_be_luck_does_not_end_learning(
    errors: float, is_beyond_luck: bool
) -> None:
    found = cells(errors)
    # The one in the middle is sure at the deviations that a rule is frozen by, and yet is luck.
    assert refutes(found, AIM) is (errors > 2)
    assert may_freeze_early([cells(0.0), found], AIM) is is_beyond_luck


def test_nothing_is_sure_to_refute_a_curve() -> None:
    assert not may_freeze_early([cells(12.0)], replace(AIM, points=(AIM.point,)))


def split(d1: int, d2: int) -> Candidate:
    """Return an order of outcomes that came up so often, which are taken for what they were."""
    counts = np.array([[20_000 - d2, 20_000 - d1], [d2, d1], [0, 0]])[:, ::-1]
    expected = ExpectedDraws(counts[:2].astype(float), np.zeros(2))
    return Candidate(
        RARE, counts, fixed(NEVER), has_many_cells=True, estimate=expected, is_rare=True
    )


def rare_table(of_d1: int, of_d2: int) -> RareTable:
    """Return the rare outputs of 40,000 draws: 77, equally often for both inputs."""
    coins = np.arange(1_000) % 2 == 0
    rare_filter = RareFilter.of(SelectionDraws(from_raw(np.where(coins, 1.0, 0.0)), coins))
    is_d1 = np.arange(of_d1 + of_d2) < of_d1
    kept = SelectionDraws(from_raw([77.0] * (of_d1 + of_d2)), is_d1)
    return RareTable(rare_filter, kept, np.array([20_000, 20_000]))


NOTHING_RARE = rare_table(0, 0)


def test_a_column_is_spared_if_it_promises_something_and_more_than_others_do() -> None:
    aim = Objective(ProfilePoint(3.0, 1e-6), 40_000)
    columns = [("a", split(300, 100)), ("b", split(10, 10))]
    assert columns_worth_counting(columns, NOTHING_RARE, [], aim) == {"a"}
    assert columns_worth_counting(columns, NOTHING_RARE, [cells(10.0)], aim) == set()
    assert columns_worth_counting([("a", split(300, 290))], NOTHING_RARE, [], aim) == set()
    # Of few draws, what is taken for luck is lowered by its counts as well.
    aim = replace(aim, point=ProfilePoint(1.0, 1e-6))
    columns = [("a", split(20, 5)), ("b", split(10, 10))]
    assert columns_worth_counting(columns, NOTHING_RARE, [], aim) == set()


@pytest.mark.parametrize(("of_d1", "of_d2", "may"), [(30, 0, True), (0, 30, True), (15, 15, False)])
def test_a_column_that_the_rare_rule_guesses_by_is_spared_whatever_others_promise(
    of_d1: int, of_d2: int, may: bool
) -> None:
    spared = columns_worth_counting([], rare_table(of_d1, of_d2), [cells(10.0)], AIM)
    assert spared == ({"output"} if may else set())


@pytest.mark.parametrize(("of_d1", "of_d2"), [(30, 0), (0, 30)])
def test_what_is_learned_again_has_the_rare_rule_of_all_draws(of_d1: int, of_d2: int) -> None:
    rare = rare_table(of_d1, of_d2)
    found = relearn([cells(0.0, cells_of=Sides())], AIM, [rare])
    main, side = found.portfolio.rules
    assert (main.role, side.role) == ("main", "rare")
    assert [main.share, side.share] == pytest.approx([0.92, 0.08])
    assert found.rare_filter is rare.rare_filter
    assert found.predicts_bound
    guess: Literal[1, -1] = 1 if of_d1 else -1
    assert side.words(guess) == "output is 77"
    levels = found.portfolio(from_raw([0.0, 1.0, 77.0]))
    assert found.portfolio.all_guesses[1][levels].tolist() == [0, 0, guess]
