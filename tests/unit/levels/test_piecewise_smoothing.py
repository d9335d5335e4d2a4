"""Log-ratios in a row: against a sum over all ways to jump, and what they are for."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from dpaudit.levels import tuning
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.piecewise_smoothing import _Likelihoods, _means, _Stretches, expected
from dpaudit.levels.shrinkage import GRID

ROW = np.arange(30)[None]


def test_means_are_those_of_all_ways_to_divide_a_row() -> None:
    rng = np.random.default_rng(2)
    places, chance = 3, 0.3
    found, error = rng.normal(size=places), rng.uniform(0.3, 0.6, size=places)
    law = rng.dirichlet(np.ones(2 * len(GRID))).reshape(2, -1)
    total, sums = 0.0, np.zeros(places)
    for jumps in itertools.product((True, False), repeat=places - 1):
        ends = [0, *(place for place, one in enumerate(jumps, 1) if one), places]
        weight = math.prod(chance if one else 1 - chance for one in jumps)
        means = np.empty(places)
        for start, end in itertools.pairwise(ends):
            mass, means[start:end] = of_stretch(found[start:end], error[start:end], law)
            weight *= mass
        total += weight
        sums += weight * means
    stretches = _Stretches.of(ROW[:, :places])
    ways = _Likelihoods.of(found[None], 1 / error[None] ** 2, stretches)
    told = _means(ways, stretches, law[None], np.array([chance]))
    assert told[0, 0] == pytest.approx(sums / total)


def of_stretch(found: FloatArray, error: FloatArray, law: FloatArray) -> tuple[float, FloatArray]:
    """Return the likelihood of what was found in a stretch, and what to expect of its places."""
    along = np.linspace(-1, 1, len(found)) if len(found) > 1 else np.zeros(1)
    mass, sums = 0.0, np.zeros(len(found))
    for drift, weights in zip((0.0, tuning.SPREAD_OF_DIFFERENCES), law, strict=True):
        for middle, weight in zip(GRID, weights, strict=True):
            spread = (drift * middle) ** 2 * np.outer(along, along)
            around = spread + np.diag(error**2)
            own = weight * multivariate_normal.pdf(found, np.full(len(found), middle), around)
            mass += own
            sums += own * (middle + spread @ np.linalg.solve(around, found - middle))
    return mass, sums / mass


def test_a_drift_is_followed_where_there_is_one() -> None:
    truth = np.linspace(0.6, 0.2, 30)
    found = truth + 0.1 * np.random.default_rng(1).normal(size=(40, 30))
    told = expected(found, np.full(found.shape, 0.1**2), ROW)
    assert np.mean((told - truth) ** 2) < 0.2 * np.mean((found - truth) ** 2)


def test_a_jump_is_found_and_what_is_alike_is_pooled() -> None:
    truth = np.where(np.arange(30) < 17, 0.0, -0.5)
    found = truth + 0.3 * np.random.default_rng(1).normal(size=(40, 30))
    # Fits of one call stand for runs.
    told = expected(found, np.full(found.shape, 0.3**2), ROW)
    assert np.mean((told - truth) ** 2) < 0.45 * np.mean((found - truth) ** 2)


def test_places_that_are_clearly_apart_stay_apart() -> None:
    truth = np.random.default_rng(1).normal(0.0, 2.0, size=(1, 30))
    told = expected(truth, np.full((1, 30), 0.05**2), ROW)
    assert told == pytest.approx(truth, abs=0.1)


def test_rows_may_be_of_any_length_and_fits_do_not_mix() -> None:
    rng = np.random.default_rng(4)
    found, variance = rng.normal(size=(2, 5)), np.full((2, 5), 0.2)
    rows = np.array([[0, 3, 4], [2, 1, -1]])
    both = expected(found, variance, rows)
    assert both[:1] == pytest.approx(expected(found[:1], variance[:1], rows))
    # Rows in another order, with more room.
    moved = np.array([[2, 1, -1, -1], [0, 3, 4, -1]])
    assert both == pytest.approx(expected(found, variance, moved))
    assert expected(np.empty((2, 0)), np.empty((2, 0)), rows[:0]).shape == (2, 0)
