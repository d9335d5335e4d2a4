"""Linear programmes over all mechanisms are the oracles of the bound for trade-off functions."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, sparse
from scipy.special import ndtr, ndtri
from scipy.stats import norm

from dpaudit.claims import ApproximateDP, FunctionalDP, GaussianDP, PrivacyClaim, PureDP
from dpaudit.claims.tradeoff import gaussian_delta, gaussian_epsilon, smallest_probability
from dpaudit.stats import one_run
from dpaudit.stats.one_run import Guesses
from dpaudit.stats.one_run_tradeoff import (
    independent_bounds,
    independent_mu_lower,
    independent_p_value,
    mu_lower,
    refutes,
    tradeoff_p_value,
)
from tests.unit.stats.test_one_run import largest as largest_of_all_mechanisms

# A line 1 - f ≤ e^ε α + δ, for each ε ≥ 0 of a claim.
Lines = list[tuple[float, float]]
# Its types leave out sparse matrices.
LINPROG: Any = optimize.linprog
SMALL = [(n, r, v) for n in range(1, 7) for r in range(1, n + 1) for v in range(1, r + 1)]


def largest(seen: Guesses, lines: Lines) -> float:
    """Return the largest Pr[v or more right guesses] of any mechanism that satisfies all lines.

    Unknowns: p_k, the probability of k right guesses, k = 0 … r; and, for each line, an upper bound
    of (Pr[answer | coins] - e^ε Pr[answer | other coins])+, summed over the answers with k right
    guesses, one of which is about the canary whose coin differs. Without loss of generality all
    answers with k right guesses are equally likely (docs/method.md §12)."""
    n, r = seen.canaries, seen.guesses
    size, rows = r + 1 + 2 * r * len(lines), (2 * r + 1) * len(lines)
    matrix: Any = sparse.lil_array((rows, size))
    limits = np.zeros(rows)
    for number, (epsilon, delta) in enumerate(lines):
        row, start = (2 * r + 1) * number, r + 1 + 2 * r * number
        for k in range(1, r + 1):
            # With k right guesses, one of them about this canary; k - 1 after its coin changes.
            both = k / n, (r - k + 1) / n
            matrix[row, [k, k - 1]] = both[0], -math.exp(epsilon) * both[1]
            matrix[row + 1, [k - 1, k]] = both[1], -math.exp(epsilon) * both[0]
            matrix[row, start], matrix[row + 1, start + 1] = -1.0, -1.0
            row, start = row + 2, start + 2
        matrix[row, start - 2 * r : start], limits[row] = 1.0, delta
    goal, sums = np.zeros(size), np.zeros((1, size))
    goal[seen.correct : r + 1], sums[0, : r + 1] = -1, 1
    options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = LINPROG(goal, matrix.tocsr(), limits, sums, [1.0], (0, None), options=options)
    return -float(found.fun)


def largest_by_thresholds(seen: Guesses, lines: Lines) -> float:
    """Return the largest Pr[v or more right] under the inequalities (12.2) alone, with g the
    largest of the lines (p - δ) / e^ε and 1 - δ - e^ε (1 - p)."""
    n, r = seen.canaries, seen.guesses
    rows, limits = [], []
    k = np.arange(r + 1)
    for epsilon, delta in lines:
        factor = math.exp(epsilon)
        for j in range(1, r + 1):
            right = np.where(k >= j, k / n, 0.0)
            before = np.where(k >= j - 1, (r - k) / n, 0.0)
            rows += [right / factor - before, factor * right - before]
            limits += [delta / factor, delta + factor - 1]
    goal = -(k >= seen.correct).astype(float)
    found = LINPROG(goal, np.array(rows), limits, np.ones((1, r + 1)), [1.0], (0, None))
    return -float(found.fun)


def gaussian_lines(mu: float, count: int = 200) -> Lines:
    """Return tangents of the trade-off function of μ-Gaussian DP."""
    return [(e, gaussian_delta(mu, e)) for e in np.linspace(0, mu * (5 + mu / 2), count)]


def smallest_of_lines(lines: Lines, p: float) -> float:
    factors, deltas = np.exp([e for e, _ in lines]), np.array([d for _, d in lines])
    both = (p - deltas) / factors, 1 - deltas - factors * (1 - p)
    return max(0.0, float(np.max(both)))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 0.0), (1.0, 0.01)])
def test_the_small_programme_agrees_with_that_of_all_mechanisms(
    epsilon: float, delta: float
) -> None:
    for n, r, v in [(2, 1, 1), (2, 2, 1), (2, 2, 2), (3, 2, 2), (3, 3, 2)]:
        both = largest_of_all_mechanisms(n, r, v, epsilon, delta)
        assert largest(Guesses(n, r, v), [(epsilon, delta)]) == pytest.approx(both, abs=1e-8)


@pytest.mark.parametrize("claim", [PureDP(1.0), ApproximateDP(0.5, 0.01), ApproximateDP(2, 1e-4)])
def test_the_test_of_a_point_is_exact(claim: PrivacyClaim) -> None:
    point = claim.point()
    for counts in SMALL:
        seen = Guesses(*counts)
        exact = largest(seen, [(point.epsilon, point.delta)])
        p = one_run.p_value(seen, point.epsilon, point.delta)
        assert p == pytest.approx(exact, abs=1e-9)
        assert tradeoff_p_value(seen, smallest_probability(claim)) >= exact - 1e-9


@pytest.mark.parametrize("mu", [0.3, 1.0])
def test_no_gaussian_mechanism_exceeds_the_p_value(mu: float) -> None:
    lines = gaussian_lines(mu)
    for counts in [(1, 1, 1), (3, 2, 2), (5, 3, 2), (6, 2, 2), (6, 6, 5)]:
        seen = Guesses(*counts)
        most = largest(seen, lines)
        assert tradeoff_p_value(seen, lambda p: smallest_of_lines(lines, p)) >= most - 1e-9
        # The lines allow a little more than the curve itself.
        p = tradeoff_p_value(seen, smallest_probability(GaussianDP(mu)))
        assert p >= most - 1e-4


@pytest.mark.parametrize("lines", [[(1.0, 0.01)], [(0.0, 0.3), (1.0, 0.05), (2.0, 1e-3)]])
@pytest.mark.parametrize("counts", [(6, 6, 5), (6, 4, 3), (50, 20, 16), (200, 40, 30)])
def test_the_recursion_solves_its_inequalities(lines: Lines, counts: tuple[int, int, int]) -> None:
    seen = Guesses(*counts)
    p = tradeoff_p_value(seen, lambda prob: smallest_of_lines(lines, prob))
    assert p == pytest.approx(largest_by_thresholds(seen, lines), rel=1e-6)


def published(seen: Guesses, mu: float, alpha: float) -> bool:
    """Whether μ is refuted by the recursion of Mahloujifar, Melis & Chaudhuri 2024, Algorithm 3,
    over the probabilities of right and of wrong guesses about one canary."""
    right = alpha * seen.correct / seen.canaries
    wrong = alpha * (seen.guesses - seen.correct) / seen.canaries
    for k in range(seen.correct - 1, -1, -1):
        larger = max(wrong, ndtr(ndtri(right) - mu))
        right += k / (seen.guesses - k) * (larger - wrong)
        wrong = larger
    return right + wrong > seen.guesses / seen.canaries


# n, guesses and right guesses; μ at least, at 95 %.
ROWS = [
    ((1_000, 100, 90), 0.6025),
    ((1_000, 500, 397), 0.505),
    ((100_000, 10_000, 9_033), 0.689),
    ((10_000, 1_000, 995), 1.441),
]


@pytest.mark.parametrize(("counts", "mu"), ROWS)
def test_bounds_for_mu(counts: tuple[int, int, int], mu: float) -> None:
    seen = Guesses(*counts)
    lower = mu_lower(seen, 0.05)
    assert lower == pytest.approx(mu, abs=5e-4)
    if seen.canaries == 1_000:
        assert published(seen, lower * (1 - 1e-7), 0.05)
        assert not published(seen, lower * (1 + 1e-7), 0.05)
    p = tradeoff_p_value(seen, smallest_probability(GaussianDP(lower)))
    assert p == pytest.approx(0.05, rel=1e-6)
    assert p <= 0.05


def test_many_canaries_do_not_lose_digits() -> None:
    """With n of 10¹⁵ the probabilities of one canary are near 10⁻¹⁵."""
    bounds = [mu_lower(Guesses(n, 100, 90), 0.05) for n in (10**3, 10**6, 10**9, 10**15)]
    assert (np.diff(bounds) < 0).all()
    assert bounds[-1] > 0.15
    assert mu_lower(Guesses(10, 10, 0), 0.05) == mu_lower(Guesses(1, 1, 1), 0.05) == 0


@pytest.mark.parametrize(
    "claim",
    [
        GaussianDP(1.0),
        PureDP(1.0),
        ApproximateDP(1.0, 0.01),
        FunctionalDP([[0, 0.8], [0.2, 0.3], [1, 0]]),
    ],
)
def test_the_smallest_probability_never_exceeds_the_tradeoff(claim: PrivacyClaim) -> None:
    from dpaudit.claims.tradeoff import tradeoff

    smallest = smallest_probability(claim)
    grid = np.linspace(0, 1, 201)
    values = np.array([smallest(p) for p in grid])
    assert (np.diff(values) >= 0).all()
    curve = np.array([tradeoff(claim, 1 - p) for p in grid])
    assert (values <= curve + 1e-12).all()
    assert values == pytest.approx(curve, abs=1e-9)


def test_tail_probabilities_keep_their_digits() -> None:
    smallest = smallest_probability(GaussianDP(1.0))
    for p in (1e-300, 1e-30, 1e-10, 0.5):
        exact = norm.cdf(norm.ppf(p) - 1)
        assert smallest(p) == pytest.approx(exact, rel=1e-9, abs=0)
        assert smallest(p) <= exact * (1 + 1e-10)


@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0, 30.0])
def test_the_epsilon_of_the_gaussian_family(mu: float) -> None:
    epsilon = gaussian_epsilon(mu, 1e-5)
    assert gaussian_delta(mu, epsilon) == pytest.approx(1e-5, rel=1e-5)
    assert gaussian_epsilon(1e-7, 1e-5) == 0


def test_independent_canaries_by_simulation_of_their_law() -> None:
    """The error of P_lower and Q_upper together, summed over all pairs of counts."""
    n, mu, alpha, threshold = 60, 1.0, 0.1, 0.7
    above_in, above_out = norm.sf(threshold - mu) / 2, norm.sf(threshold) / 2
    law = _joint(n, above_in, above_out)
    wrong = sum(
        law[v, w]
        for v, w in product(range(n + 1), repeat=2)
        if v + w <= n and independent_mu_lower(Guesses(n, v + w, v), alpha) > mu
    )
    assert wrong <= alpha


def _joint(n: int, p: float, q: float) -> NDArray[np.float64]:
    """Return the law of the numbers of included and of other canaries above a threshold."""
    law = np.zeros((n + 1, n + 1))
    for v, w in product(range(n + 1), repeat=2):
        if v + w <= n:
            ways = math.comb(n, v) * math.comb(n - v, w)
            law[v, w] = ways * p**v * q**w * (1 - p - q) ** (n - v - w)
    assert law.sum() == pytest.approx(1)
    return law


@pytest.mark.parametrize("counts", [(1_000, 100, 90), (10_000, 2_500, 2_136)])
def test_bounds_of_independent_canaries_are_where_p_is_alpha(
    counts: tuple[int, int, int],
) -> None:
    seen, alpha = Guesses(*counts), 0.05
    mu = independent_mu_lower(seen, alpha)
    assert mu > mu_lower(seen, alpha)
    smallest = smallest_probability(GaussianDP(mu))
    assert independent_p_value(seen, smallest) == pytest.approx(alpha, rel=1e-6)
    epsilon, delta = independent_bounds(seen, 1.0, 1e-5, alpha)
    for point in (ApproximateDP(epsilon, 1e-5), ApproximateDP(1.0, delta)):
        p = independent_p_value(seen, smallest_probability(point))
        assert p == pytest.approx(alpha, rel=1e-4)


def test_a_refutation_needs_more_than_alpha_allows() -> None:
    seen, smallest = Guesses(1_000, 100, 90), smallest_probability(GaussianDP(0.5))
    p = tradeoff_p_value(seen, smallest)
    assert refutes(seen, smallest, p)
    assert not refutes(seen, smallest, p * (1 - 1e-6))
