"""The trinomial score test against enumeration of every pair of counts (docs/method.md §2)."""

from __future__ import annotations

import functools
import math
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import binom, multinomial
from statsmodels.stats.proportion import proportion_confint

from dpaudit.stats import trinomial
from dpaudit.stats.game import Game, p_value
from dpaudit.stats.trinomial import ScoreTest

FloatArray = NDArray[np.float64]


def all_counts(draws: int) -> NDArray[np.int64]:
    """Every (correct, wrong) with correct + wrong ≤ draws, one a row."""
    pairs = [(c, w) for c in range(draws + 1) for w in range(draws + 1 - c)]
    return np.array(pairs)


def probabilities(counts: NDArray[np.int64], draws: int, c: float, w: float) -> FloatArray:
    rest = draws - counts.sum(axis=1)
    chances = np.array([c, w, max(0.0, 1 - c - w)])
    table = np.column_stack([counts, rest])
    return np.asarray(multinomial.pmf(table, draws, chances / chances.sum()))


def are_refuted(
    counts: NDArray[np.int64],
    draws: int,
    two_guesses: bool,
    epsilon: float,
    delta: float,
    alpha: float,
) -> NDArray[np.bool_]:
    """Whether the test refutes at each of these counts."""
    refuted = np.zeros(len(counts), dtype=bool)
    # Counts with the same wrong guesses one after the other: they share tables that are kept.
    for row in np.argsort(counts[:, 1], kind="stable"):
        game = Game(int(counts[row, 0]), int(counts[row, 1]), draws, two_guesses)
        # Sought no further than decides: p is never smaller than what is known by then.
        refuted[row] = p_value(game, epsilon, delta, alpha, enough=alpha) <= alpha
    return refuted


def boundary(epsilon: float, spared: float, points: int) -> list[tuple[float, float]]:
    """(c, w) with c = e^ε w + s: nulls that the test finds hardest, from w = 0 to its cap."""
    cap = (1 - spared) / (1 + math.exp(epsilon))
    values = {*np.linspace(0, cap, points), *(cap * np.geomspace(1e-3, 1, points // 2))}
    return [(math.exp(epsilon) * w + spared, w) for w in sorted(values)]


def score_by_search(correct: int, wrong: int, draws: int, epsilon: float, spared: float) -> float:
    """The score with the constrained maximum of the likelihood searched for numerically."""
    ratio = math.exp(epsilon)
    cap = (1 - spared) / (1 + ratio)
    rest = draws - correct - wrong

    def loss(w: float) -> float:
        chances = (ratio * w + spared, w, 1 - (1 + ratio) * w - spared)
        return -sum(
            count * math.log(max(chance, 1e-300))
            for count, chance in zip((correct, wrong, rest), chances, strict=True)
            if count
        )

    actual = minimize_scalar(loss, bounds=(0, cap), method="bounded", options={"xatol": 1e-12})
    w = min((0.0, cap, float(actual.x)), key=loss)
    variance = ratio * w + spared + ratio**2 * w - spared**2
    return (correct - ratio * wrong - spared * draws) / math.sqrt(draws * variance)


@functools.cache
def scores_by_search(draws: int, epsilon: float, spared: float) -> FloatArray:
    """Return the scores of all counts, in their order."""
    counts = all_counts(draws).tolist()
    return np.array([score_by_search(c, w, draws, epsilon, spared) for c, w in counts])


@pytest.mark.parametrize(
    ("draws", "epsilon", "delta", "two_guesses"),
    # One guess with δ is tested as two with δ/2. The last, of a large δ, would be far below its
    # level without the half.
    [
        (10, 0.5, 0.02, True),
        (10, 0.5, 0.02, False),
        (20, 0.5, 0.001, True),
        (20, 1.5, 0.1, False),
        (20, 0.0, 0.1, True),
        (20, 1.0, 0.3, True),
        (20, 1.0, 0.3, False),
    ],
)
def test_no_null_is_refuted_more_often_than_alpha(
    draws: int, epsilon: float, delta: float, two_guesses: bool
) -> None:
    """The guarantee itself, by exact enumeration of the counts over a grid of nulls."""
    counts = all_counts(draws)
    spared = delta if two_guesses else delta / 2
    nulls = boundary(epsilon, spared, 30)
    for alpha in (0.01, 0.05, 0.1):
        refuted = are_refuted(counts, draws, two_guesses, epsilon, delta, alpha)
        sizes = [probabilities(counts[refuted], draws, c, w).sum() for c, w in nulls]
        assert max(sizes) <= alpha
    # At 0.1, a test far below its level would be valid by being useless.
    assert max(sizes) > 0.3 * alpha


def test_nulls_inside_the_claim_are_refuted_less_often_than_those_on_its_boundary() -> None:
    draws, epsilon, delta, alpha = 20, 1.0, 0.1, 0.1
    counts = all_counts(draws)
    refuted = are_refuted(counts, draws, True, epsilon, delta, alpha)
    for c, w in boundary(epsilon, delta, 12):
        for share in (0.3, 0.8):
            assert probabilities(counts[refuted], draws, share * c, w).sum() <= alpha


def test_p_is_a_supremum_of_enumerated_probabilities() -> None:
    for (epsilon, spared), (correct, wrong, draws) in product(
        [(0.3, 0.05), (1.0, 0.01), (2.0, 0.2)],
        [(9, 2, 20), (12, 3, 20), (4, 0, 20), (0, 0, 12)],
    ):
        gamma = 0.0005
        counts = all_counts(draws)
        scores = scores_by_search(draws, epsilon, spared)
        observed = score_by_search(correct, wrong, draws, epsilon, spared)
        extreme = counts[scores >= observed - 1e-6]
        low, high = proportion_confint(wrong, draws, alpha=gamma, method="beta")
        cap = (1 - spared) / (1 + math.exp(epsilon))
        values = np.linspace(min(low, cap), min(high, cap), 400)
        most = max(
            probabilities(extreme, draws, math.exp(epsilon) * w + spared, w).sum() for w in values
        )
        p = ScoreTest(correct, wrong, draws, gamma).p_value(epsilon, spared)
        assert p == pytest.approx(min(1.0, gamma + most), rel=2e-3)
        assert p >= min(1.0, gamma + most) * (1 - 1e-4)


@pytest.mark.parametrize(("correct", "wrong"), [(0, 0), (0, 7), (11, 4), (40, 0)])
def test_the_score_is_that_of_a_numerical_maximum_likelihood(correct: int, wrong: int) -> None:
    for epsilon, spared in ((0.0, 0.1), (1.0, 0.02), (3.0, 0.4)):
        score = ScoreTest(correct, wrong, 40, 0.01).score(epsilon, spared)
        searched = score_by_search(correct, wrong, 40, epsilon, spared)
        assert score == pytest.approx(searched, abs=1e-4)


@pytest.mark.parametrize(("epsilon", "spared"), [(0.0, 0.01), (0.7, 0.2), (3.0, 0.05), (6.0, 0.5)])
def test_the_score_rises_with_correct_and_falls_with_wrong_guesses(
    epsilon: float, spared: float
) -> None:
    """What lets the region {score ≥ observed} be cut into C ≥ C*(W), C* not falling."""
    draws, ratio = 50, math.exp(epsilon)
    for wrong in range(0, draws + 1, 5):
        correct = np.arange(draws - wrong + 1)
        scores = trinomial._score(correct, np.full_like(correct, wrong), draws, ratio, spared)
        assert np.all(np.diff(scores) > 0)
    for fixed in range(0, draws + 1, 5):
        wrong_counts = np.arange(draws - fixed + 1)
        scores = trinomial._score(
            np.full_like(wrong_counts, fixed), wrong_counts, draws, ratio, spared
        )
        assert np.all(np.diff(scores) < 0)


@pytest.mark.parametrize(
    ("correct", "wrong", "draws", "epsilon", "spared"),
    [
        (5_950, 1_780, 20_000, 1.0, 0.05),
        (1_150, 3, 20_000, 4.0, 0.04),
    ],
)
def test_sums_in_groups_are_upper_bounds_and_close(
    correct: int, wrong: int, draws: int, epsilon: float, spared: float
) -> None:
    p_values = [
        ScoreTest(correct, wrong, draws, 1e-4, terms).p_value(epsilon, spared)
        for terms in (10**6, 512, 128, 16)
    ]
    assert p_values == sorted(p_values)
    assert 0.001 < p_values[0] < 0.9
    assert p_values[1] <= 1.06 * p_values[0]


def test_of_any_number_of_draws_p_is_that_of_as_many_rare_guesses() -> None:
    """Differences of logarithms of factorials would lose their digits: 3 % of 10¹³ draws."""
    few, *many = (ScoreTest(30, 3, 10**size, 1e-4).p_value(1.0, 0.0) for size in (7, 11, 13))
    assert many == pytest.approx([few] * 2, rel=2e-3)


def test_the_range_of_wrong_guesses_leaves_out_next_to_nothing() -> None:
    for low, wrong in product([0.0, 1e-9, 0.2, 1.0], [0, 1, 5, 300, 999, 1_000]):
        draws, high = 1_000, max(low, (wrong + 1) / 1_001)
        first, last = trinomial._wrong_range(draws, low, high)
        assert 0 <= first <= last <= draws
        within = np.arange(draws + 1)
        for w in (low, (low + high) / 2, high):
            chances = binom.pmf(within, draws, w)
            assert chances[:first].sum() + chances[last + 1 :].sum() <= 2.1e-13


def test_an_interval_that_the_claim_leaves_empty_is_taken_at_its_cap() -> None:
    """With many wrong guesses no w of the null is in the interval, and nothing is refuted."""
    game = Game(5, 95, 100, two_guesses=True)
    for epsilon in (0.0, 2.0, 8.0):
        assert p_value(game, epsilon, 0.1, 0.05) > 0.9


def test_p_is_a_number_wherever_it_is_asked_for() -> None:
    for draws in (1, 2, 30):
        for correct, wrong in all_counts(draws)[:: max(1, draws)]:
            test = ScoreTest(int(correct), int(wrong), draws, 1e-4)
            for epsilon in (0.0, 1e-9, 1.0, 299.0, 301.0, 1e9):
                for spared in (0.0, 1e-300, 0.5, 1 - 1e-12, 1.0):
                    p = test.p_value(epsilon, spared)
                    assert 1e-4 <= p <= 1, (draws, correct, wrong, epsilon, spared, p)
