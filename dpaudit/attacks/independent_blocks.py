"""The attack on several releases side by side, such as a histogram, a winner and the answers of a
sparse vector in one output.

Given the input, entries of one release depend on each other and not on those of another. So what
each part of the output tells, by the attack that explains it best, is added up; and what sequences
among them may tell, once more draws are counted.
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
from dpaudit.levels.candidates import OrderedBins, by_score
from dpaudit.levels.cells import equal_mass_groups
from dpaudit.levels.level_map import FloatArray, IntArray
from dpaudit.levels.scores import Score, Scored, shares, with_most
from dpaudit.outcomes import KIND, Outcomes
from dpaudit.stats.p_values import chi_squared

NAME = "sum over independent parts"

_LEAST_DRAWS = 10_000
_FEWEST_COLUMNS, _MOST_COLUMNS = 3, 128
# The first draws show which columns depend on each other, by groups of neighbouring entries.
_LOOKED_AT, _GROUPS = 4_096, 4
# The chance that some of all pairs of columns that are independent look as if they were not.
_LUCK = 0.001
# Of cells of which fewer draws are expected, a single draw would say too much.
_LEAST_EXPECTED = 4.0
_ENOUGH_TO_COMPARE = 10_000
# Below this share of the draws with its most frequent entry, or group of numbers, a column varies.
_VARIES = 0.98
# Of so many draws that are kept, others are likely to be counted.
_ENOUGH_TO_GO_ON = 65_000
# Nats that a part must explain, so that it is not noise alone: of some draws its share of these.
_TELLS = 3.0
# Of more parts a look takes seconds.
_MOST_PARTS = 8


def parts(selection: SelectionDraws) -> list[OrderedBins]:
    """Order outcomes by the sum of what their independent parts tell, each by its best score."""
    if selection.size < _LEAST_DRAWS:
        return []
    first = selection.take(slice(_LOOKED_AT))
    found = _parts(first)
    # Of many draws some are enough to see which attacks are worth fitting to all.
    share = min(1.0, _ENOUGH_TO_COMPARE / selection.size)
    is_some = share < 0.5
    some = selection.take(slice(_ENOUGH_TO_COMPARE)) if is_some else selection
    every = [fits(names, some, SCORING) for names in found]
    tried = [one for one in every if one and one[0].gain > _TELLS * (share if is_some else 1)]
    # Of a sequence that tells nothing as yet more draws may show that it does.
    goes_on = selection.size >= _ENOUGH_TO_GO_ON and _all_vary(first)
    going_on = _sequences(found, selection) if goes_on else {}
    if len({*going_on, *(tuple(one[0].names) for one in tried)}) < 2:
        return []
    if is_some:
        every = [_of_all(one, selection, going_on.get(tuple(one[0].names))) for one in tried]
        tried = [one for one in every if one and one[0].gain > _TELLS]
    telling = {tuple(one[0].names): one[0] for one in tried}
    best = {**going_on, **telling}
    if len(best) < 2:
        return []
    # Until it does, it is added up only where nothing else is.
    shown = list((telling if len(telling) > 1 else best).values())
    held_out = np.asarray(sum(one.scored.held_out for one in shown))
    halves = np.asarray(sum(one.halves for one in shown))
    scored = Scored(NAME, held_out, partial(_frozen, shown), halves)
    if not going_on:
        return [by_score(scored, selection)]
    total = _learned_anew([_more_telling(one, going_on.get(name)) for name, one in best.items()])
    return [relearned(scored, selection, total) if total.ways else by_score(scored, selection)]


def _all_vary(some: SelectionDraws) -> bool:
    """Return whether every column varies. What others depend on is not known of one that hardly
    does, and what it tells might be added up twice."""
    columns = (one for one in some.outcomes.columns if not one.name.startswith(KIND))
    most = (np.bincount(equal_mass_groups(one, _GROUPS)).max() for one in columns)
    return all(often < _VARIES * some.size for often in most)


def _of_all(some: Sequence[Fit], selection: SelectionDraws, sequence: Fit | None) -> list[Fit]:
    """Return the fits to all draws by the attacks that some were fitted by, the best one first.
    sequence: that of a sequence, if it is there."""
    known = [] if sequence is None else [sequence]
    attacks = [one.attack for one in some if all(one.attack is not fit.attack for fit in known)]
    return sorted([*known, *fits(some[0].names, selection, attacks)], key=lambda one: -one.gain)


def _sequences(
    by_part: Iterable[Sequence[str]], selection: SelectionDraws
) -> dict[tuple[str, ...], Fit]:
    """Return the fits of parts that are sequences, by the names of their columns."""
    found = {}
    for names in by_part:
        if len(names) == 1:
            continue
        every = fits(names, selection, [prefixes]) or fits(names, selection, [banded_sums])
        found.update({tuple(names): one for one in every if isinstance(one.scored, SequenceScored)})
    return found


def _more_telling(best: Fit, sequence: Fit | None) -> Fit:
    """Return the fit of a part that more draws are likely to make most of."""
    if sequence is None or sequence.gain < best.gain / 2 - _TELLS:
        return best
    return sequence


def _learned_anew(best: Sequence[Fit]) -> Sum:
    """Return what scores add up, those of sequences to be learned anew."""
    others, ways, names = [], [], []
    for one in best:
        if isinstance(one.scored, SequenceScored):
            ways.append(one.scored.way.through(partial(only, tuple(one.names))))
            names.append(tuple(one.names))
        else:
            others.append(one)
    rest = _frozen(others) if others else None
    return Sum(tuple(ways), partial(_added_up, rest, tuple(names)), rest)


def _added_up(
    rest: Parts | None, names: Sequence[tuple[str, ...]], scores: Sequence[Prefixes]
) -> Parts:
    """Return the sum of the rest, whose scores stay as they are, and of those of sequences."""
    every = (*(() if rest is None else rest.scores), *zip(scores, names, strict=True))
    columns = [] if rest is None else [*rest.columns]
    columns += [column for score in scores for column in score.columns]
    return Parts(every, shares([name for name, _ in columns], [weight for _, weight in columns]))


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """The score that adds up those of independent parts; NaN where one of them has none.

    scores: of each part, with the names of its columns.
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
    """Return the names of columns by part; those that depend on no other are one part together.
    None where all columns are one part, where none depends on another, or of many parts."""
    if len(some.outcomes.columns) > 2 * _MOST_COLUMNS:
        return []
    columns = [one for one in some.outcomes.columns if not one.name.startswith(KIND)]
    if not _FEWEST_COLUMNS <= len(columns) <= _MOST_COLUMNS:
        return []
    arm = some.is_d1.astype(np.intp)
    groups = [equal_mass_groups(one, _GROUPS) for one in columns]
    left, found, alone = set(range(len(columns))), list[list[int]](), list[int]()
    while left:
        part = _reached(min(left), left, groups, arm)
        left -= part
        if len(part) > 1:
            found.append(sorted(part))
        else:
            alone += part
    if not 0 < len(found) <= _MOST_PARTS or len(found[0]) == len(columns):
        return []
    return [[columns[place].name for place in part] for part in (*found, alone) if part]


def _reached(
    first: int, left: Iterable[int], groups: Sequence[IntArray], arm: IntArray
) -> set[int]:
    """Return those of the columns that are left that depend on the first one, or on a column that
    does, and the first one."""
    luck = 2 * _LUCK / (len(groups) * (len(groups) - 1))
    found, others, open_ = {first}, set(left) - {first}, [first]
    while open_ and others:
        place = open_.pop()
        new = {one for one in others if _depend(groups[place], groups[one], arm, luck)}
        found, others, open_ = found | new, others - new, [*open_, *new]
    return found


def _depend(one: IntArray, other: IntArray, arm: IntArray, luck: float) -> bool:
    """Return whether two columns depend on each other, given the input: by Pearson's χ². luck: the
    chance that it is said of two that do not."""
    cell = (arm * _GROUPS + one) * _GROUPS + other
    tables = np.bincount(cell, minlength=2 * _GROUPS**2).reshape(2, _GROUPS, -1)
    total, freedom = chi_squared(tables, _LEAST_EXPECTED)
    return freedom > 0 and bool(chdtrc(freedom, total) < luck)
