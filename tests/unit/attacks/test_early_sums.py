"""Weighted sums of the columns of a vector, to bet on after few draws."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.attacks.early_bets import bet_early
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.scorers import SCORERS
from dpaudit.attacks.weighted_sums import by_mean_differences
from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.scores import ScoreLevels
from dpaudit.outcomes import from_raw

COLUMNS, FEW, MANY = 16, 150, 4_000


def _draws(size: int, direction: FloatArray, seed: int) -> SelectionDraws:
    """Return draws of normal vectors whose means differ by a unit vector."""
    rng = np.random.default_rng([seed, size])
    is_d1 = rng.random(size) < 0.5
    return SelectionDraws(
        from_raw(rng.normal(size=(size, COLUMNS)) + is_d1[:, None] * direction), is_d1
    )


def _directions() -> list[FloatArray]:
    random = np.random.default_rng(5).normal(size=COLUMNS)
    return [np.full(COLUMNS, COLUMNS**-0.5), random / np.linalg.norm(random)]


@pytest.mark.parametrize("direction", _directions(), ids=["equal", "random"])
def test_beliefs_about_a_vector_gain_on_later_draws(direction: FloatArray) -> None:
    later = _draws(MANY, direction, 0)
    gains = []
    for seed in range(1, 5):
        draws = _draws(FEW, direction, seed)
        learned = bet_early(draws, Objective(ProfilePoint(0.0, 0.0), 1_000), SCORERS)
        level = learned.portfolio(later.outcomes)
        belief = learned.beliefs.posteriors[3][level]
        gains.append(np.log(2 * np.where(later.is_d1, belief, 1 - belief)).mean())
    # The belief of one who knows the law gains 0.11 nats a draw.
    assert np.mean(gains) > 0.03


def test_weights_that_are_alike_are_shrunk_towards_their_mean() -> None:
    equal, later = _directions()[0], _draws(MANY, _directions()[0], 0)
    truth = np.stack([column.numbers for column in later.outcomes.columns], axis=1) @ equal
    correlations: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(1, 5):
        for pools, found in correlations.items():
            (order,) = by_mean_differences(_draws(FEW, equal, seed), pools=pools)
            level = order.level_map()
            assert isinstance(level, ScoreLevels)
            found.append(float(np.corrcoef(level.score(later.outcomes), truth)[0, 1]))
    assert np.mean(correlations[True]) > 0.95 > np.mean(correlations[False])
