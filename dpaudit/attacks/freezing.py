"""From the chosen candidate to what is frozen: up to three rules, and beliefs to bet on.

The main rule is the best rule of the chosen candidate. Next to it there may be the rare rule, which
guesses an input at outputs that this input alone gave, and the best rule of the other kind of
candidate. Each has a share of the error probability of the exact test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dpaudit.attacks.objective import (
    Objective,
    best_predicted,
    promise,
    refutes,
    without_penalty,
)
from dpaudit.attacks.rare_outputs import NAME as RARE
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, OrderedBins, UnorderedCells
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

# Standard errors by which each bettor shrinks log-ratios towards zero.
_SHRINKAGES = (0.0, 0.5, 1.0, 1.5)
# Groups of levels for bettors with coarse beliefs, which win early; fine ones win late.
_COARSE = 8
# Beliefs are stored in results as decimals of this length, and bet on as they are stored.
_DECIMALS = 5
# Columns of a score that are stored in a result.
_COLUMNS_KEPT = 64
# Candidates that count further draws, at least, and refitted candidates among them, at most.
_LEADING, _RELEARNED = 3, 2

# Draws that were learned from: the first few; all that are kept; further ones that were counted.
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
    """Return the frozen rules and beliefs, what else was tried, and the leading candidates, which
    count further draws.

    best: the candidate of the main rule.
    skipped: scorers that were left out, with the reason.
    tables: cells for the rare rule.
    stage: draws that were learned from.
    to_bet: whether the rules are for bets alone.
    """
    # Rules that are bet on for a while need no precise cut-offs.
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
    extra = _ExtraLevels.of(portfolio, sides, level.levels)
    rows = extra.bets(bets)
    if objective.reserve:
        rows = np.concatenate([rows, _bets_on_rare(portfolio, objective, stage)])
    beliefs = Beliefs(_posteriors(sharp.held_out, extra.expected), rows)
    tried = [*(Tried(one.attack, best_predicted(one, objective)) for one in candidates), *skipped]
    return Learned(
        portfolio,
        beliefs,
        tuple(tried),
        _distributions(sharp, level),
        np.concatenate([_expected_draws(sharp), extra.expected]),
        _leading(best, candidates, objective),
        None if rare is None else rare[1],
        any(one.predicted for one in tried),
    )


def rare_rule(tables: Sequence[RareTable], objective: Objective) -> tuple[Rule, RareFilter] | None:
    """Return the rare rule with the most expected evidence against the claim, and the filter of its
    table; None if no table has a rare rule."""
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
    """Return the best rule of the kind of candidate that the main rule is not of. None where no
    such rule may refute the claim, where it guesses often, or where the main rule is predicted to
    refute."""
    if refutes(main, objective):
        return None
    is_of_cells = isinstance(main, UnorderedCells)
    others = [one for one in candidates if isinstance(one, UnorderedCells) is not is_of_cells]
    if not is_of_cells:
        others = [
            UnorderedCells.of(one.attack, one.counted)
            if isinstance(one, UnorderedCells) and one.counted
            else one
            for one in others
        ]
    best = max(others, key=lambda one: promise(one, objective), default=None)
    if best is None:
        return None
    if promise(best, objective)[0] <= 0 or without_penalty(best, objective) <= objective.needed:
        return None
    low, high, _ = objective.best_rule(best)
    table, levels = best.table, len(best.held_out)
    guesses = table.guesses(low * table.correct.shape[1] + high, levels)
    expected = _expected_guesses(best.held_out, guesses)
    if expected.sum() > tuning.LARGEST_SIDE * best.held_out.sum():
        return None
    return Rule("other", best.attack, best.freeze(), guesses, OTHER_SHARE, expected)


def _expected_guesses(draws: FloatArray | IntArray, guesses: IntArray) -> FloatArray:
    """Return the draws of d1 and of d2 where a rule guesses d1, then where it guesses d2: (2, 2).

    draws: (levels, 2), by level and input.
    """
    return np.array([draws[guesses == guess].sum(axis=0) for guess in (1, -1)], dtype=float)


def _expected_evidence(rule: Rule, objective: Objective, draws: int) -> float:
    """Return the expected evidence of a rule against the claim on the draws to come, in nats.

    draws: number of draws that the rule was learned from.
    """
    correct, wrong = (np.array(one) * objective.coming / draws for one in rule.right_and_wrong)
    h = 1.0 if len(set(rule.guesses.tolist()) - {0}) > 1 else 0.5
    point = rule.point or objective.point
    return float(evidence_of(correct, wrong, point, objective.coming, h))


def _cut_finer(candidate: Candidate, objective: Objective, *, cautious: bool) -> Candidate:
    """Return a candidate with finer levels near the cut-offs of its best rule, if it has any."""
    if not isinstance(candidate, OrderedBins) or candidate.intervals is None:
        return candidate
    low, high, bound = objective.best_rule(candidate, cautious=cautious)
    return candidate.near(low, high) if bound > 0 else candidate


def _rules(
    candidate: Candidate, objective: Objective, *, cautious: bool
) -> tuple[IntArray, IntArray]:
    """Return the rule of the exact test, (levels,), and three rules to bet on, (3, levels): the
    same one, the one with the fastest growth at the claim, and one that always guesses. A rule
    without predicted growth abstains, so that it does not lose what was won."""
    table, levels = candidate.table, len(candidate.held_out)
    low, high, bound = objective.best_rule(candidate, cautious=cautious)
    growth = predicted_growth(table, objective.point)
    always = int(np.argmax(never_abstaining(table)))
    fastest = int(np.argmax(growth)) if np.max(growth) > 0 else always
    best = low * table.correct.shape[1] + high if bound > 0 else fastest
    # With δ > 0 the bound is simpler and sharper for a rule that guesses at every outcome. Unseen
    # outcomes count as d1 only if learning saw none, since the table says nothing of them.
    unseen = int(objective.point.delta > 0 and not candidate.held_out[-1].any())
    places = (best, fastest, always)
    rules = np.stack([table.guesses(one, levels, unseen if one == always else 0) for one in places])
    grows = growth.ravel()[list(places)] > 0
    return rules[0], np.where(grows[:, None], rules, 0)


def _bets_on_rare(portfolio: Portfolio, objective: Objective, stage: Stage) -> IntArray:
    """Return the bets of the stake for rare outputs: on the rare rule or, with δ = 0 and no rare
    rule, on the main rule once draws are counted. One row for δ = 0; else two, sharing the stake.
    """
    rows = 1 if objective.point.delta == 0 else 2
    place = next((n for n, one in enumerate(portfolio.rules) if one.kind == "rare"), None)
    if place is not None:
        return np.repeat(portfolio.table[place : place + 1], rows, axis=0)
    is_main = objective.point.delta == 0 and stage == "counted"
    return np.repeat(portfolio.table[:1] * is_main, rows, axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class _ExtraLevels:
    """The levels that a portfolio has in addition to those of the main rule.

    guesses: (levels,), the guess of the first side rule that guesses there.
    of_main: (levels,), the guess of the main rule.
    expected: (levels, 2), expected draws of d1 and of d2.
    """

    guesses: IntArray
    of_main: IntArray
    expected: FloatArray

    @classmethod
    def of(cls, portfolio: Portfolio, sides: Sequence[Rule], main_levels: int) -> _ExtraLevels:
        table = portfolio.table[:, main_levels:]
        guesses = np.zeros(table.shape[1], dtype=np.int64)
        expected = np.zeros((table.shape[1], 2))
        for place, side in enumerate(sides, start=1):
            for row, guess in enumerate((1, -1)):
                own = (guesses == 0) & (table[place] == guess)
                if side.expected is not None and own.any():
                    # How draws divide among these levels is unknown; log-ratios do not need it.
                    expected[own] = side.expected[row] / own.sum()
                guesses[own] = guess
        return cls(guesses, table[0], expected)

    def bets(self, rules: IntArray) -> IntArray:
        """Return rules to bet on at all levels, (rules, levels), from the same rules at the levels
        of the main rule. The first rule is that of the exact test."""
        extra = np.repeat(self.guesses[None, :], len(rules), axis=0)
        extra[0] = self.of_main
        return np.concatenate([rules, extra], axis=1)


def _leading(
    best: Candidate, candidates: Sequence[Candidate], objective: Objective
) -> tuple[Candidate, ...]:
    """Return the candidates that count further draws: the best candidate, those that promise most,
    the first one of cells, and the refitted ones with the largest likelihood, which gain most from
    further draws. Cells that were ordered twice are counted once."""
    order = sorted(candidates, key=lambda one: promise(one, objective), reverse=True)
    order = [
        one for one in (best, *(one for one in order if one is not best)) if one.attack != RARE
    ]
    cells = [one.counted if isinstance(one, UnorderedCells) else None for one in order]
    order = [one for n, one in enumerate(order) if cells[n] is None or cells.index(cells[n]) == n]
    of_cells = [n for n, one in enumerate(order) if isinstance(one, UnorderedCells)]
    relearned = [n for n, one in enumerate(order) if one.is_relearned]
    relearned.sort(key=lambda n: -order[n].smoothed.worth)
    wanted = {*of_cells[:1], *relearned[:_RELEARNED]}
    others = [n for n in range(len(order)) if n not in wanted]
    room = max(1, _LEADING - len(wanted))
    return tuple(order[n] for n in sorted([*wanted, *others[:room]]))


def _expected_draws(candidate: Candidate) -> FloatArray:
    """Return expected draws by level and input, smoothed where levels are smooth; at the last
    level, for unseen outcomes, equally many of either input."""
    if candidate.is_smooth:
        ordered = candidate.smoothed.draws
    else:
        counts = candidate.held_out
        share = shrunk(counts[:-1], counts.sum(axis=0)).share
        ordered = counts[:-1].sum(axis=1)[:, None] * np.stack([share, 1 - share], axis=1)
    unseen = max(0.5, candidate.held_out[-1].sum() / 2)
    return np.append(ordered, [[unseen, unseen]], axis=0)


def _distributions(candidate: Candidate, level: LevelMap) -> ScoreDistributions | None:
    if not candidate.has_score or not isinstance(level, ScoreLevels):
        return None
    counts = tuple((int(d1), int(d2)) for d1, d2 in candidate.held_out)
    edges = tuple(level.digitise.edges.tolist())
    return ScoreDistributions(edges, counts, level.score.columns[:_COLUMNS_KEPT])


def _posteriors(held_out: IntArray, extra: FloatArray) -> FloatArray:
    """Return the beliefs Pr[d1 | level] of every bettor, (bettors, levels); ½ for unseen outcomes.

    extra: (extra levels, 2), expected draws at additional levels.
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
    """Return the counts of the group of each level, of neighbours with about equal mass."""
    masses = ordered.sum(axis=1)
    middle = np.cumsum(masses) - masses / 2
    group = np.minimum((middle * _COARSE / max(1, masses.sum())).astype(int), _COARSE - 1)
    totals = np.zeros((_COARSE, 2), dtype=np.int64)
    np.add.at(totals, group, ordered)
    return np.asarray(totals[group])
