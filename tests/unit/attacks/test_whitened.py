"""Sums over what is new in each coordinate, of numbers of any size."""

from __future__ import annotations

import numpy as np
import pytest

from dpaudit.attacks.whitened import innovations
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import from_raw


@pytest.mark.parametrize("scales", [(1e-200, 1e200), (1e200, 1e-200), (1e-5, 1e304)])
def test_columns_of_very_different_sizes_have_orders(scales: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    is_d1 = rng.random(2_000) < 0.5
    noise = rng.laplace(size=(2_000, 2))
    outputs = np.stack([noise[:, 0], 0.5 * noise[:, 0] + noise[:, 1] + is_d1], axis=1)
    assert innovations(SelectionDraws(from_raw(outputs * scales), is_d1))
