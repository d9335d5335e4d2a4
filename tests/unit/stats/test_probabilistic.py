"""The test of probabilistic DP on atoms: exact size by enumeration, and its own consistency."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from statsmodels.stats.multitest import multipletests

from dpaudit.stats.binomial import clopper_pearson_lower, upper_tail
from dpaudit.stats.probabilistic import ATOM_SHARE, epsilon_lower, p_value, violating_mass

IntArray = NDArray[np.int64]


def ints(*values: int) -> IntArray:
    return np.array(values, dtype=np.int64)


def test_the_mass_is_that_of_the_atoms_that_holm_certifies() -> None:
    counts, others, alpha = ints(60, 50, 9, 40), ints(2, 3, 4, 15), 0.05
    mass = violating_mass(counts, others, 500, 1.0, alpha)
    p_values = upper_tail(counts, counts + others, math.e / (1 + math.e))
    rejected = multipletests(p_values, ATOM_SHARE * alpha, method="holm")[0]
    assert mass.certified == tuple(rejected)
    assert mass.certified[:3] == (True, True, False)
    count = int(counts[rejected].sum())
    assert mass.delta_lower == clopper_pearson_lower(count, 500, (1 - ATOM_SHARE) * alpha)


@pytest.mark.parametrize(
    ("alpha", "epsilon", "delta"), [(0.3, 0.0, 0.1), (0.3, 1.0, 0.4), (0.1, 1.0, 0.1)]
)
def test_a_true_claim_is_refuted_at_most_alpha_of_the_time(
    alpha: float, epsilon: float, delta: float
) -> None:
    """Two candidate atoms, all counts enumerated: one in V with P(V) = δ exactly, one just not.

    P(other) = e^ε Q(other), the hardest case of an atom that must not be certified.
    """
    n1, n2 = 11, 11
    innocent = 0.3
    first, second = (delta, innocent), (0.0, innocent * math.exp(-epsilon))
    refuted = 0.0
    for c0, c1, o1 in product(range(n1 + 1), range(n1 + 1), range(n2 + 1)):
        if c0 + c1 > n1:
            continue
        mass = violating_mass(ints(c0, c1), ints(0, o1), n1, epsilon, alpha)
        if mass.delta_lower > delta:
            chance = binom.pmf(c0, n1, first[0]) * binom.pmf(c1, n1 - c0, first[1] / (1 - first[0]))
            refuted += chance * binom.pmf(o1, n2, second[1])
    assert refuted <= alpha


def test_certification_is_needed_without_delta() -> None:
    """At δ = 0 one certified atom refutes; counting an uncertified one would not be valid."""
    assert violating_mass(ints(3), ints(2), 50, 0.0, 0.1).delta_lower == 0.0
    assert violating_mass(ints(30), ints(2), 50, 0.0, 0.1).delta_lower > 0.0


CASES = [
    (ints(60, 30, 9), ints(2, 3, 4), 500, 0.05),
    (ints(8), ints(0), 40, 0.1),
    (ints(70, 70, 70, 70), ints(5, 6, 7, 30), 300, 0.01),
]


@pytest.mark.parametrize(("counts", "others", "draws", "alpha"), CASES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.2, 0.0), (1.5, 0.1)])
def test_p_value_mass_and_bound_refute_the_same_claims(
    counts: IntArray, others: IntArray, draws: int, alpha: float, epsilon: float, delta: float
) -> None:
    refuted = violating_mass(counts, others, draws, epsilon, alpha).delta_lower > delta
    assert (p_value(counts, others, draws, epsilon, delta) <= alpha) is refuted
    assert (epsilon_lower(counts, others, draws, delta, alpha) >= epsilon) is refuted


@pytest.mark.parametrize(("counts", "others", "draws", "alpha"), CASES)
def test_the_epsilon_bound_is_where_refutation_ends(
    counts: IntArray, others: IntArray, draws: int, alpha: float
) -> None:
    bound = epsilon_lower(counts, others, draws, 0.02, alpha)
    assert bound > 0
    assert violating_mass(counts, others, draws, bound, alpha).delta_lower > 0.02
    assert violating_mass(counts, others, draws, bound + 2e-6, alpha).delta_lower <= 0.02


def test_no_atom_refutes_nothing() -> None:
    empty = ints()
    assert violating_mass(empty, empty, 100, 1.0, 0.05).delta_lower == 0.0
    assert p_value(empty, empty, 100, 1.0, 0.0) == 1.0
    assert epsilon_lower(empty, empty, 100, 0.0, 0.05) == 0.0


@pytest.mark.parametrize(("delta", "draws"), [(0.1, 7e3), (0.01, 7e5), (0.001, 7e7)])
def test_the_draws_of_the_method_have_power_nine_tenths(delta: float, draws: float) -> None:
    """docs/method.md §7: T∘K at ε = 1 and 99 %, simulated as counts (four sd of the simulation).

    T merges an atom of P = δ, Q = 0 with one of P = (1-δ) e/(1+e), Q = (1-δ)/(1+e).
    """
    share = 1 / (1 + math.exp(-1.0))
    merged = delta + (1 - delta) * share, (1 - delta) * (1 - share)
    rng = np.random.default_rng(7)

    def power(total: float) -> float:
        n1 = int(total / 2)
        counts, others = rng.binomial(n1, merged[0], 400), rng.binomial(n1, merged[1], 400)
        # alpha halved for both directions, one atom in each
        bounds = [
            violating_mass(ints(c), ints(o), n1, 1.0, 0.005).delta_lower
            for c, o in zip(counts, others, strict=True)
        ]
        return float(np.mean(np.array(bounds) > delta))

    assert power(1.05 * draws) >= 0.86
    assert power(0.6 * draws) < 0.75
