"""Scorers of low-order bits: the last bits of a float show how it was computed.

Noise added in floating point leaves gaps that depend on the input (Mironov 2012, "On significance
of the least significant bits for differential privacy"); rounding to few decimals may, too.
`learning.py` adds `bits` if the option for floating-point attacks is on.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from dpaudit.attacks.additive import additive
from dpaudit.attacks.single_columns import ONE_COLUMN, orders_of, single_columns
from dpaudit.draws import SelectionDraws
from dpaudit.levels.candidates import Candidate, OrderedBins, by_score
from dpaudit.outcomes import Column, NamedColumns, Outcomes
from dpaudit.outcomes.aspects import ASPECTS, SPAN
from dpaudit.outcomes.columns import ELAPSED

_LOW_BITS = "low-order bits"
# Largest number of derived columns for which every column gets all orders.
_FEW = 20
# Largest number of different values of a column that is a bit, not a number with noise.
_BITS = 2


def bits(selection: SelectionDraws) -> list[Candidate]:
    """Order outcomes by the low-order bits and the decimals of their numbers, column by column and
    summed over columns."""
    columns = bit_columns(selection.outcomes, ASPECTS)
    if len(columns) == 0:
        return []
    if len(columns) <= _FEW:
        result = [one for column in columns for one in orders_of(column, selection)]
    else:
        result = single_columns(selection, columns)
    result += additive(selection, bit_columns(selection.outcomes, [SPAN]))
    return [_of_bits(one, selection) for one in result]


def bit_columns(outcomes: Outcomes, aspects: Iterable[str]) -> NamedColumns:
    """Return derived columns: one for each column with numbers and each aspect.

    aspects: prefixes of the names of derived columns, such as `decimal places of `.
    """
    names = [column.name for column in outcomes.columns if _has_numbers(column)]
    return NamedColumns(outcomes, [f"{aspect}{name}" for name in names for aspect in aspects])


def has_fractions(outcomes: Outcomes) -> bool:
    """Return whether some number is not an integer, and so has low-order bits."""
    return any(_is_fractional(column) for column in outcomes.columns)


def has_integers(outcomes: Outcomes) -> bool:
    """Return whether all numbers are integers, and some column has more than two values."""
    finite = [column.numbers[np.isfinite(column.numbers)] for column in outcomes.columns]
    are_whole = all((one == np.rint(one)).all() for one in finite)
    return are_whole and any(len(np.unique(one)) > _BITS for one in finite)


def _of_bits(result: Candidate, selection: SelectionDraws) -> Candidate:
    attack = f"{_LOW_BITS}: {result.attack.removeprefix(ONE_COLUMN)}"
    if not isinstance(result, OrderedBins) or result.scored is None:
        return replace(result, attack=attack)
    return by_score(replace(result.scored, attack=attack), selection)


def _has_numbers(column: Column) -> bool:
    return column.name != ELAPSED and (column.codes is None or not column.codes.all())


def _is_fractional(column: Column) -> bool:
    finite = column.numbers[np.isfinite(column.numbers)]
    return bool((finite != np.rint(finite)).any())
