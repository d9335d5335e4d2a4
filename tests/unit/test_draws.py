"""Tallies: integers that add up, and the game that a rule makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.draws import AtomTally, Tally
from dpaudit.stats.game import Game

COUNTS = Tally(np.array([[30, 5], [8, 9], [2, 21]]))


def rule(*guesses: int) -> NDArray[np.int64]:
    return np.array(guesses, dtype=np.int64)


def test_tallies_add_up() -> None:
    total = Tally.empty(3) + COUNTS + COUNTS
    assert total.counts.tolist() == [[60, 10], [16, 18], [4, 42]]
    assert total.draws == 150
    assert total.arms == (80, 70)


def test_tallies_of_different_levels_do_not_add_up() -> None:
    """NumPy would broadcast a tally of one level over all levels of the other."""
    with pytest.raises(ValueError, match="3 and of 1"):
        COUNTS + Tally.empty(1)
    atoms = AtomTally(np.array([[1, 0]]), (4, 4))
    with pytest.raises(ValueError, match="tallies of 1 and of 3 levels"):
        atoms + AtomTally(COUNTS.counts, (40, 35))


@pytest.mark.parametrize(
    "counts", [np.zeros(4, int), np.zeros((2, 3), int), np.zeros((2, 2)), np.zeros((2, 2), bool)]
)
def test_only_integers_by_level_and_arm_are_a_tally(counts: NDArray[Any]) -> None:
    with pytest.raises(ValueError, match=r"\(levels, 2\) array of integers"):
        Tally(counts)
    with pytest.raises(ValueError, match="array of integers"):
        AtomTally(counts, (0, 0))


def test_an_event_counts_both_arms() -> None:
    assert COUNTS.event(np.array([True, False, True])) == (32, 26)
    assert COUNTS.event(np.zeros(3, bool)) == (0, 0)


def test_the_game_of_a_rule_with_two_guesses() -> None:
    assert COUNTS.game(rule(1, 0, -1)) == Game(51, 7, 75, two_guesses=True, abstains=True)
    assert COUNTS.game(rule(1, 1, -1)) == Game(59, 16, 75, two_guesses=True, abstains=False)


def test_the_game_of_a_rule_with_one_guess_spares_half_of_delta() -> None:
    first = COUNTS.game(rule(1, 0, 0))
    assert first == Game(30, 5, 75, two_guesses=False, abstains=True)
    assert first.h == 0.5
    second = COUNTS.game(rule(0, 0, -1))
    assert (second.correct, second.wrong, second.h) == (21, 2, 0.5)
    assert COUNTS.game(rule(1, 1, 1)) == Game(40, 35, 75, two_guesses=False, abstains=False)


def test_h_is_a_property_of_the_rule_not_of_the_counts() -> None:
    """A guess that was never made still counts (np.bool_ + np.bool_ once made this ½)."""
    empty_at_d2 = Tally(np.array([[30, 5], [8, 9], [0, 0]]))
    game = empty_at_d2.game(rule(1, 0, -1))
    assert game.two_guesses is True
    assert game.h == 1.0


def test_a_rule_that_always_abstains_makes_no_guess() -> None:
    assert COUNTS.game(rule(0, 0, 0)) == Game(0, 0, 75, two_guesses=False, abstains=True)


def test_exchanging_the_inputs_and_the_guesses_changes_nothing() -> None:
    mirrored = Tally(COUNTS.counts[:, ::-1])
    for guesses in (rule(1, 0, -1), rule(1, 1, 0), rule(0, -1, -1)):
        assert mirrored.game(-guesses) == COUNTS.game(guesses)


def test_counts_stay_python_integers() -> None:
    game = COUNTS.game(rule(1, 0, -1))
    assert {type(value) for value in (game.correct, game.wrong, game.draws, *COUNTS.arms)} == {int}


def test_atom_tallies_add_up_with_their_arms() -> None:
    first = AtomTally(np.array([[3, 0], [1, 2]]), (10, 11))
    total = first + AtomTally(np.array([[1, 1], [0, 0]]), (5, 4))
    assert total.counts.tolist() == [[4, 1], [1, 2]]
    assert total.arms == (15, 15)
