"""Anytime-valid refutation by betting against a claim (docs/method.md §4).

A bettor has a belief about the input of a draw, given the level. If the total wealth of all
bettors, which starts at 1, ever reaches 1/α, the claim is refuted at level α (Ville 1939; Shafer
2021). `dpaudit.certificates.wealth` computes the wealth from counts, beliefs and initial shares,
since the log of each bettor's wealth is linear in the counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


# For δ = 0, each rule has one bettor for each of these numbers. This bettor believes that the
# log-odds of a right guess exceed the claimed ε by this number, in nats.
EXCESSES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
# For δ > 0, each rule has one bettor for each of these fractions. This bettor stakes this fraction
# of the largest stake that cannot make its wealth negative.
FRACTIONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.9)
# With δ > 0 and at least 5 rules (`_RULES_WITH_RARE`), the last 2 rules (`_RARE_RULES`) guess only
# at rare outputs that only one input seems to give. They get half of the initial wealth. With fewer
# rules, all rules get equal shares.
_RULES_WITH_RARE, _RARE_RULES = 5, 2
# A rule that guesses only at rare outputs divides its initial wealth by these shares among seven
# bettors, one for each stake of FRACTIONS. The rule is rarely wrong, so the bettor with the largest
# stake gains most; it gets two thirds.
_BOLD_SHARES = np.array([1, 1, 1, 1, 4, 12, 40]) / 60
# In a run that bets from its first draws, bettors with a posterior (an estimate of Pr[d1] at each
# level) have this share of the total initial wealth; bettors on rules have the rest. A posterior
# gets most of it, since it needs fewer draws to be learned than a rule.
_EARLY_POSTERIORS = 0.75
# For δ > 0, a bettor with a posterior (an estimate of Pr[d1] at each level) pays a price at every
# draw, so that its expected gain under the claim is at most 0. If a single draw of a round could
# cost the bettor more than this share of its wealth, it does not bet in this round.
_MAX_LOSS = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Beliefs:
    """The beliefs of all bettors in one round of draws, fixed before these draws. Row i of an array
    belongs to the same bettor, or rule, in every round. Raise ValueError for a posterior outside
    (0, 1), or for a guess other than -1, 0 and 1.

    posteriors: (posterior bettors, levels), Pr[d1 | level] as each of these bettors estimates it.
    rules: (rules, levels), the guess at each level of every rule that is bet on.
    early: whether the run bets from its first draws and ends by bets alone. If true, bettors with a
        posterior take part for every δ, and have three quarters of the initial wealth. If false,
        they take part only for δ = 0, and have one half of it.
    """

    posteriors: FloatArray
    rules: IntArray
    early: bool = False

    def __post_init__(self) -> None:
        if not ((self.posteriors > 0) & (self.posteriors < 1)).all():
            raise ValueError("a believed probability is not in (0, 1)")
        if not np.isin(self.rules, (-1, 0, 1)).all():
            raise ValueError("a guess is none of -1, 0, 1")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Beliefs)
            and np.array_equal(self.posteriors, other.posteriors)
            and np.array_equal(self.rules, other.rules)
            and self.early == other.early
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have no hash

    def log_factors(self, epsilon: float | FloatArray, delta: float) -> FloatArray:
        """Return the log of the factor by which one draw multiplies the wealth of each bettor:
        (..., bettors, levels, 2), by the level of the draw and its input.

        epsilon: the values of ε in the claims that are bet against, (...).

        Bettors with a posterior come first, if they take part. Bettors on a rule follow, one for
        each pair of a rule and a stake (docs/method.md §4).
        """
        claims = np.asarray(epsilon, dtype=float)
        if delta > 0 and not self.early:
            return _stake_factors(self.rules, claims, delta)
        if delta > 0:
            factors = (
                _paying_factors(self.posteriors, claims, delta),
                _stake_factors(self.rules, claims, delta),
            )
            return np.concatenate(factors, axis=-3)
        factors = _posterior_factors(self.posteriors, claims), _guess_factors(self.rules, claims)
        return np.concatenate(factors, axis=-3)


def stakes(beliefs: Beliefs, delta: float) -> FloatArray:
    """Return the share of the initial wealth that each bettor gets: (bettors,), adding up to 1, in
    the order of `Beliefs.log_factors`.

    If δ = 0, bettors with a posterior share one half, and bettors on a rule the other half. If
    δ > 0, only bettors on a rule take part, with equal shares; but if there are five rules, bettors
    on the last two share one half, and bettors on the first three the other half. If bets are
    early, bettors with a posterior share three quarters for every δ, and the other bettors share
    the last quarter in the proportions above (docs/method.md §4).
    """
    if beliefs.early:
        posteriors = len(beliefs.posteriors)
        remaining = stakes(replace(beliefs, early=False), delta)[0 if delta > 0 else posteriors :]
        early = np.full(posteriors, _EARLY_POSTERIORS / posteriors)
        return np.concatenate([early, (1 - _EARLY_POSTERIORS) * remaining / remaining.sum()])
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
    """Return the log of the total wealth, log Σ share · exp(gain): (...). `log_gains`,
    (..., bettors), is the log of what each bettor's initial wealth was multiplied by. Under the
    claim the total ever reaches 1/α with probability at most α (Ville 1939)."""
    top = np.max(log_gains, axis=-1, keepdims=True)
    total = np.sum(shares * np.exp(log_gains - top), axis=-1)
    return np.asarray(top[..., 0] + np.log(total), dtype=float)


def bound_grid(epsilon: float) -> FloatArray:
    """Return the values of ε that the bettors bet against, in rising order: ten from 0 to below
    `epsilon`, then `epsilon` itself, then 60 larger ones, up to `epsilon` + 30. If `epsilon` is 0,
    the first ten are left out."""
    below = epsilon * np.linspace(0, 1, 11)[:-1] if epsilon > 0 else np.empty(0)
    above = epsilon + np.concatenate([[0.0], np.geomspace(0.01, 30.0, 60)])
    return np.concatenate([below, above])


def epsilon_lower(grid: FloatArray, largest_log_wealth: FloatArray, alpha: float) -> float:
    """Return a lower bound for ε from bets against each value of a rising grid. A grid point is
    rejected if the wealth against it ever reached 1/alpha. The bound is the last point before the
    first one that was not rejected; 0 if the first point was not rejected.

    All bounds computed during a run are valid together. If a bound exceeds the true ε, then the
    first grid point at or above the true ε was rejected; but the wealth against this point is a
    supermartingale, and reaches 1/alpha with probability at most alpha (docs/method.md §4).
    """
    rejected = largest_log_wealth >= -math.log(alpha)
    until = len(grid) if rejected.all() else int(np.argmin(rejected))
    return float(grid[until - 1]) if until else 0.0


def _posterior_factors(posteriors: FloatArray, epsilon: FloatArray) -> FloatArray:
    """Return the log factors of bettors with a posterior, by (4.1): (..., bettors, levels, 2)."""
    # With π_b the believed probability of input b at the level, a draw of b multiplies the wealth
    # by π_b / clip(π_b, 1 - θ₀, θ₀), where θ₀ = e^ε / (1 + e^ε). Under ε-DP the true probability
    # lies in [1 - θ₀, θ₀]. The expectation of the factor is linear in the true probability, and at
    # most 1 at the end of the interval nearer to π_b.
    largest = (1 / (1 + _odds_against(epsilon)))[..., None, None]
    allowed = np.clip(posteriors, 1 - largest, largest)
    factors = np.stack([posteriors / allowed, (1 - posteriors) / (1 - allowed)], axis=-1)
    return np.asarray(np.log(factors), dtype=float)


def _paying_factors(posteriors: FloatArray, epsilon: FloatArray, delta: float) -> FloatArray:
    """Return the log factors of posteriors for δ > 0, by (4.5): (..., bettors, levels, 2)."""
    # Let r be the factor (4.1). The factor here is r - μδ. Over all levels, r - 1 is at most u₁ for
    # a draw of d1, and at most u₂ for a draw of d2. Under (ε, δ)-DP the expectation of r is at most
    # 1 + (u₁ + u₂) δ / 2, so the price is μ = (u₁ + u₂) / 2. A bettor whose factor could fall below
    # 1 - `_MAX_LOSS` does not bet: its factor is 1.
    factors = np.exp(_posterior_factors(posteriors, epsilon))
    gains = np.maximum(factors - 1, 0.0).max(axis=-2, keepdims=True)  # (..., bettors, 1, 2)
    factors = factors - delta * gains.sum(axis=-1, keepdims=True) / 2
    abstains = factors.min(axis=(-1, -2), keepdims=True) < 1 - _MAX_LOSS
    return np.asarray(np.log(np.where(abstains, 1.0, factors)), dtype=float)


def _guess_factors(rules: IntArray, epsilon: FloatArray) -> FloatArray:
    """Return the log factors of bettors on a rule, by (4.2): (..., rules · excesses, levels, 2)."""
    # A correct guess multiplies the wealth by θ/θ₀ and a wrong guess by (1-θ)/(1-θ₀), where logit
    # θ₀ = ε and logit θ = ε + excess. Under ε-DP a guess is correct with probability at most θ₀;
    # the bettor believes that this probability is θ.
    excess = np.array(EXCESSES)
    claimed, believed = _log_shares(epsilon[..., None]), _log_shares(epsilon[..., None] + excess)
    gain_correct, gain_wrong = believed[0] - claimed[0], believed[1] - claimed[1]
    return _by_guess(rules, gain_correct, gain_wrong, np.zeros(len(excess)))


def _stake_factors(rules: IntArray, epsilon: FloatArray, delta: float) -> FloatArray:
    """Return the log factors (4.3) of bettors on a rule, (..., rules · fractions, levels, 2)."""
    # Let h be 1 if the rule can guess both inputs, else ½. A draw multiplies the wealth by
    # 1 + λ(1[correct] - e^ε 1[wrong] - hδ), where λ = fraction / (e^ε + hδ).
    odds = _odds_against(epsilon)[..., None]
    tables = []
    for rule in rules:
        h = h_of(rule)
        stake = np.array(FRACTIONS) * (odds / (1 + h * delta * odds))
        # The stake is chosen so that a wrong guess loses the share `fraction` of the wealth,
        # whatever ε and δ are. A rule that never guesses stakes nothing.
        spared = stake * (h * delta if rule.any() else 0.0)
        correct, wrong = np.log1p(stake - spared), np.log1p(-np.array(FRACTIONS))
        tables.append(_by_guess(rule[None, :], correct, wrong, np.log1p(-spared)))
    return np.concatenate(tables, axis=-3)


def _by_guess(
    rules: IntArray, correct: FloatArray, wrong: FloatArray, abstained: FloatArray
) -> FloatArray:
    """Return the log factor of each bettor on a rule, (..., rules · stakes, levels, 2)."""
    # A rule, (levels,), guesses 1 for d1, -1 for d2 and 0 for none. The last axis is the input.
    # Index on the last axis: 0 for no guess, 1 for a correct guess, -1 (the last entry) for a wrong
    # guess.
    gains = np.stack(np.broadcast_arrays(abstained, correct, wrong), axis=-1)
    claims, excesses = gains.shape[:-2], gains.shape[-2]
    spread = np.empty((*claims, len(rules), excesses, rules.shape[1], 2))
    for side, guess in enumerate(rules[:, :, None] * np.array([1, -1])):
        # `take` is several times faster than `np.where`.
        spread[..., side, :, :, :] = gains.take(guess, axis=-1)
    return spread.reshape(*claims, -1, rules.shape[1], 2)


def _odds_against(epsilon: FloatArray) -> FloatArray:
    """Return e^-ε for each entry."""
    # The rounding of `np.exp` may depend on the size of the array.
    return np.reshape([math.exp(-value) for value in epsilon.ravel()], epsilon.shape)


def _log_shares(log_odds: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return log θ and log(1 - θ) for logit θ = `log_odds`, without loss of digits."""
    return -np.log1p(np.exp(-log_odds)), -log_odds - np.log1p(np.exp(-log_odds))


def h_of(guesses: IntArray) -> float:
    """Return the factor h of a rule: 1 or ½. `guesses`, (levels,), is its guess at each level."""
    return 1.0 if (guesses > 0).any() and (guesses < 0).any() else 0.5
