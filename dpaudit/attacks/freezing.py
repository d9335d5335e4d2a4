"""From the chosen candidate to frozen rules, and beliefs to bet on.

A candidate orders outcomes into levels (bins); a rule guesses d1, guesses d2 or abstains at every
level. The main rule is the best rule of the chosen candidate. Two side rules may join it: the rare
rule, which guesses an input at outputs that only this input gave, and the "other" rule, the best
rule of the other kind of candidate (bins or cells). Each rule gets a share of the error probability
of the exact test. `learning.py` calls `freeze`; the result is a `Learned` (docs/method.md §4 and
§5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from dpaudit.attacks.objective import (
    Objective,
    best_predicted,
    promise,
    refutes,
)
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, OrderedBins, RareOutputs, UnorderedCells
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, log_ratio
from dpaudit.levels.portfolio import (
    OTHER_SHARE,
    RARE_SHARE,
    Learned,
    Portfolio,
    Rule,
    ScoreDistributions,
    Tried,
)
from dpaudit.levels.rare_filter import RareFilter
from dpaudit.levels.rules import evidence_of, never_abstaining, predicted_growth
from dpaudit.levels.scores import ScoreLevels
from dpaudit.levels.shrinkage import shrunk
from dpaudit.stats.betting import Beliefs

# Standard errors by which bettors move log-ratios towards zero. Each value gives two bettors.
_SHRINKAGES = (0.0, 0.5, 1.0, 1.5)
# Number of groups of levels for the bettors with coarse beliefs, which win early. Bettors with a
# belief for each level win late.
_COARSE = 8
# Decimals of a belief. Results store beliefs with this precision, so bets use it, too.
_DECIMALS = 5

# The draws that were learned from: the first few ("first"), all that are kept ("kept"), or draws
# that were counted later ("counted").
Stage = Literal["first", "kept", "counted"]


def freeze(
    best: Candidate,
    candidates: Sequence[Candidate],
    objective: Objective,
    skipped: Sequence[Tried] = (),
    tables: Sequence[RareTable] = (),
    *,
    stage: Stage = "counted",
    to_bet: bool = False,
) -> Learned:
    """Return the frozen rules, the beliefs to bet on, and the candidates that count further draws.

    best: the candidate of the main rule.
    candidates: all candidates, among them `best`.
    skipped: scorers that were left out, with the reason.
    tables: counts of rare and frequent entries, from which the rare rule is made.
    stage: the draws that were learned from. After the "first" few there is no finer cut near the
        cut-offs and no "other" rule.
    to_bet: whether the rules are for the next bets alone, and keep the penalty on cut-offs.
    """
    # The penalty on cut-offs stays: a bet can lose, while the exact test has nothing to lose.
    to_bet = to_bet or stage == "first"
    sharp = best if stage == "first" else _cut_finer(best, objective, cautious=to_bet)
    level = sharp.freeze()
    rule, bets = _rules(sharp, objective, cautious=to_bet)
    rare = rare_rule(tables, objective)
    other = None if stage == "first" else _other_rule(best, candidates, objective)
    sides = [one for one in (rare and rare[0], other) if one is not None]
    share = 1 - sum(one.share for one in sides)
    main = Rule("main", best.attack, level, rule, share, _expected_guesses(sharp.held_out, rule))
    portfolio = Portfolio.of([main, *sides])
    guesses, extra = _extra_levels(portfolio, sides)
    # At the additional levels the first bet follows the main rule, the other bets the side rules.
    at_extra = np.repeat(guesses[None, :], len(bets), axis=0)
    at_extra[0] = portfolio.guesses[level.levels :]
    rows = np.concatenate([bets, at_extra], axis=1)
    if objective.reserve:
        rows = np.concatenate([rows, _bets_on_rare(portfolio, objective, stage)])
    beliefs = Beliefs(_posteriors(sharp.held_out, extra), rows)
    tried = [*(Tried(one.attack, best_predicted(one, objective)) for one in candidates), *skipped]
    return Learned(
        portfolio,
        beliefs,
        tuple(tried),
        _distributions(sharp, level),
        np.concatenate([_expected_draws(sharp), extra]),
        _leading(best, candidates, objective),
        None if rare is None else rare[1],
        any(one.predicted for one in tried),
    )


def rare_rule(tables: Sequence[RareTable], objective: Objective) -> tuple[Rule, RareFilter] | None:
    """Return the rare rule (it guesses an input at outputs that only this input gave) with the most
    expected evidence against the claim, and the filter that selects rare outputs for it; None if no
    table has a rare rule.

    tables: counts of rare and of frequent entries.
    """
    points = objective.points or (objective.point,)
    result = [(table.rule(points, objective.coming, RARE_SHARE), table) for table in tables]
    rules = [(rule, table) for rule, table in result if rule is not None]
    if not rules:
        return None
    rule, table = max(
        rules, key=lambda one: _expected_evidence(one[0], objective, int(one[1].arms.sum()))
    )
    point = None if rule.point == objective.point else rule.point
    return replace(rule, point=point), table.rare_filter


def _other_rule(
    main: Candidate, candidates: Sequence[Candidate], objective: Objective
) -> Rule | None:
    """Return the best rule of a candidate of the other kind: of unordered cells if the main rule is
    of ordered bins, and the reverse.

    Return None if the main rule is predicted to refute the claim, if the other rule cannot refute
    it, or if the other rule guesses on more than a tenth of the draws.
    """
    if refutes(main, objective):
        return None
    is_of_bins = isinstance(main, OrderedBins)
    others = [
        UnorderedCells.of(one.attack, one.counted) if isinstance(one, UnorderedCells) else one
        for one in candidates
        if isinstance(one, OrderedBins) is not is_of_bins
    ]
    best = max(others, key=lambda one: promise(one, objective), default=None)
    if best is None:
        return None
    unpenalised = float(np.max(objective.lowered(best.table, 0.0)))
    if promise(best, objective)[0] <= 0 or unpenalised <= objective.needed:
        return None
    low, high, _ = objective.best_rule(best)
    table, levels = best.table, len(best.held_out)
    guesses = table.guesses(low * table.correct.shape[1] + high, levels)
    expected = _expected_guesses(best.held_out, guesses)
    if expected.sum() > tuning.LARGEST_SIDE * best.held_out.sum():
        return None
    return Rule("other", best.attack, best.freeze(), guesses, OTHER_SHARE, expected)


def _expected_guesses(draws: FloatArray | IntArray, guesses: IntArray) -> FloatArray:
    """Return draws by guess of a rule, d1 first, and by input: (2, 2).

    draws: (levels, 2), by level and input.
    guesses: (levels,), 1 for d1, -1 for d2, 0 for none.
    """
    return np.array([draws[guesses == guess].sum(axis=0) for guess in (1, -1)], dtype=float)


def _expected_evidence(rule: Rule, objective: Objective, draws: int) -> float:
    """Return the expected evidence of a rule against the claim on the draws to come, in nats.

    draws: number of draws that the expected guesses of the rule are out of.
    """
    correct, wrong = (np.array(one) * objective.coming / draws for one in rule.right_and_wrong)
    h = 1.0 if len(set(rule.guesses.tolist()) - {0}) > 1 else 0.5
    point = rule.point or objective.point
    return float(evidence_of(correct, wrong, point, objective.coming, h))


def _cut_finer(candidate: Candidate, objective: Objective, *, cautious: bool) -> Candidate:
    """Return the candidate with finer levels near the cut-offs of its best rule; the candidate
    itself if it has no finer intervals, or no rule with a positive predicted bound."""
    if not isinstance(candidate, OrderedBins) or candidate.intervals is None:
        return candidate
    low, high, bound = objective.best_rule(candidate, cautious=cautious)
    return candidate.near(low, high) if bound > 0 else candidate


def _rules(
    candidate: Candidate, objective: Objective, *, cautious: bool
) -> tuple[IntArray, IntArray]:
    """Return the rule of the exact test, (levels,), and three rules to bet on, (3, levels).

    The rules to bet on are the rule of the exact test, the rule with the fastest growth of wealth
    at the claim, and the rule that always guesses. A rule without predicted growth is replaced by
    one that always abstains, so that it does not lose what was won.
    """
    table, levels = candidate.table, len(candidate.held_out)
    low, high, bound = objective.best_rule(candidate, cautious=cautious)
    growth = predicted_growth(table, objective.point)
    always = int(np.argmax(never_abstaining(table)))
    fastest = int(np.argmax(growth)) if np.max(growth) > 0 else always
    best = low * table.correct.shape[1] + high if bound > 0 else fastest
    # With δ > 0 the exact bound is simpler and sharper for a rule that guesses at every outcome. So
    # the rule that always guesses also guesses d1 at unseen outcomes, if learning saw none.
    unseen = int(objective.point.delta > 0 and not candidate.held_out[-1].any())
    places = (best, fastest, always)
    rules = np.stack([table.guesses(one, levels, unseen if one == always else 0) for one in places])
    grows = growth.ravel()[list(places)] > 0
    return rules[0], np.where(grows[:, None], rules, 0)


def _bets_on_rare(portfolio: Portfolio, objective: Objective, stage: Stage) -> IntArray:
    """Return the rules that the stake for rare outputs is bet on: one row if δ = 0, else two equal
    rows that share the stake.

    The rule is the rare rule of the portfolio. Without a rare rule it is the main rule, if δ = 0
    and draws are already counted; otherwise a rule that always abstains.
    """
    rows = 1 if objective.point.delta == 0 else 2
    place = next((n for n, one in enumerate(portfolio.rules) if one.kind == "rare"), None)
    if place is not None:
        return np.repeat(portfolio.table[place : place + 1], rows, axis=0)
    is_main = objective.point.delta == 0 and stage == "counted"
    return np.repeat(portfolio.table[:1] * is_main, rows, axis=0)


def _extra_levels(portfolio: Portfolio, sides: Sequence[Rule]) -> tuple[IntArray, FloatArray]:
    """Return two arrays about the levels that a portfolio has in addition to the levels of the main
    rule: the guess of the first side rule that guesses there, (levels,), and expected draws by
    level and input, (levels, 2)."""
    table = portfolio.table[:, portfolio.main.level.levels :]
    guesses = np.zeros(table.shape[1], dtype=np.int64)
    expected = np.zeros((table.shape[1], 2))
    for place, side in enumerate(sides, start=1):
        for row, guess in enumerate((1, -1)):
            own = (guesses == 0) & (table[place] == guess)
            if side.expected is not None and own.any():
                # How draws divide among these levels is unknown; log-ratios do not need it.
                expected[own] = side.expected[row] / own.sum()
            guesses[own] = guess
    return guesses, expected


def _leading(
    best: Candidate, candidates: Sequence[Candidate], objective: Objective
) -> tuple[Candidate, ...]:
    """Return the candidates that count further draws, usually three.

    These are the first candidate of unordered cells, up to two candidates whose score is refitted
    from counts (the largest likelihood first, since they gain most), and then the best candidate
    and others by promise: until there are three, and one at least. So there may be four, or fewer
    than three. Rare outputs are left out, and cells that were ordered twice are counted once.
    """
    order = sorted(candidates, key=lambda one: promise(one, objective), reverse=True)
    order = [best, *(one for one in order if one is not best)]
    order = [one for one in order if not isinstance(one, RareOutputs)]
    cells = [one.counted if isinstance(one, UnorderedCells) else None for one in order]
    order = [one for n, one in enumerate(order) if cells[n] is None or cells.index(cells[n]) == n]
    of_cells = [n for n, one in enumerate(order) if isinstance(one, UnorderedCells)]
    relearned = [n for n, one in enumerate(order) if one.is_relearned]
    relearned.sort(key=lambda n: -order[n].smoothed.worth)
    wanted = {*of_cells[:1], *relearned[:2]}
    others = [n for n in range(len(order)) if n not in wanted]
    room = max(1, 3 - len(wanted))
    return tuple(order[n] for n in sorted([*wanted, *others[:room]]))


def _expected_draws(candidate: Candidate) -> FloatArray:
    """Return expected draws by level and input, (levels, 2). Counts are smoothed over levels where
    levels are smooth, else shrunk towards common log-ratios. The last level, for unseen outcomes,
    gets equal numbers for both inputs."""
    if candidate.is_smooth:
        ordered = candidate.smoothed.draws
    else:
        counts = candidate.held_out
        share = shrunk(counts[:-1], counts.sum(axis=0))
        ordered = counts[:-1].sum(axis=1)[:, None] * np.stack([share, 1 - share], axis=1)
    unseen = max(0.5, candidate.held_out[-1].sum() / 2)
    return np.append(ordered, [[unseen, unseen]], axis=0)


def _distributions(candidate: Candidate, level: LevelMap) -> ScoreDistributions | None:
    if not candidate.has_score or not isinstance(level, ScoreLevels):
        return None
    counts = tuple((int(d1), int(d2)) for d1, d2 in candidate.held_out)
    edges = tuple(level.digitise.edges.tolist())
    return ScoreDistributions(edges, counts, level.score.columns[:64])


def _posteriors(held_out: IntArray, extra: FloatArray) -> FloatArray:
    """Return the beliefs of every bettor, Pr[d1 | level]: (bettors, levels). The belief is ½ for
    unseen outcomes.

    held_out: (main levels, 2), draws by level of the main rule and input.
    extra: (extra levels, 2), expected draws at the additional levels of the portfolio.
    """
    ordered, main_levels = held_out[:-1], len(held_out) - 1
    arms = held_out.sum(axis=0)
    rows = []
    for own in (_coarse(ordered), ordered):
        counts = np.concatenate([own, extra])
        ratio = log_ratio(counts, arms)
        error = np.sqrt((1 / (counts + 0.5)).sum(axis=1))
        for shrinkage in _SHRINKAGES:
            believed = np.sign(ratio) * np.maximum(np.abs(ratio) - shrinkage * error, 0.0)
            rows.append(np.insert(1 / (1 + np.exp(-believed)), main_levels, 0.5))
    least = 10.0**-_DECIMALS
    return np.asarray(np.clip(np.round(np.stack(rows), _DECIMALS), least, 1 - least))


def _coarse(ordered: IntArray) -> IntArray:
    """Return for each level the counts of its group, (levels, 2). The 8 groups are runs of
    neighbouring levels with about equal numbers of draws."""
    masses = ordered.sum(axis=1)
    middle = np.cumsum(masses) - masses / 2
    group = np.minimum((middle * _COARSE / max(1, masses.sum())).astype(int), _COARSE - 1)
    totals = np.zeros((_COARSE, 2), dtype=np.int64)
    np.add.at(totals, group, ordered)
    return np.asarray(totals[group])
