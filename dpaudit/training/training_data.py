"""Make neighbouring datasets for training, and convert their records to arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DatasetError, TrainingError

Record = tuple[list[float], Any]


def canary_pair(
    records: Sequence[Sequence[Any]], *, target: Any, value: float = 1.0
) -> tuple[list[Record], list[Record]]:
    """Return two neighbouring datasets: one with a gradient canary, and one without it.

    A gradient canary is a record whose gradient has a direction that no other record uses. Every
    record gets one more feature: `value` for the canary, and 0 for all other records. All other
    features of the canary are 0. Only the canary then has a gradient for the new feature's weights
    in the first linear layer, and no other record can hide it.

    Parameters
    ----------
    records : sequence of (features, target)
        The other records. All have the same number of features.
    target : Any
        Target of the canary. Choose a target far from the output of the model, so that the gradient
        is at least as long as the clipping norm.
    value : float, default 1.0
        Value of the canary's additional feature.

    Returns
    -------
    tuple of two lists of (features, target)
        The dataset with the canary, which comes last, and the dataset without it.

    Raises
    ------
    DatasetError
        If records have different numbers of features.

    Notes
    -----
    If the canary's gradient is at least as long as the clipping norm C, one step of DP-SGD with
    noise of standard deviation σC has μ = 1/σ (Gaussian DP) on this pair, which is the worst case.

    Examples
    --------
    >>> from dpaudit.training import canary_pair
    >>> d1, d2 = canary_pair([([0.5, 1.0], 2.0)], target=10.0)
    >>> d1
    [([0.5, 1.0, 0.0], 2.0), ([0.0, 0.0, 1.0], 10.0)]
    >>> d2
    [([0.5, 1.0, 0.0], 2.0)]
    """
    lengths = sorted({len(features) for features, _ in records})
    if len(lengths) > 1:
        raise DatasetError(
            f"records have {lengths[0]} to {lengths[-1]} features; give all the same number",
            code="records-invalid",
        )
    size = lengths[0] if lengths else 0
    without = [([*map(float, features), 0.0], label) for features, label in records]
    return [*without, ([0.0] * size + [float(value)], target)], without


def as_arrays(records: Sequence[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the features and the targets of records (features, target) as two arrays with one row
    for each record. Features become float32, integer targets int64, and all other targets a column
    of float32. Raises TrainingError if a record has another form."""
    try:
        pairs = [(features, target) for features, target in records]
        x = np.array([features for features, _ in pairs], dtype=np.float32)
        y = np.array([target for _, target in pairs])
        if not len(pairs) or y.dtype.kind not in "biuf":
            raise ValueError
    except (TypeError, ValueError):
        raise TrainingError(
            "records are not a list of (features, target), at least one, with the same number of "
            "features each; give arrays= a function that turns your records into arrays",
            code="training-records-invalid",
        ) from None
    if y.dtype.kind in "iu":
        return x, y.astype(np.int64)
    return x, y.astype(np.float32).reshape(len(pairs), -1)
