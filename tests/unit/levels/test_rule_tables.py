"""Isotonic counts, and tables of the rules of a candidate."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.claims import ProfilePoint
from dpaudit.levels.rule_tables import (
    RuleTable,
    even_rule,
    evidence_of,
    pooled_counts,
    predicted_delta,
    predicted_epsilon,
    predicted_growth,
)


def pooled_anew(counts: list[list[int]]) -> list[list[float]]:
    """Pool neighbours from the left, one pair after the other, until the smoothed ratio rises."""
    blocks: list[tuple[int, int, int]] = []
    for first, second in counts:
        blocks.append((first, second, 1))
        while len(blocks) > 1:
            (a, b, m), (c, d, n) = blocks[-2:]
            if (2 * a + 1) * (2 * d + 1) < (2 * c + 1) * (2 * b + 1) and a + b and c + d:
                break
            blocks[-2:] = [(a + c, b + d, m + n)]
    return [[float(a), float(b)] for a, b, cells in blocks for _ in range(cells)]


@pytest.mark.parametrize("most", [1, 2, 5, 1_000])
def test_neighbours_are_pooled_until_the_ratio_rises(most: int) -> None:
    rng = np.random.default_rng(most)
    for _ in range(500):
        counts = rng.integers(0, most + 1, (int(rng.integers(0, 20)), 2))
        assert pooled_counts(counts).tolist() == pooled_anew(counts.tolist())


def test_equal_ratios_are_pooled() -> None:
    assert pooled_counts(np.array([[1, 1], [4, 4], [9, 2]])).tolist() == [[5, 5], [5, 5], [9, 2]]


def table(*counts: tuple[float, float]) -> RuleTable:
    ordered = np.array(counts, dtype=float)
    return RuleTable.of_monotone(ordered, int(ordered.sum()))


def test_the_even_rule_passes_over_the_better_rule_of_a_rare_level() -> None:
    # A cut after the first level would have 107 right guesses.
    assert even_rule(table((0, 10), (42, 40), (55, 55))) == (2, 105)
    assert even_rule(table((0, 10), (100, 100)))[0] == 1
    assert even_rule(table((0, 10), (100, 100)))[1] < 0


def test_predictions_for_endless_draws_solve_the_inequality_of_a_game() -> None:
    """c = e^ε w + hδ, where h = 1 for guesses of both inputs and h = ½ for guesses of one."""
    epsilon, delta, draws = 0.7, 0.2, 250_000
    rules = table((10_000, 40_000), (30_000, 30_000), (50_000, 20_000), (60_000, 10_000))
    epsilons = predicted_epsilon(rules, delta, 10**30, 0.0)
    deltas = predicted_delta(rules, epsilon, 10**30, 0.0)
    point = ProfilePoint(epsilon, delta)
    growth = predicted_growth(rules, point)
    for low, high in zip(*np.nonzero(rules.possible), strict=True):
        h = 1.0 if low > 0 and high < 4 else 0.5
        right, wrong = (counts[low, high] / draws for counts in (rules.correct, rules.wrong))
        if right > h * delta:
            assert epsilons[low, high] == pytest.approx(np.log((right - h * delta) / wrong))
        assert deltas[low, high] == pytest.approx((right - np.exp(epsilon) * wrong) / h)
        evidence = evidence_of(draws * right, draws * wrong, point, draws, h)
        assert (evidence > 1e-6) == (growth[low, high] > 0) == (deltas[low, high] > delta)
