"""The rules to freeze next to the main rule: the rare rule, and the best rule of another kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dpaudit.attacks.objective import Objective, best_predicted, promise, surely_refutes, unlowered
from dpaudit.attacks.rare_outputs import NAME as RARE
from dpaudit.attacks.rare_outputs import RareTable
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, of_cells
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


def rare_rule(tables: Sequence[RareTable], aim: Objective) -> tuple[Rule, RareFilter] | None:
    """Return the rare rule with the most evidence against the claim that is expected of the draws
    to come, and the filter of its table; None where no table has such a rule."""
    points = aim.points or (aim.point,)
    found = [(table.rule(points, aim.coming, RARE_SHARE), table) for table in tables]
    rules = [(rule, table) for rule, table in found if rule is not None]
    if not rules:
        return None
    rule, table = max(rules, key=lambda one: evidence(one[0], aim, int(one[1].arms.sum())))
    return replace(rule, point=None if rule.point == aim.point else rule.point), table.rare_filter


def other_rule(main: Candidate, candidates: Sequence[Candidate], aim: Objective) -> Rule | None:
    """Return the best rule of another kind than the main rule: of single cells where the main rule
    cuts a number or a score, and the reverse. None where no such rule may refute the claim, where
    the best one guesses often, or where the main rule is sure to refute."""
    if surely_refutes(main, aim):
        return None
    is_of_cells = _is_of_cells(main)
    others = [one for one in candidates if _is_of_cells(one) is not is_of_cells]
    if not is_of_cells:
        others = [of_cells(one.attack, one.fine) if one.fine else one for one in others]
    best = max(others, key=lambda one: promise(one, aim), default=None)
    if best is None:
        return None
    needed = aim.point.delta if aim.for_delta else aim.point.epsilon
    if promise(best, aim)[0] <= 0 or unlowered(best, aim) <= needed:
        return None
    low, high, _ = aim.best_rule(best)
    table, levels = best.table, len(best.held_out)
    guesses = table.guesses(low * table.correct.shape[1] + high, levels)
    expected = expected_of(best.held_out, guesses)
    if expected.sum() > tuning.LARGEST_SIDE * best.held_out.sum():
        return None
    return Rule("other", best.attack, best.freeze(), guesses, OTHER_SHARE, expected)


def _is_of_cells(candidate: Candidate) -> bool:
    return candidate.fine is not None or candidate.attack == RARE


def expected_of(draws: FloatArray | IntArray, guesses: IntArray) -> FloatArray:
    """Return the draws of d1 and of d2 where a rule guesses d1, then where it guesses d2: (2, 2).

    draws: (levels, 2), by level and input.
    """
    return np.array([draws[guesses == guess].sum(axis=0) for guess in (1, -1)], dtype=float)


def evidence(rule: Rule, aim: Objective, draws: int) -> float:
    """Return the evidence against the claim that a rule is expected to give on the draws to come,
    in nats.

    draws: the draws that it was learned from.
    """
    correct, wrong = (np.array(one) * aim.coming / draws for one in rule.right_and_wrong)
    h = 1.0 if len(set(rule.guesses.tolist()) - {0}) > 1 else 0.5
    return float(evidence_of(correct, wrong, rule.point or aim.point, aim.coming, h))


# Standard errors by which the bettors move log-ratios towards zero.
_SHRINKS = (0.0, 0.5, 1.0, 1.5)
# Groups of levels that the coarse bettors see: they win early, those with all levels late.
_COARSE = 8
# Beliefs are kept in results as short decimals, and bet on as they are kept.
_DECIMALS = 5
_COLUMNS_KEPT = 64
# Orders that further draws are counted by, at least; of them those that are learned anew, at most.
_LEADING, _ANEW = 3, 2

# Learned from: few draws; all that are kept; others that were counted.
Stage = Literal["first", "kept", "counted"]


def frozen(
    best: Candidate,
    candidates: list[Candidate],
    aim: Objective,
    skipped: Sequence[Tried] = (),
    tables: Sequence[RareTable] = (),
    *,
    stage: Stage = "counted",
    to_bet: bool = False,
) -> Learned:
    """Return the portfolio and the beliefs that follow from the order of the main rule, what else
    was tried, and the orders that further draws are counted by.

    skipped: attacks that were left out, with the reason.  tables: rare outputs, for the rare rule.
    stage: what was learned from.  to_bet: whether the rules are for bets alone.
    """
    # Rules that are bet on for a while need no sharp cut-offs.
    to_bet = to_bet or stage == "first"
    sharp = best if stage == "first" else sharpened(best, aim, boldly=not to_bet)
    level = sharp.freeze()
    rule, bets = _rules(sharp, aim, boldly=not to_bet)
    found = rare_rule(tables, aim)
    other = None if stage == "first" else other_rule(best, candidates, aim)
    sides = [one for one in (found and found[0], other) if one is not None]
    share = 1 - sum(one.share for one in sides)
    main = Rule("main", best.attack, level, rule, share, expected_of(sharp.held_out, rule))
    portfolio = Portfolio.of([main, *sides])
    extra = _Extra.of(portfolio, sides, level.levels)
    rows = extra.bets(bets)
    if aim.reserve:
        rows = np.concatenate([rows, _for_rare(portfolio, aim, stage)])
    beliefs = Beliefs(_posteriors(sharp.held_out, extra.expected), rows)
    tried = [*(Tried(one.attack, best_predicted(one, aim)) for one in candidates), *skipped]
    order = sorted(candidates, key=lambda one: promise(one, aim), reverse=True)
    others = [one for one in order if one is not best and one.attack != RARE]
    leading = _leading([*(one for one in [best] if one.attack != RARE), *others])
    return Learned(
        portfolio,
        beliefs,
        tuple(tried),
        _distributions(sharp, level),
        np.concatenate([_expected(sharp), extra.expected]),
        leading,
        None if found is None else found[1],
        any(one.predicted for one in tried),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Extra:
    """The additional levels of a portfolio. guesses: the guess of the first side rule that guesses
    there, (levels,).  of_main: the guess of the main rule.  expected: the draws of d1 and of d2 to
    expect, (levels, 2)."""

    guesses: IntArray
    of_main: IntArray
    expected: FloatArray

    @classmethod
    def of(cls, portfolio: Portfolio, sides: Sequence[Rule], usual: int) -> _Extra:
        table = portfolio.table[:, usual:]
        guesses = np.zeros(table.shape[1], dtype=np.int64)
        expected = np.zeros((table.shape[1], 2))
        for place, side in enumerate(sides, start=1):
            for row, guess in enumerate((1, -1)):
                own = (guesses == 0) & (table[place] == guess)
                if side.expected is not None and own.any():
                    # Which of the levels they come up at is not known, nor needed for log-ratios.
                    expected[own] = side.expected[row] / own.sum()
                guesses[own] = guess
        return cls(guesses, table[0], expected)

    def bets(self, rules: IntArray) -> IntArray:
        """Return rules to bet on at all levels: (rules, levels), the first one that of the exact
        test. rules: the same at the levels of the main rule."""
        more = np.repeat(self.guesses[None, :], len(rules), axis=0)
        more[0] = self.of_main
        return np.concatenate([rules, more], axis=1)


def sharpened(candidate: Candidate, aim: Objective, *, boldly: bool = True) -> Candidate:
    """Return an order with finer levels near the cut-offs of its best rule, if it can be cut
    finer."""
    if candidate.intervals is None:
        return candidate
    low, high, bound = aim.best_rule(candidate, boldly=boldly)
    return candidate.cut_near(low, high) if bound > 0 else candidate


def _leading(order: list[Candidate]) -> tuple[Candidate, ...]:
    """Return the first orders, among them the first one of cells, and of those that are learned
    anew the ones that explain the draws best: of these further draws make more than of orders that
    stay as they are. Cells that were put in order twice are counted once."""
    fine = [one.fine for one in order]
    order = [one for n, one in enumerate(order) if one.fine is None or fine.index(one.fine) == n]
    of_cells = [place for place, one in enumerate(order) if one.fine is not None]
    anew = [place for place, one in enumerate(order) if one.again is not None]
    anew.sort(key=lambda place: -order[place].smoothed.worth)
    wanted = {*of_cells[:1], *anew[:_ANEW]}
    others = [place for place in range(len(order)) if place not in wanted]
    room = max(1, _LEADING - len(wanted))
    return tuple(order[place] for place in sorted([*wanted, *others[:room]]))


def _expected(candidate: Candidate) -> FloatArray:
    """Return the draws to expect at every level, by a smooth fit where there is one; at the last
    one, of what was never seen, as many of either input."""
    if candidate.is_smooth:
        ordered = candidate.smoothed.draws
    else:
        counts = candidate.held_out
        share = shrunk(counts[:-1], counts.sum(axis=0)).share
        ordered = counts[:-1].sum(axis=1)[:, None] * np.stack([share, 1 - share], axis=1)
    unseen = max(0.5, candidate.held_out[-1].sum() / 2)
    return np.append(ordered, [[unseen, unseen]], axis=0)


def _distributions(candidate: Candidate, level: LevelMap) -> ScoreDistributions | None:
    if candidate.scored is None or not isinstance(level, ScoreLevels):
        return None
    counts = tuple((int(d1), int(d2)) for d1, d2 in candidate.held_out)
    edges = tuple(level.digitise.edges.tolist())
    return ScoreDistributions(edges, counts, level.score.columns[:_COLUMNS_KEPT])


def _rules(candidate: Candidate, aim: Objective, *, boldly: bool) -> tuple[IntArray, IntArray]:
    """Return the rule of the exact bound, (levels,), and three to bet on, (3, levels): that one,
    the one for growth at the claim, and one that always guesses. Where a rule promises no growth,
    the bet is to abstain, lest it lose what has been won."""
    table, levels = candidate.table, len(candidate.held_out)
    low, high, bound = aim.best_rule(candidate, boldly=boldly)
    growth = predicted_growth(table, aim.point)
    always = int(np.argmax(never_abstaining(table)))
    fastest = int(np.argmax(growth)) if np.max(growth) > 0 else always
    best = low * table.correct.shape[1] + high if bound > 0 else fastest
    # With δ > 0 the bound is simple and sharper for a rule that guesses whatever comes: where no
    # outcome is of a kind without a level, which the table says nothing of.
    guesses_all = int(aim.point.delta > 0 and not candidate.held_out[-1].any())
    places = (best, fastest, always)
    rules = np.stack(
        [table.guesses(one, levels, guesses_all if one == always else 0) for one in places]
    )
    grows = growth.ravel()[list(places)] > 0
    return rules[0], np.where(grows[:, None], rules, 0)


def _for_rare(portfolio: Portfolio, aim: Objective, stage: Stage) -> IntArray:
    """Return what the stake for rare outputs is bet on: the rare rule, one row for δ = 0 and two
    otherwise, which share that stake.

    With δ = 0 and no rare rule it is the main rule, once draws are counted.
    """
    rows = 1 if aim.point.delta == 0 else 2
    place = next((n for n, one in enumerate(portfolio.rules) if one.kind == "rare"), None)
    if place is not None:
        return np.repeat(portfolio.table[place : place + 1], rows, axis=0)
    is_main = aim.point.delta == 0 and stage == "counted"
    return np.repeat(portfolio.table[:1] * is_main, rows, axis=0)


def _posteriors(held_out: IntArray, extra: FloatArray) -> FloatArray:
    """Return what the bettors believe, Pr[d1 | level]: (bettors, levels); ½ for unseen.

    extra: draws to expect at additional levels, (extra levels, 2).
    """
    ordered, usual = held_out[:-1], len(held_out) - 1
    arms = held_out.sum(axis=0)
    rows = []
    for own in (_grouped(ordered), ordered):
        counts = np.concatenate([own, extra])
        ratio = log_ratio(counts, arms)
        error = np.sqrt((1 / (counts + 0.5)).sum(axis=1))
        for shrink in _SHRINKS:
            believed = np.sign(ratio) * np.maximum(np.abs(ratio) - shrink * error, 0.0)
            rows.append(np.insert(1 / (1 + np.exp(-believed)), usual, 0.5))
    least = 10.0**-_DECIMALS
    return np.asarray(np.clip(np.round(np.stack(rows), _DECIMALS), least, 1 - least))


def _grouped(ordered: IntArray) -> IntArray:
    """Return the counts of the group that a level belongs to, of neighbours with equal mass."""
    masses = ordered.sum(axis=1)
    middle = np.cumsum(masses) - masses / 2
    group = np.minimum((middle * _COARSE / max(1, masses.sum())).astype(int), _COARSE - 1)
    totals = np.zeros((_COARSE, 2), dtype=np.int64)
    np.add.at(totals, group, ordered)
    return np.asarray(totals[group])
