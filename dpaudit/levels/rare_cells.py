"""Group the entries of rare outputs into cells: values, labels or pieces of tails.

`rare_column` makes the cells from the outputs that `rare_filter.py` selects; `frequent_column`
makes cells of frequent entries. `attacks/rare_outputs.py` counts draws by these cells and makes the
rare rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import LevelArray
from dpaudit.levels.cells import (
    NO_OUTPUT,
    Cells,
    around,
    frequent_labels,
    is_number,
    listed,
    short_below,
    shortened,
)
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap
from dpaudit.levels.limits import FEW_VALUES, MAX_CELLS, MIN_REPEATS
from dpaudit.levels.rare_filter import USUAL_DRAWS, Mask, RareFilter, Usual
from dpaudit.outcomes import ABSENT, RAISED, Column, Outcomes

# Each entry of an output gets a number. The cells have the numbers from 2 on. Two numbers stand for
# no cell: USUAL for an entry that is not rare, UNLISTED for a rare entry outside of all cells.
USUAL, UNLISTED = 0, 1
# A joint number stands for the first listed column in which an outcome has a rare entry, and for
# the cell of this entry. OTHER stands for rare outcomes with no rare entry in a listed column.
OTHER = UNLISTED
# _TAIL_SHARE: share of a column's numbers that lie in each of its two tails.
# _FAR_GROUP_FACTOR: if a number is at least this many times as far from the median as the number
# before it, then it begins a group of far numbers, which are not a tail.
_TAIL_SHARE, _FAR_GROUP_FACTOR = 0.05, 3.0

Numbers = NDArray[np.intp]
# A piece of the number line: (start, end, is_tail). The start is included, the end is excluded.
# `is_tail` says whether the piece is part of a tail. There it proves less that all draws are of one
# input, since that often happens by chance.
Piece = tuple[float, float, bool]


@dataclass(frozen=True, slots=True, eq=False)
class RareColumn:
    """Maps the entries of one column to cell numbers: 0 (`USUAL`) for a usual entry, 1 (`UNLISTED`)
    for a rare entry that is in no cell, and 2 or more for an entry in a cell.

    usual: the usual entries; None if all entries of the column count as rare.
    cells: values, labels and pieces of the tails, with their cell numbers.
    is_tail: (size,), for each cell number, whether the cell is part of a tail. Such a cell is
        weaker evidence, since in many tails all draws are of one input by chance.
    example: an entry with cell number 1, in words; empty if there was none.
    only: (size,), whether each cell number is kept; entries with another cell number get 0. None:
        all are kept.
    """

    usual: Usual | None
    cells: Cells
    is_tail: Mask
    example: str = ""
    only: Mask | None = None

    @property
    def name(self) -> str:
        return self.cells.name

    @property
    def size(self) -> int:
        return len(self.is_tail)

    def __call__(self, column: Column) -> Numbers:
        result = np.array(self.cells(column), dtype=np.intp)
        if self.only is None or self.only[UNLISTED]:
            result[(result == USUAL) & _is_rare(self.usual, column)] = UNLISTED
        return result if self.only is None else np.where(self.only[result], result, USUAL)

    def words(self, chosen: Mask, rare_filter: RareFilter) -> list[str]:
        """Describe the event that an entry of the column is in one of the chosen cells. Return the
        alternatives, such as `output is 7` and `output > 12`.

        chosen: (size,), a mask over cell numbers.
        """
        in_cells = chosen.copy()
        in_cells[: UNLISTED + 1] = False
        parts = [self.cells.words(in_cells)] if in_cells.any() else []
        if chosen[UNLISTED]:
            such = f", such as {self.example}" if self.example else ""
            parts.append(f"{self.name} is a value {rare_filter.seen_rarely}{such}")
        return parts


@dataclass(frozen=True, slots=True, eq=False)
class RareLevels(LevelMap):
    """Maps outcomes to levels, by the joint numbers that `joint_numbers` returns.

    rare_filter: selects the rare outcomes.
    columns: one for each column with cells; maps its entries to cell numbers.
    level: the level of each joint number.
    example: a rare outcome whose rare entry is in none of `columns`, in words.
    """

    rare_filter: RareFilter
    columns: tuple[RareColumn, ...]
    level: LevelArray
    example: str = ""

    @property
    def levels(self) -> int:
        return int(self.level.max()) + 2

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        if self.level[OTHER] == self.level[USUAL]:  # the level does not depend on the filter
            return np.asarray(self.level[self._numbers(outcomes)])
        result = np.full(outcomes.size, self.level[USUAL])
        rows = np.flatnonzero(self.rare_filter.is_rare(outcomes))
        if rows.size:
            number = self._numbers(outcomes.take(rows))
            result[rows] = self.level[np.where(number == USUAL, OTHER, number)]
        return result

    def _numbers(self, outcomes: Outcomes) -> Numbers:
        columns = outcomes.named([column_map.name for column_map in self.columns])
        entries = [
            column_map(column) for column_map, column in zip(self.columns, columns, strict=True)
        ]
        return joint_numbers(self.columns, entries, outcomes.size)

    def alternatives(self, chosen: Mask) -> tuple[int, int] | None:
        every = np.asarray(chosen[self.level])
        return None if every[USUAL] else (0, int(np.count_nonzero(every)))

    def words(self, chosen: Mask) -> str:
        every = np.asarray(chosen[self.level])
        if every.all():
            return "any output"
        if every[USUAL]:
            return f"none of: {self.words(~chosen)}"
        parts: list[str] = []
        for column, numbers in zip(self.columns, joint_ranges(self.columns), strict=True):
            in_column = np.zeros(column.size, dtype=bool)
            in_column[1:] = every[numbers]
            parts += column.words(in_column, self.rare_filter)
        if every[OTHER]:
            such = f" such as {self.example}" if self.example else ""
            parts.append(
                f"{'another' if parts else 'a'} rare output{such} ({self.rare_filter.seen_rarely})"
            )
        return listed(parts, "or") if parts else NO_OUTPUT


def joint_ranges(columns: Sequence[RareColumn]) -> list[slice]:
    """Return the range of joint numbers of each column. A joint number from 2 on stands for a
    column and one of its cell numbers other than `USUAL`. 0 (`USUAL`) and 1 (`OTHER`) stand for
    outcomes whose entries in these columns are all usual."""
    ends = np.cumsum([2, *(column.size - 1 for column in columns)]).tolist()
    return [slice(*limits) for limits in pairwise(ends)]


def joint_numbers(columns: Sequence[RareColumn], entries: Sequence[Numbers], size: int) -> Numbers:
    """Return the joint number of the first rare entry of every outcome, (size,); `USUAL` for an
    outcome without a rare entry.

    entries: for each column, (size,), the cell number of every entry.
    """
    result = np.zeros(size, dtype=np.intp)
    for cell, numbers in zip(entries, joint_ranges(columns), strict=True):
        result = np.where((result == USUAL) & (cell > USUAL), cell + (numbers.start - 1), result)
    return result


def in_words(word: str) -> str:
    """Return the text of an outcome or entry as it appears in descriptions of events. The text
    `raised KeyError` becomes `the exception KeyError`; any other text is cut to 60 characters."""
    if word.startswith(RAISED):
        return f"the exception {word.removeprefix(RAISED)}"
    return shortened(word)


def rare_column(usual: Usual | None, column: Column) -> RareColumn | None:
    """Return the cells of the rare entries of a column; None if no entry is rare.

    usual: the usual entries of the column; None if usual outcomes do not have this column.
    """
    is_rare = _is_rare(usual, column)
    if not is_rare.any():
        return None
    are_numbers = is_number(column)
    numbers = np.sort(column.numbers[are_numbers & is_rare])
    singles, _ = _often_seen(numbers, MIN_REPEATS, FEW_VALUES)
    is_range = usual is not None and usual.is_range
    low, high = 0.0, 0.0
    if usual is not None and len(usual.numbers):
        low, high = usual.numbers[[0, -1]].tolist()
    # A value that repeats outside the usual values, but near them, counts as part of a tail, which
    # is weaker evidence of a leak: noise in whole numbers gives such values, too.
    with np.errstate(over="ignore", invalid="ignore"):  # ±inf among the values: inf - inf is NaN
        distance, width = np.maximum(low - singles, singles - high), np.subtract(high, low)
    is_tail = (distance > 0) & (distance < width) & (not is_range)
    pieces = _tails(numbers, low, high) if is_range else []
    rare_labels = column.take(is_rare & ~are_numbers)
    labels = frequent_labels(rare_labels, MIN_REPEATS, FEW_VALUES)
    cells, are_tails = _cells(column.name, singles, is_tail, pieces, labels)
    are_tails[UNLISTED] = low < high
    result = RareColumn(usual, cells, are_tails)
    rows = np.flatnonzero(result(column) == UNLISTED)[:1].tolist()
    return replace(result, example="".join(in_words(column.word(row)) for row in rows))


def frequent_column(column: Column) -> RareColumn | None:
    """Return cells of the frequent entries of a column. Each value and each label that repeats
    often has a cell, as have the numbers far below, and far above, all others; all other numbers
    share one. Return None if there is only this last cell."""
    numbers = np.sort(column.numbers[is_number(column)])
    singles, counts = _often_seen(numbers, USUAL_DRAWS, MAX_CELLS)
    low, high = -math.inf, math.inf
    is_tail = np.zeros(len(singles), dtype=bool)
    is_discrete = bool(2 * counts.sum() > len(numbers))
    if len(numbers) >= USUAL_DRAWS:
        low, high = -_far(-numbers[::-1]), _far(numbers)
        outer = int(_TAIL_SHARE * len(numbers))
        inner = numbers[[outer, -1 - outer]]
        is_outer = (singles < inner[0]) | (singles > inner[1])
        is_tail = is_outer & (singles > low) & (singles < high) & is_discrete
    # The last cell, `remainder`, holds all numbers that no other cell holds. If most numbers are
    # values that repeat often, the numbers in `remainder` mostly lie in the tails of the
    # distribution, so the cell counts as part of a tail. Otherwise `remainder` holds most numbers,
    # and is no tail.
    remainder: Piece = (-math.inf, math.inf, is_discrete)
    pieces = [(high, math.inf, False), remainder]
    if low > -math.inf:
        pieces.insert(0, (-math.inf, math.nextafter(low, math.inf), False))
    labels = frequent_labels(column, USUAL_DRAWS, MAX_CELLS)
    cells, are_tails = _cells(column.name, singles, is_tail, pieces, labels, label_piece=remainder)
    return RareColumn(None, cells, are_tails) if len(are_tails) > UNLISTED + 2 else None


def _cells(
    name: str,
    singles: FloatArray,
    is_tail: Mask,
    pieces: Sequence[Piece],
    labels: tuple[str, ...],
    label_piece: Piece | None = None,
) -> tuple[Cells, Mask]:
    """Return the cells of a column, and a mask by cell number of those that are part of a tail."""
    ends = [end for piece in pieces for end in piece[:2] if math.isfinite(end)]
    edges = np.unique(np.concatenate([around(singles), ends]))
    tails = dict(zip(singles.tolist(), is_tail.tolist(), strict=True))
    number = np.full(len(edges) + 1, USUAL, dtype=np.intp)
    known: dict[float | Piece, int] = {}
    are_tails = [False] * (UNLISTED + 1)
    for index, start in enumerate([-math.inf, *edges.tolist()]):
        cell = (
            start
            if start in tails
            else next((piece for piece in pieces if piece[0] <= start < piece[1]), None)
        )
        if cell is None:
            continue
        if cell not in known:
            known[cell] = len(are_tails)
            are_tails.append(cell[2] if isinstance(cell, tuple) else tails[cell])
        number[index] = known[cell]
    first = len(are_tails)
    unseen = USUAL if label_piece is None else known[label_piece]
    label_values = np.append(np.arange(first, first + len(labels)), unseen).astype(np.intp)
    are_tails += [False] * len(labels)
    return Cells(name, edges, labels, number, label_values), np.array(are_tails, dtype=bool)


def _often_seen(rising: FloatArray, least: int, limit: int) -> tuple[FloatArray, IntArray]:
    """Return (values, counts): at most `limit` values that occur at least `least` times."""
    starts = np.flatnonzero(np.append(True, rising[1:] != rising[:-1])[: len(rising)])
    values, counts = rising[starts], np.diff(np.append(starts, len(rising)))
    often = np.argsort(-counts, kind="stable")[:limit]
    often = np.sort(often[counts[often] >= least])
    return values[often], counts[often]


def _is_rare(usual: Usual | None, column: Column) -> Mask:
    """Return a mask of the rare entries; if `usual` is None, of all entries but absent ones."""
    if usual is not None:
        return usual.is_rare(column)
    if column.codes is None:
        return np.ones(len(column.numbers), dtype=bool)
    is_absent = np.array([False, *(label == ABSENT for label in column.labels)])
    return np.asarray(~is_absent[column.codes])


def _tails(numbers: FloatArray, low: float, high: float) -> list[Piece]:
    """Return the pieces into which the number line beyond the range of usual numbers is cut."""
    # A piece is part of a tail if it is nearer to the range than the width of the range, or if this
    # width is 0. Draws there are weaker evidence of a leak, since they are often of one input by
    # chance.
    high = max(low, high)  # with few numbers all are rare, and low may exceed high
    below, above = numbers[numbers < low], numbers[numbers > high]
    pieces: list[Piece] = []
    with np.errstate(over="ignore", invalid="ignore"):
        width, start = np.subtract(high, low), float(np.nextafter(high, np.inf))
        if len(below) >= MIN_REPEATS:
            ends = np.unique([-np.inf, *_cut(below, low), low]).tolist()
            pieces += [(a, b, not 0 < width <= low - b) for a, b in pairwise(ends)]
        if len(above) >= MIN_REPEATS:
            ends = np.unique([start, *_cut(above, high), np.inf]).tolist()
            pieces += [(a, b, not 0 < width <= a - high) for a, b in pairwise(ends)]
    return pieces


def _cut(numbers: FloatArray, end: float) -> FloatArray:
    """Return one or two points that cut the numbers on one side of a range into pieces."""
    # The first lies in the widest gap, on a logarithmic scale of the distance from the range; the
    # second at the median, if this is nearer to the range than the gap is.
    with np.errstate(over="ignore", invalid="ignore"):
        # Distances are clipped, so that their logarithms are finite.
        distance = np.minimum(np.abs(numbers - end), 1e300)
        gaps = np.abs(np.diff(np.log1p(distance / np.median(distance))))
        room = np.diff(numbers)
    gap, middle = int(np.argmax(gaps)) + 1, len(numbers) // 2
    is_near = middle < gap if numbers[0] > end else middle > gap
    cuts = [_inside(float(numbers[gap - 1]), float(numbers[gap]))]
    if is_near:
        cuts.append(short_below(float(numbers[middle]), float(room[middle - 1])))
    return np.array(cuts)


def _far(rising: FloatArray) -> float:
    """Return a bound above which numbers are far from all others; infinity if there is none."""
    count = len(rising)
    upper = rising[count - 1 - count // 4 :]
    with np.errstate(over="ignore", invalid="ignore"):
        distance = upper - rising[count // 2]
        is_far = (distance[:-1] > 0) & (distance[1:] >= _FAR_GROUP_FACTOR * distance[:-1])
    if not is_far.any():
        return math.inf
    first = int(np.argmax(is_far)) + 1
    return _inside(float(upper[first - 1]), float(upper[first]))


def _inside(low: float, high: float) -> float:
    """Return a number with few decimals about halfway between two numbers."""
    # A leak may begin anywhere in the gap between the two, so the middle is the best guess.
    half = (high - low) / 2
    half = half if math.isfinite(half) else 0.0
    return short_below(high - half, half)
