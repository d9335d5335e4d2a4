"""Rare outputs: the filter that lets them through, and cells for their entries.

An output is rare if one of its entries was seen rarely, or never, while learning: a value, a label,
a number beyond nearly all others, or an entry where learning saw none. Draws that are only counted
are discarded, but rare outputs are kept whole. `RareFilter` is made from kept draws. Its decision
depends on the output alone, so rules may use it; `auditing/counting.py` narrows it when memory is
full.

`RareColumn` maps an entry of a column to a cell number: 0 for a usual entry, 1 for a rare entry in
no cell, 2 and more for the cells (single values, labels, pieces of the tails). `rare_column` makes
the cells from outputs that a filter lets through; `frequent_column` makes cells for all entries
that repeat often, whether they are rare or not. `attacks/rare_outputs.py` counts draws by these
cells and makes the rare rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import LevelArray, SelectionDraws
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
from dpaudit.levels.limits import MOST_CELLS
from dpaudit.outcomes import ABSENT, KIND, RAISED, Column, KeyArray, Outcomes
from dpaudit.outcomes.columns import find
from dpaudit.stats.order import few_values

# Number of draws from which on an entry is usual, or has a cell of its own among all entries.
OFTEN = 10
# If more than this share of the entries of a column would be rare, further draws would bring ever
# more new values. Then no label or key of the column counts as rare, and a number is rare if it
# lies outside a range.
_NEVER_STOPS_BEING_NEW = 0.02
# Number of draws from which on a value repeats.
_REPEATS = 2
# Number of bits of a hash of a float, and the odd factor of that hash (Knuth 1973).
_BUCKETS, _SPREAD = 20, np.uint64(0x9E3779B97F4A7C15)
# Largest number of columns that the filter looks at.
MOST_COLUMNS = 256

# Cell numbers: of a usual entry, of a rare entry in no cell, and of the first cell.
USUAL, UNLISTED, FIRST_CELL = 0, 1, 2
# Joint number of an outcome that the filter lets through although no listed column has a rare
# entry.
OTHER = 1
# For each column: largest number of rare values with a cell of their own, of rare labels with a
# cell of their own, and of rare values inside the usual range.
_MOST_RARE = 8
# _TAIL: share of the numbers of a column in either tail.
# _TIMES_AS_FAR: a number at least this many times as far from the median as the number before it
#     starts a group of far numbers, which is no tail.
_TAIL, _TIMES_AS_FAR = 0.05, 3.0


Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
Numbers = NDArray[np.intp]
# A piece of a column of numbers: its start (included), its end (excluded), and whether it is a
# tail.
Piece = tuple[float, float, bool]


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """The usual entries of one column; all other entries are rare.

    name: name of the column.
    numbers: the usual values, rising; or the two ends of the usual range if `is_range`.
    labels: the usual labels; None: all labels are usual.
    repeated: rare values inside the range that were seen more than once.
    """

    name: str
    numbers: FloatArray
    is_range: bool
    labels: frozenset[str] | None
    repeated: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    # The cells of the column; the value of a cell is whether its entries are rare.
    _rarity: Cells = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rarity", self._cells())

    @classmethod
    def of(cls, column: Column, often: int) -> Usual:
        """Return the usual entries of a column: those seen at least `often` times."""
        numbers, labels = column.numbers[is_number(column)], _usual_labels(column, often)
        values = _few(numbers)
        usual = None if values is None else _often_enough(*values, often, len(column.numbers))
        if usual is not None:
            return cls(column.name, usual, False, labels)
        usual = _range(numbers, often)
        return cls(column.name, usual, True, labels, _repeated(numbers, usual, often))

    def is_rare(self, column: Column) -> Mask:
        """Return which entries of a column are rare: (size,)."""
        return self._rarity(column)

    def narrowed(self, column: Column, often: int) -> tuple[Usual, Rows]:
        """Return the extended usual entries, and the row of one example draw for each value and
        label that becomes usual.

        Values and labels seen at least `often` times in this column become usual; a range grows to
        the `often`-th number beyond either end.
        column: entries of outcomes that the filter has let through.
        """
        place = np.flatnonzero(is_number(column) & self.is_rare(column))
        far = column.numbers[place]
        labels, rows = self._more_labels(column, often)
        if self.is_range:
            usual = _wider(self.numbers, np.sort(far), often)
            is_rare = [np.count_nonzero(far == value) < often for value in self.repeated.tolist()]
            repeated = self.repeated[np.array(is_rare, dtype=bool)]
            return replace(self, numbers=usual, labels=labels, repeated=repeated), rows
        values, first, counts = np.unique(far, return_index=True, return_counts=True)
        is_often = counts >= often
        usual = np.union1d(self.numbers, values[is_often])
        rows = np.append(rows, place[first[is_often]])
        return replace(self, numbers=usual, labels=labels), rows

    def _more_labels(self, column: Column, often: int) -> tuple[frozenset[str] | None, Rows]:
        """Return the usual labels, extended by all labels seen at least `often` times, and for each
        new label the row of one draw that has it."""
        if self.labels is None or column.codes is None:
            return self.labels, np.empty(0, dtype=np.intp)
        codes, first, counts = np.unique(column.codes, return_index=True, return_counts=True)
        is_known = [code == 0 or column.labels[code - 1] in self.labels for code in codes.tolist()]
        is_more = (counts >= often) & ~np.array(is_known, dtype=bool)
        further = {column.labels[code - 1] for code in codes[is_more].tolist()}
        return self.labels | further, first[is_more]

    def _cells(self) -> Cells:
        if self.is_range:
            low, high = self.numbers
            ends = [low, np.nextafter(high, np.inf)]
            edges = np.unique(np.concatenate([ends, around(self.repeated)]))
            starts = np.append(-np.inf, edges[edges > -np.inf])
            is_rare = (starts < low) | (starts > high) | np.isin(starts, self.repeated)
        else:
            starts = np.append(-np.inf, around(self.numbers))
            is_rare = ~np.isin(starts, self.numbers)
        labels = () if self.labels is None else tuple(self.labels)
        of_labels = np.append(np.zeros(len(labels), dtype=bool), self.labels is not None)
        return Cells(self.name, starts[1:], labels, is_rare, of_labels)


@dataclass(frozen=True, slots=True, eq=False)
class RareFilter:
    """The filter of rare outputs, made of the usual entries of all columns; frozen, can be pickled.

    rest: usual hashes, rising. The hash of an outcome covers its parts that are in no column. None:
        these parts are not looked at.
    like: an outcome from which the filter was made, as a table with one row.
    often, draws: an entry is usual if it was seen at least `often` times in `draws` draws.
    is_cut: whether some columns are not looked at, since outcomes had more than 256 columns.
    is_narrowed: whether more entries were made usual later.
    """

    columns: tuple[Usual, ...]
    rest: KeyArray | None
    like: Outcomes
    often: int
    draws: int
    is_cut: bool
    is_narrowed: bool = False

    @property
    def seen_rarely(self) -> str:
        """The frequency of rare entries in words: `seen fewer than 10 times in 500 draws`."""
        if self.is_narrowed:
            return "rarely seen while learning"
        return f"seen fewer than {self.often} times in {self.draws:,} draws"

    @property
    def has_ranges(self) -> bool:
        """Whether some column has a usual range, since its numbers rarely repeat."""
        return any(one.is_range for one in self.columns)

    @classmethod
    def of(cls, selection: SelectionDraws, often: int = OFTEN) -> RareFilter:
        """Return the filter that lets through outcomes with an entry seen in fewer than `often`
        draws."""
        return cls._of(selection, often)

    @classmethod
    def seen(cls, selection: SelectionDraws) -> RareFilter | None:
        """Return the filter that lets through outcomes with an entry that was never seen; None if
        outcomes have more columns than the filter can look at."""
        result = cls._of(selection, 1)
        return None if result.is_cut or selection.outcomes.width > MOST_COLUMNS else result

    @classmethod
    def _of(cls, selection: SelectionDraws, often: int) -> RareFilter:
        outcomes = selection.outcomes
        is_cut = len(outcomes.columns) > MOST_COLUMNS
        names = _names(outcomes.columns[:MOST_COLUMNS])
        usual = tuple(Usual.of(one, often) for one in outcomes.named(names))
        rest = None if is_cut else _often(outcomes.keys_beside(frozenset(names)), often)
        return cls(usual, rest, outcomes.take(slice(1)), often, outcomes.size, is_cut)

    def is_rare(self, outcomes: Outcomes) -> Mask:
        """Return whether each outcome has a rare entry, so that the filter lets it through:
        (size,)."""
        result = np.zeros(outcomes.size, dtype=bool)
        names = [one.name for one in self.columns]
        for usual, column in zip(self.columns, outcomes.named(names), strict=True):
            result |= usual.is_rare(column)
        if self.rest is not None:
            result |= _missing(outcomes.keys_beside(frozenset(names)), self.rest)
        return result

    def narrowed(
        self, kept: Outcomes, often: int, spared: frozenset[str] = frozenset()
    ) -> tuple[RareFilter, Rows]:
        """Return a filter that lets fewer outcomes through, and the rows of some outcomes: one row
        for each value, label or hash of `rest` that becomes usual.

        kept: outcomes that this filter has let through. An entry seen at least `often` times among
            them becomes usual.
        spared: names of columns in which nothing becomes usual.
        """
        names = [one.name for one in self.columns]
        result: list[Usual] = []
        rows: list[Rows] = [np.empty(0, dtype=np.intp)]
        for usual, column in zip(self.columns, kept.named(names), strict=True):
            further, first = (usual, []) if usual.name in spared else usual.narrowed(column, often)
            result.append(further)
            rows.append(np.asarray(first, dtype=np.intp))
        rest = self.rest
        # Parts outside all columns have no name to be spared by. They may belong to a spared column
        # that is new to the filter; then they stay rare.
        if rest is not None and spared <= set(names):
            values, first, counts = np.unique(
                kept.keys_beside(frozenset(names)), return_index=True, return_counts=True
            )
            is_more = (counts >= often) & _missing(values, rest)
            rest = np.union1d(rest, values[is_more])
            rows.append(first[is_more])
        narrower = replace(self, columns=tuple(result), rest=rest, is_narrowed=True)
        return narrower, np.unique(np.concatenate(rows))

    def new(self, outcomes: Outcomes) -> list[Column]:
        """Return the columns of some outcomes that the filter does not know."""
        if self.is_cut:
            return []
        known = {one.name for one in self.columns}
        return [one for one in outcomes.columns if not {one.name, _base(one.name)} & known]


def _wider(usual: FloatArray, far: FloatArray, often: int) -> FloatArray:
    """Return a range with each end moved outward, to the `often`-th number beyond it. An end with
    fewer numbers beyond it stays.

    usual: the two ends.
    far: numbers outside the range, rising.
    """
    low, high = usual
    below, above = far[far < low], far[far > max(low, high)]
    if len(below) >= often:
        low = _shortly(below, often)
    if len(above) >= often:
        high = -_shortly(-above[::-1], often)
    return np.array([low, high])


def _range(numbers: FloatArray, often: int) -> FloatArray:
    """Return both ends of the usual range: at most `often` numbers lie at or beyond either end."""
    last = min(often, len(numbers))
    if 2 * last >= len(numbers):
        return np.sort(numbers)[[last - 1, -last]]
    parted = np.partition(numbers, [last - 1, len(numbers) - last])
    low, high = np.sort(parted[:last]), np.sort(parted[-last:])
    return np.array([_shortly(low, last), -_shortly(-high[::-1], last)])


def _repeated(numbers: FloatArray, usual: FloatArray, often: int) -> FloatArray:
    """Return rare values inside the usual range that were seen more than once, at most 8, the most
    frequent ones; none if most numbers repeat.

    usual: the two ends of the range.
    often: number of draws from which on a value is usual.
    """
    if often <= _REPEATS:
        return np.empty(0)
    # Equal numbers have equal hashes, so only numbers that share a hash are sorted. This takes a
    # quarter of the time of sorting all numbers.
    bucket = (numbers + 0.0).view(np.uint64) * _SPREAD >> np.uint64(64 - _BUCKETS)
    place = bucket.astype(np.intp)
    shared = numbers[np.bincount(place, minlength=1 << _BUCKETS)[place] > 1]
    values, counts = np.unique(shared, return_counts=True)
    if counts[counts >= _REPEATS].sum() > _NEVER_STOPS_BEING_NEW * len(numbers):
        return np.empty(0)
    is_rare = (counts >= _REPEATS) & (counts < often)
    is_rare &= (values >= usual[0]) & (values <= usual[1])
    values, counts = values[is_rare], counts[is_rare]
    return np.sort(values[np.argsort(-counts, kind="stable")[:_MOST_RARE]])


def _shortly(rising: FloatArray, often: int) -> float:
    """Return the `often`-th number, or a short decimal slightly below it. With `often` = 1 the
    number itself is returned, so that no number lies beyond.

    rising: numbers at one end of a range, rising.
    """
    last = float(rising[often - 1])
    if often == 1:
        return last
    with np.errstate(over="ignore", invalid="ignore"):
        return short_below(last, float(np.subtract(last, rising[often // 2 - 1])))


def _few(numbers: FloatArray) -> tuple[FloatArray, NDArray[np.int64]] | None:
    """Return the different values of some numbers, rising, and their counts; None if there are more
    than 4,096 values."""
    result = few_values(numbers)
    if result is not None or len(np.unique(numbers[: 2 * MOST_CELLS])) > MOST_CELLS:
        return result
    values, counts = np.unique(numbers, return_counts=True)
    return None if len(values) > MOST_CELLS else (values, counts)


def _often_enough(
    values: FloatArray, counts: NDArray[np.int64], often: int, size: int
) -> FloatArray | None:
    """Return the values seen at least `often` times; None if more than 2 % of the entries are rare:
    then further draws would bring ever more new values.

    size: number of entries of the column, labels included.
    """
    if counts[counts < max(often, _REPEATS)].sum() > _NEVER_STOPS_BEING_NEW * size:
        return None
    return values[counts >= often]


def _names(columns: Sequence[Column]) -> list[str]:
    """Return the names of the columns to look at. A column that only gives the type of another
    column's entries is replaced by that other column."""
    names = [one.name for one in columns]
    every = set(names)
    return [name if _base(name) in every else _base(name) for name in names]


def _base(name: str) -> str:
    return name.removeprefix(KIND)


def _often(keys: KeyArray, often: int) -> KeyArray | None:
    """Return the hashes seen at least `often` times, rising; None if more than 2 % of the hashes
    are rare, so that new hashes never end."""
    values, counts = np.unique(keys, return_counts=True)
    if counts[counts < often].sum() > _NEVER_STOPS_BEING_NEW * len(keys):
        return None
    return np.asarray(values[counts >= often])


def _missing(keys: KeyArray, known: KeyArray) -> Mask:
    """Return which hashes are not among the known hashes: (size,).

    known: rising.
    """
    if len(keys) > 1 and keys.strides == (0,):  # all outcomes share one key
        return np.broadcast_to(_missing(keys[:1], known), len(keys))
    if len(known) == 1:
        return np.asarray(keys != known[0])
    return np.asarray(find(known, keys) == len(known))


def _usual_labels(column: Column, often: int) -> frozenset[str] | None:
    """Return the labels seen at least `often` times; None if more than 2 % of the entries have rare
    labels, so that new labels never end."""
    if column.codes is None:
        return frozenset()
    counts = np.bincount(column.codes, minlength=len(column.labels) + 1)[1:]
    if counts[counts < often].sum() > _NEVER_STOPS_BEING_NEW * len(column.codes):
        return None
    is_often = zip(column.labels, counts >= often, strict=True)
    return frozenset(label for label, is_one in is_often if is_one)


@dataclass(frozen=True, slots=True, eq=False)
class RareColumn:
    """Map the entries of one column to cell numbers: 0 for usual, 1 for rare but in no cell, 2 and
    more for cells.

    usual: the usual entries; None if all entries of the column count as rare.
    cells: values, labels and pieces of the tails, with their cell numbers.
    is_tail: (size,), by cell number, whether a cell is part of a tail. In many tails all draws are
        of one input by chance.
    example: an entry with number `UNLISTED`, in words; empty if there was none.
    only: (size,), the cell numbers that are kept; the other ones become `USUAL`. None: all are
        kept.
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
        """Return in words the event that an entry is in one of the chosen cells, as a list of
        alternatives.

        chosen: (size,), True for a chosen cell number.
        rare_filter: the filter that defines which entries are rare.
        """
        own = chosen.copy()
        own[:FIRST_CELL] = False
        parts = [self.cells.words(own)] if own.any() else []
        if chosen[UNLISTED]:
            such = f", such as {self.example}" if self.example else ""
            parts.append(f"{self.name} is a value {rare_filter.seen_rarely}{such}")
        return parts


@dataclass(frozen=True, slots=True, eq=False)
class RareLevels(LevelMap):
    """Level map of rare outputs: the level of an outcome follows from its first rare entry.

    rare_filter: selects the rare outcomes.
    columns: map the entries of each column to cell numbers.
    level: the level of each joint number (see `joint_numbers`).
    example: an outcome with joint number `OTHER`, in words.
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
        columns = outcomes.named([own.name for own in self.columns])
        entries = [own(column) for own, column in zip(self.columns, columns, strict=True)]
        return joint_numbers(self.columns, entries, outcomes.size)

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
                f"{'another' if parts else 'a'} rare output{such} ({self.rare_filter.seen_rarely})"
            )
        return listed(parts, "or") if parts else NO_OUTPUT


def joint_ranges(columns: Sequence[RareColumn]) -> list[slice]:
    """Return for each column the range of its joint numbers. Ranges follow each other from 2 on,
    and a range has a number for each cell number of the column but 0."""
    ends = np.cumsum([2, *(one.size - 1 for one in columns)]).tolist()
    return [slice(*both) for both in pairwise(ends)]


def joint_numbers(columns: Sequence[RareColumn], entries: Sequence[Numbers], size: int) -> Numbers:
    """Return the joint number of every outcome: (size,). It combines the first column that has a
    rare entry with the cell number there; without a rare entry it is `USUAL`.

    entries: for each column, (size,), the cell numbers.
    """
    result = np.zeros(size, dtype=np.intp)
    for own, numbers in zip(entries, joint_ranges(columns), strict=True):
        result = np.where((result == USUAL) & (own > USUAL), own + (numbers.start - 1), result)
    return result


def in_words(word: str) -> str:
    """Return the word of an outcome or an entry as descriptions of events show it: shortened, and
    with the word "exception" for exceptions."""
    if word.startswith(RAISED):
        return f"the exception {word.removeprefix(RAISED)}"
    return shortened(word)


def rare_column(usual: Usual | None, column: Column) -> RareColumn | None:
    """Return cells for a column of outcomes that a filter of rare outputs has let through; None if
    no entry is rare.

    usual: the usual entries of the column; None for a column that usual outcomes do not have.
    """
    is_rare = _is_rare(usual, column)
    if not is_rare.any():
        return None
    are_numbers = is_number(column)
    numbers = np.sort(column.numbers[are_numbers & is_rare])
    singles, _ = _often_seen(numbers, _REPEATS, _MOST_RARE)
    is_range = usual is not None and usual.is_range
    low, high = 0.0, 0.0
    if usual is not None and len(usual.numbers):
        low, high = usual.numbers[[0, -1]].tolist()
    # A single value outside the usual values, but near to them, is part of a tail, as for noise in
    # whole numbers.
    distance = np.maximum(low - singles, singles - high)
    is_tail = (distance > 0) & (distance < high - low) & (not is_range)
    pieces = _tails(numbers, low, high) if is_range else []
    rare_labels = column.take(is_rare & ~are_numbers)
    labels = frequent_labels(rare_labels, _REPEATS, _MOST_RARE)
    cells, are_tails = _cells(column.name, singles, is_tail, pieces, labels)
    are_tails[UNLISTED] = low < high
    result = RareColumn(usual, cells, are_tails)
    rows = np.flatnonzero(result(column) == UNLISTED)[:1].tolist()
    return replace(result, example="".join(in_words(column.word(row)) for row in rows))


def frequent_column(column: Column) -> RareColumn | None:
    """Return cells for all entries of a column: one for each value and label that repeats often,
    one on either side for numbers far beyond all others, and one for the rest. None if the last one
    is the only cell."""
    numbers = np.sort(column.numbers[is_number(column)])
    singles, counts = _often_seen(numbers, OFTEN, MOST_CELLS)
    low, high = -math.inf, math.inf
    is_tail = np.zeros(len(singles), dtype=bool)
    is_discrete = bool(2 * counts.sum() > len(numbers))
    if len(numbers) >= OFTEN:
        low, high = -_far(-numbers[::-1]), _far(numbers)
        inner = numbers[[int(_TAIL * len(numbers)), -1 - int(_TAIL * len(numbers))]]
        is_outer = (singles < inner[0]) | (singles > inner[1])
        is_tail = is_outer & (singles > low) & (singles < high) & is_discrete
    # In a column of repeating values, the rest are its rarest values, most of which lie in the
    # tails.
    rest: Piece = (-math.inf, math.inf, is_discrete)
    pieces = [(high, math.inf, False), rest]
    if low > -math.inf:
        pieces.insert(0, (-math.inf, math.nextafter(low, math.inf), False))
    labels = frequent_labels(column, OFTEN, MOST_CELLS)
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
    """Return the cells of a column: of single values, pieces of the number line, and labels; and by
    cell number, whether each is a tail.

    singles, is_tail: single values, rising, and whether each is part of a tail.
    pieces: a number that is no single value belongs to the first piece that contains it.
    others: the piece whose cell all other labels share; None: other labels are in no cell.
    """
    ends = [end for piece in pieces for end in piece[:2] if math.isfinite(end)]
    edges = np.unique(np.concatenate([around(singles), ends]))
    tails = dict(zip(singles.tolist(), is_tail.tolist(), strict=True))
    number = np.full(len(edges) + 1, USUAL, dtype=np.intp)
    known: dict[float | Piece, int] = {}
    are_tails = [False] * FIRST_CELL
    for place, start in enumerate([-math.inf, *edges.tolist()]):
        own = (
            start
            if start in tails
            else next((piece for piece in pieces if piece[0] <= start < piece[1]), None)
        )
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


def _often_seen(rising: FloatArray, least: int, most: int) -> tuple[FloatArray, IntArray]:
    """Return the values seen at least `least` times, rising, and their counts. Of more than `most`
    such values, only the most frequent ones are returned.

    rising: numbers in rising order.
    """
    starts = np.flatnonzero(np.append(True, rising[1:] != rising[:-1])[: len(rising)])
    values, counts = rising[starts], np.diff(np.append(starts, len(rising)))
    often = np.argsort(-counts, kind="stable")[:most]
    often = np.sort(often[counts[often] >= least])
    return values[often], counts[often]


def _is_rare(usual: Usual | None, column: Column) -> Mask:
    """Return which entries are rare: (size,). If no usual entries are known, all but absent entries
    are rare."""
    if usual is not None:
        return usual.is_rare(column)
    if column.codes is None:
        return np.ones(len(column.numbers), dtype=bool)
    is_absent = np.array([False, *(one == ABSENT for one in column.labels)])
    return np.asarray(~is_absent[column.codes])


def _tails(numbers: FloatArray, low: float, high: float) -> list[Piece]:
    """Return the pieces of the number line beyond a range, on sides where at least two numbers lie.
    A piece farther from the range than the range is wide is marked as no tail.

    numbers: the rare numbers, rising.
    low, high: ends of the range of usual numbers.
    """
    high = max(low, high)  # with few numbers all are rare, and low may exceed high
    below, above = numbers[numbers < low], numbers[numbers > high]
    pieces: list[Piece] = []
    with np.errstate(over="ignore"):
        width, start = np.subtract(high, low), float(np.nextafter(high, np.inf))
        if len(below) >= _REPEATS:
            ends = np.unique([-np.inf, *_cut(below, low), low]).tolist()
            pieces += [(a, b, not 0 < width <= low - b) for a, b in pairwise(ends)]
        if len(above) >= _REPEATS:
            ends = np.unique([start, *_cut(above, high), np.inf]).tolist()
            pieces += [(a, b, not 0 < width <= a - high) for a, b in pairwise(ends)]
    return pieces


def _cut(numbers: FloatArray, end: float) -> FloatArray:
    """Return the one or two places where numbers beyond the end of a range are cut: inside the
    widest gap, relative to the distance from the end; and at the median, if the median is nearer to
    the end than the gap is.

    numbers: rising, all on one side of the end.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # Clipped, so that the logarithm is finite.
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
    """Return the number from which on numbers are far above all others: at least three times as far
    above the median as the number before. Infinite if there are no such numbers.

    rising: the numbers of a column, rising.
    """
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
    """Return a short decimal about halfway between two numbers. A leak may begin anywhere in a gap,
    and the few numbers seen so far need not include where it begins."""
    half = (high - low) / 2
    half = half if math.isfinite(half) else 0.0
    return short_below(high - half, half)
