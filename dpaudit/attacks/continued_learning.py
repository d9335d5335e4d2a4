"""What further counts of the leading orders say: which to freeze, and whether more of them pay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.attacks.freezing import frozen
from dpaudit.attacks.objective import Objective, best_of, best_predicted, promise, surely_refutes
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, in_order
from dpaudit.levels.clusters import Clusters, sample_shares
from dpaudit.levels.level_map import FloatArray, IntArray, by_group
from dpaudit.levels.portfolio import Learned
from dpaudit.levels.rules import RuleTable, evened, predicted_growth

# Times that further draws are imagined, to see whether they pay. Of more cells than this fewer do:
# each time takes longer, and no single cell decides.
_MOST_IMAGINED, _LEAST_IMAGINED, _CELLS = 20, 5, 50


def learn_again(
    candidates: list[Candidate], aim: Objective, tables: Sequence[RareTable] = (), *, to_bet: bool
) -> Learned:
    """Return the portfolio and beliefs that follow from orders, after further draws were counted.

    tables: the cells that the rare rule may guess by.
    to_bet: whether the rules are for bets alone, on the order that promises the fastest growth.
    """
    aim = replace(aim, counted=True)
    best = best_of(candidates, aim, boldly=not to_bet)
    if to_bet and not (aim.for_delta or surely_refutes(best, aim)):
        best = max(
            candidates, key=lambda one: float(np.max(predicted_growth(one.table, aim.point)))
        )
    return frozen(best, candidates, aim, tables=tables, to_bet=to_bet)


def is_sure(candidates: list[Candidate], aim: Objective) -> bool:
    """Return whether some order is sure to refute the claim, and not by luck."""
    beyond_luck = tuning.DEVIATIONS_BEYOND_LUCK
    return not aim.for_delta and any(surely_refutes(one, aim, beyond_luck) for one in candidates)


def is_clear(candidates: list[Candidate], aim: Objective) -> bool:
    """Return whether some order is sure to refute the claim, and what it orders by is no estimate:
    the cut-offs of a score need more draws than those of a number."""
    return is_sure([one for one in candidates if one.scored is None], aim)


def promises_nothing(candidates: list[Candidate], aim: Objective) -> bool:
    """Return whether no order promises a bound above 0."""
    return not any(best_predicted(one, aim) for one in candidates)


def columns_that_may_refute(
    columns: Iterable[tuple[str, Candidate]],
    rare: RareTable,
    others: Sequence[Candidate],
    aim: Objective,
) -> frozenset[str]:
    """Return the names of columns whose rare outputs promise more than other orders do, or that the
    rare rule guesses by. columns: the order of each column."""
    aim = replace(aim, counted=True)
    best = max((promise(one, aim)[0] for one in others), default=0.0)
    names = {name for name, one in columns if promise(one, aim)[0] > best}
    return frozenset(names | rare.guessed_by(aim.points or (aim.point,), aim.coming))


def gains_by_more(candidates: list[Candidate], aim: Objective) -> bool:
    """Return whether to double what was counted, and certify on as many draws less, promises more:
    in the mean over what the truth may be, as far as counts tell, and over what may be drawn."""
    best = best_of(candidates, aim)
    # Of cells that foretell each other more counts say little more; of scores, learned anew or not,
    # it is not known what they would say.
    if best.fine is None or best.fine.kin is not None:
        return False
    counts, draws = best.fine.counts, int(best.held_out.sum())
    later = replace(aim, coming=aim.coming - draws)
    rng = np.random.default_rng(draws)
    clusters = Clusters.of(counts[:-1], counts.sum(axis=0))
    now = _chosen(counts, aim)
    gain = 0.0
    times = max(_LEAST_IMAGINED, _MOST_IMAGINED * _CELLS // max(_CELLS, len(counts)))
    for _ in range(times):
        share = sample_shares(clusters, rng)
        truth = counts[:-1].sum(axis=1)[:, None] * np.stack([share, 1 - share], axis=1)
        more = np.append(rng.poisson(truth), [[0, 0]], axis=0)
        gain += _chosen(counts + more, later).worth(truth, later) - now.worth(truth, aim)
    return gain > 0


@dataclass(frozen=True, slots=True, eq=False)
class _Chosen:
    """A rule that counts lead to. level: of every cell, (cells,). place: in the table of rules."""

    level: IntArray
    levels: int
    place: int

    def worth(self, truth: FloatArray, aim: Objective) -> float:
        """Return the bound to expect of the rule. truth: (cells, 2), the draws to expect."""
        real = evened(by_group(truth, self.level, self.levels), truth.sum(axis=0))
        bounds = aim.lowered(RuleTable.of_smooth(real, int(truth.sum())), 0.0)
        return max(0.0, float(bounds.ravel()[self.place]))


def _chosen(counts: IntArray, aim: Objective) -> _Chosen:
    """Return the rule that counts lead to: (cells + 1, 2), the last one for unseen."""
    level, expected = in_order(counts)
    table = RuleTable.of_smooth(evened(expected, counts.sum(axis=0)), int(counts.sum()))
    place = int(np.argmax(aim.lowered(table, tuning.PENALTY_COUNTED)))
    return _Chosen(level, len(expected), place)
