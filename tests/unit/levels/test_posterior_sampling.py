"""What the truth about cells may be, as far as counts tell."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.levels.level_map import IntArray
from dpaudit.levels.shrinkage import Clusters, sample_shares


def ratios(counts: IntArray, times: int = 400) -> NDArray[np.float64]:
    """Log-ratios that may be the true ones, (times, cells)."""
    clusters, rng = Clusters.of(counts, counts.sum(axis=0)), np.random.default_rng(0)
    shares = np.stack([sample_shares(clusters, rng) for _ in range(times)])
    return np.log(shares / (1 - shares)) - clusters.even


def test_what_two_cells_may_have_is_as_uncertain_as_their_counts() -> None:
    """Of 3,500 and 13,000 draws, which look alike, the rarer one may tell more by a third."""
    rest = [[46_000 - 700 * one, 46_000 - 700 * one] for one in range(9)]
    counts = np.array([[4_200, 3_640], [15_000, 13_000], *rest])
    drawn = ratios(counts)
    error = np.sqrt((1 / counts).sum(axis=1))
    apart = drawn[:, 0] - drawn[:, 1]
    assert 0.05 < np.mean(apart != 0) < 0.4
    assert 0.01 < np.mean(apart > 0.02) < 0.2
    assert drawn[:, 0].mean() == pytest.approx(0.143, abs=error[0])
    assert np.abs(drawn[:, 2:]).mean() < 0.01


def test_cells_that_are_clearly_apart_are_so_in_every_draw() -> None:
    counts = np.array([[60_000, 40_000], [55_000, 45_000], [45_000, 55_000], [40_000, 60_000]])
    drawn = ratios(counts, 50)
    assert (np.diff(drawn, axis=1) < 0).all()
    error = np.sqrt((1 / counts).sum(axis=1))
    assert drawn.std(axis=0) == pytest.approx(error, rel=0.6)


def test_many_cells_that_tell_the_same_are_not_taken_to_differ() -> None:
    rng = np.random.default_rng(1)
    shares = np.repeat([0.6, 0.5], [100, 900])
    ahead = rng.binomial(4_000, shares)
    drawn = ratios(np.stack([ahead, 4_000 - ahead], axis=1), 20)
    assert drawn[:, :100].std(axis=1).max() < 0.02
    assert np.quantile(np.abs(drawn[:, 100:]), 0.95) < 0.05


def test_counts_of_any_size_leave_a_share() -> None:
    counts = np.array([[10**9, 0], [0, 10**9], [0, 0], [1, 10**9], [3, 2]])
    shares = sample_shares(Clusters.of(counts, counts.sum(axis=0)), np.random.default_rng(0))
    assert ((shares >= 0) & (shares <= 1)).all()
