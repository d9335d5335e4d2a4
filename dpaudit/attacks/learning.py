"""How the rules of an audit are learned, from top to bottom.

    outcomes -> features -> scorers -> candidates -> one objective -> rules

1. *Features.* An outcome is a table row: columns of numbers and labels (`outcomes/`). A column is
   cut into cells (`levels/cells.py`) or turned into numbers for regressions and trees
   (`features.py`), without a look at the inputs.
2. *Scorers* (`SCORERS`, one function each) estimate the likelihood ratio of the two inputs from
   some columns or all. Each draw is scored by a fit to other draws.
3. *Candidates* (`levels/candidates.py`) are the resulting orders of outcomes, cut into levels,
   usually at most 64, with counts of draws by level and input: ordered bins, unordered cells, and
   rare outputs (`rare_outputs.py`). Counts are smoothed over bins (`levels/piecewise_logit.py`) and
   shrunk over cells (`levels/shrinkage.py`).
4. *The objective* (`objective.py`) predicts the bound that each rule will certify on the draws to
   come, lowered by the penalty of its candidate (`Candidate.penalty`). A rule guesses d2 below
   level l and d1 from level u on (`levels/rules.py`). One prediction ranks the candidates; a
   sharper one picks l and u.
5. *Rules* (`freezing.py`): the winner is cut finer near l and u and becomes the main rule. A rare
   rule and a rule of another kind may join it. The levels also give the bettors their beliefs.

`learn` learns from draws that are kept, `learn_again` from draws that are only counted.
`auditing/counting.py` has the loop over counted draws; the functions after `best_point` decide when
it ends. Nothing here touches validity: the draws that certify a rule are drawn after the
rule is frozen. docs/method.md §5 has the mathematics in the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from dpaudit.attacks.additive import additive, exchangeable
from dpaudit.attacks.blocks import kinds, parts
from dpaudit.attacks.freezing import Stage, freeze
from dpaudit.attacks.objective import Objective, best_of, best_predicted, promise, refutes
from dpaudit.attacks.prefixes import banded, prefixes
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.attacks.single_columns import (
    bits,
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
from dpaudit.levels.candidates import Candidate, CellCounts, Scorer, UnorderedCells
from dpaudit.levels.level_map import FloatArray, IntArray, by_group
from dpaudit.levels.portfolio import Learned, Tried
from dpaudit.levels.rules import RuleTable, evened, predicted_delta, predicted_growth
from dpaudit.levels.shrinkage import Clusters, sample_shares

# Scorers over several columns, left out where outcomes have few values. A reader cannot check the
# event of a score by hand.
_OF_SEVERAL_COLUMNS: tuple[Scorer, ...] = (
    additive,
    innovations,
    prefixes,
    banded,
    logistic,
    mean_differences,
    parts,
    kinds,
)
# Scorers that are always on, the simple ones first: of equally good candidates the first one wins.
SCORERS: tuple[Scorer, ...] = (
    one_dimensional,
    single_columns,
    *_OF_SEVERAL_COLUMNS,
    represented,
    atoms,
)

# Outcomes with few values are listed one by one, since no score tells more. Few means at most 8
# values, each seen in 50 draws on average; the first 2,000 draws must show at most 8 values, too.
_FEW_VALUES, _DRAWS_PER_VALUE, _FIRST_DRAWS = 8, 50, 2_000
# Scorers of users, whose cost is unknown, run in each refit only from this number of draws on.
_DRAWS_FOR_USERS = 1_000
# Two tables of rare outputs: an output is rare if it has an entry seen in fewer than 10 draws, or
# in fewer than 100.
_RARE_COUNTS = (10, 100)


def scorers_for(*, floating_point: bool, timing: bool, repeated: bool) -> tuple[Scorer, ...]:
    """Return the scorers that are always on, followed by the scorers of the options that are on.

    floating_point: look at low-order bits of numbers.
    timing: look at the duration of calls.
    repeated: outcomes are lists of independent runs on one input.
    """
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

    users: scorers of users, whose cost is unknown.
    thorough: make the rules to freeze for the exact test. False: make rules for the next bets, or
        for the confirmation after a bet has refuted the claim. Then users' scorers need 1,000
        draws, trees are left out where a refutation is near, cut-offs keep their penalty and are
        not cut finer, and there is neither a rare rule nor a rule of another kind.
    with_rare: look for rare outputs, if `thorough`.
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


def _has_few_values(selection: SelectionDraws) -> bool:
    """Return whether outcomes have at least two columns and at most 8 values, with at least 50
    draws per value on average."""
    if len(selection.outcomes.columns) < 2:
        return False
    first = selection.outcomes.take(slice(_FIRST_DRAWS))
    if len(np.unique(first.keys())) > _FEW_VALUES:
        return False
    values = len(np.unique(selection.outcomes.keys()))
    return values <= _FEW_VALUES and selection.size >= values * _DRAWS_PER_VALUE


def learn_again(
    candidates: Sequence[Candidate],
    objective: Objective,
    tables: Sequence[RareTable] = (),
    *,
    to_bet: bool,
) -> Learned:
    """Return the rules and beliefs that follow from candidates after further draws were counted.

    tables: cells of rare outputs and of frequent entries, from which the rare rule is made.
    to_bet: the rules are for the next bets alone. Then the main rule is chosen for the fastest
        growth of wealth, unless the best candidate is predicted to refute the claim or the bound is
        one for δ.
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
    """Return the point (ε, δ) of the claim's privacy profile to test on `coming` draws.

    For a definition with a parameter of its own, such as μ, this is the point with the largest
    predicted bound on the parameter; otherwise the point with the largest ratio of predicted δ to
    claimed δ. Of nearly equal points, return the first.
    """
    tables = [RuleTable.evened(one.held_out) for scorer in scorers for one in scorer(selection)]

    def multiple(point: ProfilePoint) -> float:
        every = [predicted_delta(one, point.epsilon, coming, tuning.PENALTY) for one in tables]
        delta = max(0.0, *map(np.max, every))
        own = claim.own_lower(point.epsilon, delta)
        return float(f"{delta / max(point.delta, 1e-12) if own is None else own[1]:.1e}")

    return max(claim.points(), key=multiple)


# The functions below decide when `auditing/counting.py` ends learning from counts.


def may_freeze_early(candidates: Sequence[Candidate], objective: Objective) -> bool:
    """Return whether some candidate (order of outcomes) is predicted to refute the claim by four
    standard errors. Scores do not count: to find the cut-offs of a score takes more draws. Always
    False if the bound is one for δ."""
    errors = tuning.DEVIATIONS_BEYOND_LUCK
    known = [one for one in candidates if not one.has_score and not objective.for_delta]
    return any(refutes(one, objective, errors) for one in known)


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
    if not isinstance(best, UnorderedCells) or best.counted.predictor is not None:
        return False
    counts, draws = best.counted.counts, int(best.held_out.sum())
    later = replace(objective, coming=objective.coming - draws)
    rng = np.random.default_rng(draws)
    clusters = Clusters.of(counts[:-1], counts.sum(axis=0))
    now = _chosen(best.counted, objective)
    gain = 0.0
    # More than 50 cells get fewer simulations, which take longer, and no single cell decides.
    for _ in range(max(5, 20 * 50 // max(50, len(counts)))):
        share = sample_shares(clusters, rng)
        truth = counts[:-1].sum(axis=1)[:, None] * np.stack([share, 1 - share], axis=1)
        further = np.append(rng.poisson(truth), [[0, 0]], axis=0)
        total = _chosen(replace(best.counted, counts=counts + further), later)
        gain += _certified(total, truth, later) - _certified(now, truth, objective)
    return gain > 0


# The level of each of some cells, and the flat index of a rule over these levels in a `RuleTable`.
_ChosenRule = tuple[IntArray, int]


def _chosen(cells: CellCounts, objective: Objective) -> _ChosenRule:
    """Return the rule over counted cells with the largest predicted bound."""
    counts = cells.counts
    level, expected = cells.in_order()
    table = RuleTable.of_smooth(evened(expected, counts.sum(axis=0)), int(counts.sum()))
    return level, int(np.argmax(objective.lowered(table, tuning.PENALTY_COUNTED)))


def _certified(rule: _ChosenRule, truth: FloatArray, objective: Objective) -> float:
    """Return the bound that a rule is predicted to certify, at least 0, if the true frequencies are
    known.

    truth: (cells, 2), true expected draws by cell and input.
    """
    level, place = rule
    ordered = evened(by_group(truth, level), truth.sum(axis=0))
    bounds = objective.lowered(RuleTable.of_smooth(ordered, int(truth.sum())), 0.0)
    return max(0.0, float(bounds.ravel()[place]))
