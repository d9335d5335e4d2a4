"""Compute the betting wealth against a claim, during the draws or again from recorded blocks.

`Wealth` holds the wealth of all bettors (`dpaudit.stats.betting`) in bets against the claimed ε,
and against each other value of ε on a grid.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from dpaudit.certificates.evidence import Block
from dpaudit.claims import ProfilePoint
from dpaudit.draws import Tally
from dpaudit.stats.betting import Beliefs, bound_grid, epsilon_lower, log_wealth, stakes
from dpaudit.stats.binomial import FloatArray

# Number of values of ε for which one pass over the draws computes the wealth, when a lower bound
# above the claimed ε is searched for. Usually one pass suffices, since the lower bound is rarely
# far above the claimed ε.
_VALUES_PER_PASS = 12


class Wealth:
    """The present and the largest wealth of the bettors against each value of ε on a grid.

    point: the claimed point. The grid is `bound_grid` up to its ε, unless `after` is given.
    alpha: error probability of betting, in (0, 1).
    after: index in `bound_grid` above the claimed ε. The grid has `_VALUES_PER_PASS` values from
        this index on, by which to find a lower bound above the claimed ε.
    """

    def __init__(self, point: ProfilePoint, alpha: float, *, after: int | None = None) -> None:
        self._every = bound_grid(point.epsilon)
        self._claim = int(np.searchsorted(self._every, point.epsilon))
        part = slice(self._claim + 1) if after is None else slice(after, after + _VALUES_PER_PASS)
        self._grid = self._every[part]
        self._point, self._delta, self._alpha = point, point.delta, alpha
        self._gains: FloatArray = np.zeros((len(self._grid), 1))
        self._largest: FloatArray = np.zeros(len(self._grid))
        self._shares: FloatArray = np.ones(1)
        self._factors: FloatArray | None = None  # (grid, bettors, levels, inputs)

    def beyond(self) -> Wealth | None:
        """Return a new `Wealth` without draws, for the next larger values of ε. Return None if some
        present value is not refuted, so that the lower bound cannot be larger, or if there are no
        further values."""
        reached = len(self._grid)
        is_open = reached < len(self._every) and self._largest.min() >= -math.log(self._alpha)
        return Wealth(self._point, self._alpha, after=reached) if is_open else None

    def extend(self, other: Wealth) -> None:
        """Add the values of ε of `other`, with the wealth against them, to the grid. The bets of
        `other` must be on the same draws."""
        self._grid = np.concatenate([self._grid, other._grid])
        self._gains = np.concatenate([self._gains, other._gains])
        self._largest = np.concatenate([self._largest, other._largest])
        self._factors = None  # the factors of the added values are missing

    def believe(self, beliefs: Beliefs) -> None:
        """Set the beliefs for the next draws. Call it before these draws are seen: only bets that
        are fixed in advance may refute a claim."""
        self._factors = beliefs.log_factors(self._grid, self._delta)
        self._shares = stakes(beliefs, self._delta)
        if self._gains.shape[1] != len(self._shares):
            self._gains = np.zeros((len(self._grid), len(self._shares)))

    def first_refuting(self, looks: Sequence[Tally]) -> int | None:
        """Return the index of the first look at which the bets refute the claim; None if they do at
        none. The draws are not recorded.

        looks: for each look, the tally of the draws since the look before.
        """
        needed = -math.log(self._alpha)
        at_claim = log_wealth(
            self._log_gains(looks, slice(self._claim, self._claim + 1)), self._shares
        )
        if max(float(at_claim.max()), self._largest[self._claim]) < needed:
            return None  # the usual case, at low cost
        smaller = slice(self._claim + 1)
        wealth = log_wealth(self._log_gains(looks, smaller), self._shares)
        reached = np.maximum(wealth, self._largest[smaller])
        refuted = np.flatnonzero(reached.min(axis=1) >= needed)
        return int(refuted[0]) if len(refuted) else None

    def record(self, looks: Sequence[Tally]) -> None:
        """Bet on draws, and record the wealth at each look.

        looks: for each look, the tally of the draws since the look before.
        """
        gains = self._log_gains(looks)
        self._gains = gains[-1]
        self._largest = np.maximum(self._largest, log_wealth(gains, self._shares).max(axis=0))

    @property
    def log_largest(self) -> float:
        """The log of the largest wealth so far, for the ε at which it is least, of the claimed ε
        and all smaller ones. A refutation of the claimed ε must also refute every smaller ε."""
        return float(self._largest[: self._claim + 1].min())

    @property
    def log_now(self) -> float:
        """The log of the wealth against the claimed ε at the end of the last block."""
        return float(log_wealth(self._gains[self._claim], self._shares))

    @property
    def gains(self) -> FloatArray:
        """The log of the factor by which each bettor multiplied its initial wealth against the
        claimed ε."""
        return np.array(self._gains[self._claim])

    @property
    def refuted(self) -> bool:
        return self.log_largest >= -math.log(self._alpha)

    @property
    def epsilon_lower(self) -> float:
        """The lower bound for ε, a value of the grid. The bounds at all looks are valid together
        with probability at least 1 - alpha."""
        return epsilon_lower(self._grid, self._largest, self._alpha)

    def _log_gains(self, looks: Sequence[Tally], part: slice = slice(None)) -> FloatArray:
        """Return the log gains of the bettors after each look: (looks, values of ε, bettors)."""
        if self._factors is None:
            raise RuntimeError("beliefs must be fixed before the first bet")
        counts = np.stack([look.counts for look in looks])
        # einsum runs in this thread. A matrix product would start threads on every core for a
        # millisecond of work.
        steps = np.einsum("nla,gbla->ngb", counts, self._factors[part])
        return np.asarray(self._gains[part] + np.cumsum(steps, axis=0))


def replay(
    point: ProfilePoint, alpha: float, rounds: Sequence[Beliefs], blocks: Sequence[Block]
) -> Wealth:
    """Return the wealth after all blocks, computed from recorded counts and beliefs. If the claim
    was refuted, the grid is extended to larger values of ε, up to the first that is not refuted,
    for the lower bound."""
    wealth = _replayed(Wealth(point, alpha), rounds, blocks)
    while (further := wealth.beyond()) is not None:
        wealth.extend(_replayed(further, rounds, blocks))
    return wealth


def first_refuted(
    point: ProfilePoint, alpha: float, rounds: Sequence[Beliefs], blocks: Sequence[Block]
) -> int | None:
    """Return the number of draws after which the bets refuted the claim; None if they did not."""
    wealth = Wealth(point, alpha)
    return next(
        (draws for draws in _bet_block_by_block(wealth, rounds, blocks) if wealth.refuted), None
    )


def course(
    point: ProfilePoint, rounds: Sequence[Beliefs], blocks: Sequence[Block]
) -> list[tuple[int, float]]:
    """Return (number of draws so far, log of the wealth against the claimed ε) at the end of each
    block that was bet on."""
    wealth = Wealth(point, alpha=0.5)  # any alpha: the wealth does not depend on it
    return [(draws, wealth.log_now) for draws in _bet_block_by_block(wealth, rounds, blocks)]


def _replayed(wealth: Wealth, rounds: Sequence[Beliefs], blocks: Sequence[Block]) -> Wealth:
    bet_on = [block for block in blocks if block.round is not None]
    for index, group in groupby(bet_on, key=lambda block: block.round):
        if index is not None:
            wealth.believe(rounds[index])
            wealth.record([block.tally for block in group])
    return wealth


def _bet_block_by_block(
    wealth: Wealth, rounds: Sequence[Beliefs], blocks: Sequence[Block]
) -> Iterator[int]:
    """Bet on each block in turn; after each bet, yield the number of draws so far."""
    believed, draws = None, 0
    for block in blocks:
        draws += block.draws
        if block.round is None:
            continue
        if block.round != believed:
            believed = block.round
            wealth.believe(rounds[believed])
        wealth.record([block.tally])
        yield draws
