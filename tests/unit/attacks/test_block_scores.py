from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.attacks.block_scores import gain, log_odds, offset


@pytest.mark.parametrize("added", [-3.0, 0.0, 5.0])
def test_an_offset_takes_back_what_was_added(added: float) -> None:
    rng = np.random.default_rng(0)
    odds = rng.normal(0.5, 1.0, 50_000)
    is_d1 = rng.random(50_000) < 1 / (1 + np.exp(-odds))
    assert offset(odds + added, is_d1) == pytest.approx(-added, abs=0.05)
    # What was added does not count as an explanation.
    assert gain(odds + added, is_d1) == pytest.approx(gain(odds, is_d1), rel=1e-6)


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_noise_explains_nothing(share: float) -> None:
    rng = np.random.default_rng(1)
    is_d1 = rng.random(20_000) < share
    assert abs(gain(np.full(20_000, log_odds(is_d1)), is_d1)) < 1e-6
    assert abs(gain(np.zeros(20_000), is_d1)) < 1e-6
    assert gain(rng.normal(0.0, 0.5, 20_000), is_d1) < 0


def test_a_draw_without_a_score_is_explained_by_how_often_each_input_came_up() -> None:
    is_d1 = np.array([True, False, True, True])
    assert gain(np.full(4, math.nan), is_d1) == pytest.approx(0.0)
    some = gain(np.array([2.0, -2.0, math.nan, 2.0]), is_d1)
    assert 0 < some < gain(np.array([2.0, -2.0, 2.0, 2.0]), is_d1)


def test_scores_without_bounds_and_one_input_alone() -> None:
    is_d1 = np.array([True, False, True, False])
    assert gain(np.array([math.inf, -math.inf, math.inf, -math.inf]), is_d1) > 2
    assert math.isfinite(offset(np.zeros(5), np.ones(5, dtype=bool)))
    assert math.isfinite(gain(np.array([math.inf, 0.0]), np.array([False, False])))
