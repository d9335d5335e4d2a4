"""Cells that may tell equally much, and how they become levels."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.levels.level_map import IntArray
from dpaudit.levels.piecewise_logit import LEVELS
from dpaudit.levels.shrinkage import averaged, merged


def drawn(shares: list[float], draws: int, seed: int = 0) -> IntArray:
    ahead: IntArray = np.random.default_rng(seed).binomial(draws, shares)
    return np.stack([ahead, draws - ahead], axis=1)


def test_cells_of_one_log_ratio_and_either_sign_are_taken_for_equal() -> None:
    counts = drawn([0.6] * 5 + [0.4] * 5 + [0.5] * 90, 2_000)
    share = averaged(counts, counts.sum(axis=0))
    raw = counts[:, 0] / counts.sum(axis=1)
    assert np.ptp(share[:5]) < np.ptp(raw[:5]) / 5
    assert share[:5].mean() - 0.5 == pytest.approx(0.5 - share[5:10].mean(), abs=0.002)
    assert abs(share[10:] - 0.5).max() < 0.01


def test_cells_that_the_counts_tell_apart_stay_apart() -> None:
    counts = drawn([0.545, 0.534, *[0.498] * 9], 4_000_000)
    share = averaged(counts, counts.sum(axis=0))
    assert share == pytest.approx(counts[:, 0] / counts.sum(axis=1), abs=0.001)


def test_any_difference_that_is_clear_is_kept_however_many_there_are() -> None:
    truth = np.linspace(0.05, 0.95, 300).tolist()
    counts = drawn(truth, 1_000_000)
    share = averaged(counts, counts.sum(axis=0))
    error = np.sqrt(np.array(truth) * (1 - np.array(truth)) / 1e6)
    assert (abs(share - counts[:, 0] / 1e6) < 5 * error).all()


def test_the_two_inputs_may_change_places() -> None:
    counts, arms = np.array([[9, 1], [4, 4], [30, 28], [0, 3]]), np.array([50, 45])
    turned, share = averaged(counts[:, ::-1], arms[::-1]), averaged(counts, arms)
    assert turned == pytest.approx(1 - share, rel=1e-6)


@pytest.mark.parametrize("arms", [(1_000, 1_000), (1_000, 100), (100, 1_000)])
def test_a_cell_that_never_came_up_is_even(arms: tuple[int, int]) -> None:
    share = averaged(np.array([[0, 0], list(arms)]), np.array(arms))
    assert share[0] == pytest.approx((arms[0] + 1) / (sum(arms) + 2), abs=0.02)


def test_counts_of_any_size_leave_no_float() -> None:
    counts = np.array([[10**9, 0], [0, 10**9], [0, 0], [1, 10**9]])
    share = averaged(counts, counts.sum(axis=0))
    assert np.all((share > 0) & (share < 1))


def test_few_cells_keep_a_level_each_and_equal_ones_share_it() -> None:
    level, levels = merged(np.array([0.7, 0.2, 0.7, 0.5]), np.array([5, 9, 0, 3]))
    assert level.tolist() == [2, 0, 2, 1]
    assert levels == 3


def test_of_many_cells_those_are_joined_that_tell_the_same() -> None:
    rng = np.random.default_rng(1)
    share = np.concatenate([0.5 + 1e-4 * rng.random(1_000), [0.62, 0.63, 0.4]])
    draws = rng.integers(1, 100, size=len(share))
    level, levels = merged(share, draws)
    assert levels == LEVELS - 1
    assert sorted(level[-3:].tolist()) == level[-3:][[2, 0, 1]].tolist()
    assert level[:1_000].max() < level[1_000] < level[1_001]
    assert level[1_002] < level[:1_000].min()
    assert (np.diff(level[np.argsort(share)]) >= 0).all()
    assert set(level.tolist()) == set(range(levels))


def test_two_log_ratios_near_each_other_are_two_where_counts_tell_them_apart() -> None:
    """By three standard errors; on the grid they have one peak."""
    counts = np.array([[16_665, 14_031], [59_968, 52_607], [184_255, 186_786], [743_000, 747_000]])
    share = averaged(counts, counts.sum(axis=0))
    assert share[:2] == pytest.approx(counts[:2, 0] / counts[:2].sum(axis=1), abs=0.0015)
