"""The exact test of probabilistic differential privacy on atoms (docs/method.md §7)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpaudit.stats import power
from dpaudit.stats.binomial import IntArray, clopper_pearson_lower, upper_tail
from dpaudit.stats.p_values import bisect_interval, holm, smallest_alpha

# Share of the level of one direction that certifies the atoms; the rest bounds their mass.
# Certifying gets more, since it compares two probabilities, while the mass is often far above δ.
ATOM_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class ViolatingMass:
    """Result of `violating_mass`.

    certified: whether P(s) > e^ε Q(s) is certified, by candidate atom s. delta_lower: a lower bound
    for the probability P of all atoms with P(s) > e^ε Q(s), rounded down.
    """

    certified: tuple[bool, ...]
    delta_lower: float


def violating_mass(
    counts: IntArray, others: IntArray, draws: int, epsilon: float, alpha: float
) -> ViolatingMass:
    """Certify atoms of V = {s : P(s) > e^ε Q(s)} and bound P(V) from below at 1 - alpha.

    counts, others: (atoms,), draws in each candidate atom of the arm with law P, and of the other
    arm. The candidates A must be chosen without these draws. draws: all draws of the arm with law
    P. With probability 1 - ATOM_SHARE · alpha every certified atom is in V. Then the count of the
    certified atoms is at most that of the fixed set V ∩ A, so that the same draws bound P(V)."""
    p_values = upper_tail(counts, counts + others, 1 / (1 + math.exp(-epsilon)))
    certified = holm(p_values, ATOM_SHARE * alpha)
    inside = int(counts[certified].sum())
    lower = clopper_pearson_lower(inside, draws, (1 - ATOM_SHARE) * alpha)
    return ViolatingMass(tuple(certified.tolist()), lower)


def p_value(counts: IntArray, others: IntArray, draws: int, epsilon: float, delta: float) -> float:
    """Return the smallest alpha at which `violating_mass` exceeds δ in this direction, rounded
    up."""

    def refuted(alpha: float) -> bool:
        return violating_mass(counts, others, draws, epsilon, alpha).delta_lower > delta

    return smallest_alpha(refuted) if len(counts) else 1.0


def epsilon_lower(
    counts: IntArray, others: IntArray, draws: int, delta: float, alpha: float
) -> float:
    """Return the largest ε at which (ε, δ) is refuted in this direction at level alpha, or 0.

    By bisection, since a larger ε certifies fewer atoms; rounded down by at most 10⁻⁶.
    """

    def stands(epsilon: float) -> bool:
        return violating_mass(counts, others, draws, epsilon, alpha).delta_lower <= delta

    if len(counts) == 0 or stands(0.0):
        return 0.0
    return bisect_interval(stands, 0.0, 50.0, times=26)[0]


def detectable_epsilon(
    counts: IntArray, others: IntArray, draws: int, epsilon: float, delta: float, alpha: float
) -> float:
    """Return the smallest detectable ε₁; inf if all atoms together have no mass above δ.

    At ε₁, atoms whose mass exceeds δ are each certified with probability 0.9 (docs/method.md §8).
    """
    if len(counts) == 0:
        return math.inf
    share, mass = ATOM_SHARE * alpha / len(counts), 0
    each = [power.detectable_epsilon(int(count), epsilon, share) for count in counts + others]
    for detectable, count in sorted(zip(each, counts.tolist(), strict=True)):
        mass += count
        if clopper_pearson_lower(mass, draws, (1 - ATOM_SHARE) * alpha) > delta:
            return detectable
    return math.inf
