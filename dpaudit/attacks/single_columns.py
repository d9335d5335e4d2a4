"""Scorers of single columns: thresholds, intervals of numbers, and single values.

Each scorer cuts columns into cells, and orders the cells by size or by log-ratio. `represented`
looks at how outputs are represented (types, signs of zero, orders of keys), `elapsed` at how long
calls took, and `bits` at the low-order bits of numbers. The last bits of a float show how it was
computed: noise added in floating point leaves gaps that depend on the input (Mironov 2012, "On
significance of the least significant bits for differential privacy"); rounding to few decimals may
leave them, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.features import on_scale
from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, CellOrder, Refit, fixed
from dpaudit.levels.cells import Cells, make_cells
from dpaudit.levels.level_map import (
    FOLDS,
    FloatArray,
    IntArray,
    LevelMap,
    by_fold,
    by_group,
    cut_by_mass,
    held_out_tally,
    is_continuous,
    larger_for_d1,
    log_ratio,
    training_counts,
)
from dpaudit.levels.limits import (
    FEW_VALUES,
    KEPT_BEST,
    MAX_DRAWS_SLOW,
    MAX_SUM_CELLS,
    MIN_DRAWS_TO_RANK,
    TINY,
)
from dpaudit.levels.rule_tables import pooled_counts
from dpaudit.outcomes import KIND, Column, NamedColumns, Outcomes
from dpaudit.outcomes.aspects import ASPECTS, SPAN, prefix_of
from dpaudit.outcomes.columns import ELAPSED

# Beginnings of attack names in reports: orders by one column, by the representation of entries
# (types, signs of zero), and by the duration of calls.
ONE_COLUMN, REPRESENTATION, _TIME = "one column: ", "representation: ", "time: "
_LOW_BITS = "low-order bits: "
# Beginnings of the names of orders: orders of numbers by size, and orders of single cells or values
# by their own log-ratios.
_BY_SIZE, _SINGLE = "threshold", "single "
# Widths of the Gaussian windows by which counts are smoothed over neighbouring cells: standard
# deviations, in cells; 0 stands for no smoothing.
_WINDOW_WIDTHS = (0, 2, 8)


def one_dimensional(selection: SelectionDraws) -> list[Candidate]:
    """Return orders of outcomes with a single column: by its numbers, and by the log-ratios of its
    cells. Return none for outcomes with several columns."""
    columns = selection.outcomes.columns
    return orders_of(columns[0], selection) if len(columns) == 1 else []


def thresholds(selection: SelectionDraws) -> list[Candidate]:
    """Return the order of recorded scores by size. If all numbers are equal, there is none, and the
    candidates of `one_dimensional` are returned."""
    orders = one_dimensional(selection)
    return [order for order in orders if order.attack.startswith(_BY_SIZE)] or orders


def single_columns(
    selection: SelectionDraws, columns: Sequence[Column] | None = None
) -> list[Candidate]:
    """Return candidates that order outcomes by one column alone, for each of the most informative
    columns.

    columns: the columns to choose from; None: all columns. For a single column the result is empty,
        since `one_dimensional` orders by it.
    """
    columns = selection.outcomes.columns if columns is None else columns
    return _of_most_informative(selection, columns, ONE_COLUMN) if len(columns) > 1 else []


def represented(selection: SelectionDraws) -> list[Candidate]:
    """Return candidates that order outcomes by details that Python's `==` ignores, although a
    recipient of the output sees them, such as the sign of zero."""
    columns = selection.outcomes.representations
    return _of_most_informative(selection, columns, REPRESENTATION) if len(columns) else []


def elapsed(selection: SelectionDraws) -> list[Candidate]:
    """Return candidates that order outcomes by the duration of the calls that returned them."""
    durations = selection.outcomes.column(ELAPSED)
    if durations.codes is not None:  # draws without durations, such as the draws of a search
        return []
    return [
        replace(order, attack=_TIME + order.attack) for order in orders_of(durations, selection)
    ]


def bits(selection: SelectionDraws) -> list[Candidate]:
    """Return candidates that order outcomes by details of their numbers, such as the lowest set bit
    or the number of decimal places. Each candidate uses one detail of one of the most informative
    columns. One more candidate sums log-ratios over all columns, for the detail "span from the
    highest to the lowest set bit"."""
    from dpaudit.attacks.additive import additive  # most audits have no use for low-order bits

    columns = bit_columns(selection.outcomes, ASPECTS)
    result = _of_most_informative(selection, columns, _LOW_BITS)
    sums = additive(selection, bit_columns(selection.outcomes, [SPAN]))
    return [
        *result,
        *(replace(candidate, attack=_LOW_BITS + candidate.attack) for candidate in sums),
    ]


def bit_columns(outcomes: Outcomes, aspects: Iterable[str]) -> NamedColumns:
    """Return a derived column for each column with numbers and each aspect of them.

    aspects: beginnings of the names of derived columns, such as `decimal places of `.
    """
    names = [column.name for column in outcomes.columns if _has_numbers(column)]
    return NamedColumns(outcomes, [f"{aspect}{name}" for name in names for aspect in aspects])


def has_fractions(outcomes: Outcomes) -> bool:
    """Return whether some number is not an integer, and so has low-order bits."""
    return any(_is_fractional(column) for column in outcomes.columns)


def has_integers(outcomes: Outcomes) -> bool:
    """Return whether all finite numbers are integers, and some column has at least three distinct
    ones. With only two, they may just encode yes and no."""
    finite = [column.numbers[np.isfinite(column.numbers)] for column in outcomes.columns]
    are_whole = all((numbers == np.rint(numbers)).all() for numbers in finite)
    return are_whole and any(len(np.unique(numbers)) > 2 for numbers in finite)


def _has_numbers(column: Column) -> bool:
    return column.name != ELAPSED and (column.codes is None or not column.codes.all())


def _is_fractional(column: Column) -> bool:
    finite = column.numbers[np.isfinite(column.numbers)]
    return bool((finite != np.rint(finite)).any())


def orders_of(column: Column, selection: SelectionDraws) -> list[Candidate]:
    """Return three orders of outcomes by one column: by its numbers, by the smoothed log-ratios of
    its cells, and by the log-ratios of single cells. Orders that do not apply are left out."""
    cells = make_cells(column)
    count = cells.intervals + len(cells.labels) + 1
    counts = by_fold(cells(column), count, selection.is_d1)
    numbers = column.numbers if column.codes is None else column.numbers[column.codes == 0]
    # `is_fine`: numbers rarely repeat. Neighbouring intervals then have similar log-ratios, so that
    # further draws are not counted for each interval by itself.
    is_fine = len(numbers) > 0 and is_continuous(numbers)
    cell_order = None if is_fine else CellOrder(CellLevels(cells, count), counts.sum(axis=0))
    return [
        _candidate(name, fit, cells, counts, cell_order, column)
        for name, fit in _fits(cells, counts).items()
    ]


@dataclass(frozen=True, slots=True, eq=False)
class CellLevels(LevelMap):
    """Level map by one column: the level of an outcome is the value of the cell in which its entry
    lies."""

    cells: Cells
    levels: int

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return np.asarray(self.cells(outcomes.column(self.cells.name)), dtype=np.intp)

    def tally(self, outcomes: Outcomes) -> IntArray:
        if prefix_of(self.cells.name) is None:
            column = outcomes.column(self.cells.name)
            if column.codes is None:
                return self.cells.digitise.tally(column.numbers, self.levels)
        return LevelMap.tally(self, outcomes)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.cells.words(chosen)

    def alternatives(self, chosen: NDArray[np.bool_]) -> tuple[int, int]:
        return self.cells.alternatives(chosen)


def _of_most_informative(
    selection: SelectionDraws, columns: Sequence[Column], prefix: str
) -> list[Candidate]:
    """Return the orders of outcomes by each of the most informative columns."""
    is_d1 = selection.is_d1[:MAX_DRAWS_SLOW].astype(np.intp)
    errors = np.array(
        [_difference(column.take(slice(MAX_DRAWS_SLOW)), is_d1) for column in columns]
    )
    # The sort is stable: of equally informative columns the first one wins. It is the plainest,
    # since the column of an output's type comes before the columns of its content.
    best = [columns[int(index)] for index in np.argsort(-errors, kind="stable")]
    best = best[: int(np.count_nonzero(errors > tuning.MIN_COLUMN_DEVIATIONS))]
    if selection.size < MIN_DRAWS_TO_RANK:
        best = best[:KEPT_BEST]
    are_types = [column.name.startswith(KIND) for column in best]
    ranks = [are_types[:index].count(is_type) for index, is_type in enumerate(are_types)]
    return [
        replace(order, attack=prefix + order.attack)
        for column, rank in zip(best, ranks, strict=True)
        if rank < KEPT_BEST
        for order in orders_of(column, selection)
    ]


def _difference(column: Column, is_d1: NDArray[np.intp]) -> float:
    """Return the standardised χ² statistic of the table of cells by input."""
    cells = make_cells(column, MAX_SUM_CELLS)
    count = cells.intervals + len(cells.labels) + 1
    table = np.bincount(cells(column) * 2 + is_d1, minlength=2 * count).reshape(count, 2)
    table = table[table.sum(axis=1) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / max(1, table.sum())
    squares = (table - expected) ** 2 / np.maximum(expected, 1e-9)
    freedom = max(1, len(table) - 1)
    return float((squares.sum() - freedom) / np.sqrt(2 * freedom))


def _fits(cells: Cells, counts: IntArray) -> dict[str, FloatArray]:
    """Return the log-ratios that define each order of the cells: (folds + 1, cells)."""
    everything = counts.sum(axis=0)
    train = training_counts(counts)[: FOLDS + 1]
    arms = train.sum(axis=1, keepdims=True)
    numeric = train[:, : cells.intervals]
    occupied = np.flatnonzero(everything[: cells.intervals].sum(axis=1))
    if len(occupied) < 2:
        return {f"{_SINGLE}values": log_ratio(train, arms)}
    rising = larger_for_d1(numeric[-1])
    name = f"{_BY_SIZE}, {'rising' if rising else 'falling'}"
    by_size, pooled = _isotonic(numeric[:, occupied], arms, rising=rising)
    fits = {name: by_size}
    for width in _WINDOW_WIDTHS:
        if width < len(occupied) / 2:
            smooth = f"intervals, smoothed over {width} cells" if width else f"{_SINGLE}cells"
            fits[smooth] = log_ratio(_smoothed(numeric[:, occupied], width), arms)
    labels = train[:, cells.intervals :]
    scores = dict.fromkeys(fits, log_ratio(labels, arms))
    if len(cells.labels) <= FEW_VALUES:
        every = zip(pooled, labels, arms[:, 0], strict=True)
        scores[name] = np.stack([_label_scores(*fit) for fit in every])
    return {
        name: np.concatenate([_spread(values, occupied, cells.intervals), scores[name]], axis=1)
        for name, values in fits.items()
    }


def _isotonic(counts: IntArray, arms: IntArray, *, rising: bool) -> tuple[FloatArray, FloatArray]:
    """Return isotonic log-ratios, (fits, cells), and the pooled counts, (fits, cells, 2)."""
    # Equal log-ratios are separated by tiny differences, so that a cut-off may lie between them.
    step = 1 if rising else -1
    pooled = np.stack([pooled_counts(fit[::step])[::step] for fit in counts])
    return log_ratio(pooled, arms) + step * TINY * np.arange(counts.shape[1]), pooled


def _label_scores(pooled: FloatArray, labels: IntArray, arms: IntArray) -> FloatArray:
    """Return the score that orders each label among the cells of numbers: (labels,)."""
    # It is the log-ratio of the label. If this exceeds, by two standard errors, that of some cell
    # and is below that of none, the label is ordered after all cells; in the reverse case, before
    # all. Otherwise luck would separate the label from cells that have the same true log-ratio.
    numbers, ratios = log_ratio(pooled, arms), log_ratio(labels, arms)
    errors = (1 / (pooled + 0.5)).sum(axis=1), (1 / (labels + 0.5)).sum(axis=1)
    distance = (ratios[:, None] - numbers) / np.sqrt(errors[0] + errors[1][:, None])
    some_below = (distance > tuning.DEVIATIONS).any(axis=1)
    some_above = (distance < -tuning.DEVIATIONS).any(axis=1)
    highest = np.where(some_below & ~some_above, numbers.max() + 1 + ratios - ratios.min(), ratios)
    return np.where(some_above & ~some_below, numbers.min() - 1 + ratios - ratios.max(), highest)


def _smoothed(counts: IntArray, width: int) -> FloatArray:
    """Return counts, smoothed over neighbouring cells with Gaussian weights."""
    # Add shifted copies of the counts. A matrix product would start a thread on every core for a
    # microsecond's work.
    total = counts.astype(np.float64)
    for shift in range(1, min(3 * width, counts.shape[1] - 1) + 1):
        weight = math.exp(-0.5 * (shift / width) ** 2)
        total[:, shift:] += weight * counts[:, :-shift]
        total[:, :-shift] += weight * counts[:, shift:]
    return total


def _spread(values: FloatArray, occupied: IntArray, intervals: int) -> FloatArray:
    """Return values for all intervals; an empty one gets the mean of its nearest neighbours."""
    index = np.arange(intervals)
    right = np.minimum(np.searchsorted(occupied, index), len(occupied) - 1)
    left = np.maximum(np.searchsorted(occupied, index, side="right") - 1, 0)
    return np.asarray((values[:, left] + values[:, right]) / 2)


def _candidate(
    name: str,
    scores: FloatArray,
    cells: Cells,
    counts: IntArray,
    cell_order: CellOrder | None,
    column: Column,
) -> Candidate:
    """Return the candidate that orders the cells of a column by `scores`."""
    masses = counts.sum(axis=(0, 2)).astype(np.float64)
    level, levels = cut_by_mass(scores[:, :-1], masses[:-1])
    if np.count_nonzero(masses[: cells.intervals]) < 2:
        # The log-ratio of an empty interval of numbers is the mean of its nearest neighbours with
        # draws. If the learning draws fill fewer than two intervals, this mean says nothing: a
        # number in an empty interval then gets the level of labels that no learning draw had.
        level[:, : cells.intervals][:, masses[: cells.intervals] == 0] = levels
    by_size = name.startswith(_BY_SIZE)
    candidate = Candidate(
        name,
        held_out_tally(level[:-1], counts, levels),
        fixed(_level_map(cells, level[-1], levels)),
        has_many_cells=not by_size and int(np.count_nonzero(masses)) > tuning.FEW_CELLS,
    )
    if cell_order is not None:
        is_single = name.startswith(_SINGLE)
        return replace(candidate, refit=cell_order) if is_single else candidate
    if not by_size:
        return candidate
    rising = name.endswith("rising")
    numbers = (1 if rising else -1) * on_scale(column)(column)
    if column.codes is not None:
        numbers = np.where(column.codes > 0, np.nan, numbers)
    refit: Refit | None = None
    total = counts.sum(axis=0)
    means = _means(numbers, cells(column), len(total))
    if 0 < len(cells.labels) <= FEW_VALUES:
        refit = _PlacedLabels(cells, total, means[:-1], rising)
    position = _positions(means[:-1], total[:-1], level[-1], levels)
    return replace(candidate, is_smooth=True, position=position, refit=refit)


def _level_map(cells: Cells, level: IntArray, levels: int) -> CellLevels:
    by_cell = np.append(level, levels).astype(np.intp)
    return CellLevels(cells.with_values(by_cell), levels + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _PlacedLabels:
    """Refits a candidate after further draws: numbers stay in order, and each label of the column
    gets a new place among them.

    counts: (cells + 1, 2), learning draws; the last row is for labels without a cell.
    means: (cells,), mean number in each cell, rescaled, and with the sign reversed if `rising` is
        False; NaN for a label.
    rising: whether larger numbers are evidence for d1.
    """

    cells: Cells
    counts: IntArray
    means: FloatArray
    rising: bool

    @property
    def counter(self) -> CellLevels:
        cells = len(self.means)
        return _level_map(self.cells, np.arange(cells), cells)

    def after(self, candidate: Candidate, counts: IntArray) -> Candidate:
        total, intervals = self.counts + counts, self.cells.intervals
        by_cell, arms = total[:-1], total.sum(axis=0)
        (numbers,), (pooled,) = _isotonic(by_cell[None, :intervals], arms, rising=self.rising)
        labels = _label_scores(pooled, by_cell[intervals:], arms)
        scores = np.concatenate([numbers, labels])
        (level,), levels = cut_by_mass(scores[None], by_cell.sum(axis=1).astype(np.float64))
        group = np.append(level, levels)
        return replace(
            candidate,
            counts=by_group(total, group, levels + 1).astype(np.int64),
            level_map=fixed(_level_map(self.cells, level, levels)),
            position=_positions(self.means, by_cell, level, levels),
            refit=replace(self, counts=total),
        )


def _means(numbers: FloatArray, cell: NDArray[np.integer], cells: int) -> FloatArray:
    """Return the mean number in every cell, (cells,), ignoring NaN; NaN for an empty cell."""
    there = ~np.isnan(numbers)
    total = np.bincount(cell[there], weights=numbers[there], minlength=cells)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / np.bincount(cell[there], minlength=cells))


def _positions(means: FloatArray, counts: IntArray, level: IntArray, levels: int) -> FloatArray:
    """Return the mean number at every level, (levels,), interpolated where it is unknown."""
    draws = np.maximum(counts.sum(axis=1), TINY) * ~np.isnan(means)
    total = by_group(np.stack([draws * np.nan_to_num(means), draws], axis=1), level, levels)
    known, every = np.flatnonzero(total[:levels, 1]), np.arange(levels)
    if len(known) < 2:
        return np.zeros(levels)
    values = total[known, 0] / total[known, 1]
    below = np.minimum(0, every - known[0]) * abs(values[1] - values[0])
    above = np.maximum(0, every - known[-1]) * abs(values[-1] - values[-2])
    return np.asarray(np.interp(every, known, values) + below + above)
