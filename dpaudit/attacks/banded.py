"""The scorer of sequences that mix numbers with a few special values, such as the answers of the
sparse vector technique.

The place of the first answer and its size tell more together than each alone. A low answer above
the threshold shows that the threshold is low, so that the entries before it weigh more. So each
number is replaced by its band (one of at most five intervals, see `outcomes/bands.py`), and the
result is scored as a sequence of few values by `prefixes.py`. `learning.py` calls `banded`,
`block_scores.py` calls `banded_sums`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from dpaudit.attacks.counted_sequences import SequenceScored, Sum, relearned
from dpaudit.attacks.prefixes import prefixes
from dpaudit.attacks.sequences import Prefixes
from dpaudit.attacks.single_outputs import atoms
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate, OrderedBins
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.limits import FIRST_DRAWS, MOST_COLUMNS
from dpaudit.outcomes import KIND, Column
from dpaudit.outcomes.columns import ELAPSED
from dpaudit.outcomes.known import Bands

NAME = "numbers in bands: "

# Least number of draws.
_LEAST_DRAWS = 1_000
# Least number of columns that have both numbers and special values.
_FEWEST_COLUMNS = 2
# A special value makes up at least 0.5 % of its column and is at least 4 times as frequent as any
# ordinary value. A column has at most 3 special values.
_OFTEN, _TIMES_AS_OFTEN, _MOST_ALONE = 0.005, 4, 3
# Least number of different ordinary values.
_FEWEST_OTHERS = 16
# Quantiles between the bands. The outer bands are narrow, since the rarest numbers tell most.
_SHARES = (0.1, 0.3, 0.7, 0.9)
# Largest ratio of different sequences to draws; with more, each sequence is too rare to be a cell.
_MOST_SEQUENCES = 0.25


def banded(selection: SelectionDraws) -> list[Candidate]:
    """Order sequences of numbers and special values, after each number is replaced by its band.
    Return an order of whole sequences, if they repeat, and the orders by sums over entries."""
    some = selection.outcomes.take(slice(FIRST_DRAWS))
    bands = _bands_of(selection)
    if bands is None:
        return []
    inner = SelectionDraws(bands(selection.outcomes), selection.is_d1)
    sequences = len(np.unique(bands(some).keys()))
    every = atoms(inner, bands) if sequences <= _MOST_SEQUENCES * some.size else []
    result = [replace(one, attack=NAME + one.attack) for one in every]
    return [*result, *_sums(bands, inner, selection)]


def banded_sums(selection: SelectionDraws) -> list[OrderedBins]:
    """Order such sequences by the sum over entries of the log-ratio of each entry, given the
    entries before it."""
    bands = _bands_of(selection)
    if bands is None:
        return []
    return _sums(bands, SelectionDraws(bands(selection.outcomes), selection.is_d1), selection)


def _sums(bands: Bands, inner: SelectionDraws, selection: SelectionDraws) -> list[OrderedBins]:
    """Return the orders by sums over entries.

    inner: the draws with numbers replaced by bands.
    selection: the same draws as they are.
    """
    result = []
    for one in prefixes(inner):
        if isinstance(one, OrderedBins) and isinstance(one.scored, SequenceScored):
            sequence_view = replace(
                one.scored.sequence_view, states=one.scored.sequence_view.states.through(bands)
            )
            scored = replace(
                one.scored,
                attack=NAME + one.attack,
                freeze=partial(_frozen, bands, one.scored.freeze),
                sequence_view=sequence_view,
            )
            result.append(relearned(scored, selection, Sum.of(scored)))
    return result


def _bands_of(selection: SelectionDraws) -> Bands | None:
    if selection.size < _LEAST_DRAWS:
        return None
    return _bands(selection.outcomes.take(slice(FIRST_DRAWS)).columns)


def _frozen(bands: Bands, freeze: Callable[[], Prefixes]) -> Prefixes:
    return freeze().through(bands)


def _bands(columns: Sequence[Column]) -> Bands | None:
    """Return the bands for the numbers of columns that also have a few special values; None if
    there are fewer than two such columns."""
    if not _FEWEST_COLUMNS <= len(columns) <= MOST_COLUMNS:
        return None
    names, alone, rest = [], set[float](), [np.empty(0)]
    for column in columns:
        numbers = column.numbers if column.codes is None else column.numbers[column.codes == 0]
        often = _standing_alone(numbers, len(column.numbers))
        others = numbers[~np.isin(numbers, often)]
        has_both = len(others) > 0 and (len(often) > 0 or len(numbers) < len(column.numbers))
        is_left = column.name == ELAPSED or column.name.startswith(KIND)
        if has_both and not (is_left or _are_codes(others, len(numbers))):
            names.append(column.name)
            alone |= set(often.tolist())
            rest.append(others)
    every = np.concatenate(rest)
    is_many = len(np.unique(every)) >= _FEWEST_OTHERS
    if len(names) < _FEWEST_COLUMNS or len(alone) > _MOST_ALONE or not is_many:
        return None
    exact = np.unique(np.quantile(every, _SHARES))
    if not np.isfinite(exact).all():
        return None
    # Short decimals, so that reports show the exact edges, except where two edges would become
    # equal.
    short = np.unique([float(f"{edge:.4g}") for edge in exact])
    edges = short if len(short) == len(exact) else exact
    return Bands(frozenset(names), tuple(sorted(alone)), tuple(edges.tolist()))


def _are_codes(others: FloatArray, size: int) -> bool:
    """Return whether the ordinary values of a column are codes with a meaning each: fewer than 16
    values, none of them rare.

    size: number of numbers in the column.
    """
    values, counts = np.unique(others, return_counts=True)
    return len(values) < _FEWEST_OTHERS and bool((counts >= _OFTEN * size).all())


def _standing_alone(numbers: FloatArray, size: int) -> FloatArray:
    """Return the special values of a column: at most three numbers that are each frequent and much
    more frequent than all others. Whole numbers with wide noise have none.

    size: number of entries of the column, labels included.
    """
    values, counts = np.unique(numbers, return_counts=True)
    order = np.argsort(-counts, kind="stable")[: _MOST_ALONE + 1]
    many = np.append(counts[order], 0)
    stands = (many[:-1] >= _OFTEN * size) & (many[:-1] >= _TIMES_AS_OFTEN * many[1:])
    last = np.flatnonzero(stands[:_MOST_ALONE])
    return values[order[: last[-1] + 1]] if len(last) else values[:0]
