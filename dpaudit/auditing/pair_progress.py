"""How far the audit of a pair is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ProfilePoint


@dataclass(frozen=True, slots=True, eq=False)
class PairProgress:
    """How far a pair is, after a block.

    draws of budget.  wealth, epsilon_lower: as they stand.  point: what is bet against.
    rounds: how often the bettors have learned.  gains: of each of them against the point, in logs.
    """

    draws: int
    budget: int
    wealth: float
    epsilon_lower: float
    point: ProfilePoint
    rounds: int
    gains: NDArray[np.float64]
