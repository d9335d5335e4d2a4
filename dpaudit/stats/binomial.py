"""Exact binomial tails, Clopper-Pearson bounds, and the bounds on ε and δ that follow from them.

The other modules of `dpaudit.stats` build on these functions.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betainccinv, betaincinv

from dpaudit.stats.p_values import smallest_alpha

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A Clopper-Pearson bound is moved outward by this distance in log-odds, to cover the error of
# SciPy's inverse of the incomplete beta function. Measured errors: 2e-9 for 10 trials, 5e-9 for 10⁸
# trials.
_OUTWARD = 1e-8
# Added to an upper Clopper-Pearson bound after it was moved outward by `_OUTWARD` in log-odds: for
# a bound near 1, that move may be smaller than the spacing of floats, and so have no effect. This
# number is four spacings of the floats just below 1.
_ULPS = 4 * 2.0**-53


def upper_tail(successes: ArrayLike, trials: ArrayLike, probability: ArrayLike) -> FloatArray:
    """Return Pr[Bin(trials, probability) ≥ successes], exact up to the rounding of floats. The
    arguments are broadcast against each other."""
    k, n = np.asarray(successes, float), np.asarray(trials, float)
    p = np.asarray(probability, float)
    inside = (k > 0) & (k <= n)
    tail = betainc(np.where(inside, k, 1.0), np.where(inside, n - k + 1.0, 1.0), p)
    return np.asarray(np.where(inside, tail, np.where(k <= 0, 1.0, 0.0)), dtype=float)


def clopper_pearson_lower(successes: int, trials: int, alpha: float) -> float:
    """Return the Clopper-Pearson lower bound for a probability: the largest p with
    Pr[Bin(trials, p) ≥ successes] ≤ alpha. Raise ValueError unless 0 ≤ successes ≤ trials and alpha
    is in (0, 1). Source: Clopper & Pearson 1934.

    >>> round(clopper_pearson_lower(0, 10, 0.05), 4), round(clopper_pearson_lower(10, 10, 0.05), 4)
    (0.0, 0.7411)
    """
    _check(successes, trials, alpha)
    if successes == 0:
        return 0.0
    bound = float(betaincinv(successes, trials - successes + 1, alpha))
    # For an alpha below about 1e-100, SciPy returns NaN; the bound is then 0.
    return 0.0 if math.isnan(bound) else bound * (1 - _OUTWARD * (1 - bound))


def clopper_pearson_upper(successes: int, trials: int, alpha: float) -> float:
    """Return the Clopper-Pearson upper bound for a probability: the smallest p with
    Pr[Bin(trials, p) ≤ successes] ≤ alpha."""
    _check(successes, trials, alpha)
    if successes == trials:
        return 1.0
    bound = float(betainccinv(successes + 1, trials - successes, alpha))
    return 1.0 if math.isnan(bound) else min(1.0, bound * (1 + _OUTWARD * (1 - bound)) + _ULPS)


def clopper_pearson_interval(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """Return the Clopper-Pearson interval (low, high) of a probability, each end at alpha / 2."""
    lower = clopper_pearson_lower(successes, trials, alpha / 2)
    return lower, clopper_pearson_upper(successes, trials, alpha / 2)


def likely_counts(trials: int, probability: float, alpha: float) -> tuple[int, int]:
    """Return the shortest interval (smallest, largest) for the number of successes in independent
    trials: the number is below it with probability at most alpha / 2, and above it with probability
    at most alpha / 2.

    >>> likely_counts(100, 0.5, 0.05)
    (40, 60)
    """

    def at_least(count: int) -> float:
        return float(upper_tail(count, trials, probability))

    counts = range(trials + 1)
    lowest = bisect_right(counts, alpha / 2, key=lambda count: 1 - at_least(count)) - 1
    return lowest, bisect_left(counts, True, key=lambda count: at_least(count + 1) <= alpha / 2)


def pair_epsilon_lower(
    count: int, draws: int, other: int, other_draws: int, delta: float, alpha: float
) -> float:
    """Return a lower bound for ε from the frequencies of one event on d1 and on d2. It is max{0,
    log((P_lower - δ) / Q_upper)} (2.4), with Clopper-Pearson bounds at alpha / 2. It is valid
    whether the numbers of draws are fixed or random.

    count, draws: number of draws in the event, and number of all draws, of the input on which the
        event is expected more often; P is the law of this input.
    other, other_draws: the same two numbers for the other input, with law Q.
    """
    lower, upper = _pair_bounds(count, draws, other, other_draws, alpha)
    return max(0.0, math.log((lower - delta) / upper)) if lower > delta else 0.0


def pair_delta_lower(
    count: int, draws: int, other: int, other_draws: int, epsilon: float, alpha: float
) -> float:
    """Return a lower bound for δ from the frequencies of one event: max{0, P_lower - e^ε Q_upper},
    with arguments as in `pair_epsilon_lower` (docs/method.md (2.4))."""
    lower, upper = _pair_bounds(count, draws, other, other_draws, alpha)
    # e^epsilon may be too large for a float, so epsilon is cut at 700. The result does not change:
    # from ε = 700 on, e^ε times any positive upper bound is above 1, so the result is 0.
    return max(0.0, lower - math.exp(min(epsilon, 700.0)) * upper)


def _pair_bounds(
    count: int, draws: int, other: int, other_draws: int, alpha: float
) -> tuple[float, float]:
    """Return (lower bound of P(E), upper bound of Q(E)), by Clopper-Pearson at alpha / 2."""
    lower = clopper_pearson_lower(count, draws, alpha / 2)
    return lower, clopper_pearson_upper(other, other_draws, alpha / 2)


def pair_p_value(
    count: int, draws: int, other: int, other_draws: int, epsilon: float, delta: float
) -> float:
    """Return the p-value of the claim from the frequencies of one event: the smallest alpha at
    which `pair_delta_lower` exceeds δ. The first four arguments are as in `pair_epsilon_lower`."""
    counts = count, draws, other, other_draws
    return smallest_alpha(lambda alpha: pair_delta_lower(*counts, epsilon, alpha) > delta)


def _check(successes: int, trials: int, alpha: float) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"successes={successes!r} must lie in [0, trials={trials!r}]")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} must lie in (0, 1)")


# Samples of fixed sizes are thinned as if a fair coin had picked the input of every draw. If more
# coins show one input than draws of it were recorded, all coins are tossed again. This is the
# largest allowed probability of tossing again. A test makes up for it by running at (1 -
# TOSSED_AGAIN) times its level.
TOSSED_AGAIN = 1e-3


def coin_flips(first: int, second: int) -> int:
    """Return the largest number of draws with coin-flipped inputs that `first` draws of d1 and
    `second` draws of d2 suffice for. With this number of fair coins, more heads than `first` or
    more tails than `second` have probability at most `TOSSED_AGAIN`, by a union bound
    (docs/method.md §12).

    >>> coin_flips(1_000, 1_000)
    1859
    """

    def ask_for_more(coins: int) -> bool:
        tails = upper_tail([first + 1, second + 1], coins, 0.5)
        return float(tails.sum()) > TOSSED_AGAIN

    return bisect_left(range(1, 2 * min(first, second) + 1), True, key=ask_for_more)


def epsilon_interval(counts: Sequence[tuple[int, int]], alpha: float) -> tuple[float, float]:
    """Return a confidence interval (low, high) for max over s of |log P(s)/Q(s)|: the smallest ε
    that a mechanism with K possible outputs satisfies at δ = 0. `counts` has (draws of d1, draws of
    d2) for each output. `high` is inf if an output was never drawn from one of the inputs.

    Among the m draws with output s, the number of draws of d1 is Binomial(m, θ) with logit θ =
    log P(s)/Q(s), if a fair coin picked each input. Clopper-Pearson bounds at alpha / 2K on both
    sides bound all K log-ratios together (docs/method.md §10).

    >>> low, high = epsilon_interval([(7_500, 2_500), (2_500, 7_500)], 0.01)
    >>> low < math.log(3) < high, round(high - low, 2)
    (True, 0.13)
    >>> epsilon_interval([(7_500, 2_500), (10, 0)], 0.01)[1]
    inf
    """
    share = alpha / (2 * len(counts))
    # For each output, first a lower bound of log P/Q, then a lower bound of log Q/P. The second
    # one, with its sign changed, is an upper bound of log P/Q.
    below = [_log_odds_lower(count, d1 + d2, share) for d1, d2 in counts for count in (d1, d2)]
    return max(0.0, *below), -min(below)


def _log_odds_lower(successes: int, trials: int, alpha: float) -> float:
    share = clopper_pearson_lower(successes, trials, alpha)
    return math.log(share) - math.log1p(-share) if share > 0 else -math.inf


def right_share(epsilon: float) -> float:
    """Return e^ε / (1 + e^ε): under ε-DP, a guess that is made is right with at most this
    probability (docs/method.md (2.1) with δ = 0)."""
    return 1 / (1 + math.exp(-epsilon))
