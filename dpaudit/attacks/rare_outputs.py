"""Rare outputs: a candidate, and the rare rule.

A `RareTable` counts rare outcomes by cell in each column; a cell is a value, a label, or a piece of
a tail. `learning.py` makes tables from draws in memory, `auditing/counted_learning.py` from rare
outcomes that were kept when further draws were counted (docs/method.md §5, *Rare outputs* and *The
rare rule*).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpaudit.claims import ProfilePoint
from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.levels import tuning
from dpaudit.levels.candidates import Candidate, fixed
from dpaudit.levels.level_map import FloatArray, IntArray, by_group
from dpaudit.levels.limits import MAX_NAMED_COLUMNS, MAX_TREE_COLUMNS
from dpaudit.levels.portfolio import RARE_SHARE, Rule
from dpaudit.levels.rare_cells import (
    OTHER,
    USUAL,
    Numbers,
    RareColumn,
    RareLevels,
    frequent_column,
    in_words,
    joint_numbers,
    joint_ranges,
    rare_column,
)
from dpaudit.levels.rare_filter import USUAL_DRAWS, Mask, RareFilter, Usual
from dpaudit.levels.shrinkage import ExpectedDraws, Law
from dpaudit.outcomes import ABSENT, Column, concatenate
from dpaudit.stats.power import MIN_SEEN

NAME = "rare outputs"


@dataclass(frozen=True, slots=True, eq=False)
class _RareGuesses:
    """The guesses of a rare rule, one for each of its cells. All learning draws in such a cell were
    of one input, which is the guess. The cell in which this is least likely to be luck comes first.

    cell: (guesses,), index of each cell in the arrays of the `RareTable`.
    is_d1: (guesses,), whether the guess is d1.
    right: (guesses,), expected share of right guesses.
    """

    cell: Numbers
    is_d1: Mask
    right: FloatArray

    def take(self, rows: Numbers | Mask) -> _RareGuesses:
        return _RareGuesses(self.cell[rows], self.is_d1[rows], self.right[rows])


class RareTable:
    """Counts of learning draws by cell and input, for each column of rare outcomes.

    kept: the draws whose entries are counted.
    arms: (2,), number of all learning draws of d1 and of d2, whether kept or not.
    least: number of draws that a cell needs before the rare rule may guess in it.
    """

    def __init__(
        self,
        rare_filter: RareFilter,
        kept: SelectionDraws,
        arms: IntArray,
        columns: Sequence[RareColumn] | None = None,
        least: int = MIN_SEEN,
    ) -> None:
        """Count the draws `kept` by the cells of `columns`. None: cells are made from these draws,
        which must all be rare."""
        self.rare_filter, self.arms = rare_filter, arms
        self._draws, self._least = kept, least
        self.columns = _rare_columns(rare_filter, kept) if columns is None else list(columns)
        entries = kept.outcomes.named([column_map.name for column_map in self.columns])
        self._numbers: list[Numbers] = [
            column_map(column) for column_map, column in zip(self.columns, entries, strict=True)
        ]
        # For each kept draw, whether it has no rare entry in the columns of the table. Such a draw
        # was kept because of a part of the output that is in none of these columns.
        self._is_other: Mask = np.ones(kept.size, dtype=bool)
        for numbers in self._numbers:
            self._is_other &= numbers == USUAL
        # Four arrays with one entry for each cell of all columns: the index of its column, its
        # number in this column, whether it is part of a tail, and its draws by input. One more
        # entry, with column -1, stands for rare outputs that are in no cell.
        sizes = [column_map.size for column_map in self.columns]
        self._column = np.append(np.repeat(np.arange(len(sizes)), np.array(sizes, int) - 1), -1)
        self._number = np.concatenate([*(np.arange(1, size) for size in sizes), [OTHER]])
        self._is_tail: Mask = np.concatenate(
            [*(column_map.is_tail[1:] for column_map in self.columns), [False]]
        )
        self._tallies = [
            by_arm(numbers, size, kept.is_d1)
            for numbers, size in zip(self._numbers, sizes, strict=True)
        ]
        other_counts = by_arm(self._is_other.astype(np.intp), 2, kept.is_d1)
        self._counts: IntArray = np.concatenate(
            [*(tally[1:] for tally in self._tallies), other_counts[1:]]
        )

    @classmethod
    def of(cls, selection: SelectionDraws, often: int) -> RareTable:
        """Return the table of the rare outcomes: those with an entry seen in fewer than `often`
        draws."""
        rare_filter = RareFilter.of(selection, often)
        rare = selection.take(np.flatnonzero(rare_filter.is_rare(selection.outcomes)))
        return cls(rare_filter, rare, selection.arms)

    @classmethod
    def frequent(cls, selection: SelectionDraws, rare_filter: RareFilter) -> RareTable:
        """Return a table of frequent entries: values and labels with at least 10 draws, and numbers
        far beyond all others. Only columns at which the rare rule could guess are in it: those with
        a cell that has at least 10 draws, all of one input."""
        columns = []
        for column in selection.outcomes.columns[:MAX_TREE_COLUMNS]:
            result = frequent_column(column)
            if result is None:
                continue
            counts = by_arm(result(column), result.size, selection.is_d1)
            if _of_one_arm(counts, USUAL_DRAWS).any():
                columns.append(result)
        return cls(rare_filter, selection, selection.arms, columns, USUAL_DRAWS)

    @cached_property
    def _laws(self) -> tuple[Law, Law]:
        """The distributions of log-ratios of single cells and of pieces of tails."""
        # They are separate since most pieces of tails have log-ratios near 0.
        single, tails = self._counts[~self._is_tail], self._counts[self._is_tail]
        return Law.of(single, self.arms), Law.of(tails, self.arms)

    @cached_property
    def _shares(self) -> FloatArray:
        """For each cell, the expected share of d1 among its draws, and the variance: (2, cells)."""
        result = []
        # The shares of each column are computed by themselves, so that they do not depend on the
        # other columns. In an array of another size, NumPy may round a share differently, and the
        # last digit decides the order of cells with equal counts.
        for counts, column in zip(self._tallies, self.columns, strict=True):
            single, tail = (law.expected(counts) for law in self._laws)
            result.append(np.where(column.is_tail, tail, single)[:, 1:])
        return np.concatenate([*result, self._laws[0].expected(self._counts[-1:])], axis=1)

    def order(self) -> list[Candidate]:
        """Return a list with one candidate, which orders outcomes by their rare entries. The list
        is empty for fewer than two rare outcomes.

        The candidate uses at most four columns, since reports name them. They are the columns with
        the cells whose expected shares of d1 differ most from that of all draws.
        """
        if self._draws.size < MIN_SEEN:
            return []
        even = (self.arms[0] + 1) / (self.arms.sum() + 2)
        uneven = np.abs(self._shares[0] - even)
        telling = [uneven[self._column == index].max() for index in range(len(self.columns))]
        best = sorted(range(len(telling)), key=lambda index: -telling[index])[:MAX_NAMED_COLUMNS]
        return [self._ordered(best)]

    def by_column(self) -> list[tuple[str, Candidate]]:
        """Return (name, candidate) for each column. The candidate orders outcomes by the rare
        entries of this column alone."""
        return [(column.name, self._ordered([index])) for index, column in enumerate(self.columns)]

    def _ordered(self, indices: Sequence[int]) -> Candidate:
        columns = tuple(self.columns[index] for index in indices)
        entries = [self._numbers[index] for index in indices]
        number = joint_numbers(columns, entries, self._draws.size)
        number[number == USUAL] = OTHER
        size = 2 + sum(column.size - 1 for column in columns)
        counts = by_arm(number, size, self._draws.is_d1)
        counts[USUAL] = self.arms - counts[1:].sum(axis=0)
        rows = [np.flatnonzero(self._column == index) for index in indices]
        first = self._laws[0].expected(counts[:2])
        share, variance = np.concatenate([first, *(self._shares[:, row] for row in rows)], axis=1)
        came_up = np.asarray(counts.any(axis=1))
        came_up[USUAL] = True
        order = np.flatnonzero(came_up)[np.argsort(share[came_up], kind="stable")]
        level = np.empty(size, dtype=np.intp)
        level[order] = np.arange(len(order))
        level[~came_up] = level[USUAL]
        draws = counts.sum(axis=1)
        expected = draws[:, None] * np.stack([share, 1 - share], axis=1)
        squared = np.bincount(level, draws.astype(np.float64) ** 2 * variance, len(order))
        estimate = ExpectedDraws(by_group(expected, level, len(order)), squared.astype(np.float64))
        by_level = np.append(counts[order], [[0, 0]], axis=0)
        levels = RareLevels(self.rare_filter, columns, level, self._example(number == OTHER))
        return Candidate(
            NAME, by_level, fixed(levels), has_many_cells=True, estimate=estimate, is_rare=True
        )

    def rule(self, points: Sequence[ProfilePoint], future_draws: int) -> Rule | None:
        """Return the rare rule. It guesses in cells where all draws are of one input, if this is
        probably not luck. Return None if there are no such cells, or if `future_draws` draws are
        too few to refute the claim at them.

        points: points (ε, δ) of the claim's profile; the rule tests the one that it refutes best.
        """
        point, guesses = self._guessed(points, future_draws)
        return self._rule_of(guesses, point) if len(guesses.cell) else None

    def guessed_by(self, points: Sequence[ProfilePoint], future_draws: int) -> set[str]:
        """Return the names of the columns in whose cells the rare rule guesses."""
        _, guesses = self._guessed(points, future_draws)
        indices = set(self._column[guesses.cell].tolist())
        return {self.columns[index].name for index in indices if index >= 0}

    def _guessed(
        self, points: Sequence[ProfilePoint], future_draws: int
    ) -> tuple[ProfilePoint, _RareGuesses]:
        """Return the point that the rare rule tests, and its guesses, which may be none."""
        # The rule has only the part `RARE_SHARE` of the error probability of the exact test, so it
        # needs at least -log(`RARE_SHARE`) nats from `future_draws` draws.
        result = [(point, self._guesses_at(point)) for point in points]
        draws = [self._draws_in(guesses.cell) for _, guesses in result]
        times = future_draws / max(1, int(self.arms.sum()))

        def evidence(point: ProfilePoint, draws: float) -> float:
            excused = point.delta * future_draws / 2
            return (draws * times - excused) * math.log1p(math.exp(-point.epsilon))

        best = max(range(len(result)), key=lambda index: evidence(result[index][0], draws[index]))
        (point, guesses), count = result[best], draws[best]
        # Allow for cells that are more frequent in the draws to come than in learning, by two
        # standard deviations.
        highest = evidence(point, count + 2 * math.sqrt(count) + 1)
        return point, guesses if highest >= -math.log(RARE_SHARE) else guesses.take(np.arange(0))

    def _guesses_at(self, point: ProfilePoint) -> _RareGuesses:
        """Return the guesses of the rare rule at a point of the claim's profile."""
        # It may guess in cells of one input: in the cell for which luck is least likely, and in all
        # for which luck has a probability of at most ½. With δ > 0, all guesses are of one input,
        # since a rule that guesses a single input is charged only half of δ.
        odds = math.exp(min(point.epsilon, 30.0)) * self.arms / np.maximum(self.arms[::-1], 1)
        cell = np.flatnonzero(_of_one_arm(self._counts, self._least))
        is_d1, draws = self._counts[cell, 0] > 0, self._counts[cell].sum(axis=1)
        # The largest share of right guesses that the claim allows in a cell: claimed[0] if the
        # cell's guess is d1, claimed[1] if it is d2.
        claimed = odds / (1 + odds)
        limit = np.where(is_d1, claimed[0], claimed[1])
        # All n draws of a cell are of one input. `probability` is the probability that the cell
        # violates the claim, by Bayes' rule with prior odds `prior`: under the claim, the share of
        # this input is at most `limit`, so that chance gives such draws with probability limit^n.
        # Of many cells, some are one-sided by chance; `beyond`, from shares fitted to all cells, is
        # therefore an upper limit of the result.
        right = np.where(is_d1, self._shares[0, cell], 1 - self._shares[0, cell])
        beyond = np.maximum(0.0, right - limit) / np.maximum(1 - limit, 1e-12)
        prior = np.where(self._is_tail[cell], tuning.PRIOR_ODDS_OF_TAIL, 1.0)
        probability = np.minimum(prior / (prior + limit**draws), beyond)
        guesses = _RareGuesses(cell, is_d1, probability + (1 - probability) * limit)
        order = np.argsort(-probability, kind="stable")
        if not len(order) or probability[order[0]] <= 0:
            return guesses.take(order[:0])
        guesses = guesses.take(order[: max(1, np.count_nonzero(probability >= 0.5))])
        if point.delta > 0:
            sides = [guesses.take(guesses.is_d1), guesses.take(~guesses.is_d1)]
            guesses = max(sides, key=lambda side: self._draws_in(side.cell))
        return guesses

    def _draws_in(self, cell: Numbers) -> int:
        """Return the number of kept draws that lie in at least one of the given cells."""
        result = np.zeros(self._draws.size, dtype=bool)
        for index in np.unique(self._column[cell]).tolist():
            if index < 0:
                result |= self._is_other
            else:
                result |= self._numbers_in(cell, index)[self._numbers[index]]
        return int(np.count_nonzero(result))

    def _numbers_in(self, cell: Numbers, index: int) -> Mask:
        """Return a mask of the given cells, by their numbers within one column: (size,)."""
        result = np.zeros(self.columns[index].size, dtype=bool)
        result[self._number[cell[self._column[cell] == index]]] = True
        return result

    def _rule_of(self, guesses: _RareGuesses, point: ProfilePoint) -> Rule:
        """Return the rule that guesses in the cells of `guesses` and abstains elsewhere."""
        of_cell, number = self._column[guesses.cell], self._number[guesses.cell]
        with_other = bool((of_cell < 0).any())
        if with_other:  # all columns are needed to see that an outcome is rare in none of them
            indices = list(range(len(self.columns)))
            columns = tuple(self.columns)
        else:  # a rare entry without a guess must not hide a guess by a later column
            indices = np.unique(of_cell).tolist()
            columns = tuple(
                replace(self.columns[index], only=self._numbers_in(guesses.cell, index))
                for index in indices
            )
        # `level` is indexed by joint numbers, each of which stands for a column and one of its
        # cells. The cell numbers of a column are 0 for usual entries (`USUAL`), which have no joint
        # number, and 1, 2, … for its cells; `start` + n is the joint number of cell n. Column -1
        # stands for rare outputs in no cell: its only cell number, `OTHER`, is also its joint
        # number.
        start = {
            index: joint_range.start - 1
            for index, joint_range in zip(indices, joint_ranges(columns), strict=True)
        }
        start[-1] = 0
        level = np.zeros(2 + sum(column.size - 1 for column in columns), dtype=np.intp)
        sides = [guess for guess in (1, -1) if (guesses.is_d1 == (guess > 0)).any()]
        expected = np.zeros((2, 2))
        for side_level, guess in enumerate(sides, start=1):
            is_side = guesses.is_d1 == (guess > 0)
            level[[start[at] for at in of_cell[is_side].tolist()] + number[is_side]] = side_level
            draws = self._counts[guesses.cell[is_side]].sum(axis=1)
            right = np.average(guesses.right[is_side], weights=draws)
            # `by_input` is the share of (d1, d2) among the draws in the guessed cells; for a guess
            # of d2, the order is reversed. `_draws_in` counts a draw that lies in several of these
            # cells only once.
            by_input = np.array([right, 1 - right])[::guess]
            expected[0 if guess > 0 else 1] = self._draws_in(guesses.cell[is_side]) * by_input
        rows = self._is_other if with_other else np.zeros(self._draws.size, dtype=bool)
        levels = RareLevels(self.rare_filter, columns, level, self._example(rows))
        return Rule("rare", NAME, levels, np.array([0, *sides, 0]), RARE_SHARE, expected, point)

    def _example(self, rows: Mask) -> str:
        first = np.flatnonzero(rows)[:1].tolist()
        return "".join(map(in_words, self._draws.outcomes.words(first)))


def _of_one_arm(counts: IntArray, least: int) -> Mask:
    """Return a mask of the cells that only one input gave, in at least `least` draws."""
    return np.asarray((counts.min(axis=1) == 0) & (counts.sum(axis=1) >= least))


def _rare_columns(rare_filter: RareFilter, draws: SelectionDraws) -> list[RareColumn]:
    """Return the cells of each column that has some, made from the rare draws."""
    if draws.size < MIN_SEEN:
        return []
    # Outcomes have columns only for entries that differ between them. So a usual outcome,
    # `rare_filter.like`, is added: an entry that all rare outcomes share then has a column, too, if
    # it differs from the usual outcome.
    new = rare_filter.new(concatenate([rare_filter.like, draws.outcomes]))
    usual: list[Usual | None] = [*rare_filter.columns, *map(_usual_at_first, new)]
    names = [*(column.name for column in rare_filter.columns), *(column.name for column in new)]
    columns = zip(usual, draws.outcomes.named(names), strict=True)
    return [
        rare
        for usual_entries, column in columns
        if (rare := rare_column(usual_entries, column)) is not None
    ]


def _usual_at_first(column: Column) -> Usual | None:
    """Return a `Usual` whose only entry is that of the first outcome; None if it is absent."""
    word = column.word(0)
    if word == ABSENT:
        return None
    is_number = column.codes is None or column.codes[0] == 0
    numbers = column.numbers[:1] if is_number else np.empty(0)
    return Usual(column.name, numbers, False, frozenset(() if is_number else (word,)))
