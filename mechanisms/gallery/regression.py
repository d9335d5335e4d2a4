"""diffprivlib's `LinearRegression`, which is fitted and then read.

It runs in an environment that has diffprivlib, and nothing of dpaudit. Adjacency: one record
replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module


def slope(
    dataset: Sequence[tuple[float, float]],
    epsilon: float = 1.0,
    bounds: tuple[float, float] = (0.0, 10.0),
) -> float:
    """Return the noisy slope of a line through 0, for records (x, y) with x within the bounds
    and y between 0 and 1."""
    models = import_module("diffprivlib.models")
    model = models.LinearRegression(
        epsilon=epsilon, bounds_X=tuple(bounds), bounds_y=(0.0, 1.0), fit_intercept=False
    )
    model.fit([[x] for x, _ in dataset], [y for _, y in dataset])
    return float(model.coef_[0])
