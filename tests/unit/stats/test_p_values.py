"""Holm's procedure against closed testing by enumeration, and χ² against SciPy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from dpaudit.auditing.familywise import holm_levels
from dpaudit.stats.p_values import chi_squared, holm


@pytest.fixture(autouse=True)
def no_search_for_garbage(monkeypatch: pytest.MonkeyPatch) -> None:
    """statsmodels searches for garbage in every call, which here takes a tenth of a second."""
    monkeypatch.setattr("gc.collect", lambda: 0)


def closed_testing(p_values: Sequence[float], alpha: float) -> list[bool]:
    """Return what the closure of Bonferroni's test rejects: a hypothesis is rejected if every
    intersection of hypotheses that contains it has a p-value of at most alpha over its size."""
    places = range(len(p_values))
    accepted = [
        group
        for size in range(1, len(p_values) + 1)
        for group in combinations(places, size)
        if min(p_values[place] for place in group) > alpha / size
    ]
    return [not any(place in group for group in accepted) for place in places]


def _by_levels(p_values: Sequence[float], alpha: float) -> list[bool]:
    levels = holm_levels(p_values, alpha, len(p_values))
    return [p <= level for p, level in zip(p_values, levels, strict=True)]


@pytest.mark.parametrize("rejects", [holm, _by_levels])
def test_holm_is_the_closure_of_bonferroni(rejects: Callable[..., Any]) -> None:
    rng, alpha = np.random.default_rng(0), 0.05
    for size in (1, 2, 3, 5, 8):
        for _ in range(20):
            p_values = rng.beta(0.3, 2, size=size)
            p_values[:: max(1, size // 3)] = p_values[0]
            expected = closed_testing(p_values.tolist(), alpha)
            assert list(rejects(p_values.tolist(), alpha)) == expected


def test_holm_rejects_nothing_for_nan_or_no_p_values() -> None:
    assert holm([], 0.05).tolist() == []
    assert holm([np.nan, 0.001], 0.05).tolist() == [False, True]


@pytest.mark.parametrize("missing", [1, 4])
def test_hypotheses_without_a_p_value_count_and_are_not_rejected(missing: int) -> None:
    p_values = np.random.default_rng(8).beta(0.3, 2, size=6).tolist()
    padded = [*p_values, *[1.0] * missing]
    levels = holm_levels(p_values, 0.05, len(padded))
    rejected = [p <= level for p, level in zip(p_values, levels, strict=True)]
    assert rejected == closed_testing(padded, 0.05)[: len(p_values)]
    assert levels != holm_levels(p_values, 0.05, len(p_values))


@pytest.mark.parametrize("shape", [(2, 2), (4, 4), (3, 7)])
def test_chi_squared_agrees_with_scipy(shape: tuple[int, int]) -> None:
    table = np.random.default_rng(1).integers(1, 50, shape)
    expected = chi2_contingency(table, correction=False)
    actual, freedom = chi_squared([table])
    assert actual == pytest.approx(expected.statistic)
    assert freedom == expected.dof


def test_tables_add_up_and_empty_rows_are_dropped() -> None:
    table = np.array([[10, 20], [30, 5]])
    wider = np.array([[10, 0, 20], [0, 0, 0], [30, 0, 5]])
    once, twice = chi_squared([table]), chi_squared([table, wider])
    assert twice[0] == pytest.approx(2 * once[0])
    assert twice[1] == 2 * once[1]
    assert chi_squared([np.array([[3, 4]]), np.zeros((2, 2), dtype=np.int64)]) == (0.0, 0)
