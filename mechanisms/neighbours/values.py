"""How records become numbers, and numbers become noisy ones.

A correct mechanism takes whatever stands in a record: NaN, None, infinities, integers of any size,
texts where a number is due. All of them become a number within the bounds, so that none of them
moves a sum by more than a usual record may, and none of them raises.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Records = Sequence[Any]
Table = Sequence[Mapping[str, Any]]

# Steps of the grid that outputs are rounded to, as a power of two, in one scale of the noise.
_STEPS = 10


def number(value: Any, missing: float = 0.0) -> float:
    """Return a number of any type and size as a float, ±inf if it is too large for one; `missing`
    for NaN and for what is no number."""
    if is_missing(value):
        return missing
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def clipped(value: Any, low: float, high: float) -> float:
    """Return a number within the bounds; what is none, or NaN, counts as the lower bound."""
    return min(max(number(value, low), low), high)


def is_missing(value: Any) -> bool:
    """Whether a value is NaN or no number."""
    return not isinstance(value, Real) or value != value


def noisy(
    centre: float | Sequence[float] | NDArray[Any],
    scale: float,
    size: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return `size` draws of Laplace noise of `scale` around a number, or around each of some.

    They are rounded to some thousandth of the scale, which is post-processing: so the low-order
    bits of a float, which depend on the centre (Mironov 2012), are gone. The largest log-ratio of
    two centres is |c - c'|/scale as before, that of every cell beside both of them.
    """
    centres = np.asarray(centre, dtype=np.float64)
    grid = 2.0 ** (math.floor(math.log2(scale)) - _STEPS)
    drawn = rng.laplace(0.0, scale, (size, *centres.shape))
    # Broken mechanisms have centres near the largest float.
    with np.errstate(over="ignore"):
        drawn += centres
        drawn /= grid
        np.rint(drawn, out=drawn)
        drawn *= grid
    return drawn
