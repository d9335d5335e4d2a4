"""Beliefs to bet on after few draws, for mechanisms whose draws are slow.

`learn` needs hundreds of draws. `bet_early` makes beliefs from 16 draws on, by regressions with one
or two weights (docs/method.md §4). A single column of numbers is cut at quantiles. For other
outcomes, held-out levels come from the best candidate of `learn` or, if its likelihood is larger,
from a weighted sum of all columns (`by_mean_differences`).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.learning import learn
from dpaudit.attacks.objective import Objective
from dpaudit.attacks.rules import as_beliefs, expected_draws_of
from dpaudit.attacks.single_columns import CellLevels
from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.levels.candidates import Scorer
from dpaudit.levels.cells import Cells, frequent_labels, is_number, make_cells, short_edges
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap, equal_mass_runs
from dpaudit.levels.limits import VALUE_GROUPS
from dpaudit.levels.portfolio import Learned, Portfolio, Rule, Tried
from dpaudit.stats.betting import Beliefs

# Number of draws up to which `bet_early` learns the rules, in an audit that ends by bets; from then
# on, `learn` does. The first number is for outputs with one column, the second for outputs with
# several columns. The second is larger, since `bet_early` then uses a weighted sum of columns,
# which needs few draws and so stays better than the result of `learn` for longer.
EARLY_UNTIL, EARLY_UNTIL_OF_COLUMNS = 400, 4_000
# Name of this way of learning in reports, where attacks are listed.
NAME = "early bets"
# Largest number of intervals that a column of numbers is cut into.
_MAX_INTERVALS = 48
# Precision (1 / variance) of the normal prior of the weights of a regression. `_REGRESSIONS` names
# the bettors that use `_LARGE_PRECISION`, which shrinks the weights more; the others use the first
# value.
_PRECISION, _LARGE_PRECISION = 2.0, 10.0
# Some bettors estimate the probability of d1 at a level by logistic regression on the position z of
# the level. One entry for each of these bettors: (functions, precision). The features of the
# regression are the functions of z, such as |z| or z², scaled to mean 0 and standard deviation 1.
# `precision` is 1 / variance of the normal prior of their weights.
_REGRESSIONS = (
    ((abs,), _PRECISION),
    ((np.square,), _PRECISION),
    ((np.positive, abs), _PRECISION),
    ((np.positive,), _PRECISION),
    ((np.positive, abs), _LARGE_PRECISION),
)
# One entry for each bettor that joins neighbouring levels into larger groups: (number of larger
# groups, prior). The bettor adds `prior` draws of each input to the counts of each larger group.
_GROUPED = ((VALUE_GROUPS, 6.0), (2 * VALUE_GROUPS, 4.0), (VALUE_GROUPS, 2.0))
# Number of steps of Newton's method in a logistic regression; after six, the weights are accurate
# to three digits.
_NEWTON_STEPS = 6
# The position of a number is (number - median) / unit, clipped to ±4 (`_MAX_POSITION`). The unit is
# 1.5 (`_UNIT`) times the median distance of numbers from their median.
_UNIT, _MAX_POSITION = 1.5, 4.0


def bet_early(
    selection: SelectionDraws, objective: Objective, scorers: tuple[Scorer, ...]
) -> Learned:
    """Learn from few draws, 16 or more. Return the rules to bet on, and the beliefs of the bettors.
    For outcomes that are single numbers, `scorers` are not used."""
    column = selection.outcomes.columns[0]
    level: LevelMap
    expected: FloatArray | None = None
    is_plain = len(selection.outcomes.columns) == 1 and bool(is_number(column).any())
    if is_plain and not len(selection.outcomes.representations):
        cells = _cells(selection)
        levels = len(cells.values) + len(cells.label_values)
        level = CellLevels(cells, levels)
        positions = _positions(column.numbers[is_number(column)], cells, levels)
        tried: tuple[Tried, ...] = ()
        counts = by_arm(level(selection.outcomes), levels, selection.is_d1)
    else:
        learned = learn(selection, objective, scorers)
        if learned.counts is None:
            return learned
        level, tried, counts = learned.portfolio.main.level, learned.tried, learned.counts
        from dpaudit.attacks.weighted_sums import by_mean_differences

        sums = by_mean_differences(selection, pools=True)
        if sums and _log_likelihood(sums[0].counts) > _log_likelihood(counts):
            level, counts = sums[0].level_map(), sums[0].counts
            expected = expected_draws_of(sums[0])
        elif selection.size >= EARLY_UNTIL:
            return learned
        positions = _ranks(counts)
    posteriors = _posteriors(counts, positions)
    guesses = _rules(posteriors, objective)
    main = Rule("main", NAME, level, guesses[0])
    tried = tried or (Tried(NAME, None),)
    beliefs = Beliefs(posteriors, guesses, early=True)
    return Learned(Portfolio.of([main]), beliefs, tried=tried, expected_draws=expected)


def _cells(selection: SelectionDraws) -> Cells:
    """Return the cells of the only column; each frequent number has its own if numbers repeat."""
    column = selection.outcomes.columns[0]
    numbers = column.numbers[is_number(column)]
    if 2 * len(np.unique(numbers)) <= len(numbers):
        return make_cells(column, _MAX_INTERVALS)
    count = min(_MAX_INTERVALS, len(numbers))
    edges = short_edges(np.sort(numbers), np.arange(1, count) * len(numbers) // count)
    labels = frequent_labels(column, least=2, most=_MAX_INTERVALS)
    values = np.arange(len(edges) + 1, dtype=np.intp)
    label_values = len(values) + np.arange(len(labels) + 1, dtype=np.intp)
    return Cells(column.name, edges, labels, values, label_values)


def _positions(numbers: FloatArray, cells: Cells, levels: int) -> FloatArray:
    """Return the mean of the standardised numbers at every level, (levels,); NaN for labels."""
    with np.errstate(invalid="ignore", over="ignore"):
        middle = float(np.median(numbers))
        unit = _UNIT * float(np.median(np.abs(numbers - middle)))
        scaled = (numbers - middle) / (unit if 0 < unit < math.inf else 1.0)
    scaled = np.clip(np.nan_to_num(scaled), -_MAX_POSITION, _MAX_POSITION)
    cell = cells.digitise(numbers).astype(np.intp)
    sums, draws = np.bincount(cell, scaled, levels), np.bincount(cell, minlength=levels)
    positions = np.full(levels, np.nan)
    positions[draws > 0] = sums[draws > 0] / draws[draws > 0]
    return positions


def _ranks(counts: IntArray) -> FloatArray:
    """Return the log-odds of the share of draws below the middle of each level; last NaN."""
    masses = counts[:-1].sum(axis=1)
    share = (np.cumsum(masses) - masses / 2 + 0.5) / (masses.sum() + 1)
    return np.append(np.log(share / (1 - share)), np.nan)


def _log_likelihood(counts: IntArray) -> float:
    """Return the log-likelihood, in nats, of the inputs by regression on the rank of levels."""
    positions = _ranks(counts)[:-1, None]
    belief = _regression(positions, counts[:-1], _PRECISION)
    share = np.clip(belief, 1e-9, 1 - 1e-9)
    unseen = float(counts[-1].sum()) * math.log(2)
    return float(np.sum(counts[:-1] * np.log(np.stack([share, 1 - share], axis=1)))) - unseen


def _posteriors(counts: IntArray, positions: FloatArray) -> FloatArray:
    """Return Pr[d1 | level] as every bettor estimates it: (bettors, levels)."""
    has_position = np.isfinite(positions)
    rows = []
    for features, precision in _REGRESSIONS:
        row = np.full(len(positions), 0.5)
        if has_position.any():
            table = np.stack([feature(positions[has_position]) for feature in features], axis=1)
            row[has_position] = _regression(table, counts[has_position], precision)
        rows.append(row)
    rows += [_by_group(counts, has_position, *grouping) for grouping in _GROUPED]
    return as_beliefs(rows)


def _regression(features: FloatArray, counts: IntArray, precision: float) -> FloatArray:
    """Return Pr[d1 | level] by logistic regression on features: (levels,)."""
    # No constant is needed: the inputs are equally likely, so the log-odds are 0 on average.
    draws = counts.sum(axis=1).astype(float)
    mass = np.maximum(draws, 1e-9) / np.maximum(draws, 1e-9).sum()
    table = features - mass @ features
    table = table / np.maximum(np.sqrt(mass @ table**2), 1e-9)
    weights = np.zeros(table.shape[1])
    for _ in range(_NEWTON_STEPS):
        share = 1 / (1 + np.exp(-table @ weights))
        gradient = table.T @ (counts[:, 0] - draws * share) - precision * weights
        curvature = (table * (draws * share * (1 - share))[:, None]).T @ table
        curvature[np.diag_indices(len(weights))] += precision
        is_one = len(weights) == 1  # `solve` takes ten times as long
        step = gradient / curvature[0] if is_one else np.linalg.solve(curvature, gradient)
        # The limit is far beyond what few draws can show. It keeps `exp` finite where a step is too
        # long.
        weights = np.minimum(np.maximum(weights + step, -8.0), 8.0)
    return np.asarray(1 / (1 + np.exp(-np.clip(table @ weights, -20.0, 20.0))))


def _by_group(
    counts: IntArray, has_position: NDArray[np.bool_], groups: int, prior: float
) -> FloatArray:
    """Return Pr[d1 | level] from counts of groups of neighbouring levels: (levels,)."""
    masses = np.where(has_position, counts.sum(axis=1), 0)
    group = equal_mass_runs(masses, groups)
    group = np.where(has_position, group, groups + np.arange(len(counts)))
    totals = np.zeros((groups + len(counts), 2))
    np.add.at(totals, group, counts)
    totals = totals[group] + prior
    return np.asarray(totals[:, 0] / totals.sum(axis=1))


def _rules(posteriors: FloatArray, objective: Objective) -> IntArray:
    """Return the rules to bet on, (rules, levels): 1 for a guess of d1, -1 for d2, 0 for none."""
    # The second rule guesses at every level; it also replaces a first rule that would never guess.
    # All further rules abstain everywhere: every round of bets needs the same number of rules, and
    # `choose_rules` makes three, and those for rare outputs.

    # Only beliefs of regressions are averaged: they are smooth over levels, so that the event of
    # the rule consists of few intervals.
    mean = posteriors[: len(_REGRESSIONS)].mean(axis=0)
    largest = 1 / (1 + math.exp(-objective.point.epsilon))
    table = np.zeros((3 + objective.rare_bets, posteriors.shape[1]), dtype=np.int64)
    table[0] = (mean > largest).astype(np.int64) - (mean < 1 - largest)
    table[1] = np.where(mean >= 0.5, 1, -1)
    if not table[0].any():
        table[0] = table[1]
    return table
