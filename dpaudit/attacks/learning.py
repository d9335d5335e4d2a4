"""How an event is chosen, from top to bottom.

    outcomes -> features -> scorers -> candidates -> one objective -> rules

1. *Features.* An outcome is a table row: columns of numbers and labels (`outcomes/`), cut into
   cells without a look at the inputs (`levels/cells.py`).
2. *Scorers* (`SCORERS`, one function each) estimate the likelihood ratio of the two inputs, from
   some columns or all, by fits to other folds than the one that they score.
3. *Candidates* (`levels/candidates.py`) are the resulting orders of outcomes, cut into at most 64
   levels, with held-out counts of either input: ordered bins of a number or score, or unordered
   cells.
4. *The objective* (`objective.py`) predicts the bound that each rule of each candidate would
   certify on the draws to come. A rule guesses d2 below one level and d1 from another one on. The
   candidate and the rule with the largest prediction win.
5. *Rules* (`freezing.py`): the winner is cut finer near its cut-offs and becomes the main rule. A
   rare rule and a rule of another kind may join it; the levels also give bettors their beliefs.

`learn` does this with draws that are kept, `learn_again` with draws that are only counted
(`continued_learning.py` says when more counts are worth their cost). Nothing here touches validity:
the draws that certify an event are drawn after it is frozen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpaudit.attacks.additive import additive, exchangeable
from dpaudit.attacks.banded import banded
from dpaudit.attacks.bits import bits
from dpaudit.attacks.by_output_type import kinds
from dpaudit.attacks.freezing import Stage, freeze
from dpaudit.attacks.independent_blocks import parts
from dpaudit.attacks.objective import Objective, best_of, refutes
from dpaudit.attacks.prefixes import prefixes
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.attacks.single_columns import (
    elapsed,
    one_dimensional,
    represented,
    single_columns,
)
from dpaudit.attacks.single_outputs import atoms
from dpaudit.attacks.trees import propose_trees
from dpaudit.attacks.weighted_sums import logistic, mean_differences
from dpaudit.attacks.whitened import innovations
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, Scorer
from dpaudit.levels.portfolio import Learned, Tried
from dpaudit.levels.rules import RuleTable, predicted_delta, predicted_growth

# Scorers that are always on. Of equal candidates the first one wins, so simple ones come first.
SCORERS: tuple[Scorer, ...] = (
    one_dimensional,
    single_columns,
    additive,
    innovations,
    prefixes,
    banded,
    logistic,
    mean_differences,
    parts,
    kinds,
    represented,
    atoms,
)

# Scorers of several columns: their events are scores, which a reader cannot check by hand.
_OF_SEVERAL_COLUMNS = (
    additive, innovations, prefixes, banded, logistic, mean_differences, parts, kinds
)  # fmt: skip
# Outcomes with at most 8 values, each seen 50 times on average, are listed one by one: no score
# says more. The first 2,000 draws show whether there are few values.
_FEW_VALUES, _DRAWS_PER_VALUE, _FIRST_DRAWS = 8, 50, 2_000
# Draws from which on users' scorers, whose cost is unknown, are run while learning goes on.
_DRAWS_FOR_USERS = 1_000
# Draws with an entry below which a kept draw counts as rare: one rare table for each.
_RARE_COUNTS = (10, 100)


def scorers_for(*, floating_point: bool, timing: bool, repeated: bool) -> tuple[Scorer, ...]:
    """Return the scorers that are always on, and those for the given options."""
    optional = ((exchangeable, repeated), (bits, floating_point), (elapsed, timing))
    return (*SCORERS, *(scorer for scorer, is_on in optional if is_on))


def learn(
    selection: SelectionDraws,
    objective: Objective,
    scorers: tuple[Scorer, ...] = SCORERS,
    *,
    users: tuple[Scorer, ...] = (),
    thorough: bool = True,
    with_rare: bool = True,
) -> Learned:
    """Return the rules with the largest predicted bound, and beliefs to bet on.

    users: scorers of unknown cost, left out while draws are few.
    thorough: run costly scorers even if draws are few or a refutation is near.
    with_rare: also look for rare outputs.
    """
    if thorough or selection.size >= _DRAWS_FOR_USERS:
        scorers = (*scorers, *users)
    has_few = _has_few_values(selection)
    scorers = tuple(one for one in scorers if not (has_few and one in _OF_SEVERAL_COLUMNS))
    candidates: list[Candidate] = [one for scorer in scorers for one in scorer(selection)]
    skipped: list[Tried] = []
    if not has_few:
        trees, skipped = propose_trees(selection, objective, candidates, thorough=thorough)
        candidates += trees
    tables: list[RareTable] = []
    if thorough and with_rare:
        tables = [RareTable.of(selection, count) for count in _RARE_COUNTS]
        candidates += [one for table in tables for one in table.order()]
        tables.append(RareTable.frequent(selection, tables[0].rare_filter))
    best = best_of(candidates, objective, cautious=not thorough)
    stage: Stage = "kept" if thorough else "first"
    return freeze(best, candidates, objective, skipped, tables, stage=stage)


def learn_again(
    candidates: Sequence[Candidate],
    objective: Objective,
    tables: Sequence[RareTable] = (),
    *,
    to_bet: bool,
) -> Learned:
    """Return the rules and beliefs that follow from candidates after further draws were counted.

    tables: cells for the rare rule.
    to_bet: the rules are for bets alone, so the candidate with the fastest growth wins.
    """
    objective = replace(objective, counted=True)
    best = best_of(candidates, objective, cautious=to_bet)
    if to_bet and not (objective.for_delta or refutes(best, objective)):
        best = max(
            candidates, key=lambda one: float(np.max(predicted_growth(one.table, objective.point)))
        )
    return freeze(best, candidates, objective, tables=tables, to_bet=to_bet)


def best_point(
    selection: SelectionDraws,
    claim: PrivacyClaim,
    coming: int,
    scorers: tuple[Scorer, ...] = SCORERS,
) -> ProfilePoint:
    """Return the point of a claim's profile to test on `coming` draws: the point with the largest
    predicted bound on the definition's own parameter or, without one, with the largest predicted δ
    as a multiple of the claimed δ. Of nearly equal points, return the first."""
    tables = [RuleTable.evened(one.held_out) for scorer in scorers for one in scorer(selection)]

    def multiple(point: ProfilePoint) -> float:
        every = [predicted_delta(one, point.epsilon, coming, tuning.PENALTY) for one in tables]
        delta = max(0.0, *map(np.max, every))
        own = claim.own_lower(point.epsilon, delta)
        return float(f"{delta / max(point.delta, 1e-12) if own is None else own[1]:.1e}")

    return max(claim.points(), key=multiple)


def _has_few_values(selection: SelectionDraws) -> bool:
    """Return whether outcomes have several columns and few values, each of which is frequent."""
    if len(selection.outcomes.columns) < 2:
        return False
    first = selection.outcomes.take(slice(_FIRST_DRAWS))
    if len(np.unique(first.keys())) > _FEW_VALUES:
        return False
    values = len(np.unique(selection.outcomes.keys()))
    return values <= _FEW_VALUES and selection.size >= values * _DRAWS_PER_VALUE
