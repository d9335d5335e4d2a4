"""Evidence against one law for all groups: an e-value exactly, and large where groups differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from dpaudit.stats.dependence import log_e_value, log_mean_e_value


def evidence(inside: Sequence[int], sizes: Sequence[int]) -> float:
    return log_e_value(np.array(inside, dtype=np.int64), np.array(sizes, dtype=np.int64))


@pytest.mark.parametrize(
    "sizes", [(3, 4, 5), (1, 1, 1, 1), (10, 2), (6, 6, 6), (2, 9, 1, 3), (4, 0, 4), (7,)]
)
def test_its_expectation_is_at_most_one_by_enumeration(sizes: tuple[int, ...]) -> None:
    for total in range(sum(sizes) + 1):
        expected = 0.0
        for inside in product(*(range(size + 1) for size in sizes)):
            if sum(inside) == total:
                ways = math.prod(map(math.comb, sizes, inside))
                chance = ways / math.comb(sum(sizes), total)
                expected += chance * math.exp(evidence(inside, sizes))
        assert expected <= 1 + 1e-9


def test_a_twin_that_groups_by_what_came_out_is_caught() -> None:
    """Groups must be fixed before the draws; sorted into groups, the same draws look impossible."""
    draws = np.random.default_rng(0).random(400) < 0.5
    honest = draws.reshape(8, 50).sum(axis=1)
    sorted_ = np.sort(draws).reshape(8, 50).sum(axis=1)
    assert evidence(honest, [50] * 8) < math.log(1e2)
    assert evidence(sorted_, [50] * 8) > math.log(1e12)


def test_groups_that_differ_are_found_and_alike_ones_are_not() -> None:
    assert evidence([12, 0, 12, 0], [12] * 4) > math.log(1e7)
    assert evidence([6, 6, 6, 6], [12] * 4) < 0


def test_overdispersion_is_found_where_there_are_many_groups() -> None:
    rng = np.random.default_rng(1)
    shares = rng.beta(400, 600, 400)  # as if each ten draws counted for some three
    sizes = np.full(400, 2_500)
    assert log_e_value(rng.binomial(sizes, shares), sizes) > math.log(1e12)
    assert log_e_value(rng.binomial(sizes, 0.4), sizes) < 0


def test_what_shows_nothing() -> None:
    assert evidence([], []) == evidence([3], [9]) == evidence([0, 0], [5, 5]) == 0.0
    assert evidence([5, 5], [5, 5]) == 0.0


def test_the_mean_of_e_values() -> None:
    assert log_mean_e_value([]) == 0.0
    assert log_mean_e_value([math.log(2), math.log(4)]) == pytest.approx(math.log(3))
    assert log_mean_e_value([1e5, 0.0]) == pytest.approx(1e5 - math.log(2))
