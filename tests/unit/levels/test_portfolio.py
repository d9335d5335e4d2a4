"""One table of levels for several rules: the guess of each rule follows from the level."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.draws import LevelArray
from dpaudit.levels.level_map import IntArray, LevelMap
from dpaudit.levels.portfolio import JointLevels, Portfolio, Rule
from dpaudit.outcomes import Outcomes, from_raw

VALUES = 30


@dataclass(frozen=True)
class Looked(LevelMap):
    """The level of a whole number, looked up; the last level for all else."""

    of: tuple[int, ...]

    @property
    def levels(self) -> int:
        return max(self.of) + 2

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        (column,) = outcomes.columns
        is_known = (column.numbers >= 0) & (column.numbers < len(self.of))
        place = np.where(is_known, column.numbers, 0).astype(np.intp)
        return np.where(is_known, np.array(self.of)[place], self.levels - 1)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return f"level in {np.flatnonzero(chosen).tolist()}"


def looked(rng: np.random.Generator, levels: int) -> Looked:
    return Looked((*range(levels), *rng.integers(levels, size=VALUES - levels).tolist()))


def guesses_of(rng: np.random.Generator, levels: int, abstains: float) -> IntArray:
    found = rng.choice(
        [-1, 0, 1], p=[(1 - abstains) / 2, abstains, (1 - abstains) / 2], size=levels
    )
    return found.astype(np.int64)


def portfolio(seed: int, sides: int) -> list[Rule]:
    """Return a main rule and a number of others that mostly abstain."""
    rng = np.random.default_rng(seed)
    kinds: tuple[Literal["main", "rare", "other"], ...] = ("main", "rare", "other")
    rules = []
    for place in range(1 + sides):
        level = looked(rng, int(rng.integers(1, 9)))
        guesses = guesses_of(rng, level.levels, 0.7 if place else 0.3)
        share = (1 - 0.1 * sides) if place == 0 else 0.1
        rules.append(Rule(kinds[place], f"attack {place}", level, guesses, share))
    return rules


OUTCOMES = from_raw(np.array([*range(VALUES), 77.0, -5.0]))


@pytest.mark.parametrize("sides", [0, 1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_the_guess_of_every_rule_follows_from_the_joint_level(seed: int, sides: int) -> None:
    rules = portfolio(seed, sides)
    joint = Portfolio.of(rules)
    level = joint(OUTCOMES)
    assert joint.all_guesses.shape == (1 + sides, joint.levels)
    assert level.min() >= 0
    assert level.max() < joint.levels
    for rule, row in zip(rules, joint.all_guesses, strict=True):
        assert row[level].tolist() == rule.guesses[rule.level(OUTCOMES)].tolist()
    assert joint.guesses.tolist() == joint.all_guesses[0].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_where_all_side_rules_abstain_the_level_is_that_of_the_main_rule(seed: int) -> None:
    main, *sides = portfolio(seed, 2)
    joint = Portfolio.of([main, *sides])
    own = main.level(OUTCOMES)
    guessed = [rule.guesses[rule.level(OUTCOMES)] != 0 for rule in sides]
    is_alone = ~np.any(guessed, axis=0)
    level = joint(OUTCOMES)
    assert np.array_equal(level[is_alone], own[is_alone])
    assert (level[~is_alone] >= main.level.levels).all()


def test_every_combination_of_guesses_has_a_level_of_its_own() -> None:
    """Nine outcomes: each guess of two side rules, by which a main rule of one guess is split."""
    combinations = list(itertools.product((-1, 0, 1), repeat=2))
    numbers = tuple(range(len(combinations)))
    main = (Looked((0,) * len(numbers)), np.array([1, 0]))
    first, second = (
        (Looked(numbers), np.array([*(one[place] for one in combinations), 0])) for place in (0, 1)
    )
    joint = JointLevels.of(*main, [first, second])
    level = joint(from_raw(np.array(numbers, dtype=float)))
    assert len(set(level.tolist())) == len(combinations)
    assert joint.guesses()[1:, level].T.tolist() == [list(one) for one in combinations]
    assert set(joint.guesses()[0, level].tolist()) == {1}


def test_joint_levels_may_be_sent_to_a_worker() -> None:
    joint = Portfolio.of(portfolio(0, 2))
    again = pickle.loads(pickle.dumps(joint))
    assert again(OUTCOMES).tolist() == joint(OUTCOMES).tolist()
    assert again.all_guesses.tolist() == joint.all_guesses.tolist()
    assert [rule.role for rule in again.rules] == ["main", "rare", "other"]


@pytest.mark.parametrize("seed", range(5))
def test_the_level_depends_on_the_outcome_alone(seed: int) -> None:
    joint = Portfolio.of(portfolio(seed, 2))
    some = np.arange(OUTCOMES.size)[::-3]
    assert joint(OUTCOMES.take(some)).tolist() == joint(OUTCOMES)[some].tolist()
    assert len(joint(OUTCOMES.take(slice(0)))) == 0
    by_level = np.bincount(joint(OUTCOMES), minlength=joint.levels)
    assert joint.level.tally(OUTCOMES).tolist() == by_level.tolist()


def test_right_and_wrong_guesses_are_counted_of_both_inputs() -> None:
    level, guesses = Looked((0, 1)), np.array([1, -1, 0])
    assert Rule("main", "", level, guesses).right_and_wrong == (0.0, 0.0)
    expected = np.array([[30.0, 4.0], [5.0, 60.0]])
    assert Rule("main", "", level, guesses, 1.0, expected).right_and_wrong == (90.0, 9.0)
