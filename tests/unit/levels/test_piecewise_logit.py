"""Smoothing counts by ramps: what is flat stays flat, and nothing is made of noise."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.levels.piecewise_logit import _best_fit, log_odds, smoothed

LEVELS, DRAWS = 60, 100_000


def tallied(log_ratio: np.ndarray, seed: int, draws: int = DRAWS) -> np.ndarray:
    """Return counts of levels of equal mass whose log-odds of d1 are given: (levels, 2)."""
    rng = np.random.default_rng(seed)
    at_level = rng.multinomial(draws, np.full(len(log_ratio), 1 / len(log_ratio)))
    ahead = rng.binomial(at_level, 1 / (1 + np.exp(-log_ratio)))
    return np.stack([ahead, at_level - ahead], axis=1)


def one_ramp(start: float, end: float, height: float = 1.0) -> np.ndarray:
    """Return the log-ratio of Laplace noise: -height up to `start`, height from `end` on."""
    rise = np.clip((np.arange(LEVELS) - start) / (end - start), 0, 1)
    return np.asarray(height * (2 * rise - 1))


@pytest.mark.parametrize("seed", range(2))
def test_flat_tails_are_found_and_flat_to_the_last_digit(seed: int) -> None:
    found = log_odds(tallied(one_ramp(24.0, 35.0), seed))
    assert np.ptp(found[:20]) == 0
    assert np.ptp(found[-20:]) == 0
    # By symmetry both tails have one height, whose standard error is 0.008.
    assert found[0] == -found[-1]
    assert abs(found[-1] - 1) < 0.035
    assert np.abs(found - one_ramp(24.0, 35.0)).max() < 0.12


@pytest.mark.parametrize("seed", range(2))
def test_what_lies_just_outside_of_a_tail_is_no_part_of_it(seed: int) -> None:
    found = log_odds(tallied(one_ramp(24.3, 34.7), seed))
    assert found[25] > found[0]
    assert found[34] < found[-1]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_is_made_of_noise(seed: int) -> None:
    # Each fit sees something with a probability of some e⁻⁶ for each of a few dozen distinct ramps.
    found = log_odds(tallied(np.zeros(LEVELS), seed, 5_000))
    assert np.abs(found).max() < 0.25


def test_one_sided_steps_and_constants_are_found() -> None:
    step = np.where(np.arange(LEVELS) < 50, 0.0, 2.0)
    found = log_odds(tallied(step, 1))
    assert np.abs(found[:48]).max() < 0.02
    assert np.abs(found[52:] - 2).max() < 0.1
    shifted = log_odds(tallied(np.full(LEVELS, 0.3), 2))
    assert np.ptp(shifted) == 0
    assert abs(shifted[0] - 0.3) < 0.03


@pytest.mark.parametrize("slope", [1.0, 0.8])
def test_a_score_that_is_the_log_ratio_is_followed_into_the_tails(slope: float) -> None:
    score = 4 * np.linspace(-1, 1, LEVELS) ** 5
    counts = tallied(slope * score, 3, 20_000)
    assert np.abs(_best_fit(counts, score)[0] - slope * score).max() < 0.1
    # Without it, the outermost levels cannot be told from their neighbours.
    assert np.abs(log_odds(counts) - slope * score).max() > 0.2


def test_the_draws_of_every_level_are_kept() -> None:
    counts = tallied(one_ramp(10.0, 50.0), 5)
    fit = smoothed(counts)
    assert not fit.follows_score
    assert fit.draws.sum(axis=1) == pytest.approx(counts.sum(axis=1))
    assert fit.draws.sum(axis=0) == pytest.approx(counts.sum(axis=0), rel=5e-3)


def test_a_position_is_followed_though_it_is_off_by_a_constant() -> None:
    score = 4 * np.linspace(-1, 1, LEVELS) ** 5
    counts = tallied(score, 7)
    fits = [smoothed(counts, score + shift) for shift in (0.0, 0.3)]
    assert [fit.follows_score for fit in fits] == [True, True]
    assert not smoothed(tallied(one_ramp(24.0, 35.0), 6), np.linspace(-3, 3, LEVELS)).follows_score
    assert fits[1].draws == pytest.approx(fits[0].draws, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("levels", [1, 7, 40])
def test_several_are_fitted_as_one_after_the_other(levels: int) -> None:
    rng = np.random.default_rng(levels)
    slopes = np.array([0.0, 0.0, 0.3, 1.0, 3.0])[:, None]
    odds = slopes * np.clip(np.linspace(-3, 3, levels), -1, 1) + rng.choice([0.0, 0.4], (5, 1))
    draws = rng.integers(0, 3_000, (4, 5, levels))
    ahead = rng.binomial(draws, 1 / (1 + np.exp(-odds)))
    counts = np.stack([ahead, draws - ahead], axis=3)
    together = log_odds(counts)
    assert together.shape == (4, 5, levels)
    alone = [log_odds(one) for one in counts.reshape(-1, levels, 2)]
    assert together.reshape(-1, levels) == pytest.approx(np.array(alone), abs=1e-9)
