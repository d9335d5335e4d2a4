"""Holm's procedure against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency
from statsmodels.stats.multitest import multipletests

from dpaudit.stats.p_values import chi_squared, holm, holm_levels


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
def test_holm_agrees_with_statsmodels(alpha: float) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 40):
        p_values = rng.beta(0.3, 2, size=size)
        p_values[:: max(1, size // 3)] = p_values[0]
        theirs = multipletests(p_values, alpha, method="holm")[0]
        assert holm(p_values, alpha).tolist() == theirs.tolist()


def test_holm_stops_at_the_first_accepted_hypothesis() -> None:
    assert holm([0.01, 0.04, 0.03], 0.05).tolist() == [True, False, False]
    assert holm([0.5, 0.001], 0.05).tolist() == [False, True]


def test_holm_rejects_nothing_for_nan_or_no_p_values() -> None:
    assert holm([], 0.05).tolist() == []
    assert holm([np.nan, 0.001], 0.05).tolist() == [False, True]


def _many(size: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    rng = np.random.default_rng(size)
    return np.where(rng.random(size) < 0.4, rng.random(size) / 200, rng.random(size))


@pytest.mark.parametrize("size", [1, 2, 3, 8, 50])
def test_holm_rejects_p_values_at_most_their_levels(size: int) -> None:
    p_values = _many(size)
    theirs = multipletests(p_values, 0.05, method="holm")[0]
    reached = holm_levels(p_values, 0.05, size)
    assert [p <= one for p, one in zip(p_values, reached, strict=True)] == theirs.tolist()
    assert min(reached) >= 0.05 / size
    assert max(reached) <= 0.05


@pytest.mark.parametrize("missing", [1, 4])
def test_hypotheses_without_a_p_value_count_and_are_not_rejected(missing: int) -> None:
    p_values = _many(8)
    padded = np.append(p_values, np.ones(missing))
    theirs = multipletests(padded, 0.05, method="holm")[0][:8]
    assert holm(p_values, 0.05, 8 + missing).tolist() == theirs.tolist()
    reached = holm_levels(p_values, 0.05, 8 + missing)
    assert reached == holm_levels(padded, 0.05, 8 + missing)[:8]
    assert reached != holm_levels(p_values, 0.05, 8)


def test_levels_grow_with_the_number_of_rejections() -> None:
    assert holm_levels([0.9, 0.001, 0.02], 0.06, 3) == pytest.approx([0.06, 0.02, 0.03])
    assert holm_levels([0.9, 0.5], 0.06, 2) == pytest.approx([0.03, 0.03])
    assert holm_levels([], 0.06, 2) == []


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


def test_cells_with_small_expected_counts_can_be_left_out() -> None:
    table = np.array([[996, 1], [2, 1]])
    all_, some = chi_squared([table]), chi_squared([table], 1.0)
    assert all_[0] > 100 * some[0]
    assert all_[1] == some[1] == 1
