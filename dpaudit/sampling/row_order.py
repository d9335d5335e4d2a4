"""Whether recorded rows can be independent of each other, as their order shows
(docs/method.md §11).

Every row is looked at, those that certify too: what is found here decides no event. It ends the
audit, or adds a warning.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpaudit.errors import MechanismError
from dpaudit.outcomes import Column, Outcomes
from dpaudit.sampling.independence import (
    CHECKS,
    IMPOSSIBLE,
    WARNED,
    BoolArray,
    Difference,
    IntArray,
    Series,
    judged,
    least_serial,
    level_sets,
    numbers,
    series_of,
)
from dpaudit.stats.dependence import log_e_value, repetition_p_value

FloatArray = NDArray[np.float64]
# Of a sorted input: by what.
Sorted = Mapping[str, str]

INPUTS = ("d1", "d2")
# The rows of an input are compared in so many segments: few show a slow change, many show rows that
# hang together with their neighbours.
_SEGMENTS = (16, 128, 1024, 8192)
# Columns that are compared.
_COLUMNS = 8
# Rows that tell most columns from a sorted one.
_GLANCE = 64
_BY_COUNT = "how often they occur"
_REMEDY = (
    "every bound is for independent rows: record one row for each run, each run with fresh "
    "randomness, in the order of the runs (shuffling hides the problem and does not solve it)"
)
_ROWS = Difference(
    "rows of {} differ along the recording more than independent rows",
    ". The cause may be runs that continue earlier ones, one run in many rows, a changed setting, "
    f"or rows that were put in order; {_REMEDY}",
    _REMEDY,
)


def sorted_inputs(outcomes: Outcomes, is_d1: BoolArray, level: float = WARNED) -> dict[str, str]:
    """Return the inputs whose rows, in the order recorded, are sorted, and by what.

    level: how likely rows in the order drawn may be taken for sorted ones, by all checks together.
    """
    found = ((name, _sorted_by(table, level)) for name, table in _tables(outcomes, is_d1))
    return {name: column for name, column in found if column is not None}


def check_rows(
    outcomes: Outcomes,
    is_d1: BoolArray,
    is_sorted: Sorted,
    *,
    in_turns: bool,
    level: float = WARNED,
) -> list[str]:
    """Return warnings about rows, in the order recorded, that do not look independent, or cannot be
    looked at. Raises MechanismError for what independent rows cannot do.

    in_turns: whether rows of both inputs were recorded in one order.  level: how likely a warning
    may be for independent rows, by all checks together.
    """
    tables = _tables(outcomes, is_d1)
    _check_numbered([*tables, ("d1 and d2", outcomes)] if in_turns else tables)
    warnings = []
    if is_sorted:
        warnings.append(
            f"rows of {' and '.join(is_sorted)} are sorted by "
            f"{' and '.join(dict.fromkeys(is_sorted.values()))}, so dpaudit cannot check whether "
            "they are independent, which every bound needs; record them in the order of the draws"
        )
    in_turns = in_turns and not is_sorted
    every = list(series_of("rows", outcomes.keys(), is_d1, in_turns=in_turns, but=is_sorted))
    for series in every:
        _check_repeats(series)
    found = [
        (evidence, f"{name} ({column.name})")
        for name, table in tables
        if name not in is_sorted
        for column in table.columns[:_COLUMNS]
        for event in _events(numbers(column))
        for evidence in _by_segments(event)
    ]
    warnings += judged(found, level / CHECKS, _ROWS)
    p, words = least_serial(outcomes, is_d1, every)
    if p <= level / CHECKS:
        warnings.append(f"{words}, but {_REMEDY}")
    return warnings


def check_guesses(
    levels: IntArray,
    is_d1: BoolArray,
    guesses: IntArray,
    is_sorted: Sorted,
    level: float = WARNED,
) -> list[str]:
    """Return a warning about certifying rows, in the order recorded, whose levels differ from part
    to part of the recording, as `check_rows` does of entries. guesses: of the rule, by level."""
    found = [
        (evidence, f"{name} (the event)")
        for name, arm in zip(INPUTS, (is_d1, ~is_d1), strict=True)
        if name not in is_sorted
        for chosen in level_sets(np.bincount(levels[arm], minlength=len(guesses)), guesses)
        for evidence in _by_segments(chosen[levels[arm]])
    ]
    return judged(found, level / CHECKS, _ROWS)


def _tables(outcomes: Outcomes, is_d1: BoolArray) -> list[tuple[str, Outcomes]]:
    """Return the rows of each input: by a slice, which copies nothing, where it can be."""
    tables = []
    for name, arm in zip(INPUTS, (is_d1, ~is_d1), strict=True):
        rows = np.flatnonzero(arm)
        together = slice(rows[0], rows[-1] + 1)
        is_slice = len(rows) == together.stop - together.start
        tables.append((name, outcomes.take(together if is_slice else rows)))
    return tables


def _check_numbered(tables: Sequence[tuple[str, Outcomes]]) -> None:
    """Raise for a column that numbers the rows: it tells two files of other lengths apart."""
    for name, table in tables:
        for column in filter(_is_numbering, table.columns):
            raise MechanismError(
                f"{column.name} changes by the same step from row to row of {name}: it numbers the "
                "rows and is not an output of a mechanism; leave that column out (pandas: "
                "to_csv(..., index=False))"
            )


def _is_numbering(column: Column) -> bool:
    if column.codes is not None and column.codes.any():
        return False
    values = column.numbers
    for part in (values[:_GLANCE], values):
        with np.errstate(invalid="ignore"):  # infinities
            steps = np.diff(part)
        if not (len(steps) and steps[0] != 0 and (steps == steps[0]).all()):
            return False
    return bool(np.isfinite(steps[0]))


def _check_repeats(series: Series) -> None:
    """Raise when rows repeat those some way before them."""
    chance, lag = repetition_p_value(series.keys)
    if chance < IMPOSSIBLE:
        where = "the row before them" if lag == 1 else f"those {lag:,} rows before them"
        raise MechanismError(
            f"{series.words} repeat {where} far more often than independent rows of the same "
            "distribution do. The cause may be a run that was recorded several times, a file that "
            f"contains parts of itself twice, or a fixed seed; {_REMEDY}"
        )


def _sorted_by(table: Outcomes, level: float) -> str | None:
    """Return what the rows are sorted by: a column, or the number of equal rows (a histogram that
    was unrolled). None where independent rows may come in such an order, as of few values."""
    limit = math.log(level / CHECKS / len(INPUTS) / (len(table.columns) + 1))
    for column in table.columns:
        if _is_sorted(numbers(column), limit):
            return column.name
    _, place, counts = np.unique(table.keys(), return_inverse=True, return_counts=True)
    return _BY_COUNT if _is_sorted(counts[place].astype(np.float64), limit) else None


def _is_sorted(values: FloatArray, limit: float) -> bool:
    """Whether values rise or fall throughout, and the log of the chance of that is below `limit`:
    of n!/Π c! orders of values that occur c times each, all equally likely, two are sorted."""
    for part in (values[:_GLANCE], values):
        rises, falls = part[1:] >= part[:-1], part[1:] <= part[:-1]
        if not (rises.all() or falls.all()):
            return False
    counts = np.unique(values, return_counts=True)[1]
    log_orders = gammaln(len(values) + 1.0) - gammaln(counts + 1.0).sum()
    return bool(math.log(2) - log_orders < limit)


def _events(values: FloatArray) -> Iterator[BoolArray]:
    """Yield events whose frequency may tell parts of a recording apart: entries up to a quartile,
    and the most frequent one."""
    ordered = np.sort(values)
    places = [len(values) * quarter // 4 for quarter in (1, 2, 3)]
    yield from (values <= cut for cut in np.unique(ordered[places]))
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(np.append(starts, len(ordered)))
    if sizes.max() > 1:
        yield values == ordered[starts[sizes.argmax()]]


def _by_segments(event: BoolArray) -> Iterator[float]:
    """Yield the logs of e-values against "every order of these rows is equally likely"."""
    so_far = np.append(0, np.cumsum(event))
    for segments in sorted({min(most, len(event) // 2) for most in _SEGMENTS} - {0, 1}):
        ends = np.arange(segments + 1) * len(event) // segments
        yield log_e_value(np.diff(so_far[ends]), np.diff(ends))
