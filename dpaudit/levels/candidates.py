"""Candidates: orders of outcomes that scorers propose, with counts of draws by level and input.

An order puts outcomes into levels (bins) that rise from "surely d2" to "surely d1". There are three
classes with one protocol:

* `OrderedBins` are bins of a number or of a score, or cells of one column in an order that was
  fitted once. If log-ratios change little from level to level (`is_smooth`), they can be smoothed
  and cut finer.
* `UnorderedCells` are single values or whole outputs, each ordered by its own counts. When further
  draws are counted, the log-ratios of cells are shrunk towards common values and the cells are
  ordered again.
* `RareOutputs` are kept whole instead of counted, and have a level for each cell.

Scorers in `attacks/` make candidates; `attacks/objective.py` compares them; `auditing/counting.py`
adds counts of further draws.
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
from dpaudit.levels.rules import RuleTable, evened
from dpaudit.levels.scores import Intervals, Scored
from dpaudit.levels.shrinkage import ExpectedDraws, averaged, merged, shrunk_to

# Predicted log-ratios of cells, (fits, cells), from the counts of all of them, (fits, cells, 2).
Predictor = Callable[[IntArray], FloatArray]


class Scorer(Protocol):
    """A function that fits an estimate of the likelihood ratio of the two inputs to selection
    draws."""

    def __call__(self, selection: SelectionDraws) -> Sequence[Candidate]:
        """Return candidates (orders of outcomes); an empty sequence if the scorer does not apply to
        such outcomes."""
        ...


@dataclass(frozen=True, eq=False)
class Candidate(ABC):
    """An order of outcomes into levels (bins), from "surely d2" to "surely d1".

    attack: name of the scorer, as reports show it.
    held_out: (levels, 2), number of selection draws by level and input. Where the order was fitted
        to kept draws, the level of each draw comes from a fit to other draws; where cells were
        counted, and for rare outputs, the order is by these counts. The last level is for outcomes
        that learning never saw.
    count_penalty: number of standard errors subtracted from bounds that are predicted from these
        counts: `tuning.PENALTY`, or `tuning.PENALTY_ANY_ORDER` for an order of many cells.
    expected: expected draws by level and input, if these are known better than by the counts.
    """

    attack: str
    held_out: IntArray
    count_penalty: float
    expected: ExpectedDraws | None = field(default=None, kw_only=True)

    @abstractmethod
    def freeze(self) -> LevelMap:
        """Return the frozen map from outcomes to levels (bins), fitted to all learning draws."""

    @property
    @abstractmethod
    def counter(self) -> CellCounter:
        """The frozen function that counts further draws by cell, for `add`."""

    @abstractmethod
    def add(self, counts: IntArray) -> Candidate:
        """Return this order of outcomes, updated with counts of further draws.

        counts: (cells, 2), further draws by cell of `counter` and input.
        """

    @abstractmethod
    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> Candidate:
        """Return this order for outcomes of another form, such as before their numbers were
        rounded.

        of: turns a level map for the present form into a level map for the other form.
        """

    @property
    def is_counted(self) -> bool:
        """Whether the log-ratios of levels are, or can be, shrunk towards common values. Then
        predictions need only a small penalty for luck."""
        return self.expected is not None

    @property
    def is_pooled(self) -> bool:
        """Whether one fit gives the estimates of all levels (bins), which then share its errors."""
        return False

    def penalty(self, *, is_pure: bool) -> float:
        """Return the number of standard errors to subtract from bounds that `table` predicts, for
        the luck of selection.

        is_pure: whether δ = 0.
        """
        if self.expected is None:
            return self.count_penalty + is_pure * tuning.PENALTY_WITHOUT_DELTA
        return tuning.PENALTY_POOLED if self.is_pooled else tuning.PENALTY_COUNTED

    @property
    def is_smooth(self) -> bool:
        """Whether the log-ratio of d1 and d2 changes by little from level to level (bin to bin)."""
        return False

    @property
    def has_score(self) -> bool:
        """Whether levels are bins of a score, a number computed from several columns."""
        return False

    @property
    def is_relearned(self) -> bool:
        """Whether counts of further draws change the score that orders outcomes, not only the
        counts."""
        return False

    @cached_property
    def promises(self) -> dict[Hashable, tuple[float, float]]:
        """Cache: for each objective, the largest predicted bound and the largest predicted
        growth."""
        return {}

    @cached_property
    def table(self) -> RuleTable:
        """Expected right and wrong guesses of every rule, where a rule guesses d2 below some level
        and d1 from another level on; out of all learning draws."""
        if self.expected is None:
            return RuleTable.evened(self.held_out)
        ordered = evened(self.expected.draws, self.held_out.sum(axis=0))
        return RuleTable.of_smooth(ordered, int(self.held_out.sum()), self.expected.variance)

    @cached_property
    def smoothed(self) -> Smoothed:
        """Counts of draws by level and input, smoothed over levels and scaled as if both inputs had
        been drawn equally often. The last level, for unseen outcomes, is left out."""
        return smoothed(evened(self.held_out[:-1], self.held_out.sum(axis=0)))

    def near(self, low: int, high: int) -> Candidate:
        """Return this order with finer levels (bins) near the lower ends of the levels `low` and
        `high`; the order itself if it cannot be cut finer."""
        return self


class BinSource:
    """Makes the map from outcomes to levels (bins) and, when asked, finer intervals and a `Learner`
    that refits the order."""

    # Whether `learner` may return a learner, which is costly to make.
    is_relearned: ClassVar[bool] = False

    def level_map(self) -> LevelMap:
        raise NotImplementedError

    def intervals(self) -> Intervals | None:
        """Return intervals that are finer than the levels; None if there are none."""
        return None

    def learner(self) -> Learner | None:
        """Return the learner that refits the order of the levels from counts of further draws; None
        if the order is fixed."""
        return None


class Learner(Protocol):
    """Refits an order from draws that are counted and not kept."""

    @property
    def counter(self) -> CellCounter: ...

    def after(self, order: OrderedBins, counts: IntArray) -> OrderedBins:
        """Return the order refitted with further draws.

        counts: (cells, 2), further draws by cell of `counter` and input.
        """
        ...


@dataclass(frozen=True, eq=False)
class OrderedBins(Candidate):
    """Bins of a number or of a score, or cells of one column in a fixed order.

    source: makes the level map, finer intervals, and the learner that refits the order.
    is_smooth: whether the log-ratio changes by little from level to level. True for bins of a score
        that was fitted to kept draws, and for thresholds on numbers that rarely repeat.
    position: (levels - 1,), mean number or score of each level but the last; None: unknown.
    place: (levels - 1,), rising, the coordinate in which log-odds are piecewise linear; None: the
        number of the level.
    scored: the score; None for one column.
    """

    source: BinSource
    is_smooth: bool = False
    position: FloatArray | None = None
    place: FloatArray | None = None
    scored: Scored | None = None

    def freeze(self) -> LevelMap:
        return self.source.level_map()

    @property
    def is_pooled(self) -> bool:
        return self.expected is not None

    @property
    def has_score(self) -> bool:
        return self.scored is not None

    @property
    def is_relearned(self) -> bool:
        return self.source.is_relearned

    @cached_property
    def intervals(self) -> Intervals | None:
        """Intervals that are finer than the levels; None if there are none."""
        return self.source.intervals()

    @cached_property
    def learner(self) -> Learner | None:
        """The learner that refits the order from counts of further draws; None if the order
        stays."""
        return self.source.learner()

    @cached_property
    def smoothed(self) -> Smoothed:
        counts = evened(self.held_out[:-1], self.held_out.sum(axis=0))
        return smoothed(counts, self.position, self.place)

    @property
    def counter(self) -> CellCounter:
        if self.learner is not None:
            return self.learner.counter
        return self.freeze() if self.intervals is None else self.intervals.each

    def add(self, counts: IntArray) -> OrderedBins:
        if self.learner is not None:
            return self.learner.after(self, counts)
        if self.intervals is None:
            return replace(self, held_out=self.held_out + counts)
        later = self.intervals.add(counts)
        same = replace(self, held_out=later.held_out(), source=Finer(later))
        return same if later.place_labels is None else replace(same, position=later.positions())

    def near(self, low: int, high: int) -> OrderedBins:
        if self.intervals is None:
            return self
        fine = self.intervals.near(low, high)
        return replace(
            self,
            held_out=fine.held_out(),
            source=Fixed(fine.level_map()),
            position=fine.positions(),
            place=fine.places(),
            expected=fine.expected_draws(),
        )

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> OrderedBins:
        return replace(self, source=Mapped(self.source, of))


@dataclass(frozen=True, slots=True, eq=False)
class Fixed(BinSource):
    """Source of levels (bins) that cannot be cut finer or refitted."""

    levels: LevelMap

    def level_map(self) -> LevelMap:
        return self.levels


@dataclass(frozen=True, slots=True, eq=False)
class Finer(BinSource):
    """Source of levels (bins) that are made by joining narrower intervals.

    finer: the intervals.
    """

    finer: Intervals

    def level_map(self) -> LevelMap:
        return self.finer.level_map()

    def intervals(self) -> Intervals:
        return self.finer


@dataclass(frozen=True, slots=True, eq=False)
class Mapped(BinSource):
    """Source of levels for outcomes that are converted to another form first.

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
    """Source of levels that are bins of a score.

    is_d1: (size,), whether each draw that the score was fitted to was made on d1.
    """

    scored: Scored
    is_d1: NDArray[np.bool_]

    def level_map(self) -> LevelMap:
        return self.scored.freeze_levels()

    def intervals(self) -> Intervals | None:
        return self.scored.intervals(self.is_d1) if self.scored.has_finer else None


def by_score(
    scored: Scored, selection: SelectionDraws, source: BinSource | None = None
) -> OrderedBins:
    """Return the candidate (order of outcomes) whose levels are bins of a score.

    source: makes the levels, if the score is refitted later; None: the score stays as it is.
    """
    table = by_arm(scored.levels, len(scored.edges) + 2, selection.is_d1)
    return OrderedBins(
        scored.attack,
        table,
        tuning.PENALTY,
        source or ScoreBins(scored, selection.is_d1),
        is_smooth=True,
        position=scored.position(table.sum(axis=1)),
        scored=scored,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CellCounts:
    """Cells (groups of outcomes) that were made without the inputs, and the number of draws in
    each.

    cells: map from an outcome to its cell.
    counts: (cells, 2), learning draws by cell and input; the last cell is for unseen outcomes.
    predictor: predicts the log-ratio of each cell from the counts of all, for cells that are
        related, such as sequences; None: cells are taken for unrelated.
    """

    cells: LevelMap
    counts: IntArray
    predictor: Predictor | None = None

    def in_order(self) -> tuple[IntArray, FloatArray]:
        """Return two arrays: the level of every cell but the last, (cells - 1,), and the expected
        draws by level and input, (levels, 2), from shrunk shares of d1 (`shrinkage.py`)."""
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
    """Single values or whole outputs, each ordered by its own counts.

    levels: map from an outcome to the level of its cell.
    counted: the cells with their counts, to which further draws are added.
    """

    levels: LevelMap
    counted: CellCounts

    @classmethod
    def of(cls, attack: str, counted: CellCounts) -> UnorderedCells:
        """Return the candidate that orders cells (groups of outcomes) by their shrunk log-ratios.

        attack: name of the scorer, as reports show it.
        counted: the cells, and the draws in each.
        """
        level, expected = counted.in_order()
        levels = len(expected)
        group = np.append(level, levels).astype(np.intp)
        held_out = by_group(counted.counts, group, levels + 1).astype(np.int64)
        draws = ExpectedDraws(expected, np.zeros(levels))
        grouped = Grouped(counted.cells, group)
        return cls(attack, held_out, tuning.PENALTY_COUNTED, grouped, counted, expected=draws)

    def freeze(self) -> LevelMap:
        return self.levels

    @property
    def is_counted(self) -> bool:
        return True

    @property
    def is_pooled(self) -> bool:
        return self.counted.predictor is not None and self.expected is not None

    @property
    def counter(self) -> CellCounter:
        return self.counted.cells

    def add(self, counts: IntArray) -> UnorderedCells:
        total = replace(self.counted, counts=self.counted.counts + counts)
        return UnorderedCells.of(self.attack, total)

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> OrderedBins:
        return OrderedBins(self.attack, self.held_out, self.count_penalty, Fixed(of(self.levels)))


@dataclass(frozen=True, eq=False)
class RareOutputs(Candidate):
    """Rare outputs, ordered by shrunk log-ratios (`attacks/rare_outputs.py`, which also counts
    further draws). Its expectations include two standard deviations of caution (`table`), but those
    of many cells with few draws each can be wrong together; so predictions from counts, with
    `count_penalty`, limit its predicted bounds.

    levels: map from an outcome to its level.
    """

    levels: LevelMap

    def freeze(self) -> LevelMap:
        return self.levels

    @property
    def is_counted(self) -> bool:
        return False

    def penalty(self, *, is_pure: bool) -> float:
        return 0.0

    @property
    def counter(self) -> CellCounter:
        return self.levels

    def add(self, counts: IntArray) -> RareOutputs:
        raise NotImplementedError("rare outputs are counted by a RareTable")

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> RareOutputs:
        return replace(self, levels=of(self.levels))
