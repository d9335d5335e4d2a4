"""Audits of a single run: bounds on ε and δ from guesses about which canaries were in the input.

The mechanism runs once on an input with n canaries. From its output, an auditor guesses for r of
them whether they were included (Steinke, Nasr & Jagielski 2023, arXiv 2305.08846). If the mechanism
is (ε, δ)-DP for inputs that differ in one canary, then, with W ~ Binomial(r, e^ε / (1 + e^ε)),

    Pr[at least v guesses are right] ≤ β + nδ β (1 - β) / (v Pr[W = v]),   β = Pr[W ≥ v],

or 1 if the right side is larger. This is inequality (12.1) of docs/method.md, where it is derived,
with a mechanism that attains equality. Corollary 5.4 of the source is not used: its bound is larger
for small p and invalid for p near 1.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from dpaudit.stats.binomial import clopper_pearson_lower, right_share, upper_tail
from dpaudit.stats.p_values import bisect_interval
from dpaudit.stats.power import detectable_epsilon

# Largest lower bound for ε that is returned, in nats.
_MAX_EPSILON = 50.0
# Largest numbers of guesses and of canaries. `_slope` makes an array of up to one float per guess;
# the number of canaries stays below 2^53, so that it is exact as a float.
MAX_GUESSES, MAX_CANARIES = 10_000_000, 10**15


@dataclass(frozen=True, slots=True)
class Guesses:
    """The counts of one run: n ≥ 1 canaries, r guesses, of which v are right. Raise ValueError for
    impossible counts. For δ > 0 the number of guesses must be fixed before the run; for δ = 0 it
    may depend on the output."""

    canaries: int
    guesses: int
    correct: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.guesses <= self.canaries or self.canaries < 1:
            raise ValueError(f"impossible counts: {self}")


def p_value(seen: Guesses, epsilon: float, delta: float) -> float:
    """Return the p-value of the claim: the right side of (12.1), at most 1.

    >>> round(p_value(Guesses(1000, 100, 75), 0.5, 0.0), 4)
    0.0048
    """
    tail = _tail(seen, epsilon)
    return min(1.0, tail + delta * _slope(seen, epsilon)) if delta else tail


def epsilon_lower(seen: Guesses, delta: float, alpha: float) -> float:
    """Return a lower bound for ε at δ: the largest ε that `p_value` refutes at alpha; 0 if there is
    none.

    Bisection finds it, since the p-value rises with ε. The p-value is the largest probability of at
    least v right guesses under any (ε, δ)-DP mechanism, and every such mechanism is also (ε', δ)-DP
    for ε' > ε.

    >>> round(epsilon_lower(Guesses(1000, 100, 75), 1e-4, 0.05), 3)
    0.695
    """
    if delta == 0:
        share = clopper_pearson_lower(seen.correct, seen.guesses, alpha) if seen.guesses else 0.0
        return max(0.0, math.log(share / (1 - share))) if share > 0 else 0.0
    if p_value(seen, 0.0, delta) > alpha:
        return 0.0
    return bisect_interval(
        lambda epsilon: p_value(seen, epsilon, delta) > alpha, 0.0, _MAX_EPSILON
    )[0]


def delta_lower(seen: Guesses, epsilon: float, alpha: float) -> float:
    """Return a lower bound for δ at ε: the largest δ in [0, 1] at which the p-value of (ε, δ) is at
    most alpha; 0 if there is none."""
    left = alpha - _tail(seen, epsilon)
    slope = _slope(seen, epsilon) if left > 0 else 0.0
    return min(1.0, left / slope) if slope > 0 else 0.0


def fewest_correct(seen: Guesses, refutes: Callable[[Guesses], bool]) -> int:
    """Return the smallest number of right guesses with which `refutes` is true; r + 1 if there is
    none. The numbers of canaries and guesses are those of `seen`. If `refutes` is true, it must
    stay true with more right guesses."""
    counts = range(seen.guesses + 1)
    return bisect_left(counts, True, key=lambda correct: refutes(replace(seen, correct=correct)))


def smallest_detectable(seen: Guesses, needed: int, epsilon: float) -> float:
    """Return the smallest true ε₁ > ε at which these r guesses refute the claim with probability
    0.9. It is inf if r right guesses do not refute. At ε₁ every guess is taken to be right with
    probability e^ε₁ / (1 + e^ε₁) (docs/method.md §8).

    needed: smallest number of right guesses that refutes the claim, as from `fewest_correct`.
    """
    if needed > seen.guesses:
        return math.inf
    # The error probability of the test of (ε, 0) that refutes from `needed` right guesses on: the
    # largest probability of at least `needed` right guesses under this claim.
    level = _tail(Guesses(seen.canaries, seen.guesses, needed), epsilon)
    return detectable_epsilon(seen.guesses, epsilon, level * (1 + 1e-9))


def _tail(guesses: Guesses, epsilon: float) -> float:
    """Return β = Pr[W ≥ v], W ~ Binomial(r, e^ε / (1 + e^ε)), for v right guesses out of r."""
    return float(upper_tail(guesses.correct, guesses.guesses, right_share(epsilon)))


def _slope(guesses: Guesses, epsilon: float) -> float:
    """Return the factor of δ in docs/method.md (12.1), n β (1 - β) / (v Pr[W = v]), by logs."""
    right, total = guesses.correct, guesses.guesses
    below = float(upper_tail(total - right + 1, total, right_share(-epsilon)))
    if right == 0 or below == 0:
        return 0.0
    # Let W be the number of right guesses out of r, v = `right` and β = Pr[W ≥ v]. Then β / Pr[W =
    # v] = 1 + Σ_{j > v} Pr[W = j] / Pr[W = v]. The logs of these terms are running sums of log Pr[W
    # = j] / Pr[W = j - 1] = log((r - j + 1) / j) + ε, so that no term underflows.
    further = np.arange(right + 1, total + 1)
    steps = np.log((total - further + 1) / further) + epsilon
    ratio = float(logsumexp(np.concatenate([[0.0], np.cumsum(steps)])))
    log_slope = math.log(guesses.canaries / right) + math.log(below) + ratio
    return math.exp(min(log_slope, 700.0))
