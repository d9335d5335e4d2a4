"""Rare outputs: single values, labels, keys and far tails that a sieve let through.

They are counted cell by cell, column by column. The counts make two things: an order of outcomes
like that of any other attack, and the rare rule of a portfolio, which guesses an input where that
input alone gave an output while learning (docs/method.md §5).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dpaudit.claims import ProfilePoint
from dpaudit.draws import LevelArray, SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.candidate import Candidate
from dpaudit.levels.cells import NO_OUTPUT, Cells, around, listed, short_below, shortened
from dpaudit.levels.distinguisher import RARE_SHARE, Rule
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap
from dpaudit.levels.shrinkage import Law, Shrunk, by_level
from dpaudit.levels.sieve import Sieve, Usual
from dpaudit.outcomes import ABSENT, RAISED, Column, Outcomes, concatenate
from dpaudit.stats.power import LEAST_SEEN
from dpaudit.tally import by_arm

NAME = "rare outputs"
# Single values and labels of one column with a cell of their own, at most: those seen most often.
_MOST_CELLS = 8
# Columns of the order of rare outputs: those with the clearest cells.
_MOST_COLUMNS = 4
_FARTHEST = 1e300
# Numbers of the entries of a column that are usual, and of those that are rare and in no cell.
_USUAL, _UNLISTED = 0, 1
# The number of an outcome that is let through and has no rare entry in any column.
_OTHER = 1

Numbers = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class RareColumn:
    """The number of every entry of one column: 0 if it is usual, 1 if it is rare and in no cell,
    2 and more for the cells.

    usual: None for a column that no earlier outcome had.  is_tail: (size,), by number, whether a
    cell is a part of a tail, of which some look telling by chance.  example: an entry with number
    1, in words; empty where there was none.  only: (size,), the numbers that count, others are 0;
    None: all.
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
        found = np.array(self.cells(column), dtype=np.intp)
        if self.only is None or self.only[_UNLISTED]:
            found[(found == _USUAL) & _is_rare(self.usual, column)] = _UNLISTED
        return found if self.only is None else np.where(self.only[found], found, _USUAL)

    def words(self, chosen: Mask, sieve: Sieve) -> list[str]:
        """Return the event that the number of an entry is chosen, as alternatives."""
        own = chosen.copy()
        own[:2] = False
        parts = [self.cells.words(own)] if own.any() else []
        if chosen[_UNLISTED]:
            such = f", such as {self.example}" if self.example else ""
            parts.append(f"{self.name} is a value {_seen(sieve)}{such}")
        return parts


def _seen(sieve: Sieve) -> str:
    if sieve.is_narrowed:
        return "rarely seen while learning"
    return f"seen fewer than {sieve.often} times in {sieve.draws:,} draws"


@dataclass(frozen=True, slots=True, eq=False)
class RareLevels(LevelMap):
    """The level of an outcome by its rare entries: that of the first column in which it has one.

    sieve: lets rare outcomes through.  columns: to numbers.  level: the level of each number, those
    of the columns one after the other, behind that of usual outcomes and that of rare outcomes
    without a number.  needs_sieve: whether the second of these differs from the first.  example: an
    outcome without a number, in words.
    """

    sieve: Sieve
    columns: tuple[RareColumn, ...]
    level: LevelArray
    example: str = ""

    @property
    def levels(self) -> int:
        return int(self.level.max()) + 2

    @property
    def needs_sieve(self) -> bool:
        return bool(self.level[_OTHER] != self.level[_USUAL])

    def __call__(self, outcomes: Outcomes) -> LevelArray:
        if not self.needs_sieve:
            return np.asarray(self.level[numbered(self.columns, outcomes)])
        found = np.full(outcomes.size, self.level[_USUAL])
        rows = np.flatnonzero(self.sieve.strange(outcomes))
        if rows.size:
            number = numbered(self.columns, outcomes.take(rows))
            found[rows] = self.level[np.where(number == _USUAL, _OTHER, number)]
        return found

    def words(self, chosen: Mask) -> str:
        every = np.asarray(chosen[self.level])
        if every.all():
            return "any output"
        if every[_USUAL]:
            return f"none of: {self.words(~chosen)}"
        parts: list[str] = []
        for column, numbers in zip(self.columns, _ranges(self.columns), strict=True):
            own = np.zeros(column.size, dtype=bool)
            own[1:] = every[numbers]
            parts += column.words(own, self.sieve)
        if every[_OTHER]:
            such = f" such as {self.example}" if self.example else ""
            parts.append(f"{'another' if parts else 'a'} rare output{such} ({_seen(self.sieve)})")
        return listed(parts, "or") if parts else NO_OUTPUT


def _ranges(columns: Sequence[RareColumn]) -> list[slice]:
    """Return which joint numbers the columns have, one after the other, from 2 on."""
    ends = np.cumsum([2, *(one.size - 1 for one in columns)]).tolist()
    return [slice(*both) for both in pairwise(ends)]


def numbered(columns: Sequence[RareColumn], outcomes: Outcomes) -> Numbers:
    """Return the joint number of every outcome, by the first column in which it is rare; 0 where it
    is rare in none."""
    found = np.zeros(outcomes.size, dtype=np.intp)
    names = [one.name for one in columns]
    for one, column, numbers in zip(columns, outcomes.named(names), _ranges(columns), strict=True):
        own = one(column)
        found = np.where((found == _USUAL) & (own > _USUAL), own + (numbers.start - 1), found)
    return found


class RareTable:
    """Counts of rare outputs among learning draws.

    sieve: let `kept` through.  kept: (rows,) draws.  arms: (2,), all draws that they are of.
    """

    def __init__(self, sieve: Sieve, kept: SelectionDraws, arms: IntArray) -> None:
        self.sieve, self.arms = sieve, arms
        self._kept = kept
        self.columns: list[RareColumn] = []
        self._numbers: list[Numbers] = []
        if kept.size < LEAST_SEEN:
            return
        # Next to a usual outcome, since an entry that all outcomes of a table share is no column.
        new = sieve.new(concatenate([sieve.like, kept.outcomes]))
        usual: list[Usual | None] = [*sieve.columns, *map(_usual_at_first, new)]
        names = [*(one.name for one in sieve.columns), *(one.name for one in new)]
        for own, column in zip(usual, kept.outcomes.named(names), strict=True):
            found = _rare_column(own, column)
            if found is not None:
                self.columns.append(found)
                self._numbers.append(found(column))

    @classmethod
    def of(cls, selection: SelectionDraws, often: int) -> RareTable:
        """Return the rare outputs of draws that were kept: those with an entry seen less often."""
        sieve = Sieve.of(selection, often)
        kept = selection.take(np.flatnonzero(sieve.strange(selection.outcomes)))
        arms = np.array([selection.is_d1.sum(), (~selection.is_d1).sum()], dtype=np.int64)
        return cls(sieve, kept, arms)

    @cached_property
    def _counts(self) -> list[IntArray]:
        """Draws by number and input, of every column."""
        return [
            by_arm(numbers, column.size, self._kept.is_d1)
            for numbers, column in zip(self._numbers, self.columns, strict=True)
        ]

    @cached_property
    def _is_other(self) -> Mask:
        """Which rows are rare in no column: what is new in them has a column of its own each."""
        is_none = [numbers == _USUAL for numbers in self._numbers]
        return np.all(is_none, axis=0) if is_none else np.ones(self._kept.size, dtype=bool)

    @cached_property
    def _other(self) -> IntArray:
        return by_arm(self._is_other.astype(np.intp), 2, self._kept.is_d1)[1:]

    @cached_property
    def _laws(self) -> tuple[Law, Law]:
        """How the log-ratios of cells are distributed: of single values, labels and keys, and of
        tails, of which there are many that tell nothing."""
        tails = [
            counts[1:][column.is_tail[1:]]
            for counts, column in zip(self._counts, self.columns, strict=True)
        ]
        single = [
            counts[1:][~column.is_tail[1:]]
            for counts, column in zip(self._counts, self.columns, strict=True)
        ]
        every = np.concatenate([self._other, *single])
        return Law.of(every, self.arms), Law.of(np.concatenate([every[:0], *tails]), self.arms)

    @cached_property
    def _shares(self) -> list[Shrunk]:
        """The share of d1 to expect at every number, of every column."""
        found: list[Shrunk] = []
        for column, counts in zip(self.columns, self._counts, strict=True):
            single, tail = (law.expected(counts) for law in self._laws)
            share = np.where(column.is_tail, tail.share, single.share)
            found.append(Shrunk(share, np.where(column.is_tail, tail.variance, single.variance)))
        return found

    def order(self) -> list[Candidate]:
        """Return the order of the columns whose rare cells tell most, as an attack proposes it."""
        if self._kept.size < LEAST_SEEN:
            return []
        even = (self.arms[0] + 1) / (self.arms.sum() + 2)
        telling = [float(np.abs(one.share[1:] - even).max()) for one in self._shares]
        best = sorted(range(len(telling)), key=lambda place: -telling[place])[:_MOST_COLUMNS]
        return [self._ordered(best)]

    def by_column(self) -> list[tuple[str, Candidate]]:
        """Return the order of every column by itself, with the name of the column."""
        return [(one.name, self._ordered([place])) for place, one in enumerate(self.columns)]

    def _ordered(self, places: Sequence[int]) -> Candidate:
        columns = tuple(self.columns[place] for place in places)
        found = np.zeros(self._kept.size, dtype=np.intp)
        every = [self._laws[0].expected(np.zeros((2, 2), dtype=np.int64))]
        for place, numbers in zip(places, _ranges(columns), strict=True):
            own = self._numbers[place]
            found = np.where((found == _USUAL) & (own > _USUAL), own + (numbers.start - 1), found)
            shares = self._shares[place]
            every.append(Shrunk(shares.share[1:], shares.variance[1:]))
        found[found == _USUAL] = _OTHER
        size = sum(len(one.share) for one in every)
        counts = by_arm(found, size, self._kept.is_d1)
        counts[_USUAL] = self.arms - counts[1:].sum(axis=0)
        every[0] = self._laws[0].expected(counts[:2])
        share = Shrunk(
            np.concatenate([one.share for one in every]),
            np.concatenate([one.variance for one in every]),
        )
        came_up = np.asarray(counts.any(axis=1))
        came_up[_USUAL] = True
        order = np.flatnonzero(came_up)[np.argsort(share.share[came_up], kind="stable")]
        level = np.empty(size, dtype=np.intp)
        level[order] = np.arange(len(order))
        level[~came_up] = level[_USUAL]
        expected = by_level(share, counts.sum(axis=1), level, len(order))
        held_out = np.append(counts[order], [[0, 0]], axis=0)
        freeze = partial(RareLevels, self.sieve, columns, level, self._example(found == _OTHER))
        return Candidate(NAME, held_out, tuning.PENALTY_ANY_ORDER, freeze, shrunk=expected)

    def rule(self, points: Sequence[ProfilePoint], coming: int, share: float) -> Rule | None:
        """Return the rare rule: it guesses an input in the cells that this input alone gave at
        least twice, as far as that is not likely to be luck; None without such cells, or where they
        are so rare that `coming` draws cannot refute by them.

        points: of the claim's profile; the rule is for the one that such outputs refute best.
        share: the part of the exact test's error probability that the rule would get.
        """
        point, cells = self._guessed(points, coming)
        return self._rule_of(cells, point, share) if cells else None

    def guessed_by(self, points: Sequence[ProfilePoint], coming: int) -> set[str]:
        """Return the names of the columns that the rare rule guesses by."""
        _, cells = self._guessed(points, coming)
        return {self.columns[one.column].name for one in cells if one.column is not None}

    def _guessed(
        self, points: Sequence[ProfilePoint], coming: int
    ) -> tuple[ProfilePoint, list[_Cell]]:
        """Return the point that the rare rule is for, and its cells."""
        found = [(point, self._cells_for(point)) for point in points]
        times = coming / max(1, int(self.arms.sum()))

        def evidence(point: ProfilePoint, seen: float) -> float:
            excused = point.delta * coming / 2
            return (seen * times - excused) * math.log1p(math.exp(-point.epsilon))

        point, cells = max(found, key=lambda one: evidence(one[0], self._seen(one[1])))
        seen = self._seen(cells)
        # They may be as frequent as is barely likely: two standard deviations more than were seen.
        most = evidence(point, seen + 2 * math.sqrt(seen) + 1)
        return point, cells if cells and most >= -math.log(RARE_SHARE) else []

    def _cells_for(self, point: ProfilePoint) -> list[_Cell]:
        """Return the surest cell of one input, and those that only one input gives more likely than
        not. With δ > 0 they are of one input, which pays for half of δ alone."""
        odds = math.exp(min(point.epsilon, 30.0)) * self.arms / np.maximum(self.arms[::-1], 1)
        claimed = odds / (1 + odds)
        cells = sorted(self._of_one_input(claimed), key=lambda one: -one.sure)
        cells = [one for place, one in enumerate(cells) if place == 0 or one.sure >= 0.5]
        if not cells or cells[0].sure <= 0:
            return []
        if point.delta > 0:
            by_guess = {guess: [one for one in cells if one.guess == guess] for guess in (1, -1)}
            cells = max(by_guess.values(), key=self._seen)
        return cells

    def _rows(self, cells: Sequence[_Cell]) -> Mask:
        """Return which rows are in any of the cells."""
        found = np.zeros(self._kept.size, dtype=bool)
        for one in cells:
            found |= (
                self._is_other if one.column is None else self._numbers[one.column] == one.number
            )
        return found

    def _seen(self, cells: Sequence[_Cell]) -> int:
        return int(np.count_nonzero(self._rows(cells)))

    def _of_one_input(self, claimed: FloatArray) -> Iterator[_Cell]:
        """Yield the cells that one input alone gave often enough. claimed: the largest share of d1,
        and of d2, in a cell under the claim."""
        for place, (column, counts) in enumerate(zip(self.columns, self._counts, strict=True)):
            shares = self._shares[place].share
            for number in range(1, column.size):
                odds = tuning.ODDS_OF_TAIL if column.is_tail[number] else 1.0
                yield from _cell(place, number, counts[number], shares[number], claimed, odds)
        other = self._laws[0].expected(self._other).share[0]
        yield from _cell(None, _OTHER, self._other[0], other, claimed, 1.0)

    def _rule_of(self, cells: Sequence[_Cell], point: ProfilePoint, share: float) -> Rule:
        """Return the rule that guesses in these cells: level 0 is for no guess, each guess has one
        of the next."""
        with_other = any(one.column is None for one in cells)
        places = sorted({one.column for one in cells if one.column is not None})
        if with_other:  # an outcome is another one if it is rare in no column at all
            places = list(range(len(self.columns)))
        columns = tuple(self.columns[place] for place in places)
        if not with_other:  # a rare entry without a guess hides no guess by a later column
            columns = tuple(
                replace(column, only=_numbers_of(cells, place, column.size))
                for place, column in zip(places, columns, strict=True)
            )
        ranges = dict(zip(places, _ranges(columns), strict=True))
        level = np.zeros(2 + sum(one.size - 1 for one in columns), dtype=np.intp)
        guesses = sorted({one.guess for one in cells}, reverse=True)
        for one in cells:
            number = _OTHER if one.column is None else ranges[one.column].start + one.number - 1
            level[number] = 1 + guesses.index(one.guess)
        expected = np.zeros((2, 2))
        for guess in guesses:
            own = [one for one in cells if one.guess == guess]
            right = np.average([one.right for one in own], weights=[one.draws for one in own])
            # A row that is in several cells counts once.
            both = np.array([right, 1 - right])[::guess]
            expected[0 if guess > 0 else 1] = self._seen(own) * both
        rows = self._is_other if with_other else np.zeros(self._kept.size, dtype=bool)
        levels = RareLevels(self.sieve, columns, level, self._example(rows))
        return Rule("rare", NAME, levels, np.array([0, *guesses, 0]), share, expected, point)

    def _example(self, rows: Mask) -> str:
        first = np.flatnonzero(rows)[:1].tolist()
        return "".join(map(_in_words, self._kept.outcomes.words(first)))


def _numbers_of(cells: Sequence[_Cell], place: int, size: int) -> Mask:
    """Return which numbers of a column are cells of a rule."""
    found = np.zeros(size, dtype=bool)
    found[[one.number for one in cells if one.column == place]] = True
    return found


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell that one input alone gave. column: its place; None for rare outputs in no cell.
    sure: the probability that only this input gives it.  right: the share of guesses in it that are
    expected to be right."""

    column: int | None
    number: int
    draws: int
    guess: int
    sure: float
    right: float


def _cell(
    column: int | None,
    number: int,
    counts: IntArray,
    share: float,
    claimed: FloatArray,
    odds: float,
) -> Iterator[_Cell]:
    """Yield the cell if one input alone gave it often enough.

    share: of d1, as the counts of all cells let expect.  claimed: the largest share of d1, and of
    d2, under the claim.  odds: beforehand, that a cell is of one input and not at the claim.
    """
    d1, d2 = counts.tolist()
    if min(d1, d2) > 0 or d1 + d2 < LEAST_SEEN:
        return
    # Bayes: a cell at the claim gives one input alone with probability claimed^draws. Among many
    # cells some are lucky, which their common law shows.
    most = float(claimed[0 if d1 else 1])
    odds *= most ** -min(d1 + d2, 100)
    right = share if d1 else 1 - share
    beyond = max(0.0, right - most) / max(1 - most, 1e-12)
    sure = min(odds / (1 + odds), beyond)
    yield _Cell(column, number, d1 + d2, 1 if d1 else -1, sure, sure + (1 - sure) * most)


def _in_words(word: str) -> str:
    if word.startswith(RAISED):
        return f"the exception {word.removeprefix(RAISED)}"
    return shortened(word)


def _is_rare(usual: Usual | None, column: Column) -> Mask:
    """Return which entries are rare: of a column that no earlier outcome had, all there are."""
    if usual is not None:
        return usual.strange(column)
    if column.codes is None:
        return np.ones(len(column.numbers), dtype=bool)
    is_absent = np.array([False, *(one == ABSENT for one in column.labels)])
    return np.asarray(~is_absent[column.codes])


def _usual_at_first(column: Column) -> Usual | None:
    """Return the first entry of a column as its usual one; None where the first has none."""
    word = column.word(0)
    if word == ABSENT:
        return None
    is_number = column.codes is None or column.codes[0] == 0
    numbers = column.numbers[:1] if is_number else np.empty(0)
    return Usual(column.name, numbers, False, frozenset(() if is_number else (word,)))


def _rare_column(usual: Usual | None, column: Column) -> RareColumn | None:
    """Return the cells of a column of outcomes that a sieve let through; None where no entry of it
    is rare. usual: None for a column that no earlier outcome had."""
    is_rare = _is_rare(usual, column)
    if not is_rare.any():
        return None
    is_number = np.ones(len(is_rare), bool) if column.codes is None else column.codes == 0
    edges, values, is_tail = _intervals(np.sort(column.numbers[is_number & is_rare]), usual)
    labels = _rare_labels(column, is_rare & ~is_number)
    start = len(is_tail)
    label_values = np.append(np.arange(start, start + len(labels)), _USUAL).astype(np.intp)
    is_tail = np.append(is_tail, np.zeros(len(labels), dtype=bool))
    cells = Cells(column.name, edges, labels, values, label_values)
    found = RareColumn(usual, cells, is_tail)
    rows = np.flatnonzero(found(column) == _UNLISTED)[:1].tolist()
    return replace(found, example="".join(_in_words(column.word(row)) for row in rows))


def _rare_labels(column: Column, is_rare: Mask) -> tuple[str, ...]:
    """Return the rare labels that came up again, the most frequent ones first."""
    if column.codes is None:
        return ()
    counts = np.bincount(column.codes[is_rare], minlength=len(column.labels) + 1)[1:]
    order = np.argsort(-counts, kind="stable")[:_MOST_CELLS]
    return tuple(column.labels[place] for place in order if counts[place] >= LEAST_SEEN)


def _intervals(numbers: FloatArray, usual: Usual | None) -> tuple[FloatArray, Numbers, Mask]:
    """Return the edges of intervals of rare numbers, the number of each, and which numbers belong
    to tails. A value that came up again has an interval of its own; of a range each tail has up to
    three.

    numbers: rising.
    """
    values, counts = np.unique(numbers, return_counts=True)
    often = np.argsort(-counts, kind="stable")[:_MOST_CELLS]
    single = np.sort(values[often[counts[often] >= LEAST_SEEN]])
    is_range = usual is not None and usual.is_range
    pieces = _tails(numbers, *usual.numbers) if usual is not None and is_range else []
    # Single values next to the usual ones are a tail, as those of noise in whole numbers.
    low, high = _ends(usual)
    ends = [end for piece in pieces for end in piece[:2] if math.isfinite(end)]
    edges = np.unique(np.concatenate([around(single), ends]))
    number = np.full(len(edges) + 1, _USUAL, dtype=np.intp)
    known: dict[object, int] = {}
    is_tail = [False, low < high]
    for place, start in enumerate([-math.inf, *edges.tolist()]):
        piece = next((one for one in pieces if one[0] <= start < one[1]), None)
        is_single = start in single
        own = start if is_single else piece
        if own is None:
            continue
        if own not in known:
            known[own] = len(is_tail)
            is_near = 0 < max(low - start, start - high) < high - low
            is_tail.append(is_near and not is_range if is_single else bool(piece and piece[2]))
        number[place] = known[own]
    return edges, number, np.array(is_tail, dtype=bool)


def _ends(usual: Usual | None) -> tuple[float, float]:
    """Return the ends of the usual numbers of a column, 0 and 0 where there are none."""
    if usual is None or len(usual.numbers) == 0:
        return 0.0, 0.0
    return float(usual.numbers[0]), float(usual.numbers[-1])


Piece = tuple[float, float, bool]


def _tails(numbers: FloatArray, low: float, high: float) -> list[Piece]:
    """Return pieces of the tails beyond a range: where each begins, where it ends, and whether it
    is like any other tail. A piece farther away than the range is wide is not."""
    high = max(low, high)  # of few numbers all are rare, and the ends of the range cross
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
    """Return where the sorted numbers beyond an end are cut: inside the widest gap, as a multiple
    of the distance from the end, and at the median, if that is on the near side of the gap."""
    with np.errstate(over="ignore", invalid="ignore"):
        distance = np.minimum(np.abs(numbers - end), _FARTHEST)
        gaps = np.abs(np.diff(np.log1p(distance / np.median(distance))))
        room = np.diff(numbers)
    gap, middle = int(np.argmax(gaps)) + 1, len(numbers) // 2
    is_near = middle < gap if numbers[0] > end else middle > gap
    # Halfway: a leak may lie anywhere beyond the gap, and the few seen so far not at its edge.
    half = float(room[gap - 1]) / 2 if math.isfinite(room[gap - 1]) else 0.0
    cuts = [short_below(float(numbers[gap]) - half, half)]
    if is_near:
        cuts.append(short_below(float(numbers[middle]), float(room[middle - 1])))
    return np.array(cuts)
