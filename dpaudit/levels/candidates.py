"""Candidates, and how further draws refit them.

* Bins of a number or of a score keep their order; further draws are added to the counts by level.
* `CellOrder` orders cells by their shrunk log-ratios, again each time that draws were counted.
* `attacks/counted_sequences.py` refits scores of sequences, and `attacks/single_columns.py` refits
  where labels stand among numbers.
* A `RareTable` keeps rare outputs and makes a new candidate from them.

`attacks/objective.py` compares candidates; `auditing/counted_learning.py` adds further draws.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Protocol

import numpy as np

from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.levels import tuning
from dpaudit.levels.level_map import (
    CellCounter,
    FloatArray,
    GroupedLevels,
    IntArray,
    LevelMap,
    by_group,
)
from dpaudit.levels.piecewise_logit import Smoothed, smoothed
from dpaudit.levels.rule_tables import RuleTable, balanced
from dpaudit.levels.scores import Scored
from dpaudit.levels.shrinkage import ExpectedDraws, averaged, merged, shrunk_to

# Takes the counts of all cells, (fits, cells, 2); returns predicted log-ratios, (fits, cells).
Predictor = Callable[[IntArray], FloatArray]


class Scorer(Protocol):
    """Returns candidates for the selection draws; none if it cannot handle their outcomes."""

    def __call__(self, selection: SelectionDraws) -> Sequence[Candidate]: ...


class Refit(Protocol):
    """Refits a candidate to further draws, of which it only sees counts by the cells of
    `counter`."""

    @property
    def counter(self) -> CellCounter: ...

    def after(self, candidate: Candidate, counts: IntArray) -> Candidate:
        """Return the candidate refitted after further draws, whose `counts` are by the cells of
        `counter`."""
        ...


@dataclass(frozen=True, eq=False)
class Candidate:
    """An order of outcomes, in levels from "surely d2" to "surely d1".

    attack: name of the scorer, as reports show it.
    counts: (levels, 2), learning draws by level; held out if the order was fitted to draws in
        memory.
    level_map: a function without arguments that returns the level map, fitted to all learning
        draws.
    is_smooth: whether neighbouring levels have similar log-ratios, as bins of a score have.
    has_many_cells: whether it orders many cells by their raw counts.
    position: (levels - 1,), mean number or score of each level but the last; None: unknown.
    scored: the score whose bins are the levels; None: the levels are not bins of a score.
    estimate: replaces `counts` in predictions of bounds; None if the counts are no worse.
    refit: refits the order to further draws; None: the order is fixed.
    is_rare: whether it orders rare outputs, whose draws a `RareTable` counts.
    """

    attack: str
    counts: IntArray
    level_map: Callable[[], LevelMap]
    is_smooth: bool = False
    has_many_cells: bool = False
    position: FloatArray | None = None
    scored: Scored | None = None
    estimate: ExpectedDraws | None = None
    refit: Refit | None = None
    is_rare: bool = False

    @property
    def has_score(self) -> bool:
        return self.scored is not None

    @property
    def has_single_cells(self) -> bool:
        """Whether the candidate orders single values or whole outputs by their own counts, not
        bins."""
        return self.is_rare or isinstance(self.refit, CellOrder)

    def penalty_of_counts(self, *, is_pure: bool) -> float:
        """Return the number of standard errors by which a bound predicted from `counts` is
        lowered."""
        penalty = tuning.PENALTY_ANY_ORDER if self.has_many_cells else tuning.PENALTY
        return penalty + is_pure * tuning.PENALTY_WITHOUT_DELTA

    @cached_property
    def predictions(self) -> dict[Hashable, tuple[float, float]]:
        """Cache of the predictions for this candidate, filled by `objective.py`. For each
        objective: (largest predicted bound, largest predicted growth of wealth)."""
        return {}

    @cached_property
    def table(self) -> RuleTable:
        """The expected right and wrong guesses of every rule about the learning draws."""
        if self.estimate is None:
            return self.table_of_counts
        ordered = balanced(self.estimate.draws, self.counts.sum(axis=0))
        return RuleTable.of_monotone(ordered, int(self.counts.sum()), self.estimate.variance)

    @cached_property
    def table_of_counts(self) -> RuleTable:
        return RuleTable.of_balanced(self.counts)

    @cached_property
    def smoothed(self) -> Smoothed:
        """The counts of all levels but the last, scaled as if both inputs had been drawn equally
        often, and then smoothed."""
        return smoothed(balanced(self.counts[:-1], self.counts.sum(axis=0)), self.position)

    @cached_property
    def table_of_smoothed(self) -> RuleTable:
        return RuleTable.of_monotone(self.smoothed.draws, int(self.counts.sum()))

    @property
    def counter(self) -> CellCounter:
        """The counter of further draws by cell, whose counts `add` takes."""
        return self.level_map() if self.refit is None else self.refit.counter

    def add(self, counts: IntArray) -> Candidate:
        """Return this candidate with further draws added. `counts` are by the cells of
        `counter`."""
        if self.refit is not None:
            return self.refit.after(self, counts)
        return replace(self, counts=self.counts + counts)

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> Candidate:
        """Return this candidate, whose outcomes were converted (for example, rounded), as a
        candidate for the outcomes before conversion. Further draws do not refit it.

        of: turns a level map of converted outcomes into a level map of the original outcomes.
        """
        return replace(self, level_map=fixed(of(self.level_map())), refit=None)


def fixed(level_map: LevelMap) -> Callable[[], LevelMap]:
    """Return a function that returns `level_map`, for a candidate whose map is known already."""
    return lambda: level_map


def by_score(scored: Scored, selection: SelectionDraws, refit: Refit | None = None) -> Candidate:
    """Return the candidate whose levels are the bins of a score. Its counts are those of
    `selection`."""
    counts = by_arm(scored.levels, len(scored.edges) + 2, selection.is_d1)
    return Candidate(
        scored.attack,
        counts,
        cache(scored.level_map),  # the final score is fitted when it is first needed
        is_smooth=True,
        position=scored.position(counts.sum(axis=1)),
        scored=scored,
        refit=refit,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CellOrder:
    """Cells that are ordered by their own shrunk log-ratios.

    predictor: predicts the log-ratio of each cell from the counts of all cells, for cells that
        resemble each other, such as sequences of entries. None: log-ratios are not predicted.
    """

    cells: LevelMap
    counts: IntArray
    predictor: Predictor | None = None

    @property
    def counter(self) -> CellCounter:
        return self.cells

    def after(self, candidate: Candidate, counts: IntArray) -> Candidate:
        return replace(self, counts=self.counts + counts).candidate(candidate.attack)

    def candidate(self, attack: str) -> Candidate:
        """Return the candidate that orders the cells by all of their counts."""
        level, expected = self._in_order()
        levels = len(expected)
        group = np.append(level, levels).astype(np.intp)
        return Candidate(
            attack,
            by_group(self.counts, group, levels + 1).astype(np.int64),
            fixed(GroupedLevels(self.cells, group)),
            estimate=ExpectedDraws(expected, is_one_fit=self.predictor is not None),
            refit=self,
        )

    def _in_order(self) -> tuple[IntArray, FloatArray]:
        """Return the level of every cell but the last, and the expected draws, (levels, 2)."""
        counts, arms = self.counts[:-1], self.counts.sum(axis=0)
        draws = counts.sum(axis=1)
        if self.predictor is None:
            share = averaged(counts, arms)
        else:
            share = shrunk_to(self.predictor(counts[None])[0], counts, arms)
        level, levels = merged(share, draws)
        expected = draws[:, None] * np.stack([share, 1 - share], axis=1)
        return level, by_group(expected, level, levels)
