"""Which columns a sum is made of: those that tell something, and none for being lucky."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.attacks.additive import Additive, additive
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.scores import ScoreLevels
from dpaudit.outcomes import from_raw

DRAWS, COLUMNS = 20_000, 60


def drawn(shifts: list[float], seed: int) -> SelectionDraws:
    """Return draws with Laplace noise, each column moved by its shift for d2."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(DRAWS) < 0.5
    moved = np.where(is_d1[:, None], 0.0, np.array(shifts))
    return SelectionDraws(from_raw(rng.laplace(0.0, 1.0, (DRAWS, len(shifts))) + moved), is_d1)


def weighing(candidate: Candidate) -> int:
    """Return how many columns weigh something."""
    level = candidate.level_map()
    assert isinstance(level, ScoreLevels)
    assert isinstance(level.score, Additive)
    return len(level.score.columns)


def log_ratio(counts: np.ndarray) -> float:
    ahead, behind = counts.sum(axis=0) + 0.5
    return float(np.log(ahead / behind))


def test_of_many_idle_columns_hardly_any_is_taken() -> None:
    taken = [weighing(additive(drawn([1.0] + [0.0] * (COLUMNS - 1), seed))[0]) for seed in range(4)]
    assert min(taken) >= 1
    # A tenth of those taken may be noise; ten would be a sixth of all.
    assert sum(taken) <= 4 + 3


@pytest.mark.parametrize("seed", [0, 1])
def test_idle_columns_do_not_flatter_the_tails_of_the_sum(seed: int) -> None:
    shifts = [1.0] + [0.0] * (COLUMNS - 1)
    (candidate,) = additive(drawn(shifts, seed))
    fresh = drawn(shifts, 100 + seed)
    level = candidate.level_map()
    places = level(fresh.outcomes)
    cells = np.bincount(places * 2 + ~fresh.is_d1, minlength=2 * level.levels).reshape(-1, 2)
    for part in (slice(0, 8), slice(-9, -1)):
        promised, kept = log_ratio(candidate.counts[part]), log_ratio(cells[part])
        error = np.sqrt(
            sum((1 / (1 + one[part].sum(axis=0))).sum() for one in (cells, candidate.counts))
        )
        assert abs(promised - kept) < 4 * error


def test_many_columns_that_tell_a_little_are_all_taken() -> None:
    # Each gains at most n ε²/8 = 12 nats.
    assert weighing(additive(drawn([0.07] * 20, 3))[0]) >= 18
