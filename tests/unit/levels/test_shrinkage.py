"""Shrinkage of many cells: against EM written out, and what it is for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.levels.level_map import IntArray
from dpaudit.levels.shrinkage import _STEPS, GRID, Law, shrunk

ARMS = np.array([3_000, 2_400])


def alike(rng: np.random.Generator, cells: int, mean: float) -> IntArray:
    """Return the counts of cells that either input gives with the same probability."""
    return rng.poisson(mean / 2, size=(cells, 2))


def written_out(counts: list[list[int]]) -> list[tuple[float, float]]:
    """Return mean and variance of every cell's share of d1, by EM over the grid in plain loops."""
    even = math.log((ARMS[0] + 1) / (ARMS[1] + 1))
    shares = [1 / (1 + math.exp(-(log_ratio + even))) for log_ratio in GRID]
    likelihood = [
        [math.comb(a + b, a) * share**a * (1 - share) ** b for share in shares] for a, b in counts
    ]
    law = [1 / len(shares)] * len(shares)
    for _ in range(_STEPS):
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
        [[3, 1], [1, 3], [2, 2], [0, 5]],
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


def test_equal_cells_are_shrunk_to_one_another() -> None:
    rng = np.random.default_rng(1)
    counts = alike(rng, cells=400, mean=20)
    seen = counts[:, 0] / counts.sum(axis=1)
    share = shrunk(counts, counts.sum(axis=0))
    assert share.std() < seen.std() / 20
    assert abs(share - 0.5).max() < 0.03 < 0.2 < abs(seen - 0.5).max()


def test_a_clear_cell_among_many_that_are_not_stays() -> None:
    rng = np.random.default_rng(2)
    counts = np.concatenate([alike(rng, cells=300, mean=20), [[60, 3]]])
    share = shrunk(counts, counts.sum(axis=0))
    assert share[-1] == pytest.approx(60 / 63, abs=0.03)
    assert abs(share[:-1] - 0.5).max() < 0.05


def test_half_of_the_cells_of_either_kind_are_told_apart() -> None:
    """Randomised response of many names: the law of log-ratios has two points, and is learned."""
    rng = np.random.default_rng(3)
    truth = np.repeat([0.7, 0.3], 200)
    first = rng.binomial(40, truth)
    counts = np.column_stack([first, 40 - first])
    share, seen = shrunk(counts, counts.sum(axis=0)), first / 40
    assert np.mean((share - truth) ** 2) < np.mean((seen - truth) ** 2) / 4


def test_a_cell_that_is_known_better_than_the_grid_is_taken_as_it_is() -> None:
    counts = np.array([[600_123, 399_877], [400_000, 600_000]])
    share = shrunk(counts, counts.sum(axis=0))
    assert share == pytest.approx(counts[:, 0] / 1e6, abs=1e-6)


@pytest.mark.parametrize("arms", [(1_000, 1_000), (1_000, 100), (100, 1_000)])
def test_a_cell_that_never_came_up_says_what_the_others_say(arms: tuple[int, int]) -> None:
    counts = np.array([[0, 0], list(arms)])
    share = shrunk(counts, np.array(arms))
    even = (arms[0] + 1) / (sum(arms) + 2)
    assert share[0] == pytest.approx(even, abs=0.02)


def test_equal_counts_get_equal_shares_in_any_order() -> None:
    counts = np.array([[5, 1], [2, 2], [5, 1], [0, 0], [2, 2]])
    share = shrunk(counts, counts.sum(axis=0))
    assert share[0] == share[2]
    assert share[1] == share[4]
    assert np.allclose(shrunk(counts[::-1], counts.sum(axis=0))[::-1], share, rtol=1e-12)


def test_the_two_inputs_may_change_places() -> None:
    counts = np.array([[9, 1], [4, 4], [30, 28], [0, 3]])
    arms = np.array([50, 45])
    turned, share = shrunk(counts[:, ::-1], arms[::-1]), shrunk(counts, arms)
    assert turned == pytest.approx(1 - share, rel=1e-9)


def test_counts_of_any_size_leave_no_float() -> None:
    counts = np.array([[10**9, 0], [0, 10**9], [0, 0], [1, 10**9]])
    share = shrunk(counts, counts.sum(axis=0))
    assert np.all((share > 0) & (share < 1))
