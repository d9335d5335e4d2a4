"""Audits of one run: what guesses about many canaries, each in or out by a fair coin, show.

n canaries are included or left out by independent fair coins, the mechanism runs once, and an
auditor who has seen its output guesses of r of them whether they were in (Steinke, Nasr &
Jagielski 2023, arXiv 2305.08846). For an (ε, δ)-DP mechanism (one canary more or less), with
W ~ Binomial(r, e^ε / (1 + e^ε)),

    Pr[v or more are right] ≤ β + nδ β (1 - β) / (v Pr[W = v]),   β = Pr[W ≥ v],           (1)

at most 1, and some mechanism attains it: docs/method.md §12 derives it. It takes the place of the
bound in the source's Corollary 5.4, which is larger where p is small, and too small where p is near
1.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from dpaudit.stats.binomial import clopper_pearson_lower, upper_tail
from dpaudit.stats.p_values import bisect_interval
from dpaudit.stats.power import detectable_epsilon

# No bound for ε is sought above.
_LARGEST = 50.0
# Guesses at most, some of which take an array of as many floats; and canaries, far below 2^53.
MOST_GUESSES, MOST_CANARIES = 10_000_000, 10**15


@dataclass(frozen=True, slots=True)
class Guesses:
    """Guesses about canaries.

    Parameters
    ----------
    canaries : int
        Records that were each in or out by a fair coin, at least 1.
    guesses : int
        How many of them were guessed to be in or out. For δ > 0 a number that was fixed beforehand;
        for δ = 0 it may depend on the output (docs/method.md §12).
    correct : int
        How many guesses were right.

    Raises
    ------
    ValueError
        For impossible counts.
    """

    canaries: int
    guesses: int
    correct: int

    def __post_init__(self) -> None:
        if not 0 <= self.correct <= self.guesses <= self.canaries or self.canaries < 1:
            raise ValueError(f"impossible counts: {self}")


def p_value(seen: Guesses, epsilon: float, delta: float) -> float:
    """Return the p-value of the claim (ε, δ): the right side of (1).

    Parameters
    ----------
    seen : Guesses
        The counts.
    epsilon, delta : float
        The claim: ε ≥ 0 in nats, δ in [0, 1).

    Returns
    -------
    float
        p, in [0, 1].

    Notes
    -----
    Under the claim Pr[p ≤ u] ≤ u for every u (docs/method.md §12).

    Examples
    --------
    >>> round(p_value(Guesses(1000, 100, 75), 0.5, 0.0), 4)
    0.0048
    """
    tail = _tail(seen, epsilon)
    return min(1.0, tail + delta * _slope(seen, epsilon)) if delta else tail


def epsilon_lower(seen: Guesses, delta: float, alpha: float) -> float:
    """Return a lower bound for ε at a given δ.

    Parameters
    ----------
    seen : Guesses
        The counts.
    delta, alpha : float
        δ, in [0, 1); the error probability, in (0, 1).

    Returns
    -------
    float
        sup{ε : p(ε) ≤ alpha}, at least 0, rounded down.

    Notes
    -----
    Valid with probability at least 1 - alpha. p rises with ε, since what is (ε, δ)-DP is so for
    every larger ε, and (1) is attained (docs/method.md §12).

    Examples
    --------
    >>> round(epsilon_lower(Guesses(1000, 100, 75), 1e-4, 0.05), 3)
    0.695
    """
    if delta == 0:
        share = clopper_pearson_lower(seen.correct, seen.guesses, alpha) if seen.guesses else 0.0
        return max(0.0, math.log(share / (1 - share))) if share > 0 else 0.0
    if p_value(seen, 0.0, delta) > alpha:
        return 0.0
    return bisect_interval(lambda epsilon: p_value(seen, epsilon, delta) > alpha, 0.0, _LARGEST)[0]


def delta_lower(seen: Guesses, epsilon: float, alpha: float) -> float:
    """Return a lower bound for δ at a given ε.

    Parameters
    ----------
    seen : Guesses
        The counts.
    epsilon, alpha : float
        ε ≥ 0 in nats; the error probability, in (0, 1).

    Returns
    -------
    float
        The δ up to which (1) is at most alpha, in [0, 1].

    Notes
    -----
    Valid with probability at least 1 - alpha (docs/method.md §12).
    """
    left = alpha - _tail(seen, epsilon)
    slope = _slope(seen, epsilon) if left > 0 else 0.0
    return min(1.0, left / slope) if slope > 0 else 0.0


def smallest_detectable(seen: Guesses, epsilon: float, delta: float, alpha: float) -> float:
    """Return the smallest ε₁ > ε that so many guesses would have refuted.

    Parameters
    ----------
    seen : Guesses
        The counts.
    epsilon, delta, alpha : float
        The claim: ε ≥ 0 in nats, δ in [0, 1); the error probability, in (0, 1).

    Returns
    -------
    float
        ε₁, rounded up; inf when no ε₁ would be refuted.

    Notes
    -----
    Refuted with probability 0.9, had each guess been right with probability e^ε₁ / (1 + e^ε₁)
    (docs/method.md §8).
    """

    def refutes(correct: int) -> bool:
        one = Guesses(seen.canaries, seen.guesses, correct)
        return p_value(one, epsilon, delta) <= alpha

    needed = bisect_left(range(seen.guesses + 1), True, key=refutes)
    if needed > seen.guesses:
        return math.inf
    # The level at which the test without δ asks for as many right guesses.
    level = _tail(Guesses(seen.canaries, seen.guesses, needed), epsilon)
    return detectable_epsilon(seen.guesses, epsilon, level * (1 + 1e-9))


def _tail(seen: Guesses, epsilon: float) -> float:
    """Return β."""
    return float(upper_tail(seen.correct, seen.guesses, 1 / (1 + math.exp(-epsilon))))


def _slope(seen: Guesses, epsilon: float) -> float:
    """Return n β (1 - β) / (v Pr[W = v]), from the logs of its factors; large where p is 1."""
    right, guesses = seen.correct, seen.guesses
    below = float(upper_tail(guesses - right + 1, guesses, 1 / (1 + math.exp(epsilon))))
    if right == 0 or below == 0:
        return 0.0
    # β / Pr[W = v] = 1 + Σ_{j > v} Pr[W = j] / Pr[W = v], from one to the next.
    further = np.arange(right + 1, guesses + 1)
    steps = np.log((guesses - further + 1) / further) + epsilon
    ratio = float(logsumexp(np.concatenate([[0.0], np.cumsum(steps)])))
    log_slope = math.log(seen.canaries / right) + math.log(below) + ratio
    return math.exp(min(log_slope, 700.0))
