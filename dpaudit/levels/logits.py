"""Functions of log-odds, of whole arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

# Its exponential is finite.
_LARGEST = 700.0


def probability(log_odds: FloatArray) -> FloatArray:
    """Return the probability with these log-odds."""
    return np.asarray(1 / (1 + np.exp(np.minimum(-log_odds, _LARGEST))))


def softplus(log_odds: FloatArray) -> FloatArray:
    """Return log(1 + e^x), to 2⁻⁵² beside 1: ten times as fast as `np.logaddexp(0, x)`, which is
    nearer for what is almost 0."""
    return np.asarray(np.maximum(log_odds, 0.0) + np.log(1 + np.exp(-np.abs(log_odds))))
