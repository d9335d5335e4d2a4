"""Betting: fair under every null, linear in tallies, and the bound that it gives."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.stats.betting import (
    EXCESSES,
    FRACTIONS,
    Beliefs,
    bound_grid,
    epsilon_lower,
    log_wealth,
    stakes,
)

FloatArray = NDArray[np.float64]
LEVELS = 5


def beliefs(seed: int) -> Beliefs:
    """Beliefs of every kind: extreme and wrong posteriors, rules of two, one and no guesses."""
    rng = np.random.default_rng(seed)
    posteriors = np.clip(rng.beta(0.3, 0.3, size=(6, LEVELS)), 1e-9, 1 - 1e-9)
    rules = rng.integers(-1, 2, size=(4, LEVELS))
    special = [[0] * LEVELS, [1] * LEVELS, [-1] * LEVELS, [1, 0, 0, 0, 0], [1, -1, 1, -1, 1]]
    return Beliefs(posteriors, np.concatenate([rules, np.array(special)]))


def expectations(factors: FloatArray, table: FloatArray) -> FloatArray:
    """E[factor] by bettor when a fair coin picks the arm: Σ ½ P(level | arm) exp(log factor)."""
    return np.asarray(0.5 * (np.exp(factors) * table).sum(axis=(1, 2)))


def tight_pure(epsilon: float, guess_d1: NDArray[np.bool_]) -> FloatArray:
    """Return randomised response over two groups of levels, whose log-ratio is ε exactly."""
    share = 1 / (1 + math.exp(-epsilon))
    first = np.where(guess_d1, share / guess_d1.sum(), (1 - share) / (~guess_d1).sum())
    second = np.where(guess_d1, (1 - share) / guess_d1.sum(), share / (~guess_d1).sum())
    return np.column_stack([first, second])


def test_no_bettor_gains_under_a_vertex_of_a_claim_without_delta() -> None:
    """The factor is linear in the table, so that its vertices decide: each level by itself."""
    for epsilon, seed in product([0.0, 0.1, 1.0, 6.0], range(8)):
        factors = np.exp(beliefs(seed).log_factors(epsilon, 0.0))
        most = 1 / (1 + math.exp(-epsilon))
        for posterior in (1 - most, 0.5, most):
            fair = posterior * factors[..., 0] + (1 - posterior) * factors[..., 1]
            assert np.all(fair <= 1 + 1e-12)


def test_no_bettor_gains_under_a_tight_mechanism_with_delta() -> None:
    """Reveal the input with probability δ, else randomise; for every split of the levels."""
    for delta, epsilon, seed in product([1e-9, 0.01, 0.5], [0.0, 0.1, 1.0, 4.0], range(8)):
        factors = beliefs(seed).log_factors(epsilon, delta)
        for mask in range(1, 2**LEVELS - 1):
            guess_d1 = np.array([bool(mask >> level & 1) for level in range(LEVELS)])
            revealed = np.column_stack([guess_d1 / guess_d1.sum(), ~guess_d1 / (~guess_d1).sum()])
            table = delta * revealed + (1 - delta) * tight_pure(epsilon, guess_d1)
            assert np.all(expectations(factors, table) <= 1 + 1e-12)


def test_the_tight_mechanism_meets_the_claim_with_equality() -> None:
    """This shows that the test before it has a hard case."""
    guess_d1 = np.array([True, True, False, False, False])
    rule = np.where(guess_d1, 1, -1)[None, :]
    first = Beliefs(np.full((1, LEVELS), 0.5), rule)
    revealed = np.column_stack([guess_d1 / 2, ~guess_d1 / 3])
    table = 0.1 * revealed + 0.9 * tight_pure(1.0, guess_d1)
    assert expectations(first.log_factors(1.0, 0.1), table) == pytest.approx(
        np.ones(len(FRACTIONS))
    )
    assert np.all(expectations(first.log_factors(0.9, 0.1), table) > 1)


def test_half_of_delta_is_too_little_for_a_rule_with_two_guesses() -> None:
    """The trap of docs/method.md §4: with h = ½ this rule would gain under a true claim."""
    guess_d1 = np.array([True, True, False, False, False])
    both = np.where(guess_d1, 1, -1)[None, :]
    revealed = np.column_stack([guess_d1 / 2, ~guess_d1 / 3])
    table = 0.1 * revealed + 0.9 * tight_pure(1.0, guess_d1)
    half = Beliefs(np.full((1, LEVELS), 0.5), both).log_factors(1.0, 0.05)
    assert np.all(expectations(half, table) > 1)


def test_a_rule_with_one_guess_pays_for_half_of_delta() -> None:
    only_d1 = Beliefs(np.full((1, LEVELS), 0.5), np.array([[1, 1, 0, 0, 0]]))
    factors = np.exp(only_d1.log_factors(1.0, 0.2))[:, :, 0]
    stake = np.array(FRACTIONS) / (math.e + 0.1)
    assert factors[:, 0] == pytest.approx(1 + stake * 0.9)
    assert factors[:, 4] == pytest.approx(1 - stake * 0.1)


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_stakes_add_up_to_one_bettor_by_bettor(delta: float) -> None:
    for seed in range(3):
        all_of_them = beliefs(seed)
        shares = stakes(all_of_them, delta)
        assert shares.shape == (len(all_of_them.log_factors(1.0, delta)),)
        assert shares.min() > 0
        assert shares.sum() == pytest.approx(1, abs=1e-12)
    if not delta:
        assert shares[:6].sum() == pytest.approx(0.5)
        assert len(shares) == 6 + 9 * len(EXCESSES)


def test_the_last_two_of_five_rules_stake_boldly_with_delta() -> None:
    posteriors = np.full((2, LEVELS), 0.5)
    five, four = (Beliefs(posteriors, np.zeros((n, LEVELS), dtype=np.int64)) for n in (5, 4))
    shares = stakes(five, 0.1).reshape(5, len(FRACTIONS))
    assert shares.sum(axis=1) == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 4, 1 / 4])
    assert np.all(shares[:3] == shares[0, 0])
    assert shares[3, -1] == pytest.approx(1 / 6)
    assert np.all(stakes(four, 0.1) == 1 / (4 * len(FRACTIONS)))
    assert len(np.unique(stakes(five, 0.0))) == 2


def test_factors_are_finite_however_large_the_claim() -> None:
    for delta, epsilon in product([0.0, 1e-300, 0.999], [0.0, 1.0, 50.0, 5_000.0]):
        factors = beliefs(1).log_factors(epsilon, delta)
        assert np.all(np.isfinite(factors))


def test_log_wealth_is_a_stable_sum() -> None:
    gains = np.array([[0.0, math.log(3)], [-2_000.0, -2_001.0], [5_000.0, 0.0]])
    shares = np.array([0.25, 0.75])
    wealth = log_wealth(gains, shares)
    assert wealth[0] == pytest.approx(math.log(0.25 + 0.75 * 3))
    assert wealth[1] == pytest.approx(-2_000 + math.log(0.25 + 0.75 / math.e))
    assert wealth[2] == pytest.approx(5_000 + math.log(0.25))


@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 17.3])
def test_the_grid_rises_and_holds_the_claim(epsilon: float) -> None:
    grid = bound_grid(epsilon)
    assert np.all(np.diff(grid) > 0)
    assert epsilon in grid
    assert grid[0] == 0


def test_the_bound_is_the_last_point_before_the_first_accepted_one() -> None:
    grid = np.array([0.0, 0.5, 1.0, 2.0])
    enough = math.log(20)
    for refuted, bound in (
        ([1, 1, 1, 1], 2.0),
        ([1, 1, 0, 1], 0.5),
        ([0, 1, 1, 1], 0.0),
        ([0, 0, 0, 0], 0.0),
    ):
        wealth = np.where(np.array(refuted) > 0, enough, enough - 1e-9)
        assert epsilon_lower(grid, wealth, 0.05) == bound
    assert epsilon_lower(np.array([0.0, 1.0]), np.array([np.nan, 9.0]), 0.05) == 0.0


def test_wealth_averages_to_at_most_one_over_all_sequences_of_draws() -> None:
    """Two draws of a tight mechanism, enumerated: the average is over bettors and over draws."""
    all_of_them = beliefs(3)
    chance = 0.5 * tight_pure(0.7, np.array([True, False, True, False, False])).reshape(-1)
    factors = np.exp(all_of_them.log_factors(0.7, 0.0)).reshape(-1, 2 * LEVELS)
    shares = stakes(all_of_them, 0.0)
    wealth = np.einsum("b,bi,bj->ij", shares, factors, factors)
    assert chance @ wealth @ chance <= 1 + 1e-12
