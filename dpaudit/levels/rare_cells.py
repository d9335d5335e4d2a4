"""Cells of single columns that may show which input was used: values, labels, keys, far tails.

The entries of a column are mapped to numbers: 0 for a usual entry, 1 for a rare entry in no cell, 2
and more for the cells. `rare_column` makes the cells of the entries that a filter lets through;
`frequent_column` makes those of all entries that repeat often, whether or not they are rare.
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
    listed,
    short_below,
    shortened,
)
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap
from dpaudit.levels.rare_filter import RareFilter, Usual
from dpaudit.outcomes import ABSENT, RAISED, Column, Outcomes
from dpaudit.stats.power import LEAST_SEEN

# Number of a usual entry, of a rare entry in no cell, and of the first cell.
USUAL, UNLISTED, FIRST_CELL = 0, 1, 2
# Number of an outcome that the filter lets through and that has no rare entry in any column.
OTHER = 1
# Largest number of single values and of labels of a column with a cell of their own.
_MOST_RARE, _MOST_FREQUENT = 8, 4096
# An entry repeats often if it was seen in this many draws.
FREQUENT = 10
_FARTHEST = 1e300
# Share of the numbers of a column in either tail. Numbers this many times as far from the median as
# all numbers before them are no tail.
_TAIL, _TIMES_AS_FAR = 0.05, 3.0

Numbers = NDArray[np.intp]
Mask = NDArray[np.bool_]
# Where a piece of a column of numbers begins, where it ends, and whether it is a tail.
Piece = tuple[float, float, bool]


@dataclass(frozen=True, slots=True, eq=False)
class RareColumn:
    """Map the entries of one column to the numbers of their cells.

    usual: the usual entries; None for a column in which all entries count as rare.
    is_tail: (size,), by number, whether a cell is part of a tail. Many tails hold draws of one
    input alone by chance.
    example: an entry with the number `UNLISTED`, in words; empty where there was none.
    only: (size,), the numbers that count; others become `USUAL`. None: all count.
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
        """Return the event that the number of an entry is chosen, as alternatives."""
        own = chosen.copy()
        own[:FIRST_CELL] = False
        parts = [self.cells.words(own)] if own.any() else []
        if chosen[UNLISTED]:
            such = f", such as {self.example}" if self.example else ""
            parts.append(f"{self.name} is a value {_seen(rare_filter)}{such}")
        return parts


def _seen(rare_filter: RareFilter) -> str:
    if rare_filter.is_narrowed:
        return "rarely seen while learning"
    return f"seen fewer than {rare_filter.often} times in {rare_filter.draws:,} draws"


@dataclass(frozen=True, slots=True, eq=False)
class RareLevels(LevelMap):
    """Map an outcome to the level of its first rare entry.

    rare_filter: picks the rare outcomes.
    columns: from entries to numbers.
    level: the level of each joint number (see `numbered`).
    example: an outcome with the number `OTHER`, in words.
    """

    rare_filter: RareFilter
    columns: tuple[RareColumn, ...]
    level: LevelArray
    example: str = ""

    @property
    def levels(self) -> int:
        return int(self.level.max()) + 2

    @property
    def needs_filter(self) -> bool:
        """Whether the level of an outcome depends on whether the filter lets it through."""
        return bool(self.level[OTHER] != self.level[USUAL])

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        if not self.needs_filter:
            return np.asarray(self.level[numbered(self.columns, outcomes)])
        result = np.full(outcomes.size, self.level[USUAL])
        rows = np.flatnonzero(self.rare_filter.is_rare(outcomes))
        if rows.size:
            number = numbered(self.columns, outcomes.take(rows))
            result[rows] = self.level[np.where(number == USUAL, OTHER, number)]
        return result

    def words(self, chosen: Mask) -> str:
        every = np.asarray(chosen[self.level])
        if every.all():
            return "any output"
        if every[USUAL]:
            return f"none of: {self.words(~chosen)}"
        parts: list[str] = []
        for column, numbers in zip(self.columns, joint_ranges(self.columns), strict=True):
            own = np.zeros(column.size, dtype=bool)
            own[1:] = every[numbers]
            parts += column.words(own, self.rare_filter)
        if every[OTHER]:
            such = f" such as {self.example}" if self.example else ""
            parts.append(
                f"{'another' if parts else 'a'} rare output{such} ({_seen(self.rare_filter)})"
            )
        return listed(parts, "or") if parts else NO_OUTPUT


def joint_ranges(columns: Sequence[RareColumn]) -> list[slice]:
    """Return the joint numbers of each column, which follow each other from 2 on."""
    ends = np.cumsum([2, *(one.size - 1 for one in columns)]).tolist()
    return [slice(*both) for both in pairwise(ends)]


def numbered(columns: Sequence[RareColumn], outcomes: Outcomes) -> Numbers:
    """Return the joint number of every outcome, from its first rare entry; `USUAL` without one."""
    names = [one.name for one in columns]
    entries = [one(column) for one, column in zip(columns, outcomes.named(names), strict=True)]
    return first_rare(columns, entries, outcomes.size)


def first_rare(columns: Sequence[RareColumn], entries: Sequence[Numbers], size: int) -> Numbers:
    """Return the joint numbers of outcomes whose entries have the given numbers, by column."""
    result = np.zeros(size, dtype=np.intp)
    for own, numbers in zip(entries, joint_ranges(columns), strict=True):
        result = np.where((result == USUAL) & (own > USUAL), own + (numbers.start - 1), result)
    return result


def in_words(word: str) -> str:
    """Return the word of an outcome or of an entry as it stands in the words of an event."""
    if word.startswith(RAISED):
        return f"the exception {word.removeprefix(RAISED)}"
    return shortened(word)


def rare_column(usual: Usual | None, column: Column) -> RareColumn | None:
    """Return the cells of a column of outcomes that a filter lets through; None where no entry is
    rare.

    usual: the usual entries of the column; None for a column that usual outcomes do not have.
    """
    is_rare = _is_rare(usual, column)
    if not is_rare.any():
        return None
    is_number = np.ones(len(is_rare), bool) if column.codes is None else column.codes == 0
    numbers = np.sort(column.numbers[is_number & is_rare])
    singles, _ = _repeated(numbers, LEAST_SEEN, _MOST_RARE)
    low, high = _ends(usual)
    is_range = usual is not None and usual.is_range
    # Single values next to the usual values are a tail, as those of noise in whole numbers.
    distance = np.maximum(low - singles, singles - high)
    is_tail = (distance > 0) & (distance < high - low) & (not is_range)
    pieces = _tails(numbers, low, high) if is_range else []
    labels = _rare_labels(column, is_rare & ~is_number)
    cells, are_tails = _cells(column.name, singles, is_tail, pieces, labels)
    are_tails[UNLISTED] = low < high
    result = RareColumn(usual, cells, are_tails)
    rows = np.flatnonzero(result(column) == UNLISTED)[:1].tolist()
    return replace(result, example="".join(in_words(column.word(row)) for row in rows))


def frequent_column(column: Column) -> RareColumn | None:
    """Return a cell for each value and label that repeats often, one for the numbers far beyond all
    others on either side, and one for all other entries; None where these are all entries."""
    is_number = np.ones(len(column.numbers), bool) if column.codes is None else column.codes == 0
    numbers = np.sort(column.numbers[is_number])
    singles, counts = _repeated(numbers, FREQUENT, _MOST_FREQUENT)
    low, high = -math.inf, math.inf
    is_tail = np.zeros(len(singles), dtype=bool)
    is_discrete = bool(2 * counts.sum() > len(numbers))
    if len(numbers) >= FREQUENT:
        low, high = -_far(-numbers[::-1]), _far(numbers)
        inner = numbers[[int(_TAIL * len(numbers)), -1 - int(_TAIL * len(numbers))]]
        is_outer = (singles < inner[0]) | (singles > inner[1])
        is_tail = is_outer & (singles > low) & (singles < high) & is_discrete
    # The others of a column of values are its rarest values, most of which are in the tails.
    rest: Piece = (-math.inf, math.inf, is_discrete)
    pieces = [(high, math.inf, False), rest]
    if low > -math.inf:
        pieces.insert(0, (-math.inf, math.nextafter(low, math.inf), False))
    labels = frequent_labels(column, FREQUENT, _MOST_FREQUENT)
    cells, are_tails = _cells(column.name, singles, is_tail, pieces, labels, others=rest)
    return RareColumn(None, cells, are_tails) if len(are_tails) > FIRST_CELL + 1 else None


def _cells(
    name: str,
    singles: FloatArray,
    is_tail: Mask,
    pieces: Sequence[Piece],
    labels: tuple[str, ...],
    others: Piece | None = None,
) -> tuple[Cells, Mask]:
    """Return cells of single values, pieces of a range and labels; and which of them are tails, by
    number.

    singles, is_tail: rising values, and whether each belongs to a tail.
    pieces: a number belongs to the first piece that contains it, unless it is a single value.
    others: the piece that all other labels share a cell with; None: they are in no cell.
    """
    ends = [end for piece in pieces for end in piece[:2] if math.isfinite(end)]
    edges = np.unique(np.concatenate([around(singles), ends]))
    tails = dict(zip(singles.tolist(), is_tail.tolist(), strict=True))
    number = np.full(len(edges) + 1, USUAL, dtype=np.intp)
    known: dict[float | Piece, int] = {}
    are_tails = [False] * FIRST_CELL
    for place, start in enumerate([-math.inf, *edges.tolist()]):
        own = start if start in tails else _piece_at(start, pieces)
        if own is None:
            continue
        if own not in known:
            known[own] = len(are_tails)
            are_tails.append(own[2] if isinstance(own, tuple) else tails[own])
        number[place] = known[own]
    first = len(are_tails)
    unseen = USUAL if others is None else known[others]
    label_values = np.append(np.arange(first, first + len(labels)), unseen).astype(np.intp)
    are_tails += [False] * len(labels)
    return Cells(name, edges, labels, number, label_values), np.array(are_tails, dtype=bool)


def _piece_at(start: float, pieces: Sequence[Piece]) -> Piece | None:
    return next((one for one in pieces if one[0] <= start < one[1]), None)


def _repeated(rising: FloatArray, least: int, most: int) -> tuple[FloatArray, IntArray]:
    """Return the values seen at least `least` times, rising, and their counts; of more than `most`
    values, the most frequent ones."""
    starts = np.flatnonzero(np.append(True, rising[1:] != rising[:-1])[: len(rising)])
    values, counts = rising[starts], np.diff(np.append(starts, len(rising)))
    often = np.argsort(-counts, kind="stable")[:most]
    often = np.sort(often[counts[often] >= least])
    return values[often], counts[often]


def _rare_labels(column: Column, is_rare: Mask) -> tuple[str, ...]:
    """Return the rare labels seen at least twice, the most frequent first."""
    if column.codes is None:
        return ()
    counts = np.bincount(column.codes[is_rare], minlength=len(column.labels) + 1)[1:]
    order = np.argsort(-counts, kind="stable")[:_MOST_RARE]
    return tuple(column.labels[place] for place in order if counts[place] >= LEAST_SEEN)


def _is_rare(usual: Usual | None, column: Column) -> Mask:
    """Return which entries are rare; without usual entries, all but absent ones."""
    if usual is not None:
        return usual.is_rare(column)
    if column.codes is None:
        return np.ones(len(column.numbers), dtype=bool)
    is_absent = np.array([False, *(one == ABSENT for one in column.labels)])
    return np.asarray(~is_absent[column.codes])


def _ends(usual: Usual | None) -> tuple[float, float]:
    """Return the ends of the usual numbers of a column; 0 and 0 where there are none."""
    if usual is None or len(usual.numbers) == 0:
        return 0.0, 0.0
    return float(usual.numbers[0]), float(usual.numbers[-1])


def _tails(numbers: FloatArray, low: float, high: float) -> list[Piece]:
    """Return pieces of the tails beyond a range. A piece that is farther from the range than the
    range is wide does not count as a tail.

    numbers: rising.
    """
    high = max(low, high)  # with few numbers all are rare, and the ends of the range cross
    below, above = numbers[numbers < low], numbers[numbers > high]
    pieces: list[Piece] = []
    with np.errstate(over="ignore"):
        width, start = np.subtract(high, low), float(np.nextafter(high, np.inf))
        if len(below) >= LEAST_SEEN:
            ends = np.unique([-np.inf, *_cut(below, low), low]).tolist()
            pieces += [(a, b, not 0 < width <= low - b) for a, b in pairwise(ends)]
        if len(above) >= LEAST_SEEN:
            ends = np.unique([start, *_cut(above, high), np.inf]).tolist()
            pieces += [(a, b, not 0 < width <= a - high) for a, b in pairwise(ends)]
    return pieces


def _cut(numbers: FloatArray, end: float) -> FloatArray:
    """Return where the rising numbers beyond an end are cut: inside the widest gap, measured as a
    multiple of the distance from the end, and at the median, if that is on the near side of the
    gap."""
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.minimum(np.abs(numbers - end), _FARTHEST)
        gaps = np.abs(np.diff(np.log1p(distance / np.median(distance))))
        room = np.diff(numbers)
    gap, middle = int(np.argmax(gaps)) + 1, len(numbers) // 2
    is_near = middle < gap if numbers[0] > end else middle > gap
    cuts = [_inside(float(numbers[gap - 1]), float(numbers[gap]))]
    if is_near:
        cuts.append(short_below(float(numbers[middle]), float(room[middle - 1])))
    return np.array(cuts)


def _far(rising: FloatArray) -> float:
    """Return where the numbers begin that are far above all others: at least three times as far
    above the median as the numbers before them; inf where there are none."""
    count = len(rising)
    upper = rising[count - 1 - count // 4 :]
    with np.errstate(over="ignore", invalid="ignore"):
        distance = upper - rising[count // 2]
        is_far = (distance[:-1] > 0) & (distance[1:] >= _TIMES_AS_FAR * distance[:-1])
    if not is_far.any():
        return math.inf
    first = int(np.argmax(is_far)) + 1
    return _inside(float(upper[first - 1]), float(upper[first]))


def _inside(low: float, high: float) -> float:
    """Return a short decimal about halfway between two numbers: a leak may lie anywhere in a gap,
    and the few numbers seen so far need not include its edge."""
    half = (high - low) / 2
    half = half if math.isfinite(half) else 0.0
    return short_below(high - half, half)
