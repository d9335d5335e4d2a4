"""Decides whether further counts are worth their cost, after the buffer of kept draws is full.

`auditing/counting.py` asks these functions each time that further draws were counted: whether the
claim is sure to be refuted, whether anything is promised at all, and whether more counts will raise
the certified bound by more than they cost (docs/method.md §5).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpaudit.attacks.objective import Objective, best_of, best_predicted, promise, refutes
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, CellCounts, UnorderedCells
from dpaudit.levels.clusters import Clusters, sample_shares
from dpaudit.levels.level_map import FloatArray, IntArray, by_group
from dpaudit.levels.rules import RuleTable, evened

# Simulations of further draws: 20 for up to 50 cells, and at least 5. More cells get fewer
# simulations, which take longer, and no single cell decides.
_MOST_SIMULATIONS, _LEAST_SIMULATIONS, _CELLS = 20, 5, 50


def surely_refutes(candidates: Sequence[Candidate], objective: Objective) -> bool:
    """Return whether some candidate (order of outcomes) is predicted to refute the claim by four
    standard errors. Always False if the bound is one for δ."""
    errors = tuning.DEVIATIONS_BEYOND_LUCK
    return not objective.for_delta and any(refutes(one, objective, errors) for one in candidates)


def may_freeze_early(candidates: Sequence[Candidate], objective: Objective) -> bool:
    """Return whether some candidate (order of outcomes) is predicted to refute the claim by four
    standard errors. Scores do not count: to find the cut-offs of a score takes more draws."""
    return surely_refutes([one for one in candidates if not one.has_score], objective)


def promises_nothing(candidates: Sequence[Candidate], objective: Objective) -> bool:
    """Return whether no candidate (order of outcomes) has a rule with a predicted bound above 0."""
    return not any(best_predicted(one, objective) for one in candidates)


def columns_that_may_refute(
    columns: Iterable[tuple[str, Candidate]],
    rare: RareTable,
    others: Sequence[Candidate],
    objective: Objective,
) -> frozenset[str]:
    """Return the names of columns whose rare outputs promise more than every other candidate, or by
    which the rare rule guesses.

    columns: (name, candidate) for each column, where the candidate orders outcomes by the rare
        outputs of this column alone.
    rare: counts of rare outputs, from which the rare rule is made.
    others: candidates that are not made of rare outputs.
    """
    objective = replace(objective, counted=True)
    best = max((promise(one, objective)[0] for one in others), default=0.0)
    names = {name for name, one in columns if promise(one, objective)[0] > best}
    points = objective.points or (objective.point,)
    return frozenset(names | rare.guessed_by(points, objective.coming))


def gains_by_more(candidates: Sequence[Candidate], objective: Objective) -> bool:
    """Return whether to double the learning draws before certifying, at the cost of draws to
    certify with.

    This is the value of information (Raiffa & Schlaifer 1961): the mean gain in the predicted bound
    over 5 to 20 simulations. Each simulation draws true shares from their posterior, then as many
    further counts. Return False unless the best candidate is made of counted cells.
    """
    best = best_of(candidates, objective)
    # Only for unrelated cells is there a posterior of the true shares to simulate further counts
    # from.
    if not isinstance(best, UnorderedCells) or best.counted is None:
        return False
    if best.counted.predictor is not None:
        return False
    counts, draws = best.counted.counts, int(best.held_out.sum())
    later = replace(objective, coming=objective.coming - draws)
    rng = np.random.default_rng(draws)
    clusters = Clusters.of(counts[:-1], counts.sum(axis=0))
    now = _chosen(best.counted, objective)
    gain = 0.0
    times = max(_LEAST_SIMULATIONS, _MOST_SIMULATIONS * _CELLS // max(_CELLS, len(counts)))
    for _ in range(times):
        share = sample_shares(clusters, rng)
        truth = counts[:-1].sum(axis=1)[:, None] * np.stack([share, 1 - share], axis=1)
        further = np.append(rng.poisson(truth), [[0, 0]], axis=0)
        total = _chosen(replace(best.counted, counts=counts + further), later)
        gain += total.bound(truth, later) - now.bound(truth, objective)
    return gain > 0


@dataclass(frozen=True, slots=True, eq=False)
class _ChosenRule:
    """A rule over cells of outcomes.

    level: (cells,), the level of each cell.
    levels: number of levels.
    place: flat index of the rule in a `RuleTable`.
    """

    level: IntArray
    levels: int
    place: int

    def bound(self, truth: FloatArray, objective: Objective) -> float:
        """Return the bound that the rule is predicted to certify, at least 0, if the true
        frequencies are known.

        truth: (cells, 2), true expected draws by cell and input.
        """
        ordered = evened(by_group(truth, self.level, self.levels), truth.sum(axis=0))
        bounds = objective.lowered(RuleTable.of_smooth(ordered, int(truth.sum())), 0.0)
        return max(0.0, float(bounds.ravel()[self.place]))


def _chosen(cells: CellCounts, objective: Objective) -> _ChosenRule:
    """Return the rule over counted cells with the largest predicted bound."""
    counts = cells.counts
    level, expected = cells.in_order()
    table = RuleTable.of_smooth(evened(expected, counts.sum(axis=0)), int(counts.sum()))
    place = int(np.argmax(objective.lowered(table, tuning.PENALTY_COUNTED)))
    return _ChosenRule(level, len(expected), place)
