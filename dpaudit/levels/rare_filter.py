"""The filter of rare outputs.

After the sample buffer is full, draws are only counted and then discarded, but rare outputs are
kept whole. A `RareFilter`, made from the draws in the buffer, decides which outputs are rare. It
sees only the output, never the input, so rules may use it. When memory is full,
`auditing/counted_learning.py` makes it select fewer outputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import SelectionDraws
from dpaudit.levels.cells import (
    Cells,
    around,
    is_number,
    short_below,
)
from dpaudit.levels.level_map import FloatArray
from dpaudit.levels.limits import FEW_VALUES, MAX_CELLS, MAX_TREE_COLUMNS, MIN_REPEATS, SMALL_SHARE
from dpaudit.outcomes import KIND, Column, KeyArray, Outcomes
from dpaudit.outcomes.columns import ROOT, find
from dpaudit.outcomes.texts import WORDS
from dpaudit.stats.order import few_values

# An entry that at least this number of draws have is usual; all other entries are rare. If draws
# are counted by entry (`frequent_column` in rare_cells.py), a value also needs this number of draws
# to be counted separately from other values.
USUAL_DRAWS = 10

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """The usual entries of one column; all other entries are rare.

    numbers: the usual values, rising; if `is_range`, the two ends of the range of usual numbers.
    labels: the usual labels; None: all labels are usual.
    repeated: numbers inside the range that are rare all the same, since they repeat, but not often.
    """

    name: str
    numbers: FloatArray
    is_range: bool
    labels: frozenset[str] | None
    repeated: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    # Maps each entry of the column to True if it is rare, else to False.
    _rarity: Cells = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rarity", self._cells())

    @classmethod
    def of(cls, column: Column, often: int, *, is_read: bool = False) -> Usual:
        """Return the usual entries of a column: values and labels that were seen at least `often`
        times. If numbers rarely repeat, a range of numbers is usual.

        is_read: whether the contents of the column's texts have columns of their own; then all
            texts are usual in this column.
        """
        numbers = column.numbers[is_number(column)]
        labels = None if is_read else _usual_labels(column, often)
        values = _few(numbers)
        usual = None if values is None else _often_enough(*values, often, len(column.numbers))
        if usual is not None:
            return cls(column.name, usual, False, labels)
        usual = _range(numbers, often)
        return cls(column.name, usual, True, labels, _repeated(numbers, usual, often))

    def is_rare(self, column: Column) -> Mask:
        """Return a mask of the entries that are rare: (size,)."""
        return self._rarity(column)

    def narrowed(self, column: Column, often: int) -> tuple[Usual, Rows]:
        """Return (usual, rows): the usual entries, and those that occur at least `often` times in
        `column`; and for each entry added, the row of one draw that has it.

        If the usual numbers are a range, each end moves outward instead, to the `often`-th number
        beyond it, and `rows` has no entry for numbers.
        """
        rare_rows = np.flatnonzero(is_number(column) & self.is_rare(column))
        far = column.numbers[rare_rows]
        labels, rows = self._more_labels(column, often)
        if self.is_range:
            usual = _wider(self.numbers, np.sort(far), often)
            is_rare = [np.count_nonzero(far == value) < often for value in self.repeated.tolist()]
            repeated = self.repeated[np.array(is_rare, dtype=bool)]
            return replace(self, numbers=usual, labels=labels, repeated=repeated), rows
        values, first, counts = np.unique(far, return_index=True, return_counts=True)
        is_often = counts >= often
        usual = np.union1d(self.numbers, values[is_often])
        rows = np.append(rows, rare_rows[first[is_often]])
        return replace(self, numbers=usual, labels=labels), rows

    def _more_labels(self, column: Column, often: int) -> tuple[frozenset[str] | None, Rows]:
        """Return (usual labels with frequent labels of `column` added, a row of each added one)."""
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
            ends = [low, math.nextafter(high, math.inf)]
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
    """Selects rare outputs: the outcomes with an entry that is not usual. It is fixed and can be
    pickled.

    rest: for the parts of an outcome that are in no column of the filter, the hashes that are
        usual, rising. None: these parts are ignored.
    like: an outcome from which the filter was made, as a table with one row.
    often, draws: an entry is usual if it was seen at least `often` times in `draws` draws.
    is_cut: whether some columns are ignored, since outcomes had more than 256 columns.
    is_narrowed: whether more entries became usual after the filter was made.
    new_texts: whether at least half of the outcomes are texts that no other outcome repeats, even
        with `#` in place of each number. Only `seen` sets it.
    """

    columns: tuple[Usual, ...]
    rest: KeyArray | None
    like: Outcomes
    often: int
    draws: int
    is_cut: bool
    is_narrowed: bool = False
    new_texts: bool = False

    @property
    def seen_rarely(self) -> str:
        """The frequency of rare entries in words: `seen fewer than 10 times in 500 draws`."""
        if self.is_narrowed:
            return "rarely seen while learning"
        return f"seen fewer than {self.often:,} times in {self.draws:,} draws"

    @property
    def has_ranges(self) -> bool:
        """Whether the usual numbers of any column are a range, and not a list of values."""
        return any(column.is_range for column in self.columns)

    @classmethod
    def of(cls, selection: SelectionDraws, often: int = USUAL_DRAWS) -> RareFilter:
        """Return the filter that selects outcomes with an entry seen fewer than `often` times."""
        return cls._of(selection, often)

    @classmethod
    def seen(cls, selection: SelectionDraws) -> RareFilter | None:
        """Return the filter that selects outcomes with at least one entry that does not occur in
        `selection`; None if outcomes have more than 256 columns, the most that a filter reads."""
        result, outcomes = cls._of(selection, 1), selection.outcomes
        new_texts = 2 * _single_texts(outcomes) >= outcomes.size
        return None if result.is_cut else replace(result, new_texts=new_texts)

    @classmethod
    def _of(cls, selection: SelectionDraws, often: int) -> RareFilter:
        outcomes = selection.outcomes
        is_cut = len(outcomes.columns) > MAX_TREE_COLUMNS
        names = _names(outcomes.columns[:MAX_TREE_COLUMNS])
        read = outcomes.texts_read
        usual = tuple(
            Usual.of(column, often, is_read=column.name in read) for column in outcomes.named(names)
        )
        usual_keys = None if is_cut else _often(outcomes.keys_beside(frozenset(names)), often)
        return cls(usual, usual_keys, outcomes.take(slice(1)), often, outcomes.size, is_cut)

    def is_rare(self, outcomes: Outcomes) -> Mask:
        """Return a mask of the rare outcomes, which have at least one rare entry: (size,)."""
        result = np.zeros(outcomes.size, dtype=bool)
        names = [usual.name for usual in self.columns]
        for usual, column in zip(self.columns, outcomes.named(names), strict=True):
            result |= usual.is_rare(column)
        if self.rest is not None:
            result |= _missing(outcomes.keys_beside(frozenset(names)), self.rest)
        return result

    def narrowed(
        self, kept: Outcomes, often: int, spared: frozenset[str] = frozenset()
    ) -> tuple[RareFilter, Rows]:
        """Return (filter, rows): a filter that selects fewer outcomes, and the index in `kept` of
        one outcome for each entry that became usual. These are the rare entries that occur at least
        `often` times in `kept`.

        kept: outcomes that this filter has selected.
        spared: names of columns in which all rare entries stay rare.
        """
        names = [usual.name for usual in self.columns]
        result: list[Usual] = []
        rows: list[Rows] = [np.empty(0, dtype=np.intp)]
        for usual, column in zip(self.columns, kept.named(names), strict=True):
            further, first = (usual, []) if usual.name in spared else usual.narrowed(column, often)
            result.append(further)
            rows.append(np.asarray(first, dtype=np.intp))
        usual_keys = self.rest
        # `rest` covers the parts of outcomes that are in no column of the filter, without their
        # names. If a column in `spared` is not among the filter's columns, it may be one of these
        # parts. Then none of them becomes usual.
        if usual_keys is not None and spared <= set(names):
            values, first, counts = np.unique(
                kept.keys_beside(frozenset(names)), return_index=True, return_counts=True
            )
            is_more = (counts >= often) & _missing(values, usual_keys)
            usual_keys = np.union1d(usual_keys, values[is_more])
            rows.append(first[is_more])
        narrower = replace(self, columns=tuple(result), rest=usual_keys, is_narrowed=True)
        return narrower, np.unique(np.concatenate(rows))

    def new(self, outcomes: Outcomes) -> list[Column]:
        """Return the columns of `outcomes` that did not exist when the filter was made."""
        if self.is_cut:
            return []
        known = {usual.name for usual in self.columns}
        return [
            column for column in outcomes.columns if not {column.name, _base(column.name)} & known
        ]


def _single_texts(outcomes: Outcomes) -> int:
    """Return the number of outcomes that are texts which no other outcome repeats."""
    # Texts with numbers are compared with `#` in place of each number. The share of these outcomes
    # estimates the probability that the text of a further draw is new (Good 1953).
    name = ROOT.then("content", WORDS).name if ROOT.name in outcomes.texts_read else ROOT.name
    (column,) = outcomes.named([name])
    if column.codes is None:
        return 0
    counts = np.bincount(column.codes, minlength=len(column.labels) + 1)[1:]
    # A label that begins with a quotation mark is a text; other labels are bytes, dates, kinds, ...
    return sum(label.startswith(('"', "'")) for label in compress(column.labels, counts == 1))


def _wider(usual: FloatArray, far: FloatArray, often: int) -> FloatArray:
    """Return the range of usual numbers, each end moved out to the `often`-th number beyond it."""
    low, high = usual
    below, above = far[far < low], far[far > max(low, high)]
    if len(below) >= often:
        low = _shortly(below, often)
    if len(above) >= often:
        high = -_shortly(-above[::-1], often)
    return np.array([low, high])


def _range(numbers: FloatArray, often: int) -> FloatArray:
    """Return the two ends of the range of usual numbers."""
    last = min(often, len(numbers))
    if 2 * last >= len(numbers):
        return np.sort(numbers)[[last - 1, -last]]
    parted = np.partition(numbers, [last - 1, len(numbers) - last])
    low, high = np.sort(parted[:last]), np.sort(parted[-last:])
    return np.array([_shortly(low, last), -_shortly(-high[::-1], last)])


def _repeated(numbers: FloatArray, usual: FloatArray, often: int) -> FloatArray:
    """Return at most 8 rare values inside the range that repeat; none if many repeat."""
    if often <= MIN_REPEATS:
        return np.empty(0)
    values, counts = np.unique(numbers, return_counts=True)
    if counts[counts >= MIN_REPEATS].sum() > SMALL_SHARE * len(numbers):
        return np.empty(0)
    is_rare = (counts >= MIN_REPEATS) & (counts < often)
    is_rare &= (values >= usual[0]) & (values <= usual[1])
    values, counts = values[is_rare], counts[is_rare]
    return np.sort(values[np.argsort(-counts, kind="stable")[:FEW_VALUES]])


def _shortly(rising: FloatArray, often: int) -> float:
    """Return the `often`-th number in `rising`, or a number below it that has few decimals."""
    # For the upper end of a range, the caller negates the largest numbers and the result.
    last = float(rising[often - 1])
    if often == 1:
        return last
    with np.errstate(over="ignore", invalid="ignore"):
        return short_below(last, float(np.subtract(last, rising[often // 2 - 1])))


def _few(numbers: FloatArray) -> tuple[FloatArray, NDArray[np.int64]] | None:
    """Return the distinct numbers, rising, and their counts; None if there are more than 4,096."""
    result = few_values(numbers)
    if result is not None or len(np.unique(numbers[: 2 * MAX_CELLS])) > MAX_CELLS:
        return result
    values, counts = np.unique(numbers, return_counts=True)
    return None if len(values) > MAX_CELLS else (values, counts)


def _often_enough(
    values: FloatArray, counts: NDArray[np.int64], often: int, size: int
) -> FloatArray | None:
    """Return the values seen at least `often` times; None if more than 2 % are rarer."""
    # Further draws would then bring ever more new values.
    if counts[counts < max(often, MIN_REPEATS)].sum() > SMALL_SHARE * size:
        return None
    return values[counts >= often]


def _names(columns: Sequence[Column]) -> list[str]:
    """Return the names of the columns to use: entries in place of their types."""
    names = [column.name for column in columns]
    every = set(names)
    return [name if _base(name) in every else _base(name) for name in names]


def _base(name: str) -> str:
    return name.removeprefix(KIND)


def _often(keys: KeyArray, often: int) -> KeyArray | None:
    """Return the hashes seen at least `often` times, rising; None if more than 2 % are rarer."""
    # Further draws would then bring ever more new hashes.
    values, counts = np.unique(keys, return_counts=True)
    if counts[counts < often].sum() > SMALL_SHARE * len(keys):
        return None
    return np.asarray(values[counts >= often])


def _missing(keys: KeyArray, known: KeyArray) -> Mask:
    """Return a mask of the hashes that are not in `known`, which is rising."""
    if len(keys) > 1 and keys.strides == (0,):  # all outcomes share one key
        return np.broadcast_to(_missing(keys[:1], known), len(keys))
    if len(known) == 1:
        return np.asarray(keys != known[0])
    return np.asarray(find(known, keys) == len(known))


def _usual_labels(column: Column, often: int) -> frozenset[str] | None:
    """Return the labels seen at least `often` times; None if more than 2 % are rarer."""
    # Further draws would then bring ever more new labels.
    if column.codes is None:
        return frozenset()
    counts = np.bincount(column.codes, minlength=len(column.labels) + 1)[1:]
    if counts[counts < often].sum() > SMALL_SHARE * len(column.codes):
        return None
    is_often = zip(column.labels, counts >= often, strict=True)
    return frozenset(label for label, is_one in is_often if is_one)
