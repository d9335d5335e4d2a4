"""The interval for ε of a finite range: its coverage enumerated, and a twin that lacks it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

from dpaudit.stats.binomial import epsilon_interval

Laws = list[tuple[float, float]]

RESPONSE: Laws = [(0.75, 0.25), (0.25, 0.75)]
SKEWED: Laws = [(0.9, 0.7), (0.08, 0.1), (0.02, 0.2)]
ONE_SIDED: Laws = [(0.6, 0.5), (0.4, 0.3), (0.0, 0.2)]
EQUAL: Laws = [(0.5, 0.5), (0.5, 0.5)]


def true_epsilon(laws: Laws) -> float:
    return max(abs(math.log(p / q)) if p and q else math.inf for p, q in laws)


def tables(draws: int, cells: int) -> Iterator[tuple[int, ...]]:
    """Yield every way in which draws fall into cells."""
    if cells == 1:
        yield (draws,)
        return
    for first in range(draws + 1):
        for rest in tables(draws - first, cells - 1):
            yield (first, *rest)


@pytest.mark.parametrize(
    ("laws", "draws"), [(RESPONSE, 14), (EQUAL, 14), (SKEWED, 9), (ONE_SIDED, 9)]
)
@pytest.mark.parametrize("alpha", [0.5, 0.1])
def test_coverage_is_at_least_nominal(laws: Laws, draws: int, alpha: float) -> None:
    """A fair coin picks the input of every draw: all tables, with their exact probabilities."""
    cells = [share / 2 for both in laws for share in both]
    truth, covered, total = true_epsilon(laws), 0.0, 0.0
    for table in tables(draws, len(cells)):
        chance = math.exp(
            gammaln(draws + 1) - sum(gammaln(count + 1) for count in table)
        ) * math.prod(cell**count for cell, count in zip(cells, table, strict=True))
        total += chance
        low, high = epsilon_interval(list(zip(table[::2], table[1::2], strict=True)), alpha)
        covered += chance * (low <= truth <= high)
    assert total == pytest.approx(1)
    assert covered >= 1 - alpha


def simulated(laws: Laws, draws: int, seeds: int) -> NDArray[np.int64]:
    cells = np.array(laws) / 2
    table = np.random.default_rng(2).multinomial(draws, cells.ravel(), size=seeds)
    return table.reshape(seeds, len(laws), 2)


def intervals(counts: NDArray[np.int64], share: float) -> NDArray[np.float64]:
    """Return the lower and upper ends by table, with `share` of the error for every bound."""
    trials = counts.sum(axis=2, keepdims=True)
    bound = betaincinv(np.maximum(counts, 1), trials - counts + 1, share)
    below = np.where(counts > 0, np.log(bound) - np.log1p(-bound), -np.inf)
    return np.stack([below.max(axis=(1, 2)).clip(0), -below.min(axis=(1, 2))], axis=1)


def miss_rate(laws: Laws, found: NDArray[np.float64]) -> float:
    truth = true_epsilon(laws)
    return float(((found[:, 0] > truth) | (found[:, 1] < truth)).mean())


def test_without_bonferroni_it_would_fail() -> None:
    """Ten outputs, all with the largest log-ratio there is: every one of them may err."""
    laws = [(0.15, 0.05)] * 5 + [(0.05, 0.15)] * 5
    counts, alpha = simulated(laws, 4_000, 20_000), 0.05
    right = intervals(counts, alpha / (2 * len(laws)))
    assert miss_rate(laws, right) <= alpha
    assert miss_rate(laws, intervals(counts, alpha / 2)) > 2 * alpha
    for table, (low, high) in zip(counts[:20].tolist(), right[:20], strict=True):
        assert epsilon_interval([tuple(one) for one in table], alpha) == pytest.approx((low, high))


def test_an_output_unseen_for_one_input_leaves_no_upper_end() -> None:
    for unseen in ((5, 0), (0, 5), (0, 0)):
        low, high = epsilon_interval([(50, 40), unseen], 0.05)
        assert high == math.inf
        assert 0 <= low < math.inf


def test_directions_are_mirrored() -> None:
    counts = [(70, 20), (30, 80), (5, 4)]
    assert epsilon_interval(counts, 0.01) == epsilon_interval([(b, a) for a, b in counts], 0.01)


def test_it_narrows_with_draws_and_widens_with_confidence() -> None:
    widths = [np.ptp(epsilon_interval([(3 * n, n), (n, 3 * n)], 0.01)) for n in (10, 100, 10_000)]
    assert all(later < earlier for earlier, later in pairwise(widths))
    assert np.ptp(epsilon_interval([(3, 1), (1, 3)], 0.001)) > np.ptp(
        epsilon_interval([(3, 1), (1, 3)], 0.1)
    )
