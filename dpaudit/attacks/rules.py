"""Choose rules, and beliefs to bet on, from the winning candidate.

Up to three rules are frozen for the exact test, each with a share of its error probability:

* The main rule is the rule of the chosen candidate with the largest predicted bound.
* The "other" rule is the best rule of a candidate of another kind: of single cells if the main rule
  is of bins, and the reverse.
* The rare rule is chosen by the expected evidence against the claim: it may refute the claim
  although its bound is small.

Rules to bet on are chosen by the growth of wealth (docs/method.md §4 and §5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from dpaudit.attacks.objective import Objective, best_predicted, rank_key, refutes
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, CellOrder
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, equal_mass_runs, log_ratio
from dpaudit.levels.limits import KEPT_BEST, VALUE_GROUPS
from dpaudit.levels.portfolio import (
    OTHER_SHARE,
    Learned,
    Portfolio,
    Rule,
    ScoreDistributions,
    Tried,
)
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.levels.rule_tables import (
    evidence_of,
    guesses_of,
    largest,
    never_abstaining,
    predicted_growth,
)
from dpaudit.levels.scores import ScoreLevels
from dpaudit.levels.shrinkage import shrunk
from dpaudit.stats.betting import Beliefs, h_of

# Half of the bettors have a belief for each level, the others for each group of neighbouring
# levels. Number of bettors in each half: they shrink log-ratios towards zero by 0, ½, 1 and 1½
# standard errors.
_SHRINKAGES = 4
# Bettors bet by beliefs: estimated probabilities that a draw at a level is of d1. Beliefs are
# rounded to this number of decimals before use. Results store the rounded numbers, so that bets can
# be recomputed from them.
_DECIMALS = 5


def choose_rules(
    winner: Candidate,
    candidates: Sequence[Candidate],
    objective: Objective,
    rare_tables: Sequence[RareTable] = (),
    skipped: Sequence[Tried] = (),
) -> Learned:
    """Return the result of a round of learning: the rules, the beliefs to bet on, and the
    candidates for which further draws are counted.

    winner: the candidate of the main rule.
    candidates: all candidates, among them `winner`.
    rare_tables: counts of rare and of frequent entries, for the rare rule; empty: no rare rule.
    skipped: scorers that were left out, with the reason.
    """
    rare = rare_rule(rare_tables, objective)
    alternative = _other_rule(winner, candidates, objective)
    sides = [side for side in (rare and rare[0], alternative) if side is not None]
    guesses, bet_rules = _rules(winner, objective)
    main = _rule_of("main", winner, guesses, 1 - sum(side.share for side in sides))
    portfolio = Portfolio.of([main, *sides])
    side_guesses, extra = _extra_levels(portfolio, sides)
    # At levels that only the side rules have, the first bet makes the guess of the main rule, and
    # the other bets make the guess of the side rules.
    at_extra = np.repeat(side_guesses[None, :], len(bet_rules), axis=0)
    at_extra[0] = portfolio.guesses[main.level.levels :]
    rows = np.concatenate([bet_rules, at_extra], axis=1)
    rows = np.concatenate([rows, _bets_on_rare(portfolio, objective)])
    tried = [
        *(
            Tried(candidate.attack, best_predicted(candidate, objective))
            for candidate in candidates
        ),
        *skipped,
    ]
    return Learned(
        portfolio,
        Beliefs(_posteriors(winner.counts, extra), rows),
        tried=tuple(tried),
        scores=_distributions(winner, main.level),
        expected_draws=np.concatenate([expected_draws_of(winner), extra]),
        leading=_leading(winner, candidates, objective),
        rare_filter=None if rare is None else rare[1],
        predicts_bound=any(attack.predicted for attack in tried),
        counts=winner.counts,
    )


def rare_rule(
    rare_tables: Sequence[RareTable], objective: Objective
) -> tuple[Rule, RareFilter] | None:
    """Return the rare rule with the most expected evidence against the claim, and the filter of its
    outputs; None if no table has a rare rule.

    rare_tables: tables of rare entries; the last one may count frequent entries.
    """
    points = objective.points or (objective.point,)
    proposals = [(table.rule(points, objective.future_draws), table) for table in rare_tables]
    rules = [(rule, table) for rule, table in proposals if rule is not None]
    if not rules:
        return None
    rule, table = max(
        rules, key=lambda pair: _expected_evidence(pair[0], objective, int(pair[1].arms.sum()))
    )
    point = None if rule.point == objective.point else rule.point
    return replace(rule, point=point), table.rare_filter


def _other_rule(
    winner: Candidate, candidates: Sequence[Candidate], objective: Objective
) -> Rule | None:
    """Return the best rule of a candidate of another kind than the winner; None if useless."""
    if refutes(winner, objective):
        return None
    # While learning, cells are ordered once for each fold, by the draws of the other folds. Here
    # they get a single order, by the shrunk counts of all draws, as after further draws.
    rivals = [
        candidate.refit.candidate(candidate.attack)
        if isinstance(candidate.refit, CellOrder)
        else candidate
        for candidate in candidates
        if candidate.has_single_cells is not winner.has_single_cells
    ]
    rival = max(rivals, key=lambda candidate: rank_key(candidate, objective), default=None)
    if rival is None:
        return None
    unpenalised = float(np.max(objective.predicted_bounds(rival.table, 0.0)))
    if rank_key(rival, objective)[0] <= 0 or unpenalised <= objective.needed:
        return None
    low, high, _ = objective.best_rule(rival)
    rule = _rule_of("other", rival, guesses_of((low, high), len(rival.counts)), OTHER_SHARE)
    is_frequent = sum(rule.right_and_wrong) > tuning.MAX_OTHER_GUESSES * rival.counts.sum()
    return None if is_frequent else rule


def _rule_of(
    role: Literal["main", "other"], candidate: Candidate, guesses: IntArray, share: float
) -> Rule:
    expected = [candidate.counts[guesses == guess].sum(axis=0) for guess in (1, -1)]
    level, attack = candidate.level_map(), candidate.attack
    return Rule(role, attack, level, guesses, share, np.array(expected, dtype=float))


def _expected_evidence(rule: Rule, objective: Objective, draws: int) -> float:
    """Return the expected evidence of a rule on the draws to come, in nats."""
    correct, wrong = (
        np.array(guesses) * objective.future_draws / draws for guesses in rule.right_and_wrong
    )
    point = rule.point or objective.point
    return float(evidence_of(correct, wrong, point, objective.future_draws, h_of(rule.guesses)))


def _rules(candidate: Candidate, objective: Objective) -> tuple[IntArray, IntArray]:
    """Return the rule of the exact test, (levels,), and three rules to bet on, (3, levels)."""
    # The exact test has the rule with the largest predicted bound if this is positive or the claim
    # bounds a distance, else the rule of fastest growth. The rules to bet on are this rule, the
    # rule of fastest growth, and the rule that always guesses; a rule whose wealth is not predicted
    # to grow abstains, so that no wealth is lost.
    levels = len(candidate.counts)
    low, high, bound = objective.best_rule(candidate)
    growth = predicted_growth(candidate.table, objective.point)
    always = largest(never_abstaining(candidate.table))
    fastest = largest(growth) if np.max(growth) > 0 else always
    is_main = bound > 0 or objective.for_distance
    rules = ((low, high) if is_main else fastest, fastest, always)
    # At unseen outcomes, the last level, rules make no guess, with one exception: if δ > 0 and no
    # learning draw is at this level, the rule that always guesses says d1 there. The exact bound is
    # simpler and sharper for a rule that never abstains.
    unseen = int(objective.point.delta > 0 and not candidate.counts[-1].any())
    guesses = [guesses_of(rule, levels, unseen if rule == always else 0) for rule in rules]
    bet_rules = [guess * int(growth[rule] > 0) for rule, guess in zip(rules, guesses, strict=True)]
    return guesses[0], np.stack(bet_rules)


def _bets_on_rare(portfolio: Portfolio, objective: Objective) -> IntArray:
    """Return the guesses of bets on rare outputs: equal rows, (`objective.rare_bets`, levels)."""
    rules = zip(portfolio.rules, portfolio.all_guesses, strict=True)
    main = portfolio.guesses * int(objective.point.delta == 0 and objective.fixed_before)
    rare = next((guesses for rule, guesses in rules if rule.role == "rare"), main)
    return np.repeat(rare[None], objective.rare_bets, axis=0)


def _extra_levels(portfolio: Portfolio, sides: Sequence[Rule]) -> tuple[IntArray, FloatArray]:
    """Return the guesses at the extra levels of side rules, and the expected draws there."""
    table = portfolio.all_guesses[:, portfolio.main.level.levels :]
    guesses = np.zeros(table.shape[1], dtype=np.int64)
    expected = np.zeros((table.shape[1], 2))
    for number, side in enumerate(sides, start=1):
        for row, guess in enumerate((1, -1)):
            has_guess = (guesses == 0) & (table[number] == guess)
            if side.expected_guesses is not None and has_guess.any():
                # A side rule predicts only the total draws by input for each guess. They are
                # divided equally among the levels with this guess, so that these levels have the
                # log-ratio of the total.
                expected[has_guess] = side.expected_guesses[row] / has_guess.sum()
            guesses[has_guess] = guess
    return guesses, expected


def _leading(
    winner: Candidate, candidates: Sequence[Candidate], objective: Objective
) -> tuple[Candidate, ...]:
    """Return the candidates for which further draws are counted: at most four, the best first."""
    # Of the candidates that order single cells, the best one; of the refitted scores, the two with
    # the largest likelihood; then the winner and the best others. Candidates of rare outputs are
    # left out, since a `RareTable` counts these.
    ranked = sorted(candidates, key=lambda candidate: rank_key(candidate, objective), reverse=True)
    ranked = [winner, *(candidate for candidate in ranked if candidate is not winner)]
    order = [candidate for candidate in ranked if not candidate.is_rare]
    of_cells = [n for n, candidate in enumerate(order) if candidate.has_single_cells]
    refitted = [
        n
        for n, candidate in enumerate(order)
        if candidate.has_score and candidate.refit is not None
    ]
    refitted.sort(key=lambda n: -order[n].smoothed.log_likelihood)
    wanted = {*of_cells[:1], *refitted[:KEPT_BEST]}
    further = [n for n in range(len(order)) if n not in wanted]
    # One place for the order of single cells, and `KEPT_BEST` places for refitted scores. If all
    # are taken, one place is added.
    room = max(1, 1 + KEPT_BEST - len(wanted))
    return tuple(order[n] for n in sorted([*wanted, *further[:room]]))


def expected_draws_of(candidate: Candidate) -> FloatArray:
    """Return the expected draws of a candidate, (levels, 2), estimated from its counts.

    If neighbouring levels have similar log-ratios, the counts are smoothed over levels. Otherwise
    the log-ratio of each level is shrunk towards the log-ratios of all levels. At the last level,
    both inputs get equal numbers.
    """
    if candidate.is_smooth:
        ordered = candidate.smoothed.draws
    else:
        counts = candidate.counts
        share = shrunk(counts[:-1], counts.sum(axis=0))
        ordered = counts[:-1].sum(axis=1)[:, None] * np.stack([share, 1 - share], axis=1)
    unseen = max(0.5, candidate.counts[-1].sum() / 2)
    return np.append(ordered, [[unseen, unseen]], axis=0)


def _distributions(candidate: Candidate, level: LevelMap) -> ScoreDistributions | None:
    if not candidate.has_score or not isinstance(level, ScoreLevels):
        return None
    counts = tuple((int(d1), int(d2)) for d1, d2 in candidate.counts)
    edges = tuple(level.digitise.edges.tolist())
    # A result stores at most 64 columns, so that its size stays small for wide outputs.
    return ScoreDistributions(edges, counts, level.score.columns[:64])


def _posteriors(by_level: IntArray, extra: FloatArray) -> FloatArray:
    """Return the beliefs Pr[d1 | level] of eight bettors: (8, levels)."""
    # The columns are the levels of the main rule, one level for outcomes that no draw had (belief
    # ½), and the extra levels of side rules.
    ordered, main_levels = by_level[:-1], len(by_level) - 1
    arms = by_level.sum(axis=0)
    rows = []
    # The first four bettors compute a common belief, Pr[d1 | level], for each group of neighbouring
    # levels, from the draws of the whole group: such beliefs are precise after few draws. The other
    # four compute the belief of each level from its own draws: such beliefs are more precise after
    # many draws.
    for draws in (_coarse(ordered), ordered):
        counts = np.concatenate([draws, extra])
        ratio = log_ratio(counts, arms)
        error = np.sqrt((1 / (counts + 0.5)).sum(axis=1))
        for step in range(_SHRINKAGES):
            believed = np.sign(ratio) * np.maximum(np.abs(ratio) - step / 2 * error, 0.0)
            rows.append(np.insert(1 / (1 + np.exp(-believed)), main_levels, 0.5))
    return as_beliefs(rows)


def as_beliefs(rows: Sequence[FloatArray]) -> FloatArray:
    """Return the beliefs of all bettors, (bettors, levels), rounded to 5 decimals, as results store
    them. No belief is 0 or 1 after rounding."""
    least = 10.0**-_DECIMALS
    return np.asarray(np.clip(np.round(np.stack(rows), _DECIMALS), least, 1 - least))


def _coarse(ordered: IntArray) -> IntArray:
    """Return for each level the total draws of its run of neighbours by input: (levels, 2)."""
    group = equal_mass_runs(ordered.sum(axis=1), VALUE_GROUPS)
    totals = np.zeros((VALUE_GROUPS, 2), dtype=np.int64)
    np.add.at(totals, group, ordered)
    return np.asarray(totals[group])
