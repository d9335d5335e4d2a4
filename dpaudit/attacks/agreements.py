"""The scorer of agreements: whether two entries of an output are equal.

Equal records may get equal labels, such as random names of clusters. Each entry alone then has the
same law for both inputs, and only the agreement of two entries tells the inputs apart. Labels and
integers are compared, if an output has at most 64 of them. A pair of entries is used if it agrees
more often on one input, beyond luck and beyond what each entry alone explains.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpaudit.attacks.weighted_sums import logistic
from dpaudit.draws import LevelArray, SelectionDraws, by_arm
from dpaudit.levels.candidates import Candidate, by_score, fixed
from dpaudit.levels.cells import NO_OUTPUT
from dpaudit.levels.level_map import FloatArray, LevelMap
from dpaudit.levels.limits import (
    KEPT_BEST,
    MAX_DRAWS_SLOW,
    MAX_FLOATS,
    MIN_DRAWS_TO_RANK,
    PAIR_TEST_ALPHA,
)
from dpaudit.levels.scores import Score, Scored, with_most
from dpaudit.outcomes import ELAPSED, KIND, Column, KeyArray, Outcomes
from dpaudit.outcomes.tables import Table, unsigned

NAME = "agreement of two entries"
SUM = "weighted sum of agreements"
# With more labels and integers, there would be more than 2,016 pairs of them.
MAX_ENTRIES = 64
# Largest number of pairs of entries in a weighted sum.
MAX_PAIRS = 32

# The names of two columns whose entries are compared.
Pair = tuple[str, str]


def agreements(selection: SelectionDraws) -> list[Candidate]:
    """Return orders of outcomes by whether two entries are equal: one for each of the two most
    informative pairs of entries, and one by a weighted sum over all informative pairs, at most 32.
    """
    columns = [column for column in selection.outcomes.columns if _is_comparable(column)]
    if not 1 < len(columns) <= MAX_ENTRIES:
        return []
    pairs = _informative(columns, selection.is_d1)
    return [*(_by_one(pair, selection) for pair in pairs[:KEPT_BEST]), *_by_sum(pairs, selection)]


@dataclass(frozen=True, slots=True)
class AgreementLevels(LevelMap):
    """Two levels, 0 and 1, by whether a pair of entries is equal.

    equal: the level of outcomes in which they are equal.
    """

    pair: Pair
    equal: int

    @property
    def levels(self) -> int:
        return 3

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        (agree,) = _agree([self.pair], outcomes)
        return np.where(agree, self.equal, 1 - self.equal).astype(np.intp)

    def alternatives(self, chosen: NDArray[np.bool_]) -> tuple[int, int]:
        return 0, 2 * int(chosen[:2].any())  # an equation is less plain than one interval

    def words(self, chosen: NDArray[np.bool_]) -> str:
        first, second = self.pair
        if chosen[:2].all():
            return "any output"
        if not chosen[:2].any():
            return NO_OUTPUT
        return f"{first} {'=' if chosen[self.equal] else '≠'} {second}"


@dataclass(frozen=True, slots=True)
class AgreementScore:
    """The score that sums weights of pairs of entries that are equal."""

    pairs: tuple[Pair, ...]
    score: Score

    @property
    def columns(self) -> tuple[tuple[str, float], ...]:
        return self.score.columns

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        return self.score(_table(self.pairs, outcomes))

    def words(self) -> str:
        return with_most(f"adds up weights of {len(self.pairs):,} agreements", self.columns)


def _is_comparable(column: Column) -> bool:
    """Return whether all entries of a column are labels or integers."""
    if column.name == ELAPSED or column.name.startswith(KIND):
        return False
    # The first draw is enough to leave out most columns of other numbers.
    samples = (column.numbers[:draws] for draws in (1, MAX_DRAWS_SLOW))
    return all((np.isnan(sample) | (sample == np.rint(sample))).all() for sample in samples)


def _informative(columns: Sequence[Column], is_d1: NDArray[np.bool_]) -> tuple[Pair, ...]:
    """Return the pairs whose agreement differs between d1 and d2, the most significant first."""
    first, second = np.triu_indices(len(columns), 1)
    rows = min(len(is_d1), MAX_DRAWS_SLOW, max(MIN_DRAWS_TO_RANK, MAX_FLOATS // len(first)))
    keys = np.stack([unsigned(column.take(slice(rows))).keys() for column in columns])
    arms = keys[:, is_d1[:rows]], keys[:, ~is_d1[:rows]]
    if min(arm.shape[1] for arm in arms) == 0:
        return ()
    (d1, variance_d1), (d2, variance_d2) = map(_excess, arms)
    deviations = np.abs(d1 - d2) / np.sqrt(variance_d1 + variance_d2)
    order = np.argsort(-deviations, kind="stable")[:MAX_PAIRS]
    order = order[2 * ndtr(-deviations[order]) * len(first) < PAIR_TEST_ALPHA]
    return tuple((columns[first[i]].name, columns[second[i]].name) for i in order)


def _excess(keys: KeyArray) -> tuple[FloatArray, FloatArray]:
    """Return by how much each pair agrees more often than independent entries, and the variance."""
    draws = keys.shape[1]
    # An entry of the draw before is independent, and has the law of the entry.
    independent = np.roll(keys, 1, axis=1)
    more, fewer = [], []
    for index, later in ((index, keys[index + 1 :]) for index in range(len(keys) - 1)):
        is_equal, is_equal_alone = keys[index] == later, independent[index] == later
        more.append((is_equal & ~is_equal_alone).sum(axis=1))
        fewer.append((~is_equal & is_equal_alone).sum(axis=1))
    plus, minus = np.concatenate(more), np.concatenate(fewer)
    mean = (plus - minus) / draws
    # One more draw keeps the variance above 0 if all draws are alike.
    return mean, ((plus + minus + 1) / draws - mean**2) / draws


def _by_one(pair: Pair, selection: SelectionDraws) -> Candidate:
    """Return the order by the agreement of two entries."""
    counts = by_arm(AgreementLevels(pair, 1)(selection.outcomes), 3, selection.is_d1)
    (others_d1, others_d2), (equal_d1, equal_d2), _ = counts.tolist()
    is_d1 = equal_d1 * others_d2 >= equal_d2 * others_d1
    levels = AgreementLevels(pair, int(is_d1))
    return Candidate(NAME, counts if is_d1 else counts[[1, 0, 2]], fixed(levels))


def _by_sum(pairs: tuple[Pair, ...], selection: SelectionDraws) -> list[Candidate]:
    """Return the order by a weighted sum of agreements; an empty list for fewer than two pairs."""
    if len(pairs) < 2:
        return []
    orders = logistic(SelectionDraws(_table(pairs, selection.outcomes), selection.is_d1))
    scores = [order.scored for order in orders if order.scored]
    return [
        by_score(replace(scored, attack=SUM, final_score=partial(_final, pairs, scored)), selection)
        for scored in scores
    ]


def _final(pairs: tuple[Pair, ...], scored: Scored) -> AgreementScore:
    return AgreementScore(pairs, scored.final_score())


def _table(pairs: Sequence[Pair], outcomes: Outcomes) -> Table:
    """Return a table with a column for each pair of entries: 1 if they are equal, else 0."""
    names = [f"{first} = {second}" for first, second in pairs]
    agree = _agree(pairs, outcomes).astype(np.float64)
    return Table(tuple(map(Column, names, agree)), outcomes.size)


def _agree(pairs: Sequence[Pair], outcomes: Outcomes) -> NDArray[np.bool_]:
    """Return whether the entries of each pair are equal: (pairs, size)."""
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    columns = zip(names, outcomes.named(names), strict=True)
    keys = {name: unsigned(column).keys() for name, column in columns}
    return np.stack([keys[first] == keys[second] for first, second in pairs])
