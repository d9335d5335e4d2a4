"""Neighbouring datasets for training, and their records as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpaudit.training import canary_pair
from dpaudit.training.training_data import as_arrays
from tests.raising import code


def test_only_the_canary_uses_the_added_feature() -> None:
    d1, d2 = canary_pair([([1, 2], 0.0), ([3, 4], 1.0)], target=9.0, value=5.0)
    x, y = as_arrays(d1)
    assert d1[:2] == d2
    assert x.tolist() == [[1, 2, 0], [3, 4, 0], [0, 0, 5]]
    assert y.tolist() == [[0], [1], [9]]
    # The gradient of a linear model is orthogonal to those of the others, for any weights.
    gradients = (x @ np.array([0.3, -2.0, 0.7]) - y[:, 0])[:, None] * x
    assert not (gradients[:2] @ gradients[2]).any()
    assert gradients[2].any()


def test_a_canary_may_be_alone() -> None:
    assert canary_pair([], target=1) == ([([1.0], 1)], [])


def test_integer_targets_stay_classes() -> None:
    x, y = as_arrays([([0.5], 2), ([1.5], 0)])
    assert (x.dtype.name, y.dtype.name) == ("float32", "int64")
    assert y.tolist() == [2, 0]


@pytest.mark.parametrize("records", [[], [1, 2], [([1], "a")], [([1], 2.0), ([1, 2], 2.0)], 3])
def test_other_records_are_refused(records: Any) -> None:
    assert code(as_arrays, records) == "training-records-invalid"


def test_records_of_different_lengths_are_refused() -> None:
    records = [([1], 0.0), ([1, 2], 0.0)]
    assert code(canary_pair, records, target=0) == "records-invalid"
