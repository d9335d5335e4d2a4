"""A lower bound of a Rényi divergence by a bounded witness, from counts by level and arm.

For every bounded function g of an outcome and every order a > 1 (Birrell et al. 2021, Thm 3.1),

    D_a(P ‖ Q) ≥ a/(a-1) · log E_P[e^{(a-1) g}] - log E_Q[e^{a g}],                        (1)

with equality at g = log dP/dQ. A witness gives every level a value of g, fixed before the draws
that are counted. Both expectations are then means of bounded numbers, and each is tested by
betting: a bettor who stakes a share λ on "E_P[X] > m", X = e^{(a-1) g}, multiplies a wealth of 1 by
1 + λ (X - m) at each draw, which on average is no gain while E_P[X] ≤ m (Waudby-Smith & Ramdas
2024). A second one bets on "E_Q[Y] < m", Y = e^{a g}. D_a ≤ d leaves only the pairs of means with
m₁^{a/(a-1)} e^{-d} ≤ m₂; against the true one of them the product of both wealths has expectation
at most 1, so that 1 / (the least product over all such pairs) is a p-value of D_a ≤ d
(docs/method.md §6).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Counts = NDArray[np.integer] | FloatArray

# Steps in which pairs of means are searched at first; until the least is known to this, in logs.
_CELLS, _PARTS, _NEAR = 48, 6, 1e-3
_ROUNDS = 20
# No draw loses more than about this share of a wealth.
_MOST_STAKED = 0.5
# How often the slope that stakes are made for is taken anew.
_TURNS = 4
# Logs of the shares of a wealth that are bet with and kept: against pairs of means that are far
# from the truth one bet loses nearly all, and must not spoil what the other one gains.
_STAKED, _KEPT = math.log(0.9), math.log(0.1)
# What sums of logarithms may be off by, relative to the terms that they add up.
_ROUNDING = 1e-12
# What X, Y and their means may be off by, relative to them.
_RAISED = 1e-12
# No p-value is smaller than e to the minus this.
_LARGEST = 700.0
# Bounds are rounded down by no more than this share.
_STEPS, _COARSE = 50, 1e-4


@dataclass(frozen=True, slots=True)
class Witness:
    """A bounded function of the level, for one order and one direction, with what is staked on it.

    Parameters
    ----------
    order : float
        a, above 1.
    from_d1 : bool
        Whether P is the law of d1 (and Q that of d2), or the other way round.
    values : tuple of float
        g by level, in nats. Finite.
    stakes : tuple of float
        λ of the bet on a large mean under P, and of the bet on a small one under Q; above 0, and so
        small that no draw can lose everything.

    Raises
    ------
    ValueError
        For anything else.
    """

    order: float
    from_d1: bool
    values: tuple[float, ...]
    stakes: tuple[float, float]

    def __post_init__(self) -> None:
        powers = [self.order * value for value in self.values]
        if not self.order > 1 or not self.values or not all(abs(one) < 300 for one in powers):
            raise ValueError(f"no witness: {self}")
        (x, y), (stake, against) = self.raised, self.stakes
        if not (stake > 0 and stake * (x.max() - x.min()) < 1 and 0 < against * y.max() < 1):
            raise ValueError(f"stakes with which a draw could lose everything: {self.stakes}")

    @property
    def raised(self) -> tuple[FloatArray, FloatArray]:
        """X and Y by level."""
        g = np.array(self.values)
        return np.exp((self.order - 1) * g), np.exp(self.order * g)


def p_value(witness: Witness, counts: NDArray[np.integer], divergence: float) -> float:
    """Return the p-value of D_a(P ‖ Q) ≤ divergence.

    Parameters
    ----------
    witness : Witness
        Fixed before the draws.
    counts : ndarray of int, shape (levels, 2)
        Draws by level and arm, d1 first.
    divergence : float
        In nats, at least 0.

    Returns
    -------
    float
        p, in (0, 1], rounded up.
    """
    return math.exp(-min(_LARGEST, max(0.0, log_wealth(witness, counts, divergence))))


def divergence_lower(witness: Witness, counts: Counts, alpha: float) -> float:
    """Return a lower bound of D_a(P ‖ Q).

    Parameters
    ----------
    witness : Witness
        Fixed before the draws.
    counts : ndarray of int, shape (levels, 2)
        Draws by level and arm, d1 first. Expected counts, which are no integers, give a prediction.
    alpha : float
        The error probability, in (0, 1).

    Returns
    -------
    float
        The bound in nats, rounded down; 0 where nothing is shown.

    Notes
    -----
    It lies above the true divergence with probability at most alpha.
    """
    needed = -math.log(alpha)
    low, high = 0.0, _most(witness)
    if log_wealth(witness, counts, low, needed) < needed:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if log_wealth(witness, counts, middle, needed) >= needed:
            low = middle
        else:
            high = middle
        if high - low < _COARSE * high:
            break
    return low


def log_wealth(
    witness: Witness, counts: Counts, divergence: float, needed: float | None = None
) -> float:
    """Return the log of the least wealth against any pair of means that the divergence allows.

    Parameters
    ----------
    witness : Witness
        Fixed before the draws.
    counts : ndarray of int, shape (levels, 2)
        Draws by level and arm, d1 first.
    divergence : float
        In nats, at least 0.
    needed : float or None, default None
        Where only this matters, whether the log is as large: then the search ends once that is
        known, with a number on the same side.

    Returns
    -------
    float
        Rounded down.

    Notes
    -----
    In log m₁ the log of the first wealth is concave and that of the second one, at the smallest m₂
    allowed, convex: in a step of a grid the one lies above its chord and the other above its
    tangent. Steps in which the sum of both may be least are split. A tenth of each wealth is not
    bet, so that it is at least that much.
    """
    x, y = witness.raised
    table = np.asarray(counts, dtype=np.float64)
    own, other = (table[:, 0], table[:, 1]) if witness.from_d1 else (table[:, 1], table[:, 0])
    power, (stake, against) = witness.order / (witness.order - 1), witness.stakes
    # (1) has means of e^{(a-1) g} and e^{a g} themselves, and these are rounded.
    divergence += (power + 1) * _RAISED

    def first(log_mean: FloatArray) -> FloatArray:
        return _STAKED + _total(stake * (x - np.exp(log_mean)[:, None]), own)

    def second(log_mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log of the second wealth, and its slope."""
        profit = against * (np.exp(power * log_mean - divergence)[:, None] - y)
        slope = power * (1 - (1 - against * y) / (1 + profit))
        return _STAKED + _total(profit, other), slope @ other

    places = np.linspace(np.log(x.min()), np.log(x.max()), _CELLS + 1)
    edges = np.stack([places[:-1], places[1:]])
    settled = best = reached = math.inf
    for _ in range(_ROUNDS):
        middle = edges.mean(axis=0)
        tangent, slope = second(middle)
        rise = slope * (edges - middle)
        chord, below = first(edges.ravel()).reshape(2, -1), tangent + rise
        both = np.maximum(first(middle), _KEPT) + np.maximum(tangent, _KEPT)
        best = min(best, float(both.min()))
        # Whichever of them is kept or bet with, no less is left than the largest of these.
        least = (chord + below).min(axis=0)
        for one in (chord.min(axis=0) + _KEPT, below.min(axis=0) + _KEPT, 2 * _KEPT):
            least = np.maximum(least, one)
        is_open = least < best - _NEAR
        settled = min(settled, float(least[~is_open].min(initial=math.inf)))
        reached = min(settled, float(least[is_open].min(initial=math.inf)))
        if not is_open.any() or (needed is not None and not reached < needed <= best):
            return reached
        edges = _split(edges[:, is_open])
    return reached


def best_stakes(
    order: float, values: FloatArray, laws: FloatArray, draws: float, alpha: float
) -> tuple[tuple[float, float], float]:
    """Return the stakes that are about the best for draws to come, and the bound to expect of them.

    Parameters
    ----------
    order : float
        a, above 1.
    values : ndarray of float, shape (levels,)
        g by level.
    laws : ndarray of float, shape (levels, 2)
        Estimated probabilities of the levels under P and Q.
    draws : float
        Draws to come of each input.
    alpha : float
        The error probability of the test, in (0, 1).

    Returns
    -------
    stakes : tuple of float
        λ of both bets.
    predicted : float
        About the bound of the divergence, in nats; may be below 0.

    Notes
    -----
    λ₁ / λ₂ is the slope of m₂ = m₁^{a/(a-1)} e^{-d} where the bound is expected, since the two bets
    must stand against neighbouring pairs of means alike. n draws of each with a profit
    λ gap - λ² variance / 2 on average reach log(1/α) where the gap is log(1/α) / (n λ) +
    λ variance / 2. Slope and gap follow from each other, and are taken in turns.
    """
    x, y = np.exp((order - 1) * values), np.exp(order * values)
    power, mean, other = order / (order - 1), float(laws[:, 0] @ x), float(laws[:, 1] @ y)
    spread, against = float(laws[:, 0] @ (x - mean) ** 2), float(laws[:, 1] @ (y - other) ** 2)
    needed = -math.log(alpha) / max(1.0, draws)
    slope = stake = gap = 0.0
    for _ in range(_TURNS):
        slope = power * (other + gap) / mean
        variance = max(slope**2 * spread + against, 1e-300)
        most = _MOST_STAKED / max(slope * float(x.max() - x.min()), float(y.max()))
        stake = min(math.sqrt(2 * needed / variance), most)
        gap = needed / stake + stake * variance / 2
    return (slope * stake, stake), power * math.log(mean) - math.log(other + gap)


def _split(edges: FloatArray) -> FloatArray:
    """Return steps of a grid, (2, steps), each in `_PARTS`."""
    finer = np.linspace(edges[0], edges[1], _PARTS + 1)
    return np.stack([finer[:-1].ravel(), finer[1:].ravel()])


def _most(witness: Witness) -> float:
    """Return more than any divergence that the witness can show."""
    x, y = witness.raised
    power = witness.order / (witness.order - 1)
    return float(power * math.log(x.max()) - math.log(y.min())) + 1e-9


def _total(profit: FloatArray, counts: FloatArray) -> FloatArray:
    """Return Σ counts · log(1 + profit) for every row, rounded down."""
    logs = np.log1p(profit)
    return np.asarray(logs @ counts - _ROUNDING * (np.abs(logs) @ counts), dtype=float)
