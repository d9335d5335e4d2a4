"""Scorers that divide outcomes: into independent blocks of columns, and by the type of the output.

`fits` chooses, for each block or type, the scorer that explains it best by `gain`.

`parts` is for several releases in one output, such as a histogram and a winner. The columns are
divided into blocks by χ² tests of pairs, and the scores of the blocks are added up, since releases
are independent given the input. Blocks that are sequences are refitted when further draws are
counted (`counted_sequences.py`).

`kinds` is for outputs of several types. A frequent type gets a score of its own, to which the
log-ratio of the type is added, so that scorers of complete vectors can be used.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from dpaudit.attacks.additive import additive, summed
from dpaudit.attacks.counted_sequences import SequenceScored, Sum, relearned
from dpaudit.attacks.prefixes import banded_sums, prefixes
from dpaudit.attacks.sequences import Prefixes
from dpaudit.attacks.weighted_sums import logistic
from dpaudit.attacks.whitened import innovations
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, Scorer, by_score
from dpaudit.levels.cells import equal_mass_groups
from dpaudit.levels.level_map import FOLDS, HALF, FloatArray, IntArray, folds
from dpaudit.levels.limits import (
    EXAMINED_DRAWS,
    FEW_VALUES,
    KEPT_BEST,
    MANY_DRAWS,
    MAX_COLUMNS,
    MAX_SCORE,
    MAX_STEP,
    MIN_DRAWS_SLOW,
    MIN_EXPECTED_DRAWS,
    NEWTON_STEPS,
    PAIR_TEST_ALPHA,
    SMALL_SHARE,
    STEP_TOLERANCE,
)
from dpaudit.levels.piecewise_logit import probability, softplus
from dpaudit.levels.scores import Score, Scored, shares, with_most
from dpaudit.outcomes import KIND, Column, KeyArray, Outcomes
from dpaudit.outcomes.columns import kind_word, mix, text_key
from dpaudit.outcomes.tables import Table
from dpaudit.stats.p_values import chi_squared

PARTS = "sum over independent parts"
KINDS = "outputs of each kind by themselves"

# Scorers that are tried for a block of several columns that depend on each other.
SCORING: tuple[Scorer, ...] = (additive, innovations, prefixes, banded_sums, logistic)
# Number of groups of neighbouring values that a column is cut into for the χ² test of two columns.
_TEST_GROUPS = 4
# If at least this number of draws is in memory, the audit probably counts further draws without
# keeping them. Scores of sequences are then prepared for refits from counts.
_DRAWS_TO_REFIT = 65_000

# The names of the columns of a block: columns that depend on each other, but not on other columns.
Names = tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A score of some columns, with a measure of how well it explains draws.

    halves: (2, draws), the scores by fits to two halves of the draws.
    gain: how well the held-out score predicts the inputs, by the function `gain`, in nats.
    """

    attack: Scorer
    scored: Scored
    halves: FloatArray
    gain: float


def fits(selection: SelectionDraws, attacks: Iterable[Scorer]) -> list[Fit]:
    """Return the one or two fitted scores that best predict the inputs of held-out draws, the
    better one first; none if no scorer returns a score. If there is a single column, `attacks` are
    not used, and the score is the log-ratio of its cell."""
    known = [
        (attack, candidate.scored)
        for attack in (attacks if len(selection.outcomes.columns) > 1 else (_alone,))
        for candidate in attack(selection)
    ]
    result = [
        Fit(attack, scored, scored.halves, gain(scored.held_out, selection.is_d1))
        for attack, scored in known
        if scored is not None and scored.halves is not None
    ]
    return sorted(result, key=lambda fit: -fit.gain)[:KEPT_BEST]


def only(names: Iterable[str], selection: SelectionDraws) -> SelectionDraws:
    """Return the selection draws with only the columns `names`."""
    outcomes = Table(tuple(selection.outcomes.named(names)), selection.size)
    return SelectionDraws(outcomes, selection.is_d1)


def _alone(selection: SelectionDraws) -> list[Candidate]:
    """Return one order, for outcomes with a single column: by the log-ratio of the cell."""
    return [by_score(summed(selection, selection.outcomes.columns), selection)]


def gain(held_out: FloatArray, is_d1: NDArray[np.bool_]) -> float:
    """Return how well held-out scores predict the inputs, in nats: the log-likelihood of the inputs
    given `held_out` plus a fitted constant, minus that given only the frequency of each input. A
    draw with score NaN adds 0."""
    usual, scores = (
        np.full(len(is_d1), log_odds(is_d1)),
        np.clip(held_out, -MAX_SCORE, MAX_SCORE),
    )
    odds = np.where(np.isnan(scores), usual, scores + offset(scores, is_d1))
    return float(np.sum(softplus(usual) - softplus(odds) + is_d1 * (odds - usual)))


def offset(scores: FloatArray, is_d1: NDArray[np.bool_]) -> float:
    """Return the constant that turns scores into log-odds of d1 when it is added. With it, the
    expected number of draws of d1 is the observed one. It is needed since some scores leave out the
    frequency of the inputs."""
    known = ~np.isnan(scores)
    scores, odds = scores[known], log_odds(is_d1[known])
    wanted = len(scores) * float(probability(np.array([odds]))[0])
    result = 0.0
    for _ in range(NEWTON_STEPS):
        share = probability(scores + result)
        bend = max(1e-9, float(np.sum(share * (1 - share))))
        step = min(MAX_STEP, max(-MAX_STEP, (wanted - float(share.sum())) / bend))
        result += step
        if abs(step) < STEP_TOLERANCE:
            break
    return result


def log_odds(is_d1: NDArray[np.bool_]) -> float:
    """Return the log-odds of d1 among the draws: log((draws of d1 + ½) / (draws of d2 + ½))."""
    first = int(np.count_nonzero(is_d1))
    return math.log((first + 0.5) / (len(is_d1) - first + 0.5))


def parts(selection: SelectionDraws) -> list[Candidate]:
    """Return orders of outcomes by a sum of scores: the columns are divided into independent
    blocks, and each block gets the scorer that explains it best.
    """
    if selection.size < MANY_DRAWS:
        return []
    first = selection.take(slice(EXAMINED_DRAWS))
    blocks = _parts(first)
    # With more than 20,000 draws, the scorers are compared on the first 10,000, and only the best
    # ones are fitted to all draws.
    is_some = selection.size > 2 * MANY_DRAWS
    some = selection.take(slice(MANY_DRAWS)) if is_some else selection
    least = tuning.GAIN_OF_BLOCK * (MANY_DRAWS / selection.size if is_some else 1)
    every = {names: fits(only(names, some), SCORING) for names in blocks}
    tried = {names: tries for names, tries in every.items() if tries and tries[0].gain > least}
    # A block of columns that forms a sequence stays in the sum of scores even if these draws show
    # no difference between d1 and d2 in the block, since draws that are only counted later may show
    # a difference.
    goes_on = selection.size >= _DRAWS_TO_REFIT and _all_vary(first)
    sequences = _sequences(blocks, selection) if goes_on else {}
    if len({*sequences, *tried}) < 2:
        return []
    if is_some:
        for names, tries in tried.items():
            known = [sequences[names]] if names in sequences else []
            attacks = [
                fit.attack
                for fit in tries
                if all(fit.attack is not sequence.attack for sequence in known)
            ]
            tried[names] = [*known, *fits(only(names, selection), attacks)]
    best = {names: max(tries, key=lambda fit: fit.gain) for names, tries in tried.items() if tries}
    useful = {names: fit for names, fit in best.items() if fit.gain > tuning.GAIN_OF_BLOCK}
    best = {**sequences, **useful}
    if len(best) < 2:
        return []
    # `useful` are the blocks with a clear gain in log-likelihood; `best` also has sequences without
    # one. When further draws are counted, these sequences enter the sum, since such draws may show
    # a gain. At present, they are in the sum only if fewer than two blocks have a clear gain.
    shown = list((useful if len(useful) > 1 else best).values())
    held_out = np.asarray(sum(fit.scored.held_out for fit in shown))
    halves = np.asarray(sum(fit.halves for fit in shown))
    scored = Scored(PARTS, held_out, partial(_final_parts, [fit.scored for fit in shown]), halves)
    later = [_better_later(fit, sequences.get(names)).scored for names, fit in best.items()]
    refitted = [term for term in later if isinstance(term, SequenceScored)]
    if not sequences or not refitted:
        return [by_score(scored, selection)]
    fixed = [term for term in later if not isinstance(term, SequenceScored)]
    fixed_sum = _final_parts(fixed) if fixed else None
    total = Sum(tuple(term.states for term in refitted), partial(_added_up, fixed_sum), fixed_sum)
    return [relearned(scored, selection, total)]


def _all_vary(some: SelectionDraws) -> bool:
    """Return whether no column is nearly constant."""
    # For a nearly constant column, no test can show whether it depends on other columns. A sum over
    # blocks, which assumes that blocks are independent, might then count its evidence twice.
    columns = (column for column in some.outcomes.columns if not column.name.startswith(KIND))
    largest_counts = (
        np.bincount(equal_mass_groups(column, _TEST_GROUPS)).max() for column in columns
    )
    return all(often < (1 - SMALL_SHARE) * some.size for often in largest_counts)


def _sequences(blocks: Iterable[Names], selection: SelectionDraws) -> dict[Names, Fit]:
    """Return the fits of the blocks that are sequences, by the names of their columns."""
    result = {}
    for names in blocks:
        block = only(names, selection)
        every = (fits(block, [prefixes]) or fits(block, [banded_sums])) if len(names) > 1 else []
        if every and isinstance(every[0].scored, SequenceScored):
            result[names] = every[0]
    return result


def _better_later(best: Fit, sequence: Fit | None) -> Fit:
    """Return the one of two fits of a block that is likely to be better after further draws."""
    # Only a fit as a sequence is refitted to further draws, so it may be somewhat worse at present.
    if sequence is None or sequence.gain < best.gain / 2 - tuning.GAIN_OF_BLOCK:
        return best
    return sequence


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The score that sums the scores of independent blocks of columns. It is NaN for an outcome
    without a score in some block."""

    scores: tuple[Score, ...]
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        return np.asarray(np.sum([score(outcomes) for score in self.scores], axis=0))

    def words(self) -> str:
        what = f"adds up the scores of {len(self.scores):,} independent parts of the output"
        return with_most(what, self.columns)


def _final_parts(best: Sequence[Scored]) -> Parts:
    scores = tuple(scored.final_score() for scored in best)
    spread = [float(np.nanstd(scored.held_out)) for scored in best]
    return Parts(scores, shares_of(scores, spread))


def _added_up(fixed: Parts | None, sequences: Sequence[Prefixes]) -> Parts:
    """Return the score that sums the fixed scores and the refitted scores of sequences."""
    every: tuple[Score, ...] = (*(() if fixed is None else (fixed,)), *sequences)
    columns = shares_of(every, [1.0] * len(every))
    return Parts((*(() if fixed is None else fixed.scores), *sequences), columns)


def shares_of(scores: Sequence[Score], weights: Sequence[float]) -> tuple[tuple[str, float], ...]:
    """Return the attribute `columns` of a score that combines several scores. The share of a column
    is its mean over the scores, weighted by `weights`; all shares add up to 1."""
    weighted = [
        (name, weight * share)
        for score, weight in zip(scores, weights, strict=True)
        for name, share in score.columns
    ]
    return shares([name for name, _ in weighted], [weight for _, weight in weighted])


def _parts(some: SelectionDraws) -> list[Names]:
    """Return the names of the columns of each independent block; empty if none are useful."""
    if len(some.outcomes.columns) > 2 * MAX_COLUMNS:  # an entry may also have a column of types
        return []
    columns = [column for column in some.outcomes.columns if not column.name.startswith(KIND)]
    if not 1 < len(columns) <= MAX_COLUMNS:
        return []
    arm = some.is_d1.astype(np.intp)
    groups = [equal_mass_groups(column, _TEST_GROUPS) for column in columns]
    left, result, alone = set(range(len(columns))), list[list[int]](), list[int]()
    while left:
        part = _reached(min(left), left, groups, arm)
        left -= part
        if len(part) > 1:
            result.append(sorted(part))
        else:
            alone += part
    # If all columns depend on each other, or if none do, there is nothing to divide. If there are
    # more than 8 blocks, fits to them would take seconds.
    if not 0 < len(result) <= FEW_VALUES or len(result[0]) == len(columns):
        return []
    return [tuple(columns[index].name for index in part) for part in (*result, alone) if part]


def _reached(
    first: int, left: Iterable[int], groups: Sequence[IntArray], arm: IntArray
) -> set[int]:
    """Return the indices of a column and of all that depend on it, directly or through others."""
    luck = 2 * PAIR_TEST_ALPHA / (len(groups) * (len(groups) - 1))
    result, remaining, open_ = {first}, set(left) - {first}, [first]
    while open_ and remaining:
        current = open_.pop()
        new = {
            column for column in remaining if _depend(groups[current], groups[column], arm, luck)
        }
        result, remaining, open_ = result | new, remaining - new, [*open_, *new]
    return result


def _depend(left: IntArray, right: IntArray, arm: IntArray, luck: float) -> bool:
    """Return whether two columns depend on each other, given the input, by Pearson's χ² test."""
    cell = (arm * _TEST_GROUPS + left) * _TEST_GROUPS + right
    tables = np.bincount(cell, minlength=2 * _TEST_GROUPS**2).reshape(2, _TEST_GROUPS, -1)
    total, freedom = chi_squared(tables, MIN_EXPECTED_DRAWS)
    return freedom > 0 and bool(chdtrc(freedom, total) < luck)


# A type of output, such as "list of numbers" or "None", gets a score of its own if it has at least
# this share of all draws.
_MIN_TYPE_SHARE = 0.1


def kinds(selection: SelectionDraws) -> list[Candidate]:
    """Return at most one order of outcomes, for outcomes of several types, such as vectors and
    None.

    Outcomes are ordered by a score. For a frequent type, the score that best explains the outcomes
    of this type is chosen, and the log-ratio of the type is added to it. The score of any other
    outcome is the sum of the log-ratios of its columns.
    """
    outcomes = selection.outcomes
    columns = outcomes.columns
    if not 1 < len(columns) <= MAX_COLUMNS:
        return []
    if all(column.codes is None for column in columns):
        return []
    names = tuple(dict.fromkeys(column.name.removeprefix(KIND) for column in columns))
    keys = _kinds(names, outcomes)
    usual = _usual(keys)
    if not usual:
        return []
    result = [(key, _fit(key, keys, names, selection)) for key in usual]
    useful = [(key, fit) for key, fit in result if fit is not None]
    if not useful:
        return []
    general = summed(selection, columns)
    if general.halves is None:
        return []
    held_out, halves, every = general.held_out.copy(), general.halves.copy(), []
    for key, fit in useful:
        rows = np.flatnonzero(keys == np.uint64(key))
        by_fold, by_half = _offsets(fit, selection.is_d1[rows], log_odds(selection.is_d1))
        held_out[rows] = fit.scored.held_out + by_fold[folds(len(rows))]
        halves[:, rows] = fit.halves + by_half[:, None]
        every.append((key, float(by_fold[-1]), fit.scored))
    least = gain(general.held_out, selection.is_d1) + tuning.GAIN_OF_BLOCK
    if gain(held_out, selection.is_d1) < least:
        return []
    final_score = partial(_final_kinds, names, every, general)
    return [by_score(Scored(KINDS, held_out, final_score, halves), selection)]


@dataclass(frozen=True, slots=True, eq=False)
class OutputType:
    """A type of output with a score of its own.

    key: hash of the type.
    offset: constant to add to the score, so that the sum includes the log-ratio of the type.
    """

    key: int
    offset: float
    score: Score


@dataclass(frozen=True, slots=True, eq=False)
class ByKind:
    """The score of outputs of several types.

    names: names of the columns whose entries determine the type of an output.
    kinds: the frequent types, with scores of their own.
    rest: the score of outputs of all other types.
    """

    names: tuple[str, ...]
    kinds: tuple[OutputType, ...]
    rest: Score
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        keys = _kinds(self.names, outcomes)
        result = np.empty(outcomes.size)
        left = np.ones(outcomes.size, dtype=bool)
        for kind in self.kinds:
            is_own = keys == np.uint64(kind.key)
            if is_own.any():
                result[is_own] = kind.offset + kind.score(outcomes.take(np.flatnonzero(is_own)))
                left &= ~is_own
        if left.any():
            result[left] = self.rest(outcomes.take(np.flatnonzero(left)))
        return result

    def words(self) -> str:
        some = f"{len(self.kinds)} kinds" if len(self.kinds) > 1 else "the usual kind"
        return with_most(f"scores outputs of {some} by themselves", self.columns)


def _final_kinds(
    names: tuple[str, ...], every: Sequence[tuple[int, float, Scored]], general: Scored
) -> ByKind:
    kinds = tuple(OutputType(key, added, scored.final_score()) for key, added, scored in every)
    held_out = [scored.held_out for _, _, scored in every]
    spread = [float(np.nanstd(scores)) * len(scores) / len(general.held_out) for scores in held_out]
    columns = shares_of([kind.score for kind in kinds], spread)
    return ByKind(names, kinds, general.final_score(), columns)


def _kinds(names: Iterable[str], outcomes: Outcomes) -> KeyArray:
    """Return a hash of the type of every outcome, which consists of the types of its entries."""
    total = np.zeros(outcomes.size, dtype=np.uint64)
    for column in outcomes.named(names):
        if column.codes is None:
            continue
        every = list(map(kind_word, column.labels))
        known = {kind: text_key(f"{column.name} is {kind}") for kind in set(every)}
        hashes = np.array([0, *(known[kind] for kind in every)], dtype=np.uint64)
        total += mix(hashes)[column.codes]
    return total


def _usual(keys: KeyArray) -> list[int]:
    """Return the hashes of the frequent types, the most frequent first; none for one type."""
    values, counts = np.unique(keys, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    often = counts[order] >= max(_MIN_TYPE_SHARE * len(keys), MIN_DRAWS_SLOW)
    return [] if len(values) == 1 else [int(key) for key in values[order][often]]


def _fit(key: int, keys: KeyArray, names: Sequence[str], selection: SelectionDraws) -> Fit | None:
    """Return the score that best explains the outputs of one type; None if none gains 3 nats."""
    rows = np.flatnonzero(keys == np.uint64(key))
    columns = [_without_labels(column.take(rows)) for column in selection.outcomes.named(names)]
    varying = tuple(column for column in columns if _varies(column))
    if not varying:
        return None
    draws = SelectionDraws(Table(varying, len(rows)), selection.is_d1[rows])
    some, attacks = draws.take(slice(MANY_DRAWS)), (*SCORING, parts)
    result = fits(some, attacks)
    if some.size < draws.size:
        result = fits(draws, [fit.attack for fit in result])
    return result[0] if result and result[0].gain > tuning.GAIN_OF_BLOCK else None


def _without_labels(column: Column) -> Column:
    """Drop the list of labels if all entries of a column are numbers."""
    has_labels = column.codes is not None and column.codes.any()
    return column if has_labels else Column(column.name, column.numbers)


def _varies(column: Column) -> bool:
    entries = column.numbers if column.codes is None else column.codes
    return bool((entries != entries[0]).any())


def _offsets(fit: Fit, is_d1: NDArray[np.bool_], usual: float) -> tuple[FloatArray, FloatArray]:
    """Return constants that make scores of one type log-ratios, for folds and for halves."""
    fold, held_out = folds(len(is_d1)), fit.scored.held_out
    without = [fold != number for number in range(FOLDS)]
    every = [offset(held_out[some], is_d1[some]) for some in without]
    halves_of_draws = fold < HALF, fold >= HALF
    halves = [offset(fit.halves[n][some], is_d1[some]) for n, some in enumerate(halves_of_draws)]
    return np.array([*every, offset(held_out, is_d1)]) - usual, np.array(halves) - usual
