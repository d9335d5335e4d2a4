"""The bettors' wealth against a claim and every smaller ε, as draws come in."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpaudit.claims import ProfilePoint
from dpaudit.draws import Tally
from dpaudit.stats.betting import Beliefs, bound_grid, epsilon_lower, log_wealth, stakes
from dpaudit.stats.binomial import FloatArray

# Values of ε above the claimed one that are followed together: the bound is seldom far above it.
_TOGETHER = 12


class Wealth:
    """Wealth at every grid value of ε, and the largest at any recorded look.

    Beliefs are handed in before the draws that are bet on with them.
    """

    def __init__(self, point: ProfilePoint, alpha: float, *, after: int | None = None) -> None:
        """after: follow the next few values in place of those up to the claim, after so many; only
        the bound needs them."""
        self._every = bound_grid(point.epsilon)
        self._claim = int(np.searchsorted(self._every, point.epsilon))
        part = slice(self._claim + 1) if after is None else slice(after, after + _TOGETHER)
        self._grid = self._every[part]
        self._point, self._delta, self._alpha = point, point.delta, alpha
        self._gains: FloatArray = np.zeros((len(self._grid), 1))
        self._largest: FloatArray = np.zeros(len(self._grid))
        self._shares: FloatArray = np.ones(1)
        self._factors: FloatArray | None = None  # (grid, bettors, levels, arms)

    def beyond(self) -> Wealth | None:
        """Return one that follows the next values of ε, from the start; None where the bound does
        not reach them, since a value before them was not rejected, or there are none."""
        reached = len(self._grid)
        is_open = reached < len(self._every) and self._largest.min() >= -math.log(self._alpha)
        return Wealth(self._point, self._alpha, after=reached) if is_open else None

    def extend(self, other: Wealth) -> None:
        """Add values of ε for the bound, which `other` has followed up to where this one is."""
        self._grid = np.concatenate([self._grid, other._grid])
        self._gains = np.concatenate([self._gains, other._gains])
        self._largest = np.concatenate([self._largest, other._largest])
        self._factors = None  # of fewer values

    def believe(self, beliefs: Beliefs) -> None:
        """Fix what is believed about the draws to come."""
        self._factors = beliefs.log_factors(self._grid, self._delta)
        self._shares = stakes(beliefs, self._delta)
        if self._gains.shape[1] != len(self._shares):
            self._gains = np.zeros((len(self._grid), len(self._shares)))

    def first_refuting(self, looks: Sequence[Tally]) -> int | None:
        """Return the first look at which the claim would be refuted; nothing is recorded."""
        needed = -math.log(self._alpha)
        at_claim = log_wealth(self._after(looks, slice(self._claim, self._claim + 1)), self._shares)
        if max(float(at_claim.max()), self._largest[self._claim]) < needed:
            return None  # as nearly always, and found out cheaply
        smaller = slice(self._claim + 1)
        wealth = log_wealth(self._after(looks, smaller), self._shares)
        reached = np.maximum(wealth, self._largest[smaller])
        refuted = np.flatnonzero(reached.min(axis=1) >= needed)
        return int(refuted[0]) if len(refuted) else None

    def record(self, looks: Sequence[Tally]) -> None:
        """Take the draws between looks into account, and the wealth at each."""
        gains = self._after(looks)
        self._gains = gains[-1]
        self._largest = np.maximum(self._largest, log_wealth(gains, self._shares).max(axis=0))

    @property
    def log_largest(self) -> float:
        """The log of the largest wealth, against the claim and every smaller ε alike."""
        return float(self._largest[: self._claim + 1].min())

    @property
    def log_now(self) -> float:
        """The log of the wealth against the claim, at the last look."""
        return float(log_wealth(self._gains[self._claim], self._shares))

    @property
    def gains(self) -> FloatArray:
        """What every bettor has gained against the claim, in logs: (bettors,)."""
        return np.array(self._gains[self._claim])

    @property
    def refuted(self) -> bool:
        return self.log_largest >= -math.log(self._alpha)

    @property
    def epsilon_lower(self) -> float:
        """The bound for ε that holds at every moment, on the values of the grid."""
        return epsilon_lower(self._grid, self._largest, self._alpha)

    def _after(self, looks: Sequence[Tally], part: slice = slice(None)) -> FloatArray:
        """Return every bettor's log gains at each look: (looks, part of the grid, bettors)."""
        if self._factors is None:
            raise RuntimeError("nothing was believed before the first bet")
        counts = np.stack([look.counts for look in looks])
        # Not a matrix product, which would wake every core for a millisecond's work.
        steps = np.einsum("nla,gbla->ngb", counts, self._factors[part])
        return np.asarray(self._gains[part] + np.cumsum(steps, axis=0))
