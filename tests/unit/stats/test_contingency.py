from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from dpaudit.stats.p_values import chi_squared


@pytest.mark.parametrize("shape", [(2, 2), (4, 4), (3, 7)])
def test_it_is_pearsons_statistic(shape: tuple[int, int]) -> None:
    table = np.random.default_rng(1).integers(1, 50, shape)
    expected = chi2_contingency(table, correction=False)
    found, freedom = chi_squared([table])
    assert found == pytest.approx(expected.statistic)
    assert freedom == expected.dof


def test_tables_add_up_and_empty_rows_count_for_none() -> None:
    table = np.array([[10, 20], [30, 5]])
    wider = np.array([[10, 0, 20], [0, 0, 0], [30, 0, 5]])
    once, twice = chi_squared([table]), chi_squared([table, wider])
    assert twice[0] == pytest.approx(2 * once[0])
    assert twice[1] == 2 * once[1]
    assert chi_squared([np.array([[3, 4]]), np.zeros((2, 2), dtype=np.int64)]) == (0.0, 0)


def test_cells_of_which_little_is_expected_may_add_nothing() -> None:
    table = np.array([[996, 1], [2, 1]])
    all_, some = chi_squared([table]), chi_squared([table], 1.0)
    assert all_[0] > 100 * some[0]
    assert all_[1] == some[1] == 1
