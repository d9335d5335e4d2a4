"""The scorer of outputs of several types: vectors and None, lists of different lengths, dicts,
exceptions.

The type of an output has a log-ratio of d1 and d2. In addition, the outputs of one type can be
scored by scorers that need complete vectors, since in a vector with a gap the evidence of an entry
given the entries before it is unknown. `learning.py` calls `kinds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.additive import summed
from dpaudit.attacks.block_scores import SCORING, Fit, fits, gain, log_odds, offset
from dpaudit.attacks.independent_blocks import parts
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import OrderedBins, by_score
from dpaudit.levels.level_map import FOLDS, HALF, FloatArray, folds
from dpaudit.levels.limits import ENOUGH_TO_COMPARE, MOST_COLUMNS
from dpaudit.levels.scores import Score, Scored, shares, with_most
from dpaudit.outcomes import KIND, Column, KeyArray, Outcomes
from dpaudit.outcomes.columns import kind_word, mix, text_key
from dpaudit.outcomes.tables import Table

NAME = "outputs of each kind by themselves"

# Least number of draws.
_LEAST_DRAWS = 2_000
# Largest number of types with a score of their own, and the least share of the draws of such a
# type.
_MOST_KINDS, _SHARE = 3, 0.1


def kinds(selection: SelectionDraws) -> list[OrderedBins]:
    """Order outcomes by type: an outcome of a frequent type by the best score for this type plus
    the log-ratio of the type, any other outcome by the sum over columns."""
    outcomes = selection.outcomes
    columns = outcomes.columns
    if selection.size < _LEAST_DRAWS or not 1 < len(columns) <= MOST_COLUMNS:
        return []
    if all(one.codes is None for one in columns):
        return []
    names = tuple(dict.fromkeys(one.name.removeprefix(KIND) for one in columns))
    keys = _kinds(names, outcomes)
    usual = _usual(keys)
    if not usual:
        return []
    result = [(key, _fit(key, keys, names, selection)) for key in usual]
    telling = [(key, fit) for key, fit in result if fit is not None]
    if not telling:
        return []
    rest = summed(selection, columns)
    if rest.halves is None:
        return []
    held_out, halves = rest.held_out.copy(), rest.halves.copy()
    offsets = []
    for key, fit in telling:
        rows = np.flatnonzero(keys == np.uint64(key))
        by_fold, by_half = _offsets(fit, selection.is_d1[rows], log_odds(selection.is_d1))
        held_out[rows] = fit.scored.held_out + by_fold[folds(len(rows))]
        halves[:, rows] = fit.halves + by_half[:, None]
        offsets.append(by_fold[-1])
    if (
        gain(held_out, selection.is_d1)
        < gain(rest.held_out, selection.is_d1) + tuning.GAIN_OF_BLOCK
    ):
        return []
    freeze = partial(_frozen, names, telling, offsets, rest, selection.size)
    return [by_score(Scored(NAME, held_out, freeze, halves), selection)]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """The score of outputs of one type.

    key: hash of the type.
    offset: constant that makes the score a log-ratio, which includes the log-ratio of the type.
    score: the score of outputs of this type.
    names: names of the columns that the score uses.
    """

    key: int
    offset: float
    score: Score
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ByKind:
    """The score of outputs of several types.

    names: names of the columns that types are recognised by.
    kinds: the types with a score of their own.
    rest: the score of outputs of all other types.
    columns: (name, share) of the columns that the score depends on most.
    """

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rest: Score
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        keys = _kinds(self.names, outcomes)
        result = np.empty(outcomes.size)
        left = np.ones(outcomes.size, dtype=bool)
        for one in self.kinds:
            is_own = keys == np.uint64(one.key)
            if is_own.any():
                result[is_own] = one.offset + one.score(_of(one.names, outcomes, is_own))
                left &= ~is_own
        if left.any():
            result[left] = self.rest(outcomes.take(np.flatnonzero(left)))
        return result

    def words(self) -> str:
        some = f"{len(self.kinds)} kinds" if len(self.kinds) > 1 else "the usual kind"
        return with_most(f"scores outputs of {some} by themselves", self.columns)


def _frozen(
    names: tuple[str, ...],
    telling: Sequence[tuple[int, Fit]],
    offsets: Sequence[float],
    rest: Scored,
    size: int,
) -> ByKind:
    made = [
        Kind(key, float(added), fit.scored.freeze(), tuple(fit.names))
        for (key, fit), added in zip(telling, offsets, strict=True)
    ]
    weights: dict[str, float] = {}
    for (_, fit), one in zip(telling, made, strict=True):
        spread = float(np.nanstd(fit.scored.held_out)) * len(fit.scored.held_out) / size
        for name, share in one.score.columns:
            weights[name] = weights.get(name, 0.0) + spread * share
    columns = shares(list(weights), list(weights.values()))
    return ByKind(names, tuple(made), rest.freeze(), columns)


def _kinds(names: Iterable[str], outcomes: Outcomes) -> KeyArray:
    """Return a hash of the type of every outcome: (size,). The type is, for each column, whether
    the entry is a number, text, None, or absent."""
    total = np.zeros(outcomes.size, dtype=np.uint64)
    for column in outcomes.named(names):
        if column.codes is None:
            continue
        every = list(map(kind_word, column.labels))
        known = {one: text_key(f"{column.name} is {one}") for one in set(every)}
        own = np.array([0, *(known[one] for one in every)], dtype=np.uint64)
        total += mix(own)[column.codes]
    return total


def _usual(keys: KeyArray) -> list[int]:
    """Return the hashes of at most three types, each with at least a tenth of the draws and 1,000
    draws; an empty list if there is only one type.

    keys: (draws,), the hash of the type of each draw.
    """
    values, counts = np.unique(keys, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_KINDS]
    often = counts[order] >= max(_SHARE * len(keys), _LEAST_DRAWS / 2)
    return [] if len(values) == 1 else [int(key) for key in values[order][often]]


def _fit(key: int, keys: KeyArray, names: Sequence[str], selection: SelectionDraws) -> Fit | None:
    """Return the score that explains the outputs of one type best; None if no score explains 3
    nats.

    key: hash of the type.
    keys: (draws,), the hash of the type of each draw.
    names: names of the columns to use.
    """
    is_own = keys == np.uint64(key)
    table = _of(names, selection.outcomes, is_own)
    telling = [one.name for one in table.all_columns if _varies(one)]
    if not telling:
        return None
    own = SelectionDraws(table, selection.is_d1[is_own])
    some, attacks = own.take(slice(ENOUGH_TO_COMPARE)), (*SCORING, parts)
    result = fits(telling, some, attacks)
    if some.size < own.size:
        result = fits(telling, own, [one.attack for one in result])
    return result[0] if result and result[0].gain > tuning.GAIN_OF_BLOCK else None


def _of(names: Iterable[str], outcomes: Outcomes, rows: NDArray[np.bool_]) -> Table:
    """Return some outcomes as a table. A column loses its labels if all its entries there are
    numbers.

    rows: (size,), True for the outcomes to return.
    """
    columns = tuple(_without_labels(one.take(rows)) for one in outcomes.named(names))
    return Table(columns, int(rows.sum()))


def _without_labels(column: Column) -> Column:
    has_labels = column.codes is not None and column.codes.any()
    return column if has_labels else Column(column.name, column.numbers)


def _varies(column: Column) -> bool:
    if column.codes is not None and (column.codes != column.codes[0]).any():
        return True
    return column.codes is None and bool((column.numbers != column.numbers[0]).any())


def _offsets(fit: Fit, is_d1: NDArray[np.bool_], usual: float) -> tuple[FloatArray, FloatArray]:
    """Return the constants that make the scores of one type log-ratios, the log-ratio of the type
    included: (folds + 1,), from the draws without each fold, then from all draws; and (2,), from
    each half of the draws.

    is_d1: whether each draw of this type was made on d1.
    usual: log-odds of d1 among draws of all types.
    """
    fold, held_out = folds(len(is_d1)), fit.scored.held_out
    without = [fold != one for one in range(FOLDS)]
    every = [offset(held_out[some], is_d1[some]) for some in without]
    own = fold < HALF, fold >= HALF
    halves = [offset(fit.halves[n][some], is_d1[some]) for n, some in enumerate(own)]
    return np.array([*every, offset(held_out, is_d1)]) - usual, np.array(halves) - usual
