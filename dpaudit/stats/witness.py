"""A lower bound of the Rényi divergence D_a(P ‖ Q) from counts by level and input.

The bound tests claims of Rényi and concentrated DP (docs/method.md §6). For every bounded function
g of the output and every order a > 1 (Birrell et al. 2021, Thm 3.1; docs/method.md (6.7)),

    D_a(P ‖ Q) ≥ a/(a-1) · log E_P[X] - log E_Q[Y],   X = e^{(a-1) g},   Y = e^{a g},

with equality at g = log dP/dQ. For a witness, X and Y are bounded, and both means are tested by
betting (Waudby-Smith & Ramdas 2024). A first bettor with wealth 1 stakes λ₁ on "E_P[X] > m₁": each
draw of P multiplies the wealth by 1 + λ₁(X - m₁), which has expectation at most 1 if E_P[X] ≤ m₁. A
second bettor stakes λ₂ on "E_Q[Y] < m₂", with factors 1 + λ₂(m₂ - Y) at the draws of Q.

By (6.7), D_a ≤ d allows only pairs of means with m₂ ≥ m₁^{a/(a-1)} e^{-d}. If m₁ and m₂ are the
true means, the product of both wealths has expectation at most 1. So 1 / (smallest product of
wealths over all allowed pairs) is a p-value of D_a ≤ d (6.8).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Counts = NDArray[np.integer] | FloatArray

# `log_wealth` searches for the smallest product of two wealths on a grid of intervals, and splits
# the intervals that may contain the minimum.
# _CELLS: number of intervals at the start. _PARTS: number of parts that an interval is split into.
# _ERROR: largest error of the log of the minimum, at which the search stops. _ROUNDS: largest
# number of rounds.
_CELLS, _PARTS, _ERROR, _ROUNDS = 48, 6, 1e-3, 20
# With the stakes of `best_stakes`, a bettor loses at most about this share of its wealth in one
# draw.
_MAX_STAKE = 0.5
# Number of fixed-point steps in `best_stakes`. It computes in turn two quantities that depend on
# each other: the ratio of the two stakes, and the distance from the true mean at which a wrong mean
# can be refuted.
_FIXED_POINT_STEPS = 4
# Two bettors bet against every pair of means (m₁, m₂) that the claim allows: the first bettor bets
# against m₁, the second against m₂, and their wealths are multiplied. Each bettor stakes 0.9 of its
# initial wealth and keeps 0.1 aside; these are the logs of both parts. Without the part kept aside,
# a bettor could lose nearly all wealth against a pair far from the true means, and cancel the gain
# of the other bettor.
_STAKED, _KEPT = math.log(0.9), math.log(0.1)
# Upper limit of the relative rounding error of sums of logarithms, of e^{(a-1) g} and e^{a g}, and
# of their means.
_ROUNDING = 1e-12
# Largest log wealth that is returned, so that p-values are at least e^-700.
_MAX_LOG_WEALTH = 700.0
# _STEPS: largest number of bisections in `divergence_lower`.
# _WIDTH: relative width of the interval at which the bisection stops.
_STEPS, _WIDTH = 50, 1e-4
# `most_telling_witness` limits the log-ratios g = log P/Q of the levels to the range [-cap, cap],
# and tries each of these caps. Without a cap, the mean of e^{a g}, where a is the order of the
# divergence, would depend on a few draws with large g.
_CAPS = np.geomspace(0.1, 8.0, 20)
# Least estimated probability of a level, so that ratios of probabilities are finite.
_TINY = 1e-9


@dataclass(frozen=True, slots=True)
class DivergenceWitness:
    """A witness of the divergence D_a(P ‖ Q). Raise ValueError for an order, values or stakes out
    of range, or if |a g| ≥ 300 at a level.

    order: the order a of the divergence D_a(P ‖ Q), above 1.
    from_d1: True if P is the law of the output on d1 and Q the law on d2; False for the reverse.
    values: g at each level, in nats.
    stakes: (λ₁, λ₂), above 0, and so small that no single draw can cost a bettor its whole wealth.
    """

    order: float
    from_d1: bool
    values: tuple[float, ...]
    stakes: tuple[float, float]

    def __post_init__(self) -> None:
        powers = [self.order * value for value in self.values]
        if not self.order > 1 or not self.values or not all(abs(power) < 300 for power in powers):
            raise ValueError(f"no witness: {self}")
        (x, y), (stake, against) = self.raised, self.stakes
        if not (stake > 0 and stake * (x.max() - x.min()) < 1 and 0 < against * y.max() < 1):
            raise ValueError(f"stakes with which a draw could lose everything: {self.stakes}")

    @property
    def raised(self) -> tuple[FloatArray, FloatArray]:
        """X = e^{(a-1) g} and Y = e^{a g} at each level, both (levels,)."""
        g = np.array(self.values)
        return np.exp((self.order - 1) * g), np.exp(self.order * g)


def p_value(witness: DivergenceWitness, counts: NDArray[np.integer], divergence: float) -> float:
    """Return the p-value, in (0, 1], of the claim D_a(P ‖ Q) ≤ `divergence`, from counts by
    level."""
    return math.exp(-min(_MAX_LOG_WEALTH, max(0.0, log_wealth(witness, counts, divergence))))


def divergence_lower(witness: DivergenceWitness, counts: Counts, alpha: float) -> float:
    """Return a lower bound of D_a(P ‖ Q), in nats, at least 0, from counts by level. With expected
    counts, which may be floats, it is the bound to expect."""
    needed = -math.log(alpha)
    x, y = witness.raised
    power = witness.order / (witness.order - 1)
    # `high` is larger than any divergence that a witness with these values can certify.
    low, high = 0.0, float(power * math.log(x.max()) - math.log(y.min())) + 1e-9
    if log_wealth(witness, counts, low, needed) < needed:
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if log_wealth(witness, counts, middle, needed) >= needed:
            low = middle
        else:
            high = middle
        if high - low < _WIDTH * high:
            break
    return low


def log_wealth(
    witness: DivergenceWitness, counts: Counts, divergence: float, needed: float | None = None
) -> float:
    """Return the log of the wealth won by bets against D_a(P ‖ Q) ≤ `divergence`, rounded down.
    This is the smallest product of the two wealths over all pairs (m₁, m₂) that the claim allows
    (6.8).

    needed: if given, stop as soon as it is known whether the log reaches `needed`. The result
        reaches `needed` if and only if the log does, and may differ from it otherwise.

    As a function of log m₁, the log of the first wealth is concave, and the log of the second
    wealth, at the smallest allowed m₂, is convex. So in each interval of a grid of log m₁, the
    first log lies above its chord, and the second above its tangent. Intervals that may contain the
    minimum of their sum are split. Each bettor keeps 10 % of its initial wealth, so no wealth falls
    below 0.1.
    """
    x, y = witness.raised
    table = np.asarray(counts, dtype=np.float64)
    first_counts, second_counts = (
        (table[:, 0], table[:, 1]) if witness.from_d1 else (table[:, 1], table[:, 0])
    )
    power, (stake, against) = witness.order / (witness.order - 1), witness.stakes
    # Raise the claimed divergence slightly. This covers the rounding errors of X = e^{(a-1) g} and
    # Y = e^{a g}, and of their means; g is the witness, a function of the output's level, and
    # a is the order of the divergence.
    divergence += (power + 1) * _ROUNDING

    def first(log_mean: FloatArray) -> FloatArray:
        return _STAKED + _total(stake * (x - np.exp(log_mean)[:, None]), first_counts)

    def second(log_mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return f, the log of the second bettor's wealth, and df / d(log m₁), for each log m₁."""
        # The bet is against the smallest mean m₂ of Y that the claim allows with the mean m₁ of X.
        profit = against * (np.exp(power * log_mean - divergence)[:, None] - y)
        slope = power * (1 - (1 - against * y) / (1 + profit))
        return _STAKED + _total(profit, second_counts), slope @ second_counts

    points = np.linspace(np.log(x.min()), np.log(x.max()), _CELLS + 1)
    edges = np.stack([points[:-1], points[1:]])
    closed = best = lower = math.inf
    for _ in range(_ROUNDS):
        middle = edges.mean(axis=0)
        tangent, slope = second(middle)
        rise = slope * (edges - middle)
        chord, below = first(edges.ravel()).reshape(2, -1), tangent + rise
        wealths = np.maximum(first(middle), _KEPT) + np.maximum(tangent, _KEPT)
        best = min(best, float(wealths.min()))
        # `least` is a lower bound for the log of the product of the two bettors' wealths. Each
        # wealth is the sum of a staked part and a part kept aside, so it is at least as large as
        # either part. The product is therefore at least the largest of four products: both staked
        # parts (its log is at least chord + below), the staked part of one bettor and the part that
        # the other keeps aside (two products), and both parts kept aside.
        least = (chord + below).min(axis=0)
        for bound in (chord.min(axis=0) + _KEPT, below.min(axis=0) + _KEPT, 2 * _KEPT):
            least = np.maximum(least, bound)
        is_open = least < best - _ERROR
        closed = min(closed, float(least[~is_open].min(initial=math.inf)))
        lower = min(closed, float(least[is_open].min(initial=math.inf)))
        if not is_open.any() or (needed is not None and not lower < needed <= best):
            return lower
        # Split the intervals of log m₁ that may contain the smallest product of wealths into equal
        # parts.
        finer = np.linspace(edges[0, is_open], edges[1, is_open], _PARTS + 1)
        edges = np.stack([finer[:-1].ravel(), finer[1:].ravel()])
    return lower


def best_stakes(
    order: float, values: FloatArray, laws: FloatArray, draws: float, alpha: float
) -> tuple[tuple[float, float], float]:
    """Return ((λ₁, λ₂), bound): nearly optimal stakes for future draws, and the predicted lower
    bound of the divergence.

    values: g at each level, in nats, (levels,).
    laws: estimated probability of each level under P, and under Q, (levels, 2).
    draws: number of future draws of each input.

    A divergence of at most d allows only means m₁ of X and m₂ of Y with m₂ ≥ m₁^{a/(a-1)} e^{-d}.
    λ₁ / λ₂ is the slope dm₂/dm₁ of this limit at the expected bound d, so that the product of
    wealths is stationary along the limit. Let λ = λ₂, and let gap be the distance of m₂ at the
    limit from E_Q[Y]. On average the log of the product grows by λ gap - λ² variance / 2 for a draw
    of each input. So n draws of each input reach log(1/α) if gap =
    log(1/α) / (n λ) + λ variance / 2. Slope and gap depend on each other and are computed in turn.
    """
    x, y = np.exp((order - 1) * values), np.exp(order * values)
    power, mean, second_mean = order / (order - 1), float(laws[:, 0] @ x), float(laws[:, 1] @ y)
    spread, against = (
        float(laws[:, 0] @ (x - mean) ** 2),
        float(laws[:, 1] @ (y - second_mean) ** 2),
    )
    needed = -math.log(alpha) / max(1.0, draws)
    slope = stake = gap = 0.0
    for _ in range(_FIXED_POINT_STEPS):
        slope = power * (second_mean + gap) / mean
        variance = max(slope**2 * spread + against, 1e-300)
        largest = _MAX_STAKE / max(slope * float(x.max() - x.min()), float(y.max()))
        stake = min(math.sqrt(2 * needed / variance), largest)
        gap = needed / stake + stake * variance / 2
    return (slope * stake, stake), power * math.log(mean) - math.log(second_mean + gap)


def _total(profit: FloatArray, counts: FloatArray) -> FloatArray:
    """Return Σ counts · log(1 + profit) over levels, rounded down, for each row of `profit`."""
    logs = np.log1p(profit)
    return np.asarray(logs @ counts - _ROUNDING * (np.abs(logs) @ counts), dtype=float)


def most_telling_witness(
    expected: FloatArray, limits: Mapping[float, float], future_draws: float, alpha: float
) -> DivergenceWitness | None:
    """Return the witness whose predicted lower bound of a divergence is the largest multiple of
    what the claim allows; None if no bound above 0 is predicted.

    expected: (levels, 2), expected draws by level and input.
    limits: for each order, the divergence that the claim allows, in nats.
    future_draws: number of draws to certify with, of both inputs together.
    """
    laws = np.maximum(expected, _TINY)
    laws = laws / laws.sum(axis=0)
    candidates = sorted(
        _promising(laws, limits, future_draws / 2, alpha), key=lambda candidate: -candidate[0]
    )
    best, best_ratio = None, 0.0
    # The predictions assume small stakes, so they are not exact. So for the three candidates with
    # the best predictions, the bounds themselves are computed from expected counts, and compared.
    for _, order, sign, values, stakes in candidates[:3]:
        witness = DivergenceWitness(order, sign > 0, tuple(values.tolist()), stakes)
        lower = divergence_lower(witness, laws * future_draws / 2, alpha)
        if lower / max(limits[witness.order], _TINY) > best_ratio:
            best, best_ratio = witness, lower / max(limits[witness.order], _TINY)
    return best


def _promising(
    laws: FloatArray, limits: Mapping[float, float], draws: float, alpha: float
) -> Iterator[tuple[float, float, int, FloatArray, tuple[float, float]]]:
    """Yield (ratio, order, direction, values, stakes) of witnesses with a bound above 0."""
    # The ratio is the certified divergence divided by the allowed one. The direction is 1 for
    # D(P ‖ Q) with P the law on d1, and -1 with P the law on d2.
    log_ratio = np.log(laws[:, 0] / laws[:, 1])
    for order, allowed in limits.items():
        for sign, sides in ((1, laws), (-1, laws[:, ::-1])):
            # Larger caps are left out, since e^(order · cap) could overflow.
            for cap in _CAPS[order * _CAPS < 200.0]:
                values = np.clip(sign * log_ratio, -cap, cap)
                stakes, predicted = best_stakes(order, values, sides, draws, alpha)
                if predicted > 0:
                    yield predicted / max(allowed, _TINY), order, sign, values, stakes
