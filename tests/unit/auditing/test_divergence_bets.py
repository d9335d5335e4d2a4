"""Bets against a divergence: an oracle of the infimum, the level of the bets, and planted twins."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpaudit.attacks.single_columns import CellLevels
from dpaudit.auditing.divergence_bets import DivergenceBets
from dpaudit.certificates.certify import mixed_log_wealth
from dpaudit.certificates.evidence import DivergenceBet
from dpaudit.draws import Tally
from dpaudit.levels.cells import Cells
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.stats.witness import Witness, log_wealth

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


def _brute_force(witness: Witness, counts: IntArray, allowed: float) -> float:
    """Return the log of the infimum of the product on a fine grid of m₁, draw by draw."""
    x, y = witness.raised
    own, other = (counts[:, 0], counts[:, 1]) if witness.from_d1 else (counts[:, 1], counts[:, 0])
    best = math.inf
    for mean in np.linspace(x.min(), x.max(), 20_001):
        against = mean ** (ORDER / (ORDER - 1)) * math.exp(-allowed)
        wealths = []
        for values, draws, stake, base in (
            (x - mean, own, witness.stakes[0], 1.0),
            (against - y, other, witness.stakes[1], 1.0),
        ):
            log = sum(
                n * math.log(base + stake * value) for value, n in zip(values, draws, strict=True)
            )
            wealths.append(math.log(0.1 + 0.9 * math.exp(log)))
        best = min(best, sum(wealths))
    return best


def test_the_infimum_is_that_of_a_fine_grid() -> None:
    witness = Witness(ORDER, True, (0.6, -0.1, -0.7), (0.3, 0.2))
    counts = np.array([[40, 15], [20, 22], [8, 30]])
    found = log_wealth(witness, counts, 0.05)
    expected = _brute_force(witness, counts, 0.05)
    # The bound keeps a tenth of each wealth aside as a maximum, not as a sum.
    assert expected - 2 * math.log(2) - 1e-2 <= found <= expected + 1e-9


def test_wealth_mixes_infima_and_what_no_witness_holds() -> None:
    witness = Witness(ORDER, True, (0.6, -0.1, -0.7), (0.3, 0.2))
    counts = np.array([[40, 15], [20, 22], [8, 30]])
    tallies = Tally(counts), Tally.empty(3)
    bets = [DivergenceBet(witness, 0.25, tally) for tally in tallies]
    single = math.exp(log_wealth(witness, counts, LIMITS[ORDER]))
    none = math.exp(log_wealth(witness, np.zeros((3, 2), dtype=np.int64), LIMITS[ORDER]))
    expected = 0.5 + 0.25 * single + 0.25 * none
    assert mixed_log_wealth(bets, LIMITS) == pytest.approx(math.log(expected))


def test_shares_above_one_are_refused() -> None:
    witness = Witness(ORDER, True, (0.6, -0.1, -0.7), (0.3, 0.2))
    bets = [DivergenceBet(witness, 0.6, Tally(np.ones((3, 2), dtype=np.int64)))] * 2
    with pytest.raises(ValueError, match="shares"):
        mixed_log_wealth(bets, LIMITS)


def _refutes(rng: np.random.Generator, *, ahead: bool = False) -> bool:
    """Return whether the bets ever refute the claim at its boundary.

    ahead: let each witness see the draws that it bets on, as no run may (the twin).
    """
    bets = DivergenceBets(LIMITS, ALPHA)
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
