"""From the chosen order to what is frozen: a rule, what bettors believe, further orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from dpaudit.attacks.choosing.aim import Aim, best_predicted, promise
from dpaudit.attacks.choosing.surely import sure_guesses
from dpaudit.attacks.rare import NAME as RARE
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.distinguisher import Distinguisher, Learned, ScoreDistributions, Tried
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, log_ratio
from dpaudit.levels.rules import never_abstaining, predicted_growth
from dpaudit.levels.scores import ScoreLevels
from dpaudit.levels.shrinkage import shrunk
from dpaudit.stats.betting import Beliefs

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
    aim: Aim,
    skipped: Sequence[Tried] = (),
    *,
    stage: Stage = "counted",
) -> Learned:
    """Return the rule and beliefs of an order, what else was tried, and the orders that further
    draws are counted by.

    skipped: attacks that were left out, with the reason.  stage: what was learned from.
    """
    # Rules that are bet on for a while need no sharp cut-offs.
    sharp = best if stage == "first" else sharpened(best, aim)
    level = sharp.freeze()
    rule, bets = _rules(sharp, aim)
    if aim.reserve:
        rare = _for_rare(sharp, bets[0], aim, stage)
        bets = np.concatenate([bets, rare if aim.point.delta > 0 else rare[:1]])
    beliefs = Beliefs(_posteriors(sharp.held_out), bets)
    usual = replace(aim, caution=1.0)
    tried = [*(Tried(one.attack, best_predicted(one, usual)) for one in candidates), *skipped]
    distinguisher = Distinguisher(best.attack, level, rule)
    order = sorted(candidates, key=lambda one: promise(one, aim), reverse=True)
    others = [one for one in order if one is not best and one.attack != RARE]
    leading = _leading([*(one for one in [best] if one.attack != RARE), *others])
    scores = _distributions(sharp, level)
    promises = any(one.predicted for one in tried)
    return Learned(
        distinguisher, beliefs, tuple(tried), scores, _expected(sharp), leading, promises
    )


def sharpened(candidate: Candidate, aim: Aim) -> Candidate:
    """Return an order with finer levels near the cut-offs of its best rule, if it can be cut
    finer."""
    if candidate.intervals is None:
        return candidate
    low, high, bound = aim.best_rule(candidate)
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
    return np.append(ordered, [[0.5, 0.5]], axis=0)


def _distributions(candidate: Candidate, level: LevelMap) -> ScoreDistributions | None:
    if candidate.scored is None or not isinstance(level, ScoreLevels):
        return None
    counts = tuple((int(d1), int(d2)) for d1, d2 in candidate.held_out)
    edges = tuple(level.digitise.edges.tolist())
    return ScoreDistributions(edges, counts, level.score.columns[:_COLUMNS_KEPT])


def _rules(candidate: Candidate, aim: Aim) -> tuple[IntArray, IntArray]:
    """Return the rule of the exact bound, (levels,), and three to bet on, (3, levels): that one,
    the one for growth at the claim, and one that always guesses. Where a rule promises no growth,
    the bet is to abstain, lest it lose what has been won."""
    table, levels = candidate.table, len(candidate.held_out)
    low, high, bound = aim.best_rule(candidate)
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


def _for_rare(candidate: Candidate, rule: IntArray, aim: Aim, stage: Stage) -> IntArray:
    """Return two rules to bet boldly on what is rare, (2, levels). Of few draws they abstain, lest
    bold bets lose all.

    For claims with δ > 0 both are outputs that one input alone gave, the first of so many that it
    is hardly luck; else the first is that of the exact bound, once draws are counted.
    """
    if aim.point.delta == 0:
        return np.stack([rule * (stage == "counted"), np.zeros_like(rule)])
    if stage == "first":
        return np.stack([np.zeros_like(rule)] * 2)
    return np.stack(
        [sure_guesses(candidate, aim, luck) for luck in (tuning.HARDLY_EVER, tuning.HARDLY)]
    )


def _posteriors(held_out: IntArray) -> FloatArray:
    """Return what the bettors believe, Pr[d1 | level]: (bettors, levels); ½ for unseen."""
    ordered = held_out[:-1]
    arms = held_out.sum(axis=0)
    rows = []
    for counts in (_grouped(ordered), ordered):
        ratio = log_ratio(counts, arms)
        error = np.sqrt((1 / (counts + 0.5)).sum(axis=1))
        for shrink in _SHRINKS:
            believed = np.sign(ratio) * np.maximum(np.abs(ratio) - shrink * error, 0.0)
            rows.append(np.append(1 / (1 + np.exp(-believed)), 0.5))
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
