"""How the rules of an audit are learned, from top to bottom.

    outcomes -> features -> scorers -> candidates -> one objective -> rules

0. *Point* (`best_point`). If the claim is a curve of points (ε, δ), one is chosen to be tested.
1. *Features.* Columns are cut into cells (`levels/cells.py`) or turned into features
   (`features.py`), without knowledge of the inputs.
2. *Scorers* estimate the likelihood ratio of the two inputs, held out: those of `scorers.py`,
   boosted trees (`trees.py`) and users' attacks.
3. *Candidates* (`levels/candidates.py`) are the resulting orders. Their counts are smoothed over
   bins (`levels/piecewise_logit.py`) and shrunk over single cells (`levels/shrinkage.py`).
4. *The objective* (`objective.py`) predicts the bound of each rule, less a penalty, and ranks the
   candidates; a candidate with simpler events that is as good replaces a score (`plainest`).
5. *Rules* (`rules.py`). The best rule of the winner is the main rule. A rare rule and a rule of
   another kind of candidate may join it. The levels also give the bettors their beliefs.

`learn` learns from draws that are kept, `relearn` from draws that are only counted.
`auditing/counted_learning.py` has the loop over counted draws; the functions after `best_point`
decide when it ends. docs/method.md §5 has the mathematics in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

import numpy as np

from dpaudit.attacks.objective import (
    Objective,
    best_of,
    best_predicted,
    plainest,
    rank_key,
    refutes,
)
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.attacks.rules import choose_rules
from dpaudit.attacks.single_columns import one_dimensional, represented
from dpaudit.attacks.single_outputs import atoms
from dpaudit.claims import PrivacyClaim, ProfilePoint
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, Scorer
from dpaudit.levels.limits import DRAWS_PER_VALUE, EXAMINED_DRAWS, FEW_VALUES
from dpaudit.levels.portfolio import Learned, Tried
from dpaudit.levels.rare_filter import USUAL_DRAWS
from dpaudit.levels.rule_tables import (
    RuleTable,
    predicted_delta,
)

# Scorers of outcomes with one column, in order of preference: of equally good candidates the first
# one wins. `scorers.py` has the scorers of outcomes with several columns.
_OF_ONE_COLUMN: tuple[Scorer, ...] = (
    one_dimensional,  # by size or by cell
    represented,  # details that == ignores: types, the sign of zero, the order of keys
    atoms,  # whole outputs, each by its own frequency
)


def scorers_of(selection: SelectionDraws, switches: Set[str]) -> tuple[Scorer, ...]:
    """Return the scorers of dpaudit that fit these draws, and those of the options in
    `switches`."""
    is_one = len(selection.outcomes.columns) < 2
    if is_one and not switches:
        return _OF_ONE_COLUMN
    # Imported here, since most audits of outcomes with one column do not need this module.
    from dpaudit.attacks.scorers import optional_scorers, scorers_for

    return (*_OF_ONE_COLUMN, *optional_scorers(switches)) if is_one else scorers_for(switches)


def learn(
    selection: SelectionDraws,
    objective: Objective,
    scorers: tuple[Scorer, ...] | None = None,
    *,
    with_rare: bool = True,
) -> Learned:
    """Learn from selection draws. Return the rules with the largest predicted bounds, among the
    candidates of all scorers, and the beliefs to bet on.

    scorers: the scorers to try; None: the scorers of dpaudit that need no option.
    with_rare: whether to look for rare outputs.
    """
    scorers = scorers_of(selection, frozenset()) if scorers is None else scorers
    is_one = len(selection.outcomes.columns) < 2
    has_few = not is_one and _has_few_values(selection)
    if has_few:
        from dpaudit.attacks.scorers import OF_SEVERAL_COLUMNS

        scorers = tuple(scorer for scorer in scorers if scorer not in OF_SEVERAL_COLUMNS)
    candidates: list[Candidate] = [
        candidate for scorer in scorers for candidate in scorer(selection)
    ]
    skipped: list[Tried] = []
    if not (is_one or has_few):
        from dpaudit.attacks.trees import propose_trees

        trees, skipped = propose_trees(selection, objective, candidates)
        candidates += trees
    rare_tables: list[RareTable] = []
    if with_rare:
        # In the first table, an output is rare if it has an entry seen in fewer than 10 draws; in
        # the second, in fewer than 100.
        rare_tables = [RareTable.of(selection, count) for count in (USUAL_DRAWS, 10 * USUAL_DRAWS)]
        candidates += [candidate for table in rare_tables for candidate in table.order()]
        rare_tables.append(RareTable.frequent(selection, rare_tables[0].rare_filter))
    winner = plainest(best_of(candidates, objective), candidates, objective)
    return choose_rules(winner, candidates, objective, rare_tables, skipped)


def _has_few_values(selection: SelectionDraws) -> bool:
    """Return whether outcomes have at most 8 values, with at least 50 draws each on average."""
    first = selection.outcomes.take(slice(EXAMINED_DRAWS))
    if len(np.unique(first.keys())) > FEW_VALUES:
        return False
    values = len(np.unique(selection.outcomes.keys()))
    return values <= FEW_VALUES and selection.size >= values * DRAWS_PER_VALUE


def relearn(
    candidates: Sequence[Candidate], objective: Objective, rare_tables: Sequence[RareTable] = ()
) -> Learned:
    """Learn after further draws were counted. Return the rules with the largest predicted bounds,
    and the beliefs to bet on. The candidates were fixed before these draws, so their bounds are not
    lowered for luck of selection.

    candidates: the candidates, with the counts of all draws.
    rare_tables: counts of rare outputs and of frequent entries, for the rare rule.
    """
    objective = replace(objective, fixed_before=True)
    winner = plainest(best_of(candidates, objective), candidates, objective)
    return choose_rules(winner, candidates, objective, rare_tables)


def best_point(
    selection: SelectionDraws,
    claim: PrivacyClaim,
    future_draws: int,
    scorers: tuple[Scorer, ...] | None = None,
) -> ProfilePoint:
    """Return the point (ε, δ) of the claim's privacy profile to test on `future_draws` draws.

    If the definition has a parameter of its own, such as μ, the best point has the largest
    predicted bound on this parameter. Otherwise it has the largest ratio of predicted to claimed δ.
    Of several points that are nearly as good, the first is returned.
    """
    scorers = scorers_of(selection, frozenset()) if scorers is None else scorers
    tables = [
        RuleTable.of_balanced(candidate.counts)
        for scorer in scorers
        for candidate in scorer(selection)
    ]

    def size(point: ProfilePoint) -> float:
        bounds = [
            predicted_delta(table, point.epsilon, future_draws, tuning.PENALTY) for table in tables
        ]
        delta = max(0.0, *map(np.max, bounds))
        # `own_bound` is (name, lower bound) of a parameter of the privacy definition, such as μ;
        # None if the definition has no parameter besides ε and δ.
        own_bound = claim.own_lower(point.epsilon, delta)
        _, result = own_bound or ("", delta / max(point.delta, 1e-12))
        return float(f"{result:.1e}")

    return max(claim.points(), key=size)


# The functions below decide when learning from counts ends, for `auditing/counted_learning.py`.


def may_freeze_early(candidates: Sequence[Candidate], objective: Objective) -> bool:
    """Return whether learning may end early: a candidate is predicted to refute the claim even if
    its bound is lowered by four standard errors. Candidates with a score do not count, since their
    cut-offs need more draws. Return False if the bound is for δ."""
    errors = tuning.DEVIATIONS_BEYOND_LUCK
    without_score = [
        candidate for candidate in candidates if not candidate.has_score and not objective.for_delta
    ]
    return any(refutes(candidate, objective, errors) for candidate in without_score)


def no_bound_predicted(candidates: Sequence[Candidate], objective: Objective) -> bool:
    """Return whether no rule of any candidate has a predicted bound above 0."""
    return not any(best_predicted(candidate, objective) for candidate in candidates)


def columns_worth_counting(
    columns: Iterable[tuple[str, Candidate]],
    rare: RareTable,
    others: Sequence[Candidate],
    objective: Objective,
) -> frozenset[str]:
    """Return the names of the columns whose rare outputs should be counted further. For such a
    column, the candidate of its rare outputs has a larger predicted bound than all `others`, or the
    rare rule guesses at these outputs.

    columns: for each column, its name and the candidate of its rare outputs alone.
    rare: the counts for the rare rule.
    others: candidates that are not made of rare outputs.
    """
    objective = replace(objective, fixed_before=True)
    best = max((rank_key(candidate, objective)[0] for candidate in others), default=0.0)
    names = {name for name, candidate in columns if rank_key(candidate, objective)[0] > best}
    points = objective.points or (objective.point,)
    return frozenset(names | rare.guessed_by(points, objective.future_draws))
