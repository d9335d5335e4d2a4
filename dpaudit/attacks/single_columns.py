"""The attack on a single column: thresholds, intervals, and values that stand alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpaudit.attacks.features import on_scale
from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, Fine
from dpaudit.levels.cells import Cells, make_cells
from dpaudit.levels.intervals import Intervals, filled
from dpaudit.levels.level_map import (
    FloatArray,
    IntArray,
    LevelMap,
    by_fold,
    cut_by_mass,
    held_out_tally,
    is_continuous,
    log_ratio,
)
from dpaudit.levels.rules import pooled_counts
from dpaudit.outcomes import KIND, Column, Outcomes
from dpaudit.outcomes.aspects import prefix_of
from dpaudit.outcomes.units import ELAPSED

# Widths, in cells, of the windows that smooth the counts; 0: every cell by itself.
_WIDTHS = (0, 2, 8)
_BY_SIZE = "threshold"
# With so few labels among them, numbers are still nearly all of an order by size.
_FEW_LABELS = 4
# Standard errors between a label and numbers that surely tell more, or less.
_SURELY = 2.0
# Keeps neighbours of equal log-ratio in their order.
_APART = 1e-9


def one_dimensional(selection: SelectionDraws) -> list[Candidate]:
    """Order the cells of the only column by size, and by smoothed estimates of the log-ratio."""
    columns = selection.outcomes.columns
    return orders_of(columns[0], selection) if len(columns) == 1 else []


def thresholds(selection: SelectionDraws) -> list[Candidate]:
    """Order the only column by size, rising or falling: for scores of somebody else's attack."""
    orders = one_dimensional(selection)
    return [one for one in orders if one.attack.startswith(_BY_SIZE)] or orders


def orders_of(column: Column, selection: SelectionDraws) -> list[Candidate]:
    """Order the outcomes by one of their columns."""
    cells = make_cells(column)
    count = cells.intervals + len(cells.labels) + 1
    counts = by_fold(cells(column), count, selection.is_d1)
    found = [_candidate(cells, counts, name, fit) for name, fit in _fits(cells, counts).items()]
    numbers = column.numbers if column.codes is None else column.numbers[column.codes == 0]
    if len(numbers) == 0 or not is_continuous(numbers):
        # Intervals of numbers that hardly repeat go along with their neighbours: no order is free.
        fine = Fine(CellLevels(cells, count), counts.sum(axis=0))
        found = [replace(one, fine=fine) if _is_free(one) else one for one in found]
    return [
        _by_intervals(one, column, selection) if one.attack.startswith(_BY_SIZE) else one
        for one in found
    ]


@dataclass(frozen=True, slots=True, eq=False)
class CellLevels(LevelMap):
    """The level of the cell that one column of an outcome falls into."""

    cells: Cells
    levels: int

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        return np.asarray(self.cells(outcomes.column(self.cells.name)), dtype=np.intp)

    def counts(self, outcomes: Outcomes) -> IntArray:
        if prefix_of(self.cells.name) is None:
            column = outcomes.column(self.cells.name)
            if column.codes is None:
                return self.cells.digitise.counts(column.numbers, self.levels)
        return LevelMap.counts(self, outcomes)

    def words(self, chosen: NDArray[np.bool_]) -> str:
        return self.cells.words(chosen)


def _fits(cells: Cells, counts: IntArray) -> dict[str, FloatArray]:
    """Return log-ratios by name, each (folds + 1, cells): fitted without a fold; the last to all.

    Only intervals that hold draws take part; an empty one lies between its neighbours.
    """
    everything = counts.sum(axis=0)
    train = np.concatenate([everything - counts, everything[None]])
    arms = train.sum(axis=1, keepdims=True)
    numeric = train[:, : cells.intervals]
    occupied = np.flatnonzero(everything[: cells.intervals].sum(axis=1))
    if len(occupied) < 2:
        return {"single values": log_ratio(train, arms)}
    rising = larger_for_d1(numeric[-1])
    name = f"{_BY_SIZE}, {'rising' if rising else 'falling'}"
    by_size = _isotonic(numeric[:, occupied], arms, rising=rising)
    fits = {name: by_size[0]}
    for width in _WIDTHS:
        if width < len(occupied) / 2:
            smooth = f"intervals, smoothed over {width} cells" if width else "single cells"
            fits[smooth] = log_ratio(_smoothed(numeric[:, occupied], width), arms)
    labels = train[:, cells.intervals :]
    scores = dict.fromkeys(fits, log_ratio(labels, arms))
    if len(cells.labels) <= _FEW_LABELS:
        every = zip(by_size[1], labels, arms[:, 0], strict=True)
        scores[name] = np.stack([_beside(*one) for one in every])
    return {
        name: np.concatenate([_spread(values, occupied, cells.intervals), scores[name]], axis=1)
        for name, values in fits.items()
    }


def larger_for_d1(counts: IntArray) -> bool:
    """Return whether d1's numbers are mostly the larger ones (Mann-Whitney), from (cells, 2)."""
    below = np.cumsum(counts, axis=0) - counts
    d1_larger, d2_larger = (counts * below[:, ::-1]).sum(axis=0)
    return bool(d1_larger > d2_larger)


def _isotonic(counts: IntArray, arms: IntArray, *, rising: bool) -> tuple[FloatArray, FloatArray]:
    """Return log-ratios in order of size, (fits, cells), and the counts of the blocks that they are
    of; the cells of a block that was pooled stay apart, for the cut-offs to choose."""
    step = 1 if rising else -1
    pooled = np.stack([pooled_counts(one[::step])[::step] for one in counts])
    return log_ratio(pooled, arms) + step * _APART * np.arange(counts.shape[1]), pooled


def _beside(pooled: FloatArray, labels: IntArray, arms: IntArray) -> FloatArray:
    """Return what places labels among numbers in order of size: (labels,).

    It is their log-ratio. But a label that no numbers are surely beyond is put beyond them all,
    lest what is guessed of it be guessed of numbers that say less, or not be guessed at all.
    pooled: (cells, 2), the counts of the blocks that were pooled.
    """
    numbers, own = log_ratio(pooled, arms), log_ratio(labels, arms)
    errors = (1 / (pooled + 0.5)).sum(axis=1), (1 / (labels + 0.5)).sum(axis=1)
    apart = (own[:, None] - numbers) / np.sqrt(errors[0] + errors[1][:, None])
    some_below = (apart > _SURELY).any(axis=1)
    some_above = (apart < -_SURELY).any(axis=1)
    highest = np.where(some_below & ~some_above, numbers.max() + 1 + own - own.min(), own)
    return np.where(some_above & ~some_below, numbers.min() - 1 + own - own.max(), highest)


def _smoothed(counts: IntArray, width: int) -> FloatArray:
    """Return (fits, cells, 2) counts added up over neighbouring cells with Gaussian weights."""
    total = counts.astype(np.float64)
    # Shifted sums, not a matrix product: that would wake every core for a microsecond's work.
    for shift in range(1, min(3 * width, counts.shape[1] - 1) + 1):
        weight = math.exp(-0.5 * (shift / width) ** 2)
        total[:, shift:] += weight * counts[:, :-shift]
        total[:, :-shift] += weight * counts[:, shift:]
    return total


def _spread(values: FloatArray, occupied: IntArray, intervals: int) -> FloatArray:
    """Give the empty intervals the mean of their neighbours, at the ends the neighbour's."""
    place = np.arange(intervals)
    right = np.minimum(np.searchsorted(occupied, place), len(occupied) - 1)
    left = np.maximum(np.searchsorted(occupied, place, side="right") - 1, 0)
    return np.asarray((values[:, left] + values[:, right]) / 2)


def _candidate(cells: Cells, counts: IntArray, name: str, scores: FloatArray) -> Candidate:
    masses = counts.sum(axis=(0, 2)).astype(np.float64)
    level, levels = cut_by_mass(scores[:, :-1], masses[:-1])
    if np.count_nonzero(masses[: cells.intervals]) < 2:
        # Without an order of numbers, a number not seen is as strange as a label not seen.
        level[:, : cells.intervals][:, masses[: cells.intervals] == 0] = levels
    held_out = held_out_tally(level[:-1], counts, levels)
    is_simple = name.startswith(_BY_SIZE) or np.count_nonzero(masses) <= tuning.FEW_CELLS
    penalty = tuning.PENALTY if is_simple else tuning.PENALTY_ANY_ORDER
    final = cells.with_values(np.append(level[-1], levels).astype(np.intp))
    freeze = partial(CellLevels, final, levels + 1)
    is_by_size = name.startswith(_BY_SIZE) and len(cells.labels) <= _FEW_LABELS
    if not is_by_size or cells.intervals <= levels:
        return Candidate(name, held_out, penalty, freeze)
    rising = name.endswith("rising")
    total = counts.sum(axis=0)
    finer = partial(_finer, cells, total, scores[-1, :-1], level[-1], rising=rising)
    return Candidate(name, held_out, penalty, freeze, finer=finer)


def _is_free(candidate: Candidate) -> bool:
    """Whether cells are ordered each by itself."""
    return candidate.attack.startswith("single ")


def _by_intervals(candidate: Candidate, column: Column, selection: SelectionDraws) -> Candidate:
    """Return a threshold on numbers that hardly ever repeat with levels that are known to be
    intervals, each at the mean of its numbers."""
    numbers = column.numbers if column.codes is None else column.numbers[column.codes == 0]
    if not is_continuous(numbers):
        return replace(candidate, finer=None)
    sign = 1 if candidate.attack.endswith("rising") else -1
    scaled = sign * on_scale(column)(column)
    if column.codes is not None:
        scaled = np.where(column.codes > 0, np.nan, scaled)
    level, levels = candidate.freeze()(selection.outcomes), len(candidate.held_out)
    position = filled(_means(scaled, level, levels)[:-1])
    if candidate.finer is None:
        return replace(candidate, is_smooth=True, position=position)
    finer = partial(_at_means, candidate.finer, scaled, selection.outcomes)
    return replace(candidate, is_smooth=True, position=position, finer=finer)


def _means(numbers: FloatArray, place: NDArray[np.integer], places: int) -> FloatArray:
    """Return the mean of the numbers at every place, NaN where there are none. numbers: NaN for a
    label."""
    there = ~np.isnan(numbers)
    total = np.bincount(place[there], weights=numbers[there], minlength=places)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / np.bincount(place[there], minlength=places))


def _at_means(finer: Callable[[], Intervals], numbers: FloatArray, outcomes: Outcomes) -> Intervals:
    """Return intervals, each at the mean of the numbers in it."""
    found = finer()
    position = _means(numbers, found.each(outcomes), found.each.levels)[:-1]
    return replace(found, position=position)


def _finer(
    cells: Cells, counts: IntArray, scores: FloatArray, level: IntArray, *, rising: bool
) -> Intervals:
    """Return the cells of an order by size. counts: (cells + 1, 2); scores: (cells,), what they are
    ordered by; level: (cells,)."""
    place = np.arange(len(scores))
    order = np.lexsort((place if rising else -place, scores))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = place

    def joined(level: IntArray) -> CellLevels:
        levels = int(level.max()) + 1
        by_cell = np.append(level[rank], levels).astype(np.intp)
        return CellLevels(cells.with_values(by_cell), levels + 1)

    is_label = order >= cells.intervals
    anew = partial(_placed_anew, is_label) if is_label.any() else None
    in_order = counts[[*order, len(order)]]
    return Intervals(joined(place), in_order, level[order], None, joined, anew=anew)


def _placed_anew(is_label: NDArray[np.bool_], intervals: Intervals) -> Intervals:
    """Return intervals with labels where the counts of all draws so far put them. is_label:
    (intervals,); the others are in order."""
    counts, arms = intervals.counts[:-1], intervals.counts.sum(axis=0)
    numeric, labels = np.flatnonzero(~is_label), np.flatnonzero(is_label)
    (numbers,), (pooled,) = _isotonic(counts[None, numeric], arms, rising=True)
    scores = np.empty(len(counts))
    scores[numeric], scores[labels] = numbers, _beside(pooled, counts[labels], arms)
    level, _ = cut_by_mass(scores[None], counts.sum(axis=1).astype(np.float64))
    order = np.argsort(scores, kind="stable")
    return replace(intervals, order=order, level=level[0, order])


ONE_COLUMN = "one column: "

# So many draws are enough to see which columns are worth a closer look, and so many columns get it.
# Of few draws what is in an entry tells hardly more than of what kind it is.
_DRAWS, _MANY = 20_000, 2_000
_CLOSER = 2
_CELLS = 32


def single_columns(
    selection: SelectionDraws, columns: Sequence[Column] | None = None
) -> list[Candidate]:
    """Order outcomes by one column, for each of the most telling of these columns, or of all."""
    columns = selection.outcomes.columns if columns is None else columns
    return orders_of_telling(selection, columns) if len(columns) > 1 else []


def orders_of_telling(selection: SelectionDraws, columns: Sequence[Column]) -> list[Candidate]:
    """Order outcomes by each of the most telling of some columns."""
    is_d1 = selection.is_d1[:_DRAWS].astype(np.intp)
    telling = np.array([_telling(column.take(slice(_DRAWS)), is_d1) for column in columns])
    # Of equals the first is the plainest: what an output is comes before what is in it.
    best = [columns[int(place)] for place in np.argsort(-telling, kind="stable")]
    worth = best[: int(np.count_nonzero(telling > tuning.ERRORS_OF_COLUMN))]
    found = [
        one for column in _closer(worth, selection.size) for one in orders_of(column, selection)
    ]
    return [replace(one, attack=f"{ONE_COLUMN}{one.attack}") for one in found]


def _closer(columns: Sequence[Column], draws: int) -> list[Column]:
    """Return the first columns; of many draws the first ones of numbers and labels, and as many
    that say of what kind an entry of another one is."""
    if draws < _MANY:
        return list(columns[:_CLOSER])
    kinds = [one.name.startswith(KIND) for one in columns]
    before = [kinds[:place].count(is_kind) for place, is_kind in enumerate(kinds)]
    return [one for one, others in zip(columns, before, strict=True) if others < _CLOSER]


def _telling(column: Column, is_d1: IntArray) -> float:
    """Return how many standard errors the inputs are apart in the cells of a column."""
    cells = make_cells(column, _CELLS)
    count = cells.intervals + len(cells.labels) + 1
    table = np.bincount(cells(column) * 2 + is_d1, minlength=2 * count).reshape(count, 2)
    table = table[table.sum(axis=1) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / max(1, table.sum())
    squares = (table - expected) ** 2 / np.maximum(expected, 1e-9)
    freedom = max(1, len(table) - 1)
    return float((squares.sum() - freedom) / np.sqrt(2 * freedom))


NAME = "representation: "


def represented(selection: SelectionDraws) -> list[Candidate]:
    """Order outputs by what a recipient sees of them and Python does not compare, for each of the
    most telling places."""
    columns = selection.outcomes.representations
    found = orders_of_telling(selection, columns) if len(columns) else []
    return [replace(one, attack=f"{NAME}{one.attack.removeprefix(ONE_COLUMN)}") for one in found]


def elapsed(selection: SelectionDraws) -> list[Candidate]:
    """Order outcomes by the duration of their calls."""
    durations = selection.outcomes.column(ELAPSED)
    return [replace(one, attack=f"time: {one.attack}") for one in orders_of(durations, selection)]
