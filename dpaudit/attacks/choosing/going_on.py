"""What further counts of the leading orders say: which to freeze, and whether more of them pay."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dpaudit.attacks.choosing.aim import (
    Aim,
    best_of,
    best_predicted,
    surely_refutes,
)
from dpaudit.attacks.choosing.freezing import frozen
from dpaudit.attacks.choosing.surely import is_telling, likely_to_refute, with_the_sure
from dpaudit.attacks.rare import NAME as RARE
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate, in_order
from dpaudit.levels.distinguisher import Learned
from dpaudit.levels.level_map import FloatArray, IntArray, by_group
from dpaudit.levels.rules import RuleTable, evened, predicted_growth

# Times that further draws are imagined, to see whether they pay.
_IMAGINED = 10


def learn_again(candidates: list[Candidate], aim: Aim, *, to_bet: bool) -> Learned:
    """Return the most promising rule and beliefs of orders that further draws were counted by.

    to_bet: for bets to come alone, on the order that promises the fastest growth.
    """
    aim = replace(aim, counted=True)
    best = best_of(candidates, aim)
    if aim.for_delta or surely_refutes(best, aim):
        return frozen(best, candidates, aim)
    likely = likely_to_refute(candidates, aim)
    if likely is not None:
        return frozen(likely, candidates, aim)
    if to_bet:
        best = max(
            candidates, key=lambda one: float(np.max(predicted_growth(one.table, aim.point)))
        )
        best = with_the_sure(best, candidates, aim)
    return frozen(best, candidates, aim)


def is_sure(candidates: list[Candidate], aim: Aim) -> bool:
    """Return whether some order is sure to refute the claim, and not by luck."""
    beyond_luck = tuning.DEVIATIONS_BEYOND_LUCK
    return not aim.for_delta and any(surely_refutes(one, aim, beyond_luck) for one in candidates)


def is_clear(candidates: list[Candidate], aim: Aim) -> bool:
    """Return whether some order is sure to refute the claim, and what it orders by is no estimate:
    the cut-offs of a score need more draws than those of a number."""
    return is_sure([one for one in candidates if one.scored is None], aim)


def promises_nothing(candidates: list[Candidate], aim: Aim) -> bool:
    """Return whether no order promises a bound above 0."""
    return not any(best_predicted(one, aim) for one in candidates)


def is_undecided(candidates: list[Candidate], aim: Aim, more: float) -> bool:
    """Return whether so many times the draws may show what these do not: a rare event that refutes
    the claim, where nothing else does. It is one that a single input has given so far, or that is
    more than the luckiest of some."""
    if aim.for_delta or is_sure(candidates, aim):
        return False
    rare = [one.hopeful() for one in candidates if one.attack == RARE]
    return any(is_telling(one, aim, more) for one in rare)


def gains_by_more(candidates: list[Candidate], aim: Aim) -> bool:
    """Return whether to double what was counted, and certify on as many draws less, promises more:
    were everything as it is expected to be, and the cells put in order by what may be drawn."""
    best = best_of(candidates, aim)
    # Of cells that foretell each other more counts say little more.
    if best.fine is None or best.fine.kin is not None or best.shrunk is None:
        return False
    truth, draws = best.shrunk.expected, int(best.held_out.sum())
    later = replace(aim, coming=aim.coming - draws)
    rng = np.random.default_rng(draws)
    gain = 0.0
    for _ in range(_IMAGINED):
        counts, more = rng.poisson(truth), rng.poisson(truth)
        gain += _imagined(truth, counts + more, later) - _imagined(truth, counts, aim)
    return gain > 0


def _imagined(truth: FloatArray, counts: IntArray, aim: Aim) -> float:
    """Return the bound to expect of the rule that counts lead to. truth: (cells, 2), the draws to
    expect; counts: (cells, 2)."""
    level, expected = in_order(np.append(counts, [[0, 0]], axis=0))
    table = RuleTable.of_smooth(evened(expected, counts.sum(axis=0)), int(counts.sum()))
    chosen = int(np.argmax(aim.lowered(table, tuning.PENALTY_COUNTED)))
    real = evened(by_group(truth, level, len(expected)), truth.sum(axis=0))
    bounds = aim.lowered(RuleTable.of_smooth(real, int(truth.sum())), 0.0)
    return float(bounds.ravel()[chosen])
