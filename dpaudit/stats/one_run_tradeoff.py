"""Audits of a single run against a whole trade-off function, or with independent canaries.

Here a claim is a function g, in the code `smallest`: an event with probability p under one of two
neighbouring inputs has probability at least g(p) under the other (`claims.tradeoff`). With r
guesses about n canaries, of which V are right, let P_j = Pr[V ≥ j] and S_j = P_j + ... + P_r. Under
the claim, for j from r down to 1,

    (r - j + 1) P_{j-1} ≥ S_j + n g((j P_j + S_{j+1}) / n),                             (12.2)

however the canaries depend on each other, if r was fixed before the run (docs/method.md §12;
Mahloujifar, Melis & Chaudhuri 2024, arXiv 2410.22235). Let v be the observed number of right
guesses. From P_v = alpha, (12.2) gives a lower bound for P_0. If this bound is above 1, the claim
is refuted at alpha.

The functions named `independent` assume that what the run reveals about one canary is independent
of what it reveals about the others. They are invalid without this assumption.
"""

from __future__ import annotations

from collections.abc import Callable

from scipy.special import ndtri

from dpaudit.claims.tradeoff import gaussian_smallest_probability
from dpaudit.stats.binomial import (
    clopper_pearson_lower,
    clopper_pearson_upper,
    pair_delta_lower,
    pair_epsilon_lower,
)
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.p_values import bisect_interval, smallest_alpha

# The function g of a claim. If an event has probability p for one input, the claim requires that
# the same event has at least probability g(p) for a neighbouring input.
Smallest = Callable[[float], float]

# Largest lower bound for μ that is returned.
_MAX_MU = 40.0
# Each step of the recursion in `refutes` is rounded down by this relative amount, which exceeds the
# rounding error of a step.
_ROUNDED_DOWN = 1e-15


def refutes(seen: Guesses, smallest: Smallest, alpha: float) -> bool:
    """Return whether the guesses of a run refute the claim at alpha, by (12.2)."""
    n, guesses = seen.canaries, seen.guesses
    tail, above = alpha, 0.0  # P_j and S_{j+1}; the smallest P_0 has P_j = 0 for j > v
    for j in range(seen.correct, 0, -1):
        least = n * smallest((j * tail + above) / n)
        above += tail
        next_tail = (above + least) / (guesses - j + 1) * (1 - _ROUNDED_DOWN)
        if next_tail > 1:
            return True
        if next_tail <= tail:  # then P_0 = P_j, since (12.2) holds with equal tails from here on
            return False
        tail = next_tail
    return False


def tradeoff_p_value(seen: Guesses, smallest: Smallest) -> float:
    """Return the p-value of a claim from guesses about canaries: the smallest alpha at which they
    refute it by (12.2); 1 if there is none.

    >>> from dpaudit.claims.tradeoff import GaussianDP, smallest_probability
    >>> round(tradeoff_p_value(Guesses(1000, 100, 90), smallest_probability(GaussianDP(0.5))), 5)
    0.01046
    """
    return smallest_alpha(lambda alpha: refutes(seen, smallest, alpha))


def mu_lower(seen: Guesses, alpha: float) -> float:
    """Return a lower bound for μ of Gaussian DP from guesses about canaries: the largest μ in
    [0, 40] that (12.2) refutes at alpha; 0 if there is none.

    >>> round(mu_lower(Guesses(1000, 100, 90), 0.05), 4)
    0.6025
    """

    def holds(mu: float) -> bool:
        return not refutes(seen, gaussian_smallest_probability(mu), alpha)

    return 0.0 if holds(0.0) else bisect_interval(holds, 0.0, _MAX_MU, 50)[0]


def independent_p_value(seen: Guesses, smallest: Smallest) -> float:
    """Return the p-value of a claim from the scores of independent canaries. Valid if the threshold
    for the scores, or the number of left-out canaries above it, was fixed before the run
    (docs/method.md §12).

    seen: the canaries with a score above the threshold: `correct` of them were included, and
        `guesses - correct` were left out.

    Let P be the probability that the score of an included canary is above the threshold, and Q the
    same for a canary that is left out, both averaged over the canaries. The claim says Q ≥ g(P).
    Each of the two numbers above the threshold is binomial with n trials, and with probability P/2
    or Q/2. The p-value is the smallest alpha at which bounds for P and Q contradict the claim.
    """

    def contradicts(alpha: float) -> bool:
        share_in, share_out = _shares(seen, alpha)
        return share_out < smallest(share_in)

    return smallest_alpha(contradicts)


def independent_mu_lower(seen: Guesses, alpha: float) -> float:
    """Return a lower bound for μ of Gaussian DP from the scores of independent canaries:
    Φ⁻¹(P_lower) - Φ⁻¹(Q_upper), or 0 if this is negative. `seen`, P and Q are as in
    `independent_p_value`; their Clopper-Pearson bounds are at alpha / 2."""
    share_in, share_out = _shares(seen, alpha)
    return max(0.0, float(ndtri(share_in) - ndtri(share_out))) if share_out < 1 else 0.0


def independent_bounds(
    seen: Guesses, epsilon: float, delta: float, alpha: float
) -> tuple[float, float]:
    """Return (epsilon, delta) from the scores of independent canaries: a lower bound for ε at
    `delta`, and one for δ at `epsilon`. They are log((P_lower - δ) / Q_upper), or 0 if this is
    negative, and P_lower - e^ε Q_upper, cut to [0, 1]. `seen`, P and Q are as in
    `independent_p_value`."""
    wrong, n = seen.guesses - seen.correct, seen.canaries
    lower = pair_delta_lower(seen.correct, n, wrong, n, epsilon, alpha)
    return pair_epsilon_lower(seen.correct, n, wrong, n, delta / 2, alpha), min(1.0, 2 * lower)


def _shares(guesses: Guesses, alpha: float) -> tuple[float, float]:
    """Return (lower bound for P, upper bound for Q), as in `independent_p_value`."""
    wrong = guesses.guesses - guesses.correct
    lower = clopper_pearson_lower(guesses.correct, guesses.canaries, alpha / 2)
    upper = clopper_pearson_upper(wrong, guesses.canaries, alpha / 2)
    return min(1.0, 2 * lower), min(1.0, 2 * upper)
