"""Exact binomial tails, Clopper-Pearson bounds, and the bounds on ε and δ that follow from them.

The other modules of `dpaudit.stats` build on these functions. Inputs are integer counts and error
probabilities; lower bounds are rounded down and upper bounds up, so that rounding never makes a
bound invalid. An event is a set of outputs that was fixed before the draws were counted.
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
    """Return Pr[Bin(trials, probability) ≥ successes].

    Parameters
    ----------
    successes, trials : array_like of int
        The smallest number of successes in the tail, any integer; the number of trials, at least 0.
    probability : array_like of float
        Probability of a success, in [0, 1].

    Returns
    -------
    ndarray of float
        Probabilities, in the shape to which the arguments are broadcast.

    Notes
    -----
    The tail is an incomplete beta function, exact up to the rounding of floats.
    """
    k, n = np.asarray(successes, float), np.asarray(trials, float)
    p = np.asarray(probability, float)
    inside = (k > 0) & (k <= n)
    tail = betainc(np.where(inside, k, 1.0), np.where(inside, n - k + 1.0, 1.0), p)
    return np.asarray(np.where(inside, tail, np.where(k <= 0, 1.0, 0.0)), dtype=float)


def clopper_pearson_lower(successes: int, trials: int, alpha: float) -> float:
    """Return the one-sided Clopper-Pearson lower bound for a probability.

    Parameters
    ----------
    successes, trials : int
        Counts, 0 ≤ successes ≤ trials.
    alpha : float
        Error probability, in (0, 1).

    Returns
    -------
    float
        The largest p with Pr[Bin(trials, p) ≥ successes] ≤ alpha, rounded down.

    Raises
    ------
    ValueError
        For arguments outside these ranges.

    Notes
    -----
    The bound is at most the true probability, with probability at least 1 - alpha. Source: Clopper
    & Pearson 1934.

    Examples
    --------
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
    """Return the one-sided Clopper-Pearson upper bound for a probability.

    Parameters
    ----------
    successes, trials, alpha : int, int, float
        As in `clopper_pearson_lower`.

    Returns
    -------
    float
        The smallest p with Pr[Bin(trials, p) ≤ successes] ≤ alpha, rounded up.

    Notes
    -----
    The bound is at least the true probability, with probability at least 1 - alpha.
    """
    _check(successes, trials, alpha)
    if successes == trials:
        return 1.0
    bound = float(betainccinv(successes + 1, trials - successes, alpha))
    return 1.0 if math.isnan(bound) else min(1.0, bound * (1 + _OUTWARD * (1 - bound)) + _ULPS)


def clopper_pearson_interval(successes: int, trials: int, alpha: float) -> tuple[float, float]:
    """Return the two-sided Clopper-Pearson interval of a probability.

    Parameters
    ----------
    successes, trials, alpha : int, int, float
        As in `clopper_pearson_lower`.

    Returns
    -------
    tuple of float
        The lower and the upper bound, each at alpha / 2.

    Notes
    -----
    The interval contains the true probability with probability at least 1 - alpha.
    """
    lower = clopper_pearson_lower(successes, trials, alpha / 2)
    return lower, clopper_pearson_upper(successes, trials, alpha / 2)


def likely_counts(trials: int, probability: float, alpha: float) -> tuple[int, int]:
    """Return an interval that contains the number of successes with probability at least 1 - alpha.

    Parameters
    ----------
    trials : int
        Number of independent trials, at least 0.
    probability : float
        Probability of a success, in [0, 1].
    alpha : float
        In (0, 1). The number of successes lies below the interval, and above it, with probability
        at most alpha / 2 each.

    Returns
    -------
    tuple of int
        The smallest and the largest count of the shortest such interval.

    Notes
    -----
    The ends are quantiles of the binomial distribution.

    Examples
    --------
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
    """Return a lower bound for ε from the frequencies of one event under both inputs.

    Parameters
    ----------
    count, draws : int
        For the input under which the event is expected more often: number of draws in the event,
        and number of all draws.
    other, other_draws : int
        The same numbers for the other input.
    delta, alpha : float
        The claimed δ, in [0, 1); error probability, in (0, 1), half of it for each bound.

    Returns
    -------
    float
        max{0, log((P_lower - δ) / Q_upper)}, in nats. P_lower is a Clopper-Pearson lower bound for
        the probability of the event under the first input, Q_upper an upper bound for it under the
        other (docs/method.md (2.4)).

    Notes
    -----
    The bound is at most the true ε with probability at least 1 - alpha, whether the numbers of
    draws are fixed or random.
    """
    lower, upper = _pair_bounds(count, draws, other, other_draws, alpha)
    return max(0.0, math.log((lower - delta) / upper)) if lower > delta else 0.0


def pair_delta_lower(
    count: int, draws: int, other: int, other_draws: int, epsilon: float, alpha: float
) -> float:
    """Return a lower bound for δ from the frequencies of one event under both inputs.

    Parameters
    ----------
    count, draws : int
        For the input under which the event is expected more often: number of draws in the event,
        and number of all draws.
    other, other_draws : int
        The same numbers for the other input.
    epsilon, alpha : float
        The claimed ε ≥ 0 in nats; error probability, in (0, 1), half of it for each bound.

    Returns
    -------
    float
        max{0, P_lower - e^ε Q_upper}. P_lower is a Clopper-Pearson lower bound for the probability
        of the event under the first input, Q_upper an upper bound for it under the other.

    Notes
    -----
    The bound is at most the true δ at ε with probability at least 1 - alpha (docs/method.md (2.4)).
    """
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
    """Return the p-value of the claim (ε, δ) from the frequencies of one event.

    Parameters
    ----------
    count, draws, other, other_draws : int
        As in `pair_epsilon_lower`.
    epsilon, delta : float
        The claim: ε ≥ 0 in nats, δ in [0, 1).

    Returns
    -------
    float
        The smallest alpha at which `pair_delta_lower` exceeds δ, rounded up.

    Notes
    -----
    Under the claim Pr[p ≤ u] ≤ u for every u.
    """
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
    """Return the number of draws with coin-flipped inputs that can be taken from two samples.

    Parameters
    ----------
    first, second : int
        Numbers of recorded draws of d1 and of d2, at least 0.

    Returns
    -------
    int
        The largest number of coins that show d1 more than `first` times, or d2 more than `second`
        times, with probability at most `TOSSED_AGAIN` (by a union bound).

    Notes
    -----
    For each draw, a fair coin decides from which sample the draw is taken (docs/method.md §12).

    Examples
    --------
    >>> coin_flips(1_000, 1_000)
    1859
    """

    def ask_for_more(coins: int) -> bool:
        tails = upper_tail([first + 1, second + 1], coins, 0.5)
        return float(tails.sum()) > TOSSED_AGAIN

    return bisect_left(range(1, 2 * min(first, second) + 1), True, key=ask_for_more)


def epsilon_interval(counts: Sequence[tuple[int, int]], alpha: float) -> tuple[float, float]:
    """Return a confidence interval for the smallest ε that a mechanism with few outputs satisfies.

    Parameters
    ----------
    counts : sequence of pairs of int, length K
        Numbers of draws of d1 and of d2, for each of the K possible outputs. A fair coin picked the
        input of every draw.
    alpha : float
        Error probability, in (0, 1).

    Returns
    -------
    tuple of float
        Lower and upper end, in nats, rounded outward. The upper end is inf if one of the outputs
        was never drawn from one of the inputs.

    Notes
    -----
    The interval contains the smallest ε at δ = 0, max over s of |log P(s)/Q(s)|, with probability
    at least 1 - alpha. Among the m draws with output s, the number of draws of d1 is
    Binomial(m, θ) with logit θ = log P(s)/Q(s). Clopper-Pearson bounds at alpha / 2K on both sides
    bound all K log-ratios together (docs/method.md §10).

    Examples
    --------
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
    """Return the largest probability that a guess of the input is right under ε-DP.

    Parameters
    ----------
    epsilon : float
        ε in nats.

    Returns
    -------
    float
        e^ε / (1 + e^ε).

    Notes
    -----
    The probability is conditional on a guess, d1 or d2: draws at which the rule abstains do not
    count (docs/method.md (2.1) with δ = 0).
    """
    return 1 / (1 + math.exp(-epsilon))
