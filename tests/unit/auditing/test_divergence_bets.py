"""Bets against a divergence: an oracle of the infimum, the level of the bets, and planted twins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.attacks.single_columns import CellLevels
from dpaudit.auditing.divergence_bets import WitnessBets
from dpaudit.certificates.certify import mixed_log_wealth
from dpaudit.certificates.evidence import DivergenceBet
from dpaudit.draws import Tally
from dpaudit.levels.cells import Cells
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.stats.witness import DivergenceWitness, log_wealth

ORDER = 2.0
ALPHA = 0.1
# A run takes some tenths of a second. More than 5 alarms of 10 have probability 2e-4 at the level.
RUNS, MOST = 10, 5


# A map to 40 levels; the tests have tallies, and never call it.
LEVELS = CellLevels(
    Cells("output", np.arange(38.0), (), np.arange(39), np.array([39])),
    40,
)


def _divergence(laws: FloatArray) -> float:
    return math.log(float((laws[:, 0] ** ORDER * laws[:, 1] ** (1 - ORDER)).sum())) / (ORDER - 1)


# At the boundary of the claim: the divergence of these laws is the claimed one.
SIGNS = np.resize([1.0, -1.0], 40)
LAWS = np.stack([1 + 0.2 * SIGNS, 1 - 0.2 * SIGNS], axis=1) / 40
LIMITS = {ORDER: max(_divergence(LAWS), _divergence(LAWS[:, ::-1]))}


def _draw(laws: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    first = int(rng.binomial(size, 0.5))
    arms = (first, size - first)
    return np.stack([rng.multinomial(n, laws[:, arm]) for arm, n in enumerate(arms)], axis=1)


def test_wealth_mixes_infima_and_what_no_witness_holds() -> None:
    witness = DivergenceWitness(ORDER, True, (0.6, -0.1, -0.7), (0.3, 0.2))
    counts = np.array([[40, 15], [20, 22], [8, 30]])
    tallies = Tally(counts), Tally.empty(3)
    bets = [DivergenceBet(witness, 0.25, tally) for tally in tallies]
    single = math.exp(log_wealth(witness, counts, LIMITS[ORDER]))
    none = math.exp(log_wealth(witness, np.zeros((3, 2), dtype=np.int64), LIMITS[ORDER]))
    expected = 0.5 + 0.25 * single + 0.25 * none
    assert mixed_log_wealth(bets, LIMITS) == pytest.approx(math.log(expected))


def _refutes(rng: np.random.Generator, *, ahead: bool = False) -> bool:
    """Return whether the bets ever refute the claim at its boundary.

    ahead: let each witness see the draws that it bets on, as no run may (the twin).
    """
    bets = WitnessBets(LIMITS, ALPHA)
    seen, spent = np.full((40, 2), 0.5), 0
    for size in (400, 400, 800):
        tally = Tally(_draw(LAWS, size, rng))
        if ahead:
            bets.begin(LEVELS, (tally.counts + 0.5).astype(np.float64), size)
        elif bets.is_due(spent):
            bets.begin(LEVELS, seen, spent)
        bets.record([tally] * len(bets.counters))
        seen, spent = seen + tally.counts, spent + size
        if bets.refuted:
            return True
    return False


def test_bets_at_the_boundary_do_not_exceed_their_level() -> None:
    alarms = sum(_refutes(np.random.default_rng([1, run])) for run in range(RUNS))
    assert alarms <= MOST


def test_witnesses_that_saw_their_draws_exceed_the_level() -> None:
    alarms = sum(_refutes(np.random.default_rng([2, run]), ahead=True) for run in range(RUNS))
    assert alarms > MOST
