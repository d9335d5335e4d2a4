"""The attack on outputs of several kinds: vectors and None, lists of several lengths, a dict or an
exception.

Of what kind an output is tells something, and those of one kind tell more by themselves: what each
of their entries adds to those before it, say, is not known of a vector with a gap.
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
from dpaudit.levels.candidates import OrderedBins, by_score
from dpaudit.levels.level_map import FOLDS, HALF, FloatArray, folds
from dpaudit.levels.scores import Score, Scored, shares, with_most
from dpaudit.outcomes import KIND, Column, KeyArray, Outcomes
from dpaudit.outcomes.columns import kind_word, mix, text_key
from dpaudit.outcomes.tables import Table

NAME = "outputs of each kind by themselves"

_LEAST_DRAWS = 2_000
_MOST_COLUMNS = 128
# Kinds that are looked at: so many, each of so large a share of the draws.
_MOST_KINDS, _SHARE = 3, 0.1
# Of many draws some are enough to see which attacks are worth fitting to all.
_ENOUGH_TO_COMPARE = 10_000
# Nats that outputs of a kind must explain, so that it is not noise alone, and all together beyond
# what the sum over columns does.
_TELLS = 3.0


def kinds(selection: SelectionDraws) -> list[OrderedBins]:
    """Order outcomes of the most frequent kinds by the best score of each, and by how much likelier
    the kind is for d1; all others by the sum over columns."""
    outcomes = selection.outcomes
    columns = outcomes.columns
    if selection.size < _LEAST_DRAWS or not 1 < len(columns) <= _MOST_COLUMNS:
        return []
    if all(one.codes is None for one in columns):
        return []
    names = tuple(dict.fromkeys(one.name.removeprefix(KIND) for one in columns))
    keys = _kinds(names, outcomes)
    usual = _usual(keys)
    if not usual:
        return []
    found = [(key, _fit(key, keys, names, selection)) for key in usual]
    telling = [(key, fit) for key, fit in found if fit is not None]
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
    if gain(held_out, selection.is_d1) < gain(rest.held_out, selection.is_d1) + _TELLS:
        return []
    freeze = partial(_frozen, names, telling, offsets, rest, selection.size)
    return [by_score(Scored(NAME, held_out, freeze, halves), selection)]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """Outputs of one kind. key: by which it is known. offset: what makes the score a
    log-ratio. names: of the columns that the score is of."""

    key: int
    offset: float
    score: Score
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ByKind:
    """The score of the kind of an output. names: of the columns that kinds are known by. rest: the
    score of outputs of other kinds."""

    names: tuple[str, ...]
    kinds: tuple[Kind, ...]
    rest: Score
    columns: tuple[tuple[str, float], ...]

    def __call__(self, outcomes: Outcomes) -> FloatArray:
        keys = _kinds(self.names, outcomes)
        found = np.empty(outcomes.size)
        left = np.ones(outcomes.size, dtype=bool)
        for one in self.kinds:
            is_own = keys == np.uint64(one.key)
            if is_own.any():
                found[is_own] = one.offset + one.score(_of(one.names, outcomes, is_own))
                left &= ~is_own
        if left.any():
            found[left] = self.rest(outcomes.take(np.flatnonzero(left)))
        return found

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
    """Return a key of the kind of every outcome: in which columns it has numbers, texts, None, or
    no entry."""
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
    """Return the keys of the most frequent kinds; none where there is only one."""
    values, counts = np.unique(keys, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST_KINDS]
    often = counts[order] >= max(_SHARE * len(keys), _LEAST_DRAWS / 2)
    return [] if len(values) == 1 else [int(key) for key in values[order][often]]


def _fit(key: int, keys: KeyArray, names: Sequence[str], selection: SelectionDraws) -> Fit | None:
    """Return the score that explains the outputs of a kind best, if one does."""
    is_own = keys == np.uint64(key)
    table = _of(names, selection.outcomes, is_own)
    telling = [one.name for one in table.all_columns if _varies(one)]
    if not telling:
        return None
    own = SelectionDraws(table, selection.is_d1[is_own])
    some, attacks = own.take(slice(_ENOUGH_TO_COMPARE)), (*SCORING, parts)
    found = fits(telling, some, attacks)
    if some.size < own.size:
        found = fits(telling, own, [one.attack for one in found])
    return found[0] if found and found[0].gain > _TELLS else None


def _of(names: Iterable[str], outcomes: Outcomes, rows: NDArray[np.bool_]) -> Table:
    """Return some outcomes, in which columns of numbers have no labels."""
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
    """Return what makes the scores of a kind log-ratios, in which is how much likelier the kind is
    for d1: (folds + 1,), by the draws without each fold and by all, and (2,), by each half.

    usual: the log-odds of all draws, of whatever kind.
    """
    fold, held_out = folds(len(is_d1)), fit.scored.held_out
    without = [fold != one for one in range(FOLDS)]
    every = [offset(held_out[some], is_d1[some]) for some in without]
    own = fold < HALF, fold >= HALF
    halves = [offset(fit.halves[n][some], is_d1[some]) for n, some in enumerate(own)]
    return np.array([*every, offset(held_out, is_d1)]) - usual, np.array(halves) - usual
