"""Whether the order of recorded rows is that of independent draws (docs/method.md §11).

All rows are checked, also those that certify: the checks decide no event. They end the audit, or
add a warning.
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
    WARNED,
    BoolArray,
    Difference,
    IntArray,
    Series,
    judged,
    least_serial,
    level_sets,
    numbers,
    repeating_lag,
    series_of,
)
from dpaudit.stats.dependence import log_e_value

FloatArray = NDArray[np.float64]
# From the name of a sorted input to the column that it is sorted by.
Sorted = Mapping[str, str]

INPUTS = ("d1", "d2")
# Numbers of segments into which the rows of an input are split. Few segments show a slow change,
# many show rows that depend on their neighbours.
_SEGMENTS = (16, 128, 1024, 8192)
# Columns that are compared, at most.
_COLUMNS = 8
# Rows in which most columns are seen not to be sorted, or numbered.
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
    """Return the inputs whose recorded rows are sorted, each with the column they are sorted by.

    level: probability that rows in the order of the draws are taken for sorted ones.
    """
    columns = {name: _sorted_by(table, level) for name, table in _tables(outcomes, is_d1)}
    return {name: column for name, column in columns.items() if column is not None}


def check_rows(
    outcomes: Outcomes,
    is_d1: BoolArray,
    is_sorted: Sorted,
    *,
    in_turns: bool,
    level: float = WARNED,
) -> list[str]:
    """Return warnings about recorded rows that do not look independent, or cannot be checked.
    Raises MechanismError for rows that cannot be independent.

    in_turns: whether rows of both inputs were recorded in one order.  level: probability of a
    warning for independent rows, over all checks.
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
    every_evidence = [
        (evidence, f"{name} ({column.name})")
        for name, table in tables
        if name not in is_sorted
        for column in table.columns[:_COLUMNS]
        for event in _events(numbers(column))
        for evidence in _by_segments(event)
    ]
    warnings += judged(every_evidence, level / CHECKS, _ROWS)
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
    """Return a warning, as `check_rows` does for entries, about certifying rows whose levels differ
    from part to part of the recording. guesses: guess of the rule at each level."""
    every_evidence = [
        (evidence, f"{name} (the event)")
        for name, arm in zip(INPUTS, (is_d1, ~is_d1), strict=True)
        if name not in is_sorted
        for chosen in level_sets(np.bincount(levels[arm], minlength=len(guesses)), guesses)
        for evidence in _by_segments(chosen[levels[arm]])
    ]
    return judged(every_evidence, level / CHECKS, _ROWS)


def _tables(outcomes: Outcomes, is_d1: BoolArray) -> list[tuple[str, Outcomes]]:
    """Return the rows of each input; contiguous rows are not copied."""
    tables = []
    for name, arm in zip(INPUTS, (is_d1, ~is_d1), strict=True):
        rows = np.flatnonzero(arm)
        together = slice(rows[0], rows[-1] + 1)
        is_slice = len(rows) == together.stop - together.start
        tables.append((name, outcomes.take(together if is_slice else rows)))
    return tables


def _check_numbered(tables: Sequence[tuple[str, Outcomes]]) -> None:
    """Raise for a column that numbers the rows: it would distinguish files of different lengths."""
    for name, table in tables:
        for column in filter(_is_numbering, table.columns):
            raise MechanismError(
                f"{column.name} changes by the same step from row to row of {name}: it numbers the "
                "rows and is not an output of a mechanism; leave that column out (pandas: "
                "to_csv(..., index=False))",
                code="recording-invalid",
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
    """Raise when rows repeat earlier ones at a fixed distance."""
    lag = repeating_lag(series)
    if lag is not None:
        where = "the row before them" if lag == 1 else f"those {lag:,} rows before them"
        raise MechanismError(
            f"{series.words} repeat {where} far more often than independent rows of the same "
            "distribution do. The cause may be a run that was recorded several times, a file that "
            f"contains parts of itself twice, or a fixed seed; {_REMEDY}",
            code="draws-repeat",
        )


def _sorted_by(table: Outcomes, level: float) -> str | None:
    """Return the column that the rows are sorted by, or "how often they occur" for a histogram that
    was unrolled. None if independent rows may have such an order, which few values allow."""
    limit = math.log(level / CHECKS / len(INPUTS) / (len(table.columns) + 1))
    for column in table.columns:
        if _is_sorted(numbers(column), limit):
            return column.name
    _, place, counts = np.unique(table.keys(), return_inverse=True, return_counts=True)
    return _BY_COUNT if _is_sorted(counts[place].astype(np.float64), limit) else None


def _is_sorted(values: FloatArray, limit: float) -> bool:
    """Return whether values rise or fall throughout, and the log of the chance of that is below
    `limit`: values that occur c times each have n!/Π c! equally likely orders, two of them
    sorted."""
    for part in (values[:_GLANCE], values):
        rises, falls = part[1:] >= part[:-1], part[1:] <= part[:-1]
        if not (rises.all() or falls.all()):
            return False
    counts = np.unique(values, return_counts=True)[1]
    log_orders = gammaln(len(values) + 1.0) - gammaln(counts + 1.0).sum()
    return bool(math.log(2) - log_orders < limit)


def _events(values: FloatArray) -> Iterator[BoolArray]:
    """Yield events to compare between segments: entries up to each quartile, and the most frequent
    entry."""
    ordered = np.sort(values)
    places = [len(values) * quarter // 4 for quarter in (1, 2, 3)]
    yield from (values <= cut for cut in np.unique(ordered[places]))
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(np.append(starts, len(ordered)))
    if sizes.max() > 1:
        yield values == ordered[starts[sizes.argmax()]]


def _by_segments(event: BoolArray) -> Iterator[float]:
    """Yield logs of e-values against "all orders of these rows are equally likely", for each number
    of segments."""
    so_far = np.append(0, np.cumsum(event))
    for segments in sorted({min(most, len(event) // 2) for most in _SEGMENTS} - {0, 1}):
        ends = np.arange(segments + 1) * len(event) // segments
        yield log_e_value(np.diff(so_far[ends]), np.diff(ends))
