"""Shrinkage of many cells: against EM written out, clusters, levels, and posterior samples."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.levels.level_map import IntArray
from dpaudit.levels.limits import MAX_LEVELS
from dpaudit.levels.shrinkage import (
    _EM_STEPS,
    GRID,
    Law,
    averaged,
    merged,
    shrunk,
    shrunk_to,
)

ARMS = np.array([3_000, 2_400])


def written_out(counts: list[list[int]]) -> list[tuple[float, float]]:
    """Return mean and variance of every cell's share of d1, by EM over the grid in plain loops."""
    even = math.log((ARMS[0] + 1) / (ARMS[1] + 1))
    shares = [1 / (1 + math.exp(-(log_ratio + even))) for log_ratio in GRID]
    likelihood = [
        [math.comb(a + b, a) * share**a * (1 - share) ** b for share in shares] for a, b in counts
    ]
    law = [1 / len(shares)] * len(shares)
    for _ in range(_EM_STEPS):
        blame = []
        for row in likelihood:
            weights = [one * mass for one, mass in zip(row, law, strict=True)]
            blame.append([one / math.fsum(weights) for one in weights])
        law = [math.fsum(column) / len(counts) for column in zip(*blame, strict=True)]
    found = []
    for row in likelihood:
        weights = [one * mass for one, mass in zip(row, law, strict=True)]
        mean = math.fsum(one * share for one, share in zip(weights, shares, strict=True))
        mean /= math.fsum(weights)
        spread = (one * (share - mean) ** 2 for one, share in zip(weights, shares, strict=True))
        found.append((mean, math.fsum(spread) / math.fsum(weights)))
    return found


@pytest.mark.parametrize(
    "counts",
    [
        [[30, 22], [25, 21], [28, 30], [28, 30], [3, 40]],
        [[0, 0], [1, 0], [0, 1]],
        [[7, 4]],
    ],
)
def test_a_small_case_is_em_written_out(counts: list[list[int]]) -> None:
    tallies, wanted = np.array(counts), np.array(written_out(counts))
    share, variance = Law.of(tallies, ARMS).expected(tallies)
    assert share == pytest.approx(wanted[:, 0], rel=1e-9)
    assert variance == pytest.approx(wanted[:, 1], rel=1e-6, abs=1e-12)
    assert np.array_equal(shrunk(tallies, ARMS), share)


def test_a_cell_that_is_known_better_than_the_grid_is_taken_as_it_is() -> None:
    counts = np.array([[600_123, 399_877], [400_000, 600_000]])
    share = shrunk(counts, counts.sum(axis=0))
    assert share == pytest.approx(counts[:, 0] / 1e6, abs=1e-6)


def test_an_exceptional_cell_keeps_its_own_counts_whatever_is_predicted() -> None:
    counts = drawn([*np.linspace(0.3, 0.7, 60).tolist(), 0.0], 200)
    predicted = np.log(np.append(np.linspace(0.3, 0.7, 60) / np.linspace(0.7, 0.3, 60), 1.0))
    share = shrunk_to(predicted, counts, np.array([6_000, 6_000]))
    raw = counts[:, 0] / counts.sum(axis=1)
    assert share[-1] < 0.05
    errors = [np.square(shares[:-1] - np.linspace(0.3, 0.7, 60)).mean() for shares in (share, raw)]
    assert errors[0] < errors[1] / 4


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


def test_a_cell_that_never_came_up_is_even() -> None:
    counts, arms = np.array([[0, 0], [1_000, 100]]), np.array([1_000, 100])
    for share in (shrunk(counts, arms), averaged(counts, arms)):
        assert share[0] == pytest.approx(1_001 / 1_102, abs=0.02)


def test_few_cells_keep_a_level_each_and_equal_ones_share_it() -> None:
    level, levels = merged(np.array([0.7, 0.2, 0.7, 0.5]), np.array([5, 9, 0, 3]))
    assert level.tolist() == [2, 0, 2, 1]
    assert levels == 3


def test_of_many_cells_those_are_joined_that_tell_the_same() -> None:
    rng = np.random.default_rng(1)
    share = np.concatenate([0.5 + 1e-4 * rng.random(1_000), [0.62, 0.63, 0.4]])
    draws = rng.integers(1, 100, size=len(share))
    level, levels = merged(share, draws)
    assert levels == MAX_LEVELS - 1
    assert sorted(level[-3:].tolist()) == level[-3:][[2, 0, 1]].tolist()
    assert level[:1_000].max() < level[1_000] < level[1_001]
    assert level[1_002] < level[:1_000].min()
    assert (np.diff(level[np.argsort(share)]) >= 0).all()
    assert set(level.tolist()) == set(range(levels))
