"""Candidates: orders of outcomes that scorers propose, with counts of draws by level and input.

An order puts outcomes into levels (groups) that rise from "surely d2" to "surely d1". The terms
*level*, *cell* and *log-ratio* are defined in `attacks/learning.py`. There are three classes with
one protocol:

* `OrderedBins` are bins of a number or of a score, or cells of one column whose order is not fitted
  again after further draws. If log-ratios change little from level to level (`is_smooth`), the
  log-ratios can be smoothed and the levels cut finer.
* `UnorderedCells` are single values or whole outputs, each ordered by its own counts. When further
  draws are counted, the log-ratios of cells are shrunk towards common values and the cells are
  ordered again.
* `RareOutputs` have a level for each cell of rare outputs. Their draws are kept whole by a
  `RareTable`, which makes a new candidate after further draws; the classes above only count draws.

Scorers in `attacks/` make candidates; `attacks/objective.py` compares them;
`auditing/counted_learning.py` adds counts of further draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.levels import tuning
from dpaudit.levels.level_map import CellCounter, FloatArray, Grouped, IntArray, LevelMap, by_group
from dpaudit.levels.piecewise_logit import Smoothed, smoothed
from dpaudit.levels.rule_tables import RuleTable, balanced
from dpaudit.levels.scores import Intervals, Scored
from dpaudit.levels.shrinkage import ExpectedDraws, averaged, merged, shrunk_to

# A function that takes the counts of all cells (groups of outcomes), (fits, cells, 2), and returns
# predicted log-ratios of the cells, (fits, cells).
Predictor = Callable[[IntArray], FloatArray]


class Scorer(Protocol):
    """A function that takes selection draws, estimates the likelihood ratio of the two inputs, and
    returns orders of outcomes by the estimate.
    """

    def __call__(self, selection: SelectionDraws) -> Sequence[Candidate]:
        """Return candidates (orders of outcomes); an empty list if the scorer cannot handle these
        outcomes.
        """
        ...


@dataclass(frozen=True, eq=False)
class Candidate(ABC):
    """An order of outcomes: it divides them into levels (groups), from "surely d2" to "surely d1".

    attack: name of the scorer, as reports show it.
    counts: (levels, 2), number of learning draws by level and input; the last level is for outcomes
        that learning never saw. If the order was fitted to draws in memory, these are held-out
        counts: the level of each draw comes from a fit to other draws. For rare outputs, and for
        cells after further draws were counted, the same counts determine the order.
    has_many_cells: whether it orders more than a few cells (groups of outcomes) by their raw
        counts, not by shrunk counts.
    estimate: expected draws by level and input, from which bounds are predicted in place of
        `counts`; None if no estimate is better than the counts.
    """

    attack: str
    counts: IntArray
    has_many_cells: bool
    estimate: ExpectedDraws | None = field(default=None, kw_only=True)

    @abstractmethod
    def level_map(self) -> LevelMap:
        """Return the map from outcomes to levels (groups of outcomes) that is fitted to all
        learning draws.
        """

    @abstractmethod
    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> Candidate:
        """Return this order of converted outcomes as an order of the original outcomes, such as the
        outcomes before rounding.

        of: turns a map from converted outcomes to levels into a map from original outcomes to
            levels.
        """

    @property
    def is_shrunk(self) -> bool:
        """Whether the log-ratios of levels are shrunk towards common values, or will be when
        further draws are counted. Shrunk log-ratios depend less on luck, so that predicted bounds
        need a smaller penalty (number of standard errors by which they are lowered).
        """
        return self.estimate is not None

    @property
    def is_one_fit(self) -> bool:
        """Whether a single fit gives the estimates of all levels (groups of outcomes), so that
        their errors are correlated.
        """
        return False

    @property
    def count_penalty(self) -> float:
        """Number of standard errors by which a bound that is predicted from `counts` is lowered,
        since the order may look good by luck."""
        return tuning.PENALTY_ANY_ORDER if self.has_many_cells else tuning.PENALTY

    def penalty(self, *, is_pure: bool) -> float:
        """Return the number of standard errors by which the predicted bounds of this candidate are
        lowered when candidates are ranked. Without this penalty, the luckiest of many candidates
        would win.

        is_pure: whether δ = 0. The penalty is then larger, unless log-ratios are shrunk.
        """
        if self.estimate is None:
            return self.count_penalty + is_pure * tuning.PENALTY_WITHOUT_DELTA
        return tuning.PENALTY_ONE_FIT if self.is_one_fit else tuning.PENALTY_SHRUNK

    @property
    def is_smooth(self) -> bool:
        """Whether neighbouring levels (groups of outcomes) have similar log-ratios, so that counts
        can be smoothed over levels.
        """
        return False

    @property
    def has_score(self) -> bool:
        """Whether levels are bins of a score, a number computed from several columns."""
        return False

    @property
    def is_relearned(self) -> bool:
        """Whether counts of further draws refit the score that orders outcomes. If not, further
        draws are only added to the counts of the levels (groups of outcomes).
        """
        return False

    @cached_property
    def predictions(self) -> dict[Hashable, tuple[float, float]]:
        """Cache that `objective.py` fills. It maps each objective to (largest predicted bound,
        largest predicted growth of wealth) of this candidate.
        """
        return {}

    @cached_property
    def table(self) -> RuleTable:
        """Expected numbers of right and wrong guesses of every rule, in a sample of the same size
        as the learning draws.
        """
        if self.estimate is None:
            return RuleTable.of_balanced(self.counts)
        ordered = balanced(self.estimate.draws, self.counts.sum(axis=0))
        return RuleTable.of_monotone(ordered, int(self.counts.sum()), self.estimate.variance)

    @cached_property
    def smoothed(self) -> Smoothed:
        """The counts of draws by level (group of outcomes) and input, smoothed over levels and
        scaled as if both inputs had been drawn equally often. The last level, for unseen outcomes,
        is left out.
        """
        return smoothed(balanced(self.counts[:-1], self.counts.sum(axis=0)))

    def near(self, low: int, high: int) -> Candidate:
        """Return this candidate (order of outcomes) with levels (groups of outcomes) that are finer
        near two cut-offs: the lower ends of its levels `low` and `high`. A candidate that cannot be
        cut finer returns itself, as here.
        """
        return self


class BinSource(ABC):
    """Makes the map from outcomes to levels (groups of outcomes). Some sources also make intervals
    that are finer than levels, and a `Learner` that refits the order.
    """

    # Whether counts of further draws may refit the order: whether the method `learner` may return a
    # learner and not None. Code that needs only this answer reads the flag, since calling `learner`
    # is costly.
    is_relearned: ClassVar[bool] = False

    @abstractmethod
    def level_map(self) -> LevelMap: ...

    def intervals(self) -> Intervals | None:
        """Return intervals into which the levels (groups of outcomes) can be divided; None if this
        source makes no divisions finer than levels."""
        return None

    def learner(self) -> Learner | None:
        """Return the learner that refits the order of the levels (groups of outcomes) from counts
        of further draws; None if the order is fixed."""
        return None


class Learner(Protocol):
    """Refits an order of outcomes, from the most evidence for d2 to the most evidence for d1, with
    further draws. It takes only counts of these draws, since they are not kept in memory."""

    @property
    def counter(self) -> CellCounter: ...

    def after(self, order: OrderedBins, counts: IntArray) -> OrderedBins:
        """Return the order, refitted with further draws.

        order: the order before these draws.
        counts: (cells, 2), the numbers of further draws of d1 and of d2 in each cell of `counter`.
        """
        ...


@dataclass(frozen=True, eq=False)
class OrderedBins(Candidate):
    """Bins of a number or of a score, or cells of one column in a fixed order.

    source: makes the map from outcomes to levels, finer intervals, and the learner that refits the
        order.
    is_smooth: whether neighbouring levels have similar log-ratios. True for bins of a score that
        was fitted to draws in memory, and for thresholds on numbers that rarely repeat.
    position: (levels - 1,), mean number or score of each level but the last; None: unknown.
    coordinate: (levels - 1,), rising: a number for each level; log-odds are fitted as piecewise
        linear functions of it. None: the index of the level.
    scored: the score; None if levels are made of a single column.
    """

    source: BinSource
    is_smooth: bool = False
    position: FloatArray | None = None
    coordinate: FloatArray | None = None
    scored: Scored | None = None

    def level_map(self) -> LevelMap:
        return self.source.level_map()

    @property
    def is_one_fit(self) -> bool:
        return self.estimate is not None

    @property
    def has_score(self) -> bool:
        return self.scored is not None

    @property
    def is_relearned(self) -> bool:
        return self.source.is_relearned

    @cached_property
    def intervals(self) -> Intervals | None:
        """Intervals of the numbers or of the score that are finer than the levels (groups of
        outcomes); None if there are no finer intervals."""
        return self.source.intervals()

    @cached_property
    def learner(self) -> Learner | None:
        """The learner that refits this order of outcomes from counts of further draws; None if the
        order is never refitted.
        """
        return self.source.learner()

    @cached_property
    def smoothed(self) -> Smoothed:
        counts = balanced(self.counts[:-1], self.counts.sum(axis=0))
        return smoothed(counts, self.position, self.coordinate)

    @property
    def counter(self) -> CellCounter:
        """The function that counts further draws by cell (group of outcomes). Its counts are
        passed to `add`.
        """
        if self.learner is not None:
            return self.learner.counter
        return self.level_map() if self.intervals is None else self.intervals.each

    def add(self, counts: IntArray) -> OrderedBins:
        """Return this order of outcomes, updated with counts of further draws.

        counts: (cells, 2), numbers of further draws of d1 and d2 in each cell (group of outcomes),
            as counted by the property `counter`.
        """
        if self.learner is not None:
            return self.learner.after(self, counts)
        if self.intervals is None:
            return replace(self, counts=self.counts + counts)
        later = self.intervals.add(counts)
        same = replace(self, counts=later.by_level(), source=Finer(later))
        return same if later.place_labels is None else replace(same, position=later.positions())

    def near(self, low: int, high: int) -> OrderedBins:
        if self.intervals is None:
            return self
        fine = self.intervals.near(low, high)
        return replace(
            self,
            counts=fine.by_level(),
            source=Fixed(fine.level_map()),
            position=fine.positions(),
            coordinate=fine.coordinates(),
            estimate=fine.expected_draws(),
        )

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> OrderedBins:
        return replace(self, source=Mapped(self.source, of))


@dataclass(frozen=True, slots=True, eq=False)
class Fixed(BinSource):
    """A source of levels (groups of outcomes) that can be neither cut finer nor refitted."""

    levels: LevelMap

    def level_map(self) -> LevelMap:
        return self.levels


@dataclass(frozen=True, slots=True, eq=False)
class Finer(BinSource):
    """A source of levels (groups of outcomes) that are unions of neighbouring intervals.

    finer: the intervals.
    """

    finer: Intervals

    def level_map(self) -> LevelMap:
        return self.finer.level_map()

    def intervals(self) -> Intervals:
        return self.finer


@dataclass(frozen=True, slots=True, eq=False)
class Mapped(BinSource):
    """A source of levels (bins) for outcomes that must first be converted to another form.

    inner: makes the levels of the converted outcomes.
    of: turns a level map of converted outcomes into a level map of the original outcomes.
    """

    inner: BinSource
    of: Callable[[LevelMap], LevelMap]

    def level_map(self) -> LevelMap:
        return self.of(self.inner.level_map())

    def intervals(self) -> Intervals | None:
        finer = self.inner.intervals()
        return None if finer is None else finer.mapped(self.of)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBins(BinSource):
    """A source of levels that are bins of a score.

    scored: the score.
    is_d1: (size,), for each draw that the score was fitted to, whether it was made on d1.
    """

    scored: Scored
    is_d1: NDArray[np.bool_]

    def level_map(self) -> LevelMap:
        return self.scored.level_map()

    def intervals(self) -> Intervals | None:
        return self.scored.intervals(self.is_d1) if self.scored.has_finer else None


def by_score(
    scored: Scored, selection: SelectionDraws, source: BinSource | None = None
) -> OrderedBins:
    """Return the candidate (order of outcomes) whose levels are bins of a score.

    scored: the score of the draws `selection`.
    source: makes the levels from the score, and fits the score again when further draws are
        counted; None: the score is fitted only once.
    """
    counts = by_arm(scored.levels, len(scored.edges) + 2, selection.is_d1)
    return OrderedBins(
        scored.attack,
        counts,
        False,
        source or ScoreBins(scored, selection.is_d1),
        is_smooth=True,
        position=scored.position(counts.sum(axis=1)),
        scored=scored,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """Cells (groups of outcomes), and the number of learning draws in each.

    cells: map from an outcome to its cell.
    counts: (cells, 2), draws by cell and input; the last cell is for unseen outcomes.
    predictor: predicts the log-ratio of each cell from the counts of all cells, if cells resemble
        each other, for example if each cell is one sequence of entries; None: it is not predicted.
    """

    cells: LevelMap
    counts: IntArray
    predictor: Predictor | None = None

    def in_order(self) -> tuple[IntArray, FloatArray]:
        """Return two arrays: the level (group of cells) of every cell but the last, (cells - 1,),
        and the expected draws by level and input, (levels, 2). Both follow from the shares of d1 in
        the cells, shrunk as in `shrinkage.py`.
        """
        counts, arms = self.counts[:-1], self.counts.sum(axis=0)
        draws = counts.sum(axis=1)
        if self.predictor is None:
            share = averaged(counts, arms)
        else:
            share = shrunk_to(self.predictor(counts[None])[0], counts, arms)
        level, levels = merged(share, draws)
        expected = draws[:, None] * np.stack([share, 1 - share], axis=1)
        return level, by_group(expected, level, levels)


@dataclass(frozen=True, eq=False)
class UnorderedCells(Candidate):
    """A candidate (order of outcomes) whose cells are single values or whole outputs. The counts of
    a cell for d1 and d2 decide its place in the order.

    levels: map from an outcome to the level (group of outcomes) of its cell.
    cell_counts: the cells with their counts; `add` adds counts of further draws.
    """

    levels: LevelMap
    cell_counts: CellCounts

    @classmethod
    def of(cls, attack: str, cell_counts: CellCounts) -> UnorderedCells:
        """Return the candidate (order of outcomes) that orders cells by their shrunk log-ratios.

        attack: name of the scorer, as reports show it.
        """
        level, expected = cell_counts.in_order()
        levels = len(expected)
        group = np.append(level, levels).astype(np.intp)
        by_level = by_group(cell_counts.counts, group, levels + 1).astype(np.int64)
        draws = ExpectedDraws(expected, np.zeros(levels))
        grouped = Grouped(cell_counts.cells, group)
        return cls(attack, by_level, False, grouped, cell_counts, estimate=draws)

    def level_map(self) -> LevelMap:
        return self.levels

    @property
    def is_shrunk(self) -> bool:
        return True

    @property
    def is_one_fit(self) -> bool:
        return self.cell_counts.predictor is not None and self.estimate is not None

    @property
    def counter(self) -> CellCounter:
        """The function that maps the outcome of a further draw to its cell (group of outcomes). It
        does not change while draws are counted by cell. The method `add` takes these counts.
        """
        return self.cell_counts.cells

    def add(self, counts: IntArray) -> UnorderedCells:
        """Return this order of outcomes, updated with counts of further draws.

        counts: (cells, 2), further draws by cell and input. The property `counter` returns the
            function that maps outcomes to cells (groups of outcomes).
        """
        total = replace(self.cell_counts, counts=self.cell_counts.counts + counts)
        return UnorderedCells.of(self.attack, total)

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> OrderedBins:
        return OrderedBins(self.attack, self.counts, self.has_many_cells, Fixed(of(self.levels)))


@dataclass(frozen=True, eq=False)
class RareOutputs(Candidate):
    """Rare outputs, ordered by shrunk log-ratios (`attacks/rare_outputs.py`).

    To be cautious, predictions lower the expected number of right guesses, and raise the expected
    number of wrong guesses, by two standard deviations (`RuleTable.of_monotone`). With many cells
    of few draws each, this margin may be too small. So a second bound is predicted from the counts,
    lowered by `count_penalty` standard errors, and the smaller of both bounds is used.

    levels: map from an outcome to its level (group of outcomes).
    """

    levels: LevelMap

    def level_map(self) -> LevelMap:
        return self.levels

    @property
    def is_shrunk(self) -> bool:
        return False

    def penalty(self, *, is_pure: bool) -> float:
        return 0.0

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> RareOutputs:
        return replace(self, levels=of(self.levels))


# The classes of candidates (orders of outcomes) that count further draws. `RareOutputs`, the third
# class of candidates, is left out, since a `RareTable` counts the draws with rare outputs.
CountsFurther = OrderedBins | UnorderedCells
