"""Scorers of sequences. They use the log-ratio of each entry, given the entries before it.

`prefixes` is for sequences of few distinct values. Usually, the state is the count of each value
among the earlier entries. Counts lose no evidence if the entries are independent and have one
distribution, given a number that they share, such as the noisy threshold of the sparse vector
technique. If the last value predicts the next value better, as in a Markov chain, the state is the
last value, alone or with the counts, whichever fits the draws better.

`banded` is for sequences that mix numbers with a few special values, such as a number for each
query above a noisy threshold, and 0 for all others. A small number shows that the threshold is low,
and zeros before it say more about the input if the threshold is low. So each number is replaced by
its band (`outcomes/known.py`), which makes a sequence of few values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dpaudit.attacks.counted_sequences import SequenceScored, Sum, relearned
from dpaudit.attacks.sequences import NAME, MarkovStates, Prefixes, depend, weights
from dpaudit.attacks.single_outputs import atoms
from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate
from dpaudit.levels.level_map import FOLDS, FloatArray, by_fold, folds, training_counts
from dpaudit.levels.limits import EXAMINED_DRAWS, MAX_COLUMNS, MIN_DRAWS_SLOW
from dpaudit.levels.scores import aligned
from dpaudit.outcomes import KIND, Column, Outcomes
from dpaudit.outcomes.columns import ELAPSED
from dpaudit.outcomes.known import Bands

# Beginning of the name of each order of sequences whose numbers were replaced by bands (intervals).
BANDED = "numbers in bands: "
# A special value of a column, such as 0 for "no answer", makes up at least 0.5 % of its entries and
# is at least 4 times as frequent as any ordinary value. A column has at most 3 special values.
_MIN_SPECIAL_SHARE, _SPECIAL_FACTOR, _MAX_SPECIAL = 0.005, 4, 3
# The numbers of a column are divided into five bands (intervals) at these quantiles and at 1 minus
# these: at 10, 30, 70 and 90 %. The outer bands hold fewer numbers, since extreme numbers are the
# most informative.
_BAND_QUANTILES = (0.1, 0.3)


def prefixes(selection: SelectionDraws) -> list[Candidate]:
    """Return orders of sequences whose entries take few distinct values, by the sum over entries of
    the log-ratio of each entry given the entries before it."""
    return _by_entry(selection.outcomes, selection)


def banded(selection: SelectionDraws) -> list[Candidate]:
    """Return orders of sequences of numbers and special values, in which each number is replaced by
    its band. One is by a sum over entries; if sequences of bands repeat, another is by the
    log-ratios of whole sequences."""
    bands = _bands_of(selection)
    if bands is None:
        return []
    sequences = bands(selection.outcomes)
    every = atoms(SelectionDraws(sequences, selection.is_d1), bands)
    sequence_orders = [replace(order, attack=BANDED + order.attack) for order in every]
    return [*sequence_orders, *_by_entry(sequences, selection, bands)]


def banded_sums(selection: SelectionDraws) -> list[Candidate]:
    """Return orders of sequences that mix numbers with special values, in which each number is
    replaced by its band. The score is the sum over entries of the log-ratio of each entry given the
    entries before it."""
    bands = _bands_of(selection)
    return [] if bands is None else _by_entry(bands(selection.outcomes), selection, bands)


def _by_entry(
    sequences: Outcomes, selection: SelectionDraws, bands: Bands | None = None
) -> list[Candidate]:
    """Return the order by log-ratios of entries given earlier ones, in a list; [] if impossible."""
    if selection.size < MIN_DRAWS_SLOW:
        return []
    states = MarkovStates.over(sequences)
    if states is None:
        return []
    counts = [
        by_fold(cell, step.cells, selection.is_d1).reshape(FOLDS, *step.shape, 2)
        for cell, step in zip(states.cells, states.steps, strict=True)
    ]
    if not depend([table.sum(axis=0) for table in counts]):
        return []
    fits = weights([training_counts(table) for table in counts], states)
    fold = folds(selection.size)
    held_out, final = np.zeros(selection.size), np.zeros(selection.size)
    halves, spread = np.zeros((2, selection.size)), []
    for cell, fit in zip(states.cells, fits, strict=True):
        held_out += fit.take(fold * fit.shape[1] + cell)
        log_ratios = fit[FOLDS].take(cell)
        final += log_ratios
        for half, by_half in zip(halves, fit[-2:], strict=True):
            half += by_half.take(cell)
        spread.append(float(log_ratios.std()))
    states = replace(states, cells=())  # arrays as long as the draws are not kept
    if bands is not None:
        states = states.through(bands)
    final_score = partial(Prefixes.of, states, [fit[FOLDS] for fit in fits], spread)
    name = NAME if bands is None else BANDED + NAME
    scored = SequenceScored(
        name, aligned(held_out, fold, final), final_score, halves, states=states
    )
    return [relearned(scored, selection, Sum.of(scored))]


def _bands_of(selection: SelectionDraws) -> Bands | None:
    if selection.size < MIN_DRAWS_SLOW:
        return None
    return _bands(selection.outcomes.take(slice(EXAMINED_DRAWS)).columns)


def _bands(columns: Sequence[Column]) -> Bands | None:
    """Return bands for columns that mix numbers with special values; None if there are too few."""
    if not 1 < len(columns) <= MAX_COLUMNS:
        return None
    names, alone, ordinary_numbers = [], set[float](), [np.empty(0)]
    for column in columns:
        numbers = column.numbers if column.codes is None else column.numbers[column.codes == 0]
        often = _standing_alone(numbers, len(column.numbers))
        ordinary = numbers[~np.isin(numbers, often)]
        has_both = len(ordinary) > 0 and (len(often) > 0 or len(numbers) < len(column.numbers))
        is_left = column.name == ELAPSED or column.name.startswith(KIND)
        if has_both and not (is_left or _are_codes(ordinary, len(numbers))):
            names.append(column.name)
            alone |= set(often.tolist())
            ordinary_numbers.append(ordinary)
    every = np.concatenate(ordinary_numbers)
    is_many = len(np.unique(every)) > tuning.FEW_CELLS
    if len(names) < 2 or len(alone) > _MAX_SPECIAL or not is_many:
        return None
    exact = np.unique(
        np.quantile(every, [*_BAND_QUANTILES, *(1 - share for share in _BAND_QUANTILES)])
    )
    if not np.isfinite(exact).all():
        return None
    # Edges are rounded to four digits, so that reports can show them exactly. If rounding would
    # make two edges equal, they stay exact.
    short = np.unique([float(f"{edge:.4g}") for edge in exact])
    edges = short if len(short) == len(exact) else exact
    return Bands(frozenset(names), tuple(sorted(alone)), tuple(edges.tolist()))


def _are_codes(ordinary: FloatArray, size: int) -> bool:
    """Return whether ordinary numbers are codes, such as 1 for "yes": few values, none rare."""
    values, counts = np.unique(ordinary, return_counts=True)
    return len(values) <= tuning.FEW_CELLS and bool((counts >= _MIN_SPECIAL_SHARE * size).all())


def _standing_alone(numbers: FloatArray, size: int) -> FloatArray:
    """Return the special values of a column, which are much more frequent than others."""
    values, counts = np.unique(numbers, return_counts=True)
    order = np.argsort(-counts, kind="stable")[: _MAX_SPECIAL + 1]
    frequencies = np.append(counts[order], 0)
    stands = (frequencies[:-1] >= _MIN_SPECIAL_SHARE * size) & (
        frequencies[:-1] >= _SPECIAL_FACTOR * frequencies[1:]
    )
    last = np.flatnonzero(stands[:_MAX_SPECIAL])
    return values[order[: last[-1] + 1]] if len(last) else values[:0]
