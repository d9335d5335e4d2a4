"""Holm's procedure against statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from dpaudit.stats.probabilistic import holm


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.3])
def test_holm_agrees_with_statsmodels(alpha: float) -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 40):
        p_values = rng.beta(0.3, 2, size=size)
        p_values[:: max(1, size // 3)] = p_values[0]
        theirs = multipletests(p_values, alpha, method="holm")[0]
        assert holm(p_values, alpha).tolist() == theirs.tolist()


def test_holm_stops_at_the_first_that_stands() -> None:
    assert holm([0.01, 0.04, 0.03], 0.05).tolist() == [True, False, False]
    assert holm([0.5, 0.001], 0.05).tolist() == [False, True]


def test_nothing_to_test_and_nan_refute_nothing() -> None:
    assert holm([], 0.05).tolist() == []
    assert holm([np.nan, 0.001], 0.05).tolist() == [False, True]
