"""Anytime-valid refutation by betting against a claim (docs/method.md §4).

Wealth starts at 1 and is multiplied, draw by draw, by factors whose expectation is at most 1
under the claim, whatever was believed when they were fixed. Wealth ≥ 1/α at any look refutes the
claim at level α (Ville 1939; Shafer 2021). Log wealth is linear in a tally, so a tally, the
beliefs and the stakes are all that is needed to recompute it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpaudit.stats.binomial import FloatArray, IntArray

# Excess log-odds over the claim that the guessing bettors stake on (δ = 0).
EXCESSES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
# Shares of the largest admissible stake (δ > 0).
FRACTIONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.9)
# Of five rules, the last two guess rare outputs that only one input seems to give. Such guesses are
# rarely wrong, so that bold stakes gain most: these two rules get half of the wealth, two thirds of
# it for the largest stake. (Four rules, as in older results, share the wealth evenly.)
_RULES_WITH_RARE, _RARE_RULES = 5, 2
_BOLD_SHARES = np.array([1, 1, 1, 1, 4, 12, 40]) / 60  # by FRACTIONS


@dataclass(frozen=True, slots=True)
class Beliefs:
    """Beliefs of the bettors in one round, fixed before the draws that they bet on.

    A bettor keeps its place, and so its stake, from round to round.

    Parameters
    ----------
    posteriors : ndarray of float, shape (bettors, levels)
        Estimated Pr[arm 1 | level], in (0, 1).
    rules : ndarray of int, shape (rules, levels)
        -1 (guess 2), 0 (abstain), 1 (guess 1). All rounds have the same number of rules.
    """

    posteriors: FloatArray
    rules: IntArray

    def log_factors(self, epsilon: float | FloatArray, delta: float) -> FloatArray:
        """Return the log of the factor by which a draw multiplies the wealth of each bettor.

        Parameters
        ----------
        epsilon : float or ndarray of float, shape (...)
            Claims: ε ≥ 0 in nats.
        delta : float
            The δ of all claims, in [0, 1).

        Returns
        -------
        ndarray of float, shape (..., bettors, levels, 2)
            Arm 1 first. Under the claim each factor has expectation at most 1. The posterior
            bettors take part only when δ = 0, since they bet on the likelihood ratio of single
            levels (docs/method.md §4).
        """
        claims = np.asarray(epsilon, dtype=float)
        if delta > 0:
            return _stake_factors(self.rules, claims, delta)
        both = _posterior_factors(self.posteriors, claims), _guess_factors(self.rules, claims)
        return np.concatenate(both, axis=-3)


def stakes(beliefs: Beliefs, delta: float) -> FloatArray:
    """Return the bettors' shares of the initial wealth.

    Parameters
    ----------
    beliefs : Beliefs
        Beliefs of any round.
    delta : float
        The δ of the claim, in [0, 1).

    Returns
    -------
    ndarray of float, shape (bettors,)
        They add up to 1.

    Notes
    -----
    For δ = 0, the posterior bettors get one half and the guessing bettors the other. For δ > 0, the
    last two of five rules get one half (docs/method.md §4).
    """
    rules = len(beliefs.rules)
    if delta > 0:
        if rules < _RULES_WITH_RARE:
            return np.full(rules * len(FRACTIONS), 1 / (rules * len(FRACTIONS)))
        usual = (rules - _RARE_RULES) * len(FRACTIONS)
        rare = np.tile(0.5 / _RARE_RULES * _BOLD_SHARES, _RARE_RULES)
        return np.concatenate([np.full(usual, 0.5 / usual), rare])
    posteriors, guessing = len(beliefs.posteriors), rules * len(EXCESSES)
    return np.concatenate(
        [np.full(posteriors, 0.5 / posteriors), np.full(guessing, 0.5 / guessing)]
    )


def log_wealth(log_gains: FloatArray, shares: FloatArray) -> FloatArray:
    """Return the log of the wealth of all bettors.

    Parameters
    ----------
    log_gains : ndarray of float, shape (..., bettors)
        Log of the product of each bettor's factors so far.
    shares : ndarray of float, shape (bettors,)
        Each bettor's share of the initial wealth.

    Returns
    -------
    ndarray of float, shape (...)
        log Σ share · exp(gain).

    Notes
    -----
    Under the claim wealth reaches 1/α at any look with probability at most α. Source: Ville 1939;
    docs/method.md §4.
    """
    top = np.max(log_gains, axis=-1, keepdims=True)
    total = np.sum(shares * np.exp(log_gains - top), axis=-1)
    return np.asarray(top[..., 0] + np.log(total), dtype=float)


def bound_grid(epsilon: float) -> FloatArray:
    """Return the values of ε that betting tests.

    Parameters
    ----------
    epsilon : float
        The claimed ε, in nats, at least 0.

    Returns
    -------
    ndarray of float, one-dimensional
        Values in rising order, the claimed one among them.

    Notes
    -----
    docs/method.md §4.
    """
    below = epsilon * np.linspace(0, 1, 11)[:-1] if epsilon > 0 else np.empty(0)
    above = epsilon + np.concatenate([[0.0], np.geomspace(0.01, 30.0, 60)])
    return np.concatenate([below, above])


def epsilon_lower(grid: FloatArray, largest_log_wealth: FloatArray, alpha: float) -> float:
    """Return the lower bound for ε that betting gives.

    Parameters
    ----------
    grid : ndarray of float, shape (points,)
        Values of ε in rising order.
    largest_log_wealth : ndarray of float, shape (points,)
        The log of the largest wealth against each value at any look.
    alpha : float
        The error probability, in (0, 1).

    Returns
    -------
    float
        The last grid point up to which every point was rejected at some look, or 0.

    Notes
    -----
    The bounds of all looks hold together with probability at least 1 - alpha. If one exceeds the
    true ε, then the first grid point at or above the true ε was rejected, and the wealth against
    that point is a supermartingale (docs/method.md §4).
    """
    rejected = largest_log_wealth >= -math.log(alpha)
    until = len(grid) if rejected.all() else int(np.argmin(rejected))
    return float(grid[until - 1]) if until else 0.0


def _posterior_factors(posteriors: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Return log(π_b / clip(π, 1 - θ₀, θ₀)_b), θ₀ = e^ε / (1 + e^ε).

    Under ε-DP the true posterior of every level lies in [1 - θ₀, θ₀]. The expectation of the factor
    is linear in that posterior, and at most 1 at the end of the interval nearer to π.
    """
    most = (1 / (1 + _odds_against(epsilon)))[..., None, None]
    allowed = np.clip(posteriors, 1 - most, most)
    both = np.stack([posteriors / allowed, (1 - posteriors) / (1 - allowed)], axis=-1)
    return np.asarray(np.log(both), dtype=float)


def _guess_factors(rules: IntArray, epsilon: FloatArray) -> FloatArray:
    """Return log(θ/θ₀) for a correct and log((1-θ)/(1-θ₀)) for a wrong guess, by rule and excess.

    Under ε-DP a guess is correct with probability at most θ₀ < θ.
    """
    excess = np.array(EXCESSES)
    claimed, believed = _log_shares(epsilon[..., None]), _log_shares(epsilon[..., None] + excess)
    gain_correct, gain_wrong = believed[0] - claimed[0], believed[1] - claimed[1]
    return _by_guess(rules, gain_correct, gain_wrong, np.zeros(len(excess)))


def _stake_factors(rules: IntArray, epsilon: FloatArray, delta: float) -> FloatArray:
    """Return log(1 + λ(1[correct] - e^ε 1[wrong] - hδ)), λ = fraction / (e^ε + hδ), by rule."""
    odds = _odds_against(epsilon)[..., None]
    tables = []
    for rule in rules:
        h = 1.0 if (rule > 0).any() and (rule < 0).any() else 0.5
        stake = np.array(FRACTIONS) * (odds / (1 + h * delta * odds))
        # A wrong guess loses λ(e^ε + hδ) = fraction. A rule that never guesses stakes nothing.
        spared = stake * (h * delta if rule.any() else 0.0)
        correct, wrong = np.log1p(stake - spared), np.log1p(-np.array(FRACTIONS))
        tables.append(_by_guess(rule[None, :], correct, wrong, np.log1p(-spared)))
    return np.concatenate(tables, axis=-3)


def _by_guess(
    rules: IntArray, correct: FloatArray, wrong: FloatArray, abstained: FloatArray
) -> FloatArray:
    """Return the gains of every rule at every level and arm, (..., rules · excesses, levels, 2).

    correct, wrong, abstained: (..., excesses), the gains of a correct, a wrong and no guess.
    """
    # Indexed by the guess: 0 abstains, 1 is correct, -1 (the last) is wrong.
    gains = np.stack(np.broadcast_arrays(abstained, correct, wrong), axis=-1)
    before, excesses = gains.shape[:-2], gains.shape[-2]
    spread = np.empty((*before, len(rules), excesses, rules.shape[1], 2))
    for place, guess in enumerate(rules[:, :, None] * np.array([1, -1])):
        # `take` is several times as fast as `np.where`.
        spread[..., place, :, :, :] = gains.take(guess, axis=-1)
    return spread.reshape(*before, -1, rules.shape[1], 2)


def _odds_against(epsilon: FloatArray) -> FloatArray:
    """Return e^-ε by `math.exp`: `np.exp` may round differently in arrays of different sizes."""
    return np.reshape([math.exp(-value) for value in epsilon.ravel()], epsilon.shape)


def _log_shares(log_odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log θ and log(1 - θ) for θ = e^x / (1 + e^x), without cancellation."""
    return -np.log1p(np.exp(-log_odds)), -log_odds - np.log1p(np.exp(-log_odds))
