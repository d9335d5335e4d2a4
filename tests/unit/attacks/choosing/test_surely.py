"""What one input alone gave, and bets on it beside any other order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.choosing.aim import Aim
from dpaudit.attacks.choosing.freezing import frozen
from dpaudit.attacks.choosing.going_on import learn_again
from dpaudit.attacks.choosing.surely import SetApart, sure_growth, sure_guesses, with_the_sure
from dpaudit.attacks.rare import NAME as RARE
from dpaudit.claims import ProfilePoint
from dpaudit.draws import LevelArray
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate, Fine, of_cells
from dpaudit.levels.cells import NO_OUTPUT
from dpaudit.levels.level_map import LevelMap
from dpaudit.outcomes import Outcomes, from_raw

AIM = Aim(ProfilePoint(1.1, 1e-6), 1_000_000, reserve=True)
# So many draws of one input alone are allowed by ε = 1.1 with a probability of 0.32, or of 0.02.
FEW, MANY, LUCK = 4, 13, 1 / 3


@dataclass(frozen=True, slots=True, eq=False)
class Remainder(LevelMap):
    """Level a whole number by what is left of it."""

    levels: int

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return (outcomes.columns[0].numbers % self.levels).astype(np.intp)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return f"{np.flatnonzero(chosen).tolist()} mod {self.levels}"


def order(counts: list[list[int]], name: str = RARE) -> Candidate:
    return Candidate(name, np.array(counts), tuning.PENALTY, partial(Remainder, len(counts)))


def rare(seen: int, *, by: int = 0) -> Candidate:
    one = [0, seen] if by else [seen, 0]
    return order([[900, 900], one, [0, 0]])


USUAL = order([[200, 600], [600, 200], [0, 0]], "threshold")


@pytest.mark.parametrize(("seen", "luck", "is_sure"), [
    (FEW, LUCK, True), (FEW, 0.03, False), (MANY, 0.03, True), (FEW - 1, LUCK, False),
])  # fmt: skip
@pytest.mark.parametrize("by", [0, 1])
def test_what_one_input_gave_so_often_is_guessed(
    seen: int, luck: float, is_sure: bool, by: int
) -> None:
    guess = 1 - 2 * by
    assert sure_guesses(rare(seen, by=by), AIM, luck).tolist() == [0, guess * is_sure, 0]


def test_of_two_inputs_the_one_with_more_such_draws_is_guessed() -> None:
    both = order([[MANY, 0], [0, MANY + 1], [MANY, 1], [9, 9], [0, 0]])
    assert sure_guesses(both, AIM, LUCK).tolist() == [0, -1, 0, 0, 0]


def test_of_many_cells_some_are_lucky() -> None:
    counts = np.array([[900, 900], *([[9, 3]] * 60), [FEW, 0], [0, 0]])
    cells = of_cells("single cells", Fine(Remainder(len(counts)), counts))
    assert not sure_guesses(cells, AIM, LUCK).any()
    counts[-2] = [40, 0]
    cells = of_cells("single cells", Fine(Remainder(len(counts)), counts))
    level = cells.freeze()(from_raw(np.arange(float(len(counts)))))
    guessed = sure_guesses(cells, AIM, LUCK)[level]
    assert np.flatnonzero(guessed).tolist() == [len(counts) - 2]


def test_of_many_rare_cells_that_tell_nothing_some_are_lucky() -> None:
    noise = [[3, 3]] * 12
    assert not sure_guesses(order([[900, 900], *noise, [FEW, 0], [0, 0]]), AIM, LUCK).any()
    # 15 levels, of which each gives as many of one input alone with a probability of 1/64.
    assert sure_guesses(order([[900, 900], *noise, [6, 0], [0, 0]]), AIM, LUCK)[-2] == 1
    assert not sure_guesses(order([[900, 900], *noise, [5, 0], [0, 0]]), AIM, LUCK).any()


def test_lucky_cells_are_not_sure_because_they_are_many_together() -> None:
    counts = np.array([[900, 900], *([[3, 0]] * 20), [0, 0]])
    cells = of_cells("single cells", Fine(Remainder(len(counts)), counts))
    assert not sure_guesses(cells, AIM, LUCK).any()


def test_growth_grows_with_the_draws_and_is_none_where_they_may_be_luck() -> None:
    assert sure_growth(rare(FEW - 1), AIM) == 0
    few, many = (sure_growth(rare(seen), AIM) for seen in (FEW + 1, MANY))
    assert 0 < few < many < MANY * 0.29


@pytest.mark.parametrize("by", [0, 1])
def test_an_order_that_is_bet_on_gets_a_level_for_what_another_one_is_sure_of(by: int) -> None:
    found = with_the_sure(USUAL, [USUAL, rare(MANY, by=by)], AIM)
    level = found.freeze()
    assert isinstance(level, SetApart)
    assert level.levels == len(found.held_out) == len(USUAL.held_out) + 1
    place = 0 if by else 2
    assert found.held_out[place].tolist() == ([0, MANY] if by else [MANY, 0])
    # Numbers that leave 1 when divided by 3 are set apart, whatever else they are.
    numbers = np.arange(12.0)
    levels = level(from_raw(numbers))
    usual = USUAL.freeze()(from_raw(numbers)).astype(np.int64)
    assert np.array_equal(levels, np.where(numbers % 3 == 1, place, usual + (usual >= place)))
    assert np.flatnonzero(sure_guesses(found, AIM, LUCK)).tolist() == [place]
    apart = np.arange(level.levels) == place
    assert level.words(apart & ~apart) == NO_OUTPUT
    assert level.words(apart).endswith("[1] mod 3")
    assert level.words(~apart).endswith("and not: [1] mod 3")


def test_it_is_for_bets_alone() -> None:
    # More than the claim allows, but by no more than luck.
    lucky = order([[200, 680], [680, 200], [0, 0]], "threshold")
    both = [lucky, rare(FEW)]
    bet_on, kept = (learn_again(both, AIM, to_bet=to_bet) for to_bet in (True, False))
    assert bet_on.beliefs.rules[-1].tolist() == [0, 0, 1, 0]
    assert isinstance(bet_on.distinguisher.level, SetApart)
    assert not isinstance(kept.distinguisher.level, SetApart)


@pytest.mark.parametrize("aim", [
    replace(AIM, reserve=False), replace(AIM, point=ProfilePoint(1.1, 0.0)),
])  # fmt: skip
def test_without_a_stake_for_it_nothing_is_set_apart(aim: Aim) -> None:
    assert with_the_sure(USUAL, [USUAL, rare(MANY)], aim) is USUAL


def test_what_shows_as_much_by_itself_stays_as_it_is() -> None:
    one = rare(MANY)
    assert with_the_sure(one, [one, rare(FEW)], AIM) is one
    assert with_the_sure(USUAL, [USUAL, rare(FEW - 1)], AIM) is USUAL


def test_no_lucky_level_of_the_order_is_guessed_beside_it() -> None:
    lucky = order([*([[0, 8]] * 4), *([[500, 500]] * 40), [0, 0]], "threshold")
    found = with_the_sure(lucky, [lucky, rare(25)], AIM)
    for luck in (LUCK, 0.03):
        assert np.flatnonzero(sure_guesses(found, AIM, luck)).tolist() == [found.apart] == [44]


def test_of_cells_the_levels_to_expect_get_one_more() -> None:
    counts = np.array([[200, 600], [600, 200], [0, 0]])
    cells = of_cells("single values", Fine(Remainder(3), counts))
    found = with_the_sure(cells, [cells, rare(MANY)], AIM)
    assert found.shrunk is not None
    assert found.shrunk.expected[-1].tolist() == [MANY, 0]
    assert frozen(found, [found], AIM).beliefs.rules[-1].tolist() == [0, 0, 1, 0]
