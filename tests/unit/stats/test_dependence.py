from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.diagnostic import acorr_ljungbox

from dpaudit.stats.dependence import (
    collision_bound,
    ljung_box,
    log_e_value,
    log_mean_e_value,
    log_table_e_value,
    repetition_p_value,
)

LAWS: dict[str, Callable[[np.random.Generator, int], Any]] = {
    "continuous": lambda rng, n: rng.normal(size=n),
    "bit": lambda rng, n: rng.integers(0, 2, n),
    "rare": lambda rng, n: rng.random(n) < 0.01,
    "thousand": lambda rng, n: rng.integers(0, 1_000, n),
    "atom": lambda rng, n: np.where(rng.random(n) < 0.1, 0, rng.normal(size=n)),
    "heavy tail": lambda rng, n: rng.zipf(1.5, n),
    "constant": lambda rng, n: np.ones(n),
}


@pytest.mark.parametrize("lags", [1, 10])
def test_ljung_box_agrees_with_statsmodels(lags: int) -> None:
    rng = np.random.default_rng(1)
    series = rng.normal(size=300)
    series[1:] += 0.1 * series[:-1]
    theirs = acorr_ljungbox(series, lags=[lags])["lb_pvalue"].iloc[0]
    assert ljung_box(series, lags) == pytest.approx(theirs, rel=1e-9)


def test_ljung_box_accepts_a_constant_series() -> None:
    assert ljung_box(np.ones(100), 10) == 1
    # Rounding errors of its mean are no dependence.
    assert ljung_box(np.full(1_000, 0.4995), 10) == 1


@pytest.mark.parametrize("law", LAWS)
def test_the_collision_bound_is_an_upper_bound(law: str) -> None:
    rng = np.random.default_rng(2)
    truth = {"bit": 0.5, "rare": 0.99**2 + 0.01**2, "thousand": 1e-3, "atom": 0.01, "constant": 1}
    for size in (50, 500, 5_000):
        assert collision_bound(LAWS[law](rng, size)) >= truth.get(law, 0.0)


@pytest.mark.parametrize("law", LAWS)
def test_independent_draws_have_a_large_p_value(law: str) -> None:
    rng = np.random.default_rng(3)
    assert (
        min(
            repetition_p_value(LAWS[law](rng, n))[0]
            for n in (100, 3_000, 20_000)
            for _ in range(10)
        )
        > 1e-4
    )


@pytest.mark.parametrize("law", ["continuous", "thousand", "atom", "heavy tail"])
def test_a_period_is_detected(law: str) -> None:
    pool = LAWS[law](np.random.default_rng(4), 200)
    chance, lag = repetition_p_value(np.resize(pool, 600))
    assert chance < 1e-12
    assert lag == 200


def test_short_sequences_have_p_value_one() -> None:
    for size in (0, 1, 2):
        assert repetition_p_value(np.arange(size)) == (1.0, 0)
        assert collision_bound(np.arange(size)) == 1


def evidence(inside: Sequence[int], sizes: Sequence[int]) -> float:
    return log_e_value(np.array(inside, dtype=np.int64), np.array(sizes, dtype=np.int64))


@pytest.mark.parametrize(
    "sizes", [(3, 4, 5), (1, 1, 1, 1), (10, 2), (6, 6, 6), (2, 9, 1, 3), (4, 0, 4), (7,)]
)
def test_the_e_value_has_expectation_at_most_one_by_enumeration(sizes: tuple[int, ...]) -> None:
    for total in range(sum(sizes) + 1):
        expected = 0.0
        for inside in product(*(range(size + 1) for size in sizes)):
            if sum(inside) == total:
                ways = math.prod(map(math.comb, sizes, inside))
                chance = ways / math.comb(sum(sizes), total)
                expected += chance * math.exp(evidence(inside, sizes))
        assert expected <= 1 + 1e-9


@pytest.mark.parametrize(
    ("sizes", "cells"),
    [((3, 2, 2), (3, 2, 2)), ((4, 4), (5, 2, 1)), ((2, 2, 2, 1), (4, 3)), ((1, 1, 3), (2, 2, 1))],
)
def test_the_e_value_of_a_table_has_expectation_at_most_one_by_enumeration(
    sizes: tuple[int, ...], cells: tuple[int, ...]
) -> None:
    """Given its totals, draws of one law fill a table as a random order of all cells does."""
    every = [cell for cell, total in enumerate(cells) for _ in range(total)]
    group = np.repeat(np.arange(len(sizes)), sizes)
    tables: Counter[bytes] = Counter()
    for order in permutations(every):
        table = np.zeros((len(sizes), len(cells)), dtype=np.int64)
        np.add.at(table, (group, np.array(order)), 1)
        tables[table.tobytes()] += 1
    shape = len(sizes), len(cells)
    values = {
        data: math.exp(log_table_e_value(np.frombuffer(data, dtype=np.int64).reshape(shape)))
        for data in tables
    }
    mean = sum(values[data] * times for data, times in tables.items()) / tables.total()
    assert 0.1 < mean <= 1 + 1e-9


def test_a_table_of_two_cells_has_the_e_value_of_its_event() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 40):
        table = rng.integers(0, 30, (size, 2))
        inside, sizes = table[:, 0], table.sum(axis=1)
        assert log_table_e_value(table) == pytest.approx(log_e_value(inside, sizes), abs=1e-9)


def test_a_table_of_small_differences_in_many_cells_is_detected() -> None:
    rng = np.random.default_rng(0)
    differing = np.array([rng.multinomial(1_000, rng.dirichlet(np.full(16, 12))) for _ in range(9)])
    alike = rng.multinomial(1_000, np.full(16, 1 / 16), 9)
    assert log_table_e_value(differing) > math.log(1e12)
    assert log_table_e_value(alike) < 0
    assert log_table_e_value(alike[:, :1]) == log_table_e_value(alike[:1]) == 0.0


def test_groups_that_depend_on_the_draws_are_caught() -> None:
    """Groups must be fixed before the draws: the same draws, sorted into groups, are evidence."""
    draws = np.random.default_rng(0).random(400) < 0.5
    honest = draws.reshape(8, 50).sum(axis=1)
    sorted_ = np.sort(draws).reshape(8, 50).sum(axis=1)
    assert evidence(honest, [50] * 8) < math.log(1e2)
    assert evidence(sorted_, [50] * 8) > math.log(1e12)


def test_overdispersion_of_many_groups_is_detected() -> None:
    rng = np.random.default_rng(1)
    shares = rng.beta(400, 600, 400)  # as if ten draws were about three independent ones
    sizes = np.full(400, 2_500)
    assert log_e_value(rng.binomial(sizes, shares), sizes) > math.log(1e12)
    assert log_e_value(rng.binomial(sizes, 0.4), sizes) < 0


def test_degenerate_groups_give_evidence_one() -> None:
    assert evidence([], []) == evidence([3], [9]) == evidence([0, 0], [5, 5]) == 0.0
    assert evidence([5, 5], [5, 5]) == 0.0


def test_the_mean_of_e_values() -> None:
    assert log_mean_e_value([]) == 0.0
    assert log_mean_e_value([math.log(2), math.log(4)]) == pytest.approx(math.log(3))
    assert log_mean_e_value([1e5, 0.0]) == pytest.approx(1e5 - math.log(2))
