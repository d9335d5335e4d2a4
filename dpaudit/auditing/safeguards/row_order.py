"""Find recorded rows that depend on their order in the file (docs/method.md §11, *Recorded rows*).

The checks choose no event and change no bound, so they may use all rows, including the rows that
certify. They use e-values: for independent rows, an e-value has expectation at most 1, so it
exceeds 1 / α with probability at most α.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dpaudit.auditing.safeguards.protocol import CountedBlocks, KeptDraws, RecordedRows, Safeguard
from dpaudit.errors import MechanismError
from dpaudit.outcomes import Column, Outcomes
from dpaudit.sampling.homogeneity import BoolArray, DriftWords, IntArray, judged, level_sets
from dpaudit.sampling.independence import (
    CHECKS,
    WARNING_ALPHA,
    DrawSeries,
    least_serial,
    numbers,
    repeating_lag,
    series_of,
)
from dpaudit.stats.dependence import log_e_value

FloatArray = NDArray[np.float64]
# Maps the name of an input whose rows are sorted ("d1" or "d2") to the name of the column by which
# they are sorted.
Sorted = Mapping[str, str]

INPUTS = ("d1", "d2")
# For each of these numbers, the rows of an input are split into this number of equal segments, and
# the segments are compared. (Fewer segments are used if a segment would have less than two rows.) A
# split into 16 shows slow changes, a split into 8,192 shows rows that depend on their neighbours.
_SEGMENTS = (16, 128, 1024, 8192)
# Largest number of columns that are compared between segments of rows.
_MAX_COLUMNS = 8
# Number of rows that are checked first. Most columns are neither sorted nor row numbers; for them,
# these rows show this, so that the other rows need not be checked.
_EXAMINED_ROWS = 64
# Text that messages show in place of a column name, if rows are sorted by their frequency.
_BY_COUNT = "how often they occur"
_REMEDY = (
    "every bound is for independent rows: record one row for each run, each run with fresh "
    "randomness, in the order of the runs (shuffling hides the problem and does not solve it)"
)
_ROWS = DriftWords(
    "rows of {} differ along the recording more than independent rows",
    ". The cause may be runs that continue earlier ones, one run in many rows, a changed setting, "
    f"or rows that were put in order; {_REMEDY}",
    _REMEDY,
)


class RowOrder(Safeguard):
    _sorted: Sorted

    def observe(self, draws: KeptDraws | CountedBlocks | RecordedRows) -> list[str]:
        if not isinstance(draws, RecordedRows):
            return []
        outcomes, is_d1, rule = draws.outcomes, draws.is_d1, draws.rule
        if rule is None:
            self._sorted = sorted_inputs(outcomes, is_d1)
            return check_rows(outcomes, is_d1, self._sorted, in_turns=draws.in_turns)
        levels = rule(outcomes).astype(np.int64)
        return check_guesses(levels, is_d1, rule.guesses, self._sorted)


def sorted_inputs(
    outcomes: Outcomes, is_d1: BoolArray, level: float = WARNING_ALPHA
) -> dict[str, str]:
    """Return, for each input whose rows are sorted by a column, the name of this column. The keys
    are "d1" and "d2"; an input whose rows are not sorted is left out.

    outcomes, is_d1: the rows in the order of the file, and whether the input of each was d1.
    level: the largest probability that independent draws in their own order count as sorted.
    """
    columns = {name: _sorted_by(table, level) for name, table in _tables(outcomes, is_d1)}
    return {name: column for name, column in columns.items() if column is not None}


def check_rows(
    outcomes: Outcomes,
    is_d1: BoolArray,
    is_sorted: Sorted,
    *,
    in_turns: bool,
    level: float = WARNING_ALPHA,
) -> list[str]:
    """Return warnings about recorded rows that do not look independent, or cannot be checked. Raise
    MechanismError for rows that cannot be independent, and for a column of row numbers.

    outcomes, is_d1: the rows in the order of the file, and whether the input of each was d1.
    is_sorted: result of `sorted_inputs`; the order of rows is not tested for these inputs.
    in_turns: whether the rows of both inputs are in one file, in the order of the draws.
    level: the largest probability of any warning for independent rows.
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
        for column in table.columns[:_MAX_COLUMNS]
        for event in _events(numbers(column))
        for evidence in _by_segments(event)
    ]
    warnings += judged(every_evidence, level / CHECKS, _ROWS)
    p, words = least_serial(outcomes, is_d1, every)
    if p <= level / CHECKS:
        warnings.append(f"{words}, but {_REMEDY}")
    return warnings


def check_guesses(
    levels: IntArray, is_d1: BoolArray, guesses: IntArray, is_sorted: Sorted
) -> list[str]:
    """Return a list with a warning if the share of some level changes along the certifying rows,
    from the beginning of the recording to its end. Otherwise return an empty list.

    levels, is_d1: (rows,), in the order of the file: the level of each row by the rule that
        certifies, and whether its input was d1.
    guesses: (levels,), the guess of the rule at each level.
    is_sorted: result of `sorted_inputs`; the order of rows is not tested for these inputs.
    """
    every_evidence = [
        (evidence, f"{name} (the event)")
        for name, arm in zip(INPUTS, (is_d1, ~is_d1), strict=True)
        if name not in is_sorted
        for chosen in level_sets(np.bincount(levels[arm], minlength=len(guesses)), guesses)
        for evidence in _by_segments(chosen[levels[arm]])
    ]
    return judged(every_evidence, WARNING_ALPHA / CHECKS, _ROWS)


def _tables(outcomes: Outcomes, is_d1: BoolArray) -> list[tuple[str, Outcomes]]:
    """Return the rows of d1 and the rows of d2; contiguous rows are not copied."""
    tables = []
    for name, arm in zip(INPUTS, (is_d1, ~is_d1), strict=True):
        rows = np.flatnonzero(arm)
        together = slice(rows[0], rows[-1] + 1)
        is_slice = len(rows) == together.stop - together.start
        tables.append((name, outcomes.take(together if is_slice else rows)))
    return tables


def _check_numbered(tables: Sequence[tuple[str, Outcomes]]) -> None:
    """Raise MechanismError for a column of row numbers, such as a saved index of a data frame."""
    # Row numbers are no output, but would look like a leak: only the input with more rows has the
    # largest numbers.
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
    for part in (values[:_EXAMINED_ROWS], values):
        # inf - inf is NaN, and equals no other step
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.diff(part)
        if not (len(steps) and steps[0] != 0 and (steps == steps[0]).all()):
            return False
    return bool(np.isfinite(steps[0]))


def _check_repeats(series: DrawSeries) -> None:
    """Raise MechanismError if rows repeat earlier rows at a fixed distance."""
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
    """Return the column by which the rows of an input are sorted, `_BY_COUNT`, or None."""
    # `_BY_COUNT`: frequent rows come first or last, as in rows that were made from a histogram.
    limit = math.log(level / CHECKS / len(INPUTS) / (len(table.columns) + 1))
    for column in table.columns:
        if _is_sorted(numbers(column), limit):
            return column.name
    _, indices, counts = np.unique(table.keys(), return_inverse=True, return_counts=True)
    return _BY_COUNT if _is_sorted(counts[indices].astype(np.float64), limit) else None


def _is_sorted(values: FloatArray, limit: float) -> bool:
    """Return whether values rise or fall throughout, and would rarely do so in a random order."""
    # If the k-th distinct value occurs c_k times among n values, the values have n! / Π c_k!
    # different orders. Independent rows have each order with the same probability, and two of the
    # orders are sorted.
    for part in (values[:_EXAMINED_ROWS], values):
        rises, falls = part[1:] >= part[:-1], part[1:] <= part[:-1]
        if not (rises.all() or falls.all()):
            return False
    counts = np.unique(values, return_counts=True)[1]
    log_orders = gammaln(len(values) + 1.0) - gammaln(counts + 1.0).sum()
    return bool(math.log(2) - log_orders < limit)


def _events(values: FloatArray) -> Iterator[BoolArray]:
    """Yield masks of the events "at most a quartile" and "the most frequent value"."""
    ordered = np.sort(values)
    quartiles = [len(values) * quarter // 4 for quarter in (1, 2, 3)]
    yield from (values <= cut for cut in np.unique(ordered[quartiles]))
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    sizes = np.diff(np.append(starts, len(ordered)))
    if sizes.max() > 1:
        yield values == ordered[starts[sizes.argmax()]]


def _by_segments(event: BoolArray) -> Iterator[float]:
    """Yield logs of e-values that compare the frequency of the event between segments of rows."""
    so_far = np.append(0, np.cumsum(event))
    for segments in sorted({min(number, len(event) // 2) for number in _SEGMENTS} - {0, 1}):
        ends = np.arange(segments + 1) * len(event) // segments
        yield log_e_value(np.diff(so_far[ends]), np.diff(ends))
