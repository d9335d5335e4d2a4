"""Rare outputs: a candidate, and the rare rule.

Outcomes with a rare entry are kept whole, and counted by cell (a value, a label, or a piece of a
tail) in each column. The counts give a candidate (an order of outcomes, as other scorers propose),
and the rare rule of a portfolio, which guesses an input at outputs that only this input gave while
learning. `learning.py` makes tables from kept draws, `auditing/counting.py` from counted draws
(docs/method.md §5, *Rare outputs* and *The rare rule*).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, RareOutputs
from dpaudit.levels.level_map import FloatArray, IntArray, by_group
from dpaudit.levels.portfolio import RARE_SHARE, Rule
from dpaudit.levels.rare_filter import (
    FREQUENT,
    MOST_COLUMNS,
    OTHER,
    USUAL,
    Mask,
    Numbers,
    RareColumn,
    RareFilter,
    RareLevels,
    Usual,
    frequent_column,
    in_words,
    joint_numbers,
    joint_ranges,
    rare_column,
)
from dpaudit.levels.shrinkage import ExpectedDraws, Law
from dpaudit.outcomes import ABSENT, Column, concatenate
from dpaudit.stats.power import LEAST_SEEN

NAME = "rare outputs"
# Largest number of columns that the order of rare outputs uses.
_MOST_COLUMNS = 4


class RareTable:
    """Counts of learning draws by cell (value, label or tail) and input, column by column.

    rare_filter: selects the rare outcomes.
    kept: the draws that are counted.
    arms: (2,), number of all draws of d1 and of d2, the draws that were not kept included.
    least: number of draws that a cell needs for the rare rule.
    """

    def __init__(
        self,
        rare_filter: RareFilter,
        kept: SelectionDraws,
        arms: IntArray,
        columns: Sequence[RareColumn] | None = None,
        least: int = LEAST_SEEN,
    ) -> None:
        """Make the table.

        columns: the cells of each column; None: cells are made from `kept`, which the filter has
            let through.
        """
        self.rare_filter, self.arms = rare_filter, arms
        self._kept, self._least = kept, least
        self.columns = _rare_columns(rare_filter, kept) if columns is None else list(columns)
        names = [one.name for one in self.columns]
        self._numbers: list[Numbers] = [
            one(column)
            for one, column in zip(self.columns, kept.outcomes.named(names), strict=True)
        ]

    @classmethod
    def of(cls, selection: SelectionDraws, often: int) -> RareTable:
        """Return the table of outcomes that have an entry seen in fewer than `often` draws."""
        rare_filter = RareFilter.of(selection, often)
        kept = selection.take(np.flatnonzero(rare_filter.is_rare(selection.outcomes)))
        return cls(rare_filter, kept, _arms(selection))

    @classmethod
    def frequent(cls, selection: SelectionDraws, rare_filter: RareFilter) -> RareTable:
        """Return the table of frequent entries, for columns in which only one input gave some of
        them. Other columns add nothing to the rare rule.

        rare_filter: made from the same draws, for counting further draws.
        """
        columns = []
        for column in selection.outcomes.columns[:MOST_COLUMNS]:
            result = frequent_column(column)
            if result is None:
                continue
            counts = by_arm(result(column), result.size, selection.is_d1)
            if _of_one_arm(counts, FREQUENT).any():
                columns.append(result)
        return cls(rare_filter, selection, _arms(selection), columns, FREQUENT)

    @cached_property
    def _counts(self) -> list[IntArray]:
        """Draws by cell number and input, for every column."""
        return [
            by_arm(numbers, column.size, self._kept.is_d1)
            for numbers, column in zip(self._numbers, self.columns, strict=True)
        ]

    @cached_property
    def _is_other(self) -> Mask:
        """Which kept draws have no rare entry in any column of the table: (draws,)."""
        is_none = [numbers == USUAL for numbers in self._numbers]
        return np.all(is_none, axis=0) if is_none else np.ones(self._kept.size, dtype=bool)

    @cached_property
    def _other(self) -> IntArray:
        return by_arm(self._is_other.astype(np.intp), 2, self._kept.is_d1)[1:]

    @cached_property
    def _laws(self) -> tuple[Law, Law]:
        """Two distributions of the log-ratios of cells: of values, labels and keys; and of pieces
        of tails, most of which have log-ratios near 0."""
        pairs = list(zip(self._counts, self.columns, strict=True))
        tails = [counts[1:][column.is_tail[1:]] for counts, column in pairs]
        single = [counts[1:][~column.is_tail[1:]] for counts, column in pairs]
        every = np.concatenate([self._other, *single])
        return Law.of(every, self.arms), Law.of(np.concatenate([every[:0], *tails]), self.arms)

    @cached_property
    def _shares(self) -> list[FloatArray]:
        """For every column the expected share of d1 in each cell, and the variance of that share:
        (2, cells)."""
        result = []
        for column, counts in zip(self.columns, self._counts, strict=True):
            single, tail = (law.expected(counts) for law in self._laws)
            result.append(np.where(column.is_tail, tail, single))
        return result

    def order(self) -> list[Candidate]:
        """Return a list with one order of outcomes, by the at most four columns that have the cells
        with the most uneven expected shares of d1; an empty list with fewer than two rare
        outcomes."""
        if self._kept.size < LEAST_SEEN:
            return []
        even = (self.arms[0] + 1) / (self.arms.sum() + 2)
        telling = [float(np.abs(share[1:] - even).max()) for share, _ in self._shares]
        best = sorted(range(len(telling)), key=lambda place: -telling[place])[:_MOST_COLUMNS]
        return [self._ordered(best)]

    def by_column(self) -> list[tuple[str, Candidate]]:
        """Return (name of a column, order of outcomes by the rare entries of this column alone)
        pairs."""
        return [(one.name, self._ordered([place])) for place, one in enumerate(self.columns)]

    def _ordered(self, places: Sequence[int]) -> Candidate:
        columns = tuple(self.columns[place] for place in places)
        entries = [self._numbers[place] for place in places]
        number = joint_numbers(columns, entries, self._kept.size)
        number[number == USUAL] = OTHER
        size = 2 + sum(column.size - 1 for column in columns)
        counts = by_arm(number, size, self._kept.is_d1)
        counts[USUAL] = self.arms - counts[1:].sum(axis=0)
        first = self._laws[0].expected(counts[:2])
        share, variance = np.concatenate(
            [first, *(self._shares[place][:, 1:] for place in places)], axis=1
        )
        came_up = np.asarray(counts.any(axis=1))
        came_up[USUAL] = True
        order = np.flatnonzero(came_up)[np.argsort(share[came_up], kind="stable")]
        level = np.empty(size, dtype=np.intp)
        level[order] = np.arange(len(order))
        level[~came_up] = level[USUAL]
        draws = counts.sum(axis=1)
        both = draws[:, None] * np.stack([share, 1 - share], axis=1)
        expected = ExpectedDraws(
            by_group(both, level, len(order)),
            np.bincount(level, draws.astype(np.float64) ** 2 * variance, len(order)),
        )
        held_out = np.append(counts[order], [[0, 0]], axis=0)
        levels = RareLevels(self.rare_filter, columns, level, self._example(number == OTHER))
        penalty = tuning.PENALTY_ANY_ORDER
        return RareOutputs(NAME, held_out, penalty, levels, expected=expected)

    def rule(self, points: Sequence[ProfilePoint], coming: int, share: float) -> Rule | None:
        """Return the rare rule: it guesses an input in cells that only this input gave, unless that
        is probably luck. Return None if there are no such cells, or if they are too rare for
        `coming` draws to refute the claim.

        points: points (ε, δ) of the claim's profile; the rule tests the point that the cells refute
            best.
        coming: number of draws to come, on which the rule is tested.
        share: share of the error probability of the exact test that the rule would get.
        """
        point, cells = self._guessed(points, coming)
        return self._rule_of(cells, point, share) if cells else None

    def guessed_by(self, points: Sequence[ProfilePoint], coming: int) -> set[str]:
        """Return the names of the columns whose cells the rare rule guesses in."""
        _, cells = self._guessed(points, coming)
        return {self.columns[one.column].name for one in cells if one.column is not None}

    def _guessed(
        self, points: Sequence[ProfilePoint], coming: int
    ) -> tuple[ProfilePoint, list[_Cell]]:
        """Return the point (ε, δ) that the rare rule tests, and the cells in which it guesses; no
        cells if the rule could not refute the claim."""
        result = [(point, self._cells_for(point)) for point in points]
        seen = [self._seen(cells) for _, cells in result]
        times = coming / max(1, int(self.arms.sum()))

        def evidence(point: ProfilePoint, seen: float) -> float:
            excused = point.delta * coming / 2
            return (seen * times - excused) * math.log1p(math.exp(-point.epsilon))

        best = max(range(len(result)), key=lambda place: evidence(result[place][0], seen[place]))
        (point, cells), count = result[best], seen[best]
        # Cells may be more frequent than they were in learning, by two standard deviations.
        most = evidence(point, count + 2 * math.sqrt(count) + 1)
        return point, cells if cells and most >= -math.log(RARE_SHARE) else []

    def _cells_for(self, point: ProfilePoint) -> list[_Cell]:
        """Return the cell that most probably only one input gives, and all cells for which this
        probability is at least ½. With δ > 0, only cells of one of the two inputs are returned: a
        rule that guesses one input is charged half of δ."""
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
        """Return which kept draws are in any of the cells: (draws,)."""
        result = np.zeros(self._kept.size, dtype=bool)
        for place in {one.column for one in cells}:
            if place is None:
                result |= self._is_other
            else:
                size = self.columns[place].size
                result |= _numbers_of(cells, place, size)[self._numbers[place]]
        return result

    def _seen(self, cells: Sequence[_Cell]) -> int:
        return int(np.count_nonzero(self._rows(cells)))

    def _of_one_input(self, claimed: FloatArray) -> Iterator[_Cell]:
        """Yield the cells in which at least `least` draws of one input and none of the other were
        seen.

        claimed: (2,), largest share of d1, and of d2, that a cell may have under the claim.
        """
        for place, (column, counts) in enumerate(zip(self.columns, self._counts, strict=True)):
            shares = self._shares[place][0]
            for number in np.flatnonzero(_of_one_arm(counts, self._least)).tolist():
                if number != USUAL:
                    odds = tuning.ODDS_OF_TAIL if column.is_tail[number] else 1.0
                    yield _cell(place, number, counts[number], shares[number], claimed, odds)
        if _of_one_arm(self._other, self._least).any():
            other = float(self._laws[0].expected(self._other)[0, 0])
            yield _cell(None, OTHER, self._other[0], other, claimed, 1.0)

    def _rule_of(self, cells: Sequence[_Cell], point: ProfilePoint, share: float) -> Rule:
        """Return the rule that guesses in these cells. It has a level for no guess, a level for
        each guess, and a level for unseen outcomes.

        point: the point (ε, δ) of the claim's profile that the rule tests.
        share: share of the error probability of the exact test.
        """
        with_other = any(one.column is None for one in cells)
        places = sorted({one.column for one in cells if one.column is not None})
        if with_other:  # all columns are needed to see that an outcome is rare in none of them
            places = list(range(len(self.columns)))
        columns = tuple(self.columns[place] for place in places)
        if not with_other:  # a rare entry without a guess must not hide a guess by a later column
            columns = tuple(
                replace(column, only=_numbers_of(cells, place, column.size))
                for place, column in zip(places, columns, strict=True)
            )
        ranges = dict(zip(places, joint_ranges(columns), strict=True))
        level = np.zeros(2 + sum(one.size - 1 for one in columns), dtype=np.intp)
        guesses = sorted({one.guess for one in cells}, reverse=True)
        for one in cells:
            number = OTHER if one.column is None else ranges[one.column].start + one.number - 1
            level[number] = 1 + guesses.index(one.guess)
        expected = np.zeros((2, 2))
        for guess in guesses:
            own = [one for one in cells if one.guess == guess]
            right = np.average([one.right for one in own], weights=[one.draws for one in own])
            # Draws that are in several cells count once.
            both = np.array([right, 1 - right])[::guess]
            expected[0 if guess > 0 else 1] = self._seen(own) * both
        rows = self._is_other if with_other else np.zeros(self._kept.size, dtype=bool)
        levels = RareLevels(self.rare_filter, columns, level, self._example(rows))
        return Rule("rare", NAME, levels, np.array([0, *guesses, 0]), share, expected, point)

    def _example(self, rows: Mask) -> str:
        first = np.flatnonzero(rows)[:1].tolist()
        return "".join(map(in_words, self._kept.outcomes.words(first)))


def _arms(selection: SelectionDraws) -> IntArray:
    return np.array([selection.is_d1.sum(), (~selection.is_d1).sum()], dtype=np.int64)


def _of_one_arm(counts: IntArray, least: int) -> Mask:
    """Return in which cells at least `least` draws of one input and none of the other were seen.

    counts: (cells, 2), draws by cell and input.
    """
    return np.asarray((counts.min(axis=1) == 0) & (counts.sum(axis=1) >= least))


def _numbers_of(cells: Sequence[_Cell], place: int, size: int) -> Mask:
    """Return which cell numbers of the column `place` belong to cells of a rule: (size,)."""
    result = np.zeros(size, dtype=bool)
    result[[one.number for one in cells if one.column == place]] = True
    return result


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell in which draws of only one input were seen.

    column: index of its column; None for rare outputs that are in no cell.
    number: its cell number in the column.
    draws: number of draws in the cell.
    guess: 1 if these are of d1, -1 if of d2.
    sure: probability that only this input ever gives the cell.
    right: expected share of right guesses in the cell.
    """

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
) -> _Cell:
    """Return a cell in which draws of only one input were seen.

    counts: (2,), draws of d1 and of d2.
    share: expected share of d1, estimated from the counts of all cells.
    claimed: (2,), largest share of d1, and of d2, that a cell may have under the claim.
    odds: prior odds that only one input gives the cell, against a share at the limit of the claim.
    """
    d1, d2 = counts.tolist()
    # Bayes' rule: a cell at the claim gives one input alone with probability most^draws. Among many
    # cells some are lucky, as the distribution of all log-ratios shows.
    most = float(claimed[0 if d1 else 1])
    right = share if d1 else 1 - share
    beyond = max(0.0, right - most) / max(1 - most, 1e-12)
    sure = min(odds / (odds + most ** (d1 + d2)), beyond)
    return _Cell(column, number, d1 + d2, 1 if d1 else -1, sure, sure + (1 - sure) * most)


def _rare_columns(rare_filter: RareFilter, kept: SelectionDraws) -> list[RareColumn]:
    """Return for each column the cells (values, labels, tails) of outcomes that the filter of rare
    outputs has let through."""
    if kept.size < LEAST_SEEN:
        return []
    # A usual outcome is added, since an entry that all outcomes of a table share is no column.
    new = rare_filter.new(concatenate([rare_filter.like, kept.outcomes]))
    usual: list[Usual | None] = [*rare_filter.columns, *map(_usual_at_first, new)]
    names = [*(one.name for one in rare_filter.columns), *(one.name for one in new)]
    columns = zip(usual, kept.outcomes.named(names), strict=True)
    return [one for own, column in columns if (one := rare_column(own, column)) is not None]


def _usual_at_first(column: Column) -> Usual | None:
    """Return the usual entries of a column that has only its first entry as usual; None if this is
    absent."""
    word = column.word(0)
    if word == ABSENT:
        return None
    is_number = column.codes is None or column.codes[0] == 0
    numbers = column.numbers[:1] if is_number else np.empty(0)
    return Usual(column.name, numbers, False, frozenset(() if is_number else (word,)))
