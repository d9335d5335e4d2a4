"""The scorer of several releases in one output, such as a histogram, a winner and a sparse vector.

Given the input, the entries of one release depend on each other, but not on the entries of another
release. So the columns are divided into independent blocks by χ² tests of pairs; each block is
scored by the scorer that explains it best (`block_scores.py`), and the scores are added up. Blocks
that are sequences are refitted when further draws are counted (`counted_sequences.py`).
`learning.py` calls `parts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import chdtrc

from dpaudit.attacks.banded import banded_sums
from dpaudit.attacks.block_scores import SCORING, Fit, fits, only
from dpaudit.attacks.counted_sequences import SequenceScored, Sum, relearned
from dpaudit.attacks.prefixes import prefixes
from dpaudit.attacks.sequences import Prefixes
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import OrderedBins, by_score
from dpaudit.levels.cells import equal_mass_groups
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.limits import ENOUGH_TO_COMPARE, FIRST_DRAWS, MOST_COLUMNS
from dpaudit.levels.scores import Score, Scored, shares, with_most
from dpaudit.outcomes import KIND, Outcomes
from dpaudit.stats.p_values import chi_squared

NAME = "sum over independent parts"

# Least number of draws.
_LEAST_DRAWS = 10_000
# Least number of columns.
_FEWEST_COLUMNS = 3
# Number of groups of neighbouring values that a column is cut into for the table of two columns.
_GROUPS = 4
# Probability that some pair of independent columns looks dependent, over all pairs together.
_LUCK = 0.001
# Least number of expected draws of a cell that counts in the χ² test.
_LEAST_EXPECTED = 4.0
# A column varies if its most frequent group has less than this share of the draws.
_VARIES = 0.98
# Number of kept draws from which on further draws are likely to be counted.
_ENOUGH_TO_GO_ON = 65_000
# Largest number of blocks of dependent columns: more take seconds.
_MOST_PARTS = 8


def parts(selection: SelectionDraws) -> list[OrderedBins]:
    """Order outcomes by the sum of the best scores of their independent blocks of columns."""
    if selection.size < _LEAST_DRAWS:
        return []
    first = selection.take(slice(FIRST_DRAWS))
    result = _parts(first)
    # With many draws, compare the scorers on some of them, then fit the best ones to all.
    share = min(1.0, ENOUGH_TO_COMPARE / selection.size)
    is_some = share < 0.5
    some = selection.take(slice(ENOUGH_TO_COMPARE)) if is_some else selection
    every = [fits(names, some, SCORING) for names in result]
    tried = [
        one
        for one in every
        if one and one[0].gain > tuning.GAIN_OF_BLOCK * (share if is_some else 1)
    ]
    # Blocks that form a sequence are kept for learning from further draws even if the first draws
    # show no difference between d1 and d2.
    goes_on = selection.size >= _ENOUGH_TO_GO_ON and _all_vary(first)
    going_on = _sequences(result, selection) if goes_on else {}
    if len({*going_on, *(tuple(one[0].names) for one in tried)}) < 2:
        return []
    if is_some:
        every = [_of_all(one, selection, going_on.get(tuple(one[0].names))) for one in tried]
        tried = [one for one in every if one and one[0].gain > tuning.GAIN_OF_BLOCK]
    telling = {tuple(one[0].names): one[0] for one in tried}
    best = {**going_on, **telling}
    if len(best) < 2:
        return []
    # Until further draws are counted, a sequence that tells nothing yet is in the sum only if fewer
    # than two other blocks tell something.
    shown = list((telling if len(telling) > 1 else best).values())
    held_out = np.asarray(sum(one.scored.held_out for one in shown))
    halves = np.asarray(sum(one.halves for one in shown))
    scored = Scored(NAME, held_out, partial(_frozen, shown), halves)
    if not going_on:
        return [by_score(scored, selection)]
    total = _learned_anew([_more_telling(one, going_on.get(name)) for name, one in best.items()])
    return [
        relearned(scored, selection, total) if total.sequence_views else by_score(scored, selection)
    ]


def _all_vary(some: SelectionDraws) -> bool:
    """Return whether every column varies. It cannot be seen whether a nearly constant column
    depends on others, and its evidence might be counted twice."""
    columns = (one for one in some.outcomes.columns if not one.name.startswith(KIND))
    most = (np.bincount(equal_mass_groups(one, _GROUPS)).max() for one in columns)
    return all(often < _VARIES * some.size for often in most)


def _of_all(some: Sequence[Fit], selection: SelectionDraws, sequence: Fit | None) -> list[Fit]:
    """Return fits to all draws by the scorers that were best on some draws, the best one first.

    some: the fits to some draws.
    sequence: the fit of these columns as a sequence to all draws; None if they are no sequence.
    """
    known = [] if sequence is None else [sequence]
    attacks = [one.attack for one in some if all(one.attack is not fit.attack for fit in known)]
    return sorted([*known, *fits(some[0].names, selection, attacks)], key=lambda one: -one.gain)


def _sequences(
    by_part: Iterable[Sequence[str]], selection: SelectionDraws
) -> dict[tuple[str, ...], Fit]:
    """Return the fits of all blocks that are sequences, by the names of their columns.

    by_part: the names of the columns of each block.
    """
    result = {}
    for names in by_part:
        if len(names) == 1:
            continue
        every = fits(names, selection, [prefixes]) or fits(names, selection, [banded_sums])
        result.update(
            {tuple(names): one for one in every if isinstance(one.scored, SequenceScored)}
        )
    return result


def _more_telling(best: Fit, sequence: Fit | None) -> Fit:
    """Return the fit of a block that is likely to be best after further draws: the fit as a
    sequence, if its gain is about half of the best gain or more; else the best fit so far."""
    if sequence is None or sequence.gain < best.gain / 2 - tuning.GAIN_OF_BLOCK:
        return best
    return sequence


def _learned_anew(best: Sequence[Fit]) -> Sum:
    """Return the sum of the scores of blocks, in which the scores of sequences are refitted."""
    others, sequence_views, names = [], [], []
    for one in best:
        if isinstance(one.scored, SequenceScored):
            sequence_views.append(one.scored.sequence_view.through(partial(only, tuple(one.names))))
            names.append(tuple(one.names))
        else:
            others.append(one)
    rest = _frozen(others) if others else None
    return Sum(tuple(sequence_views), partial(_added_up, rest, tuple(names)), rest)


def _added_up(
    rest: Parts | None, names: Sequence[tuple[str, ...]], scores: Sequence[Prefixes]
) -> Parts:
    """Return the sum of the scores that stay and the refitted scores of sequences.

    rest: the scores that stay; None: no such scores.
    names: for each sequence, the names of its columns.
    """
    every = (*(() if rest is None else rest.scores), *zip(scores, names, strict=True))
    columns = [] if rest is None else [*rest.columns]
    columns += [column for score in scores for column in score.columns]
    return Parts(every, shares([name for name, _ in columns], [weight for _, weight in columns]))


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The score that sums the scores of independent blocks of columns; NaN if a block has no score.

    scores: the score of each block, with the names of its columns.
    columns: (name, share) of the columns that the score depends on most.
    """

    scores: tuple[tuple[Score, tuple[str, ...]], ...]
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        every = [score(only(names, outcomes)) for score, names in self.scores]
        return np.asarray(np.sum(every, axis=0))

    def words(self) -> str:
        what = f"adds up what {len(self.scores)} independent parts of the output tell"
        return with_most(what, self.columns)


def _frozen(best: Sequence[Fit]) -> Parts:
    scores = tuple((one.scored.freeze(), tuple(one.names)) for one in best)
    own = [
        (name, float(np.nanstd(one.scored.held_out)) * share)
        for one, (score, _) in zip(best, scores, strict=True)
        for name, share in score.columns
    ]
    return Parts(scores, shares([name for name, _ in own], [weight for _, weight in own]))


def _parts(some: SelectionDraws) -> list[list[str]]:
    """Return the names of the columns of each independent block. All columns that depend on no
    other column form one block together.

    The list is empty if all columns are one block, if no columns depend on each other, or if there
    are more than 8 blocks.
    """
    if len(some.outcomes.columns) > 2 * MOST_COLUMNS:
        return []
    columns = [one for one in some.outcomes.columns if not one.name.startswith(KIND)]
    if not _FEWEST_COLUMNS <= len(columns) <= MOST_COLUMNS:
        return []
    arm = some.is_d1.astype(np.intp)
    groups = [equal_mass_groups(one, _GROUPS) for one in columns]
    left, result, alone = set(range(len(columns))), list[list[int]](), list[int]()
    while left:
        part = _reached(min(left), left, groups, arm)
        left -= part
        if len(part) > 1:
            result.append(sorted(part))
        else:
            alone += part
    if not 0 < len(result) <= _MOST_PARTS or len(result[0]) == len(columns):
        return []
    return [[columns[place].name for place in part] for part in (*result, alone) if part]


def _reached(
    first: int, left: Iterable[int], groups: Sequence[IntArray], arm: IntArray
) -> set[int]:
    """Return the indices of a column and of all columns that depend on it, directly or through
    others.

    first: index of the column.
    left: indices of the columns that have no block yet.
    groups: for each column, (draws,), the group of the entry of each draw.
    arm: (draws,), 1 for a draw of d1, 0 for d2.
    """
    luck = 2 * _LUCK / (len(groups) * (len(groups) - 1))
    result, others, open_ = {first}, set(left) - {first}, [first]
    while open_ and others:
        place = open_.pop()
        new = {one for one in others if _depend(groups[place], groups[one], arm, luck)}
        result, others, open_ = result | new, others - new, [*open_, *new]
    return result


def _depend(one: IntArray, other: IntArray, arm: IntArray, luck: float) -> bool:
    """Return whether two columns depend on each other, given the input, by Pearson's χ².

    one, other: (draws,), the group of the entry of each draw in either column.
    arm: (draws,), 1 for a draw of d1, 0 for d2.
    luck: false-alarm probability of the test.
    """
    cell = (arm * _GROUPS + one) * _GROUPS + other
    tables = np.bincount(cell, minlength=2 * _GROUPS**2).reshape(2, _GROUPS, -1)
    total, freedom = chi_squared(tables, _LEAST_EXPECTED)
    return freedom > 0 and bool(chdtrc(freedom, total) < luck)
