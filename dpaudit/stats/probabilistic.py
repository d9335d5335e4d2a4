"""The exact test of probabilistic differential privacy (docs/method.md §7).

(ε, δ)-probabilistic DP says P(V) ≤ δ for V = {s : P(s) > e^ε Q(s)}, and the same with P and Q
exchanged. An atom is a single output s. Each function tests one direction, where P is the law of
one input and Q that of the other. Earlier draws have chosen candidate atoms. `counts` and `others`,
(atoms,), are the numbers of draws of P and of Q that are equal to each candidate atom; `draws` is
the number of all draws of P.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.stats import power
from dpaudit.stats.binomial import IntArray, clopper_pearson_lower, right_share, upper_tail
from dpaudit.stats.p_values import bisect_interval, holm, smallest_alpha

# Share of alpha that is spent on certifying P(s) > e^ε Q(s) for each atom (single output) s. The
# rest is spent on the lower bound of the atoms' total probability. Certifying gets more, since it
# compares two probabilities, while the total probability is often far above δ.
ATOM_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class ViolatingMass:
    """Result of `violating_mass`.

    certified: for each candidate atom s, whether P(s) > e^ε Q(s) is certified.
    delta_lower: a lower bound for P(V).
    """

    certified: tuple[bool, ...]
    delta_lower: float


def violating_mass(
    counts: IntArray, others: IntArray, draws: int, epsilon: float, alpha: float
) -> ViolatingMass:
    """Certify which candidate atoms are in V, and bound P(V) from below. With probability at least
    1 - alpha, all certified atoms are in V and the bound is at most P(V).

    Let A be the set of candidates. With probability at least 1 - ATOM_SHARE · alpha every certified
    atom is in V ∩ A, a set that does not depend on these draws. Then the number of draws equal to
    certified atoms is at most the number of draws in V ∩ A. So a Clopper-Pearson bound from the
    first number is valid for P(V).
    """
    p_values = upper_tail(counts, counts + others, right_share(epsilon))
    certified = holm(p_values, ATOM_SHARE * alpha)
    inside = int(counts[certified].sum())
    lower = clopper_pearson_lower(inside, draws, (1 - ATOM_SHARE) * alpha)
    return ViolatingMass(tuple(certified.tolist()), lower)


def p_value(counts: IntArray, others: IntArray, draws: int, epsilon: float, delta: float) -> float:
    """Return the p-value of the claim P(V) ≤ δ: the smallest alpha at which the lower bound of
    `violating_mass` exceeds δ; 1 without candidate atoms."""
    if len(counts) == 0:
        return 1.0
    sides = counts, others, draws, epsilon
    return smallest_alpha(lambda alpha: violating_mass(*sides, alpha).delta_lower > delta)


def epsilon_lower(
    counts: IntArray, others: IntArray, draws: int, delta: float, alpha: float
) -> float:
    """Return the largest ε in [0, 50] at which the claim P(V) ≤ δ is refuted, rounded down by at
    most 10⁻⁶; 0 if there is none. Bisection finds it, since fewer atoms are certified for a larger
    ε."""

    def stands(epsilon: float) -> bool:
        return violating_mass(counts, others, draws, epsilon, alpha).delta_lower <= delta

    if len(counts) == 0 or stands(0.0):
        return 0.0
    return bisect_interval(stands, 0.0, 50.0, times=26)[0]


def detectable_epsilon(
    counts: IntArray, others: IntArray, draws: int, epsilon: float, delta: float, alpha: float
) -> float:
    """Return the smallest true ε₁ > ε at which the claim would probably be refuted; inf if there is
    none.

    The claim is refuted if a set of atoms is certified whose probability has a lower bound above δ.
    At ε₁, each atom of some such set is certified with probability 0.9 (docs/method.md §8).
    """
    if len(counts) == 0:
        return math.inf
    share, mass = ATOM_SHARE * alpha / len(counts), 0
    epsilons = [power.detectable_epsilon(int(count), epsilon, share) for count in counts + others]
    for detectable, count in sorted(zip(epsilons, counts.tolist(), strict=True)):
        mass += count
        if clopper_pearson_lower(mass, draws, (1 - ATOM_SHARE) * alpha) > delta:
            return detectable
    return math.inf
