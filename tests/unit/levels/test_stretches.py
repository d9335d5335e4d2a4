"""Log-ratios in a row: against a sum over all ways to jump, and what they are for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpaudit.levels.shrinkage import GRID
from dpaudit.levels.stretches import _improved, expected

ROW = np.arange(30)[None]


def test_means_are_those_of_all_ways_to_jump() -> None:
    rng = np.random.default_rng(2)
    places, chance = 4, 0.3
    seen, law = rng.random((places, len(GRID))), rng.dirichlet(np.ones(len(GRID)))
    total, sums = 0.0, np.zeros(places)
    for jumps in itertools.product((True, False), repeat=places - 1):
        ends = [0, *(place for place, one in enumerate(jumps, 1) if one), places]
        weight = np.prod([chance if one else 1 - chance for one in jumps])
        stretches = [law * np.prod(seen[a:b], axis=0) for a, b in itertools.pairwise(ends)]
        masses = [one.sum() for one in stretches]
        weight *= np.prod(masses)
        total += weight
        for (a, b), one, mass in zip(itertools.pairwise(ends), stretches, masses, strict=True):
            sums[a:b] += weight * (one @ GRID) / mass
    there = np.ones((places, 1, 1, 1), dtype=bool)
    found = _improved(seen[:, None, None], there, law[None], np.array([[chance]]))[2]
    assert found[:, 0, 0] == pytest.approx(sums / total)


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


def test_what_is_known_well_is_taken_as_it_is() -> None:
    found = np.array([[0.31, 0.29]])
    assert np.array_equal(expected(found, np.full((1, 2), 1e-6), np.array([[0, 1]])), found)


def test_fits_of_many_rows_are_found_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    found, variance = rng.normal(size=(5, 12)), np.full((5, 12), 0.2)
    rows = np.arange(12).reshape(3, 4)
    together = expected(found, variance, rows)
    for most in (1, 2 * len(GRID) * len(rows)):
        monkeypatch.setattr("dpaudit.levels.stretches._TOGETHER", most)
        assert expected(found, variance, rows) == pytest.approx(together)
