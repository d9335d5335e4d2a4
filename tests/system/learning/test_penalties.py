"""Penalties of the main rule, compared over many seeds."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.claims import ProfilePoint
from dpaudit.levels import tuning
from dpaudit.levels.rule_tables import RuleTable
from dpaudit.outcomes import from_raw
from tests.unit.attacks.test_learning import Arms, selection


def test_where_nothing_is_promised_the_main_rule_is_chosen_without_a_penalty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One answer of a thousand is too rare for the usual penalties."""

    def rarely(rng: np.random.Generator, is_d1: Arms) -> object:
        numbers = rng.integers(1_000, size=len(is_d1)).astype(float)
        numbers[is_d1 & (rng.random(len(is_d1)) < 0.006)] = 500.0
        return numbers

    def singled_out() -> int:
        """Return how often it is among few outputs that are guessed to be d1's."""
        found = 0
        for seed in range(24):
            learned = learn(
                selection(rarely, 4_000, seed), Objective(ProfilePoint(2.0, 0.0), 4_000)
            )
            rule = learned.portfolio
            guesses = rule.guesses[rule(from_raw(np.arange(1e3)))]
            found += int(guesses[500] == 1 and np.mean(guesses != 0) < 0.1)
            assert not learned.predicts_bound
        return found

    lowered = Objective.predicted_bounds

    def by_a_penalty(aim: Objective, table: RuleTable, penalty: float) -> NDArray[np.float64]:
        return lowered(aim, table, penalty or tuning.PENALTY_ANY_ORDER)

    without_penalty = singled_out()
    monkeypatch.setattr(Objective, "predicted_bounds", by_a_penalty)
    assert without_penalty >= singled_out() + 4
