"""Bets against a Rényi or zCDP claim while draws are made (docs/method.md §6).

A witness is fixed before the draws that it bets on. The claim allows certain pairs of its means on
d1 and on d2. For each pair, one bettor bets against the first mean and another against the second;
a large product of their wealths refutes the pair. The wealth of the witness is the smallest product
among all pairs that the claim allows (`stats.witness.log_wealth`). Each of 8 witnesses has 1/8 of
the initial wealth and bets on all draws after its beginning; their wealths are added up.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpaudit.certificates.certify import mixed_log_wealth
from dpaudit.certificates.evidence import DivergenceBet
from dpaudit.draws import SelectionDraws, Tally, by_arm
from dpaudit.levels.level_map import CellCounter, FloatArray, IntArray, LevelMap
from dpaudit.stats.witness import DivergenceWitness, most_telling_witness

# Number of draws after which the first witnesses begin. Two further witnesses begin each time that
# the number of draws has doubled.
_FIRST_DRAWS = 400
# Witnesses begin in pairs. If a pair begins after n draws, the stakes of one witness are best for a
# run with 2 · n further draws, and those of the other for a run with 6 · n further draws. The more
# draws are expected, the smaller the stakes.
_HORIZONS = (2, 6)
# Number of pairs of witnesses that begin during a run. Each of these 8 witnesses has 1/8 of the
# whole stake.
_PAIRS_OF_WITNESSES = 4


@dataclass(slots=True, eq=False)
class _Bet:
    """A witness, and the counts by level and input of the draws on which it has bet."""

    level: LevelMap
    witness: DivergenceWitness
    counts: IntArray


class WitnessBets:
    """The bets of witnesses against one claim, with error probability α.

    limits: maps each Rényi order to the largest divergence that the claim allows, in nats.
    """

    def __init__(self, limits: Mapping[float, float], alpha: float) -> None:
        self.limits, self.alpha = dict(limits), alpha
        self._bets: list[_Bet] = []
        self._next, self._times = _FIRST_DRAWS, 0

    @property
    def counters(self) -> tuple[CellCounter, ...]:
        """The level maps of the witnesses that bet, by which the next draws have to be counted."""
        return tuple(bet.level for bet in self._bets)

    def is_due(self, spent: int) -> bool:
        """Return whether new witnesses may begin now. They begin at most four times: first after
        400 draws, then whenever the number of draws has doubled."""
        return self._times < _PAIRS_OF_WITNESSES and spent >= self._next

    def begin(self, level: LevelMap, expected: FloatArray, spent: int) -> None:
        """Choose up to two more witnesses from all draws so far, which bet from now on.

        expected: (levels, 2), expected draws by level and input.
        spent: number of draws so far.
        """
        self._next, self._times = 2 * spent, self._times + 1
        for times in _HORIZONS:
            witness = most_telling_witness(
                expected, self.limits, times * spent, self.alpha * self._share
            )
            if witness is not None:
                counts = np.zeros((level.levels, 2), dtype=np.int64)
                self._bets.append(_Bet(level, witness, counts))

    def record(self, tallies: Sequence[Tally]) -> None:
        """Let every witness bet on further draws. `tallies` has one tally for each of
        `counters`."""
        for bet, tally in zip(self._bets, tallies, strict=True):
            bet.counts = bet.counts + tally.counts

    def record_draws(self, draws: SelectionDraws) -> None:
        """Bet on draws in memory, before anything is learned from them."""
        self.record(
            [
                Tally(by_arm(bet.level(draws.outcomes), bet.level.levels, draws.is_d1))
                for bet in self._bets
            ]
        )

    @property
    def recorded(self) -> tuple[DivergenceBet, ...]:
        """The bets in the form in which a certificate records them."""
        return tuple(
            DivergenceBet(bet.witness, self._share, Tally(bet.counts)) for bet in self._bets
        )

    @property
    def refuted(self) -> bool:
        return bool(self._bets) and self.log_wealth >= -math.log(self.alpha)

    @property
    def log_wealth(self) -> float:
        return mixed_log_wealth(self.recorded, self.limits)

    @property
    def _share(self) -> float:
        return 1 / (_PAIRS_OF_WITNESSES * len(_HORIZONS))
