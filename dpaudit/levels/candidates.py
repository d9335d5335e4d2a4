"""Candidates: orders of outcomes that scorers propose, with their counts on held-out draws.

There are two classes with one protocol. `OrderedBins` are bins of a number or of a score, in its
order; they can be smoothed and cut finer. `UnorderedCells` are values or outputs, each ordered by
its own counts; these are shrunk towards each other.
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
from dpaudit.levels.clusters import averaged, merged
from dpaudit.levels.intervals import Intervals
from dpaudit.levels.level_map import CellCounter, FloatArray, Grouped, IntArray, LevelMap, by_group
from dpaudit.levels.piecewise_logit import Smoothed, smoothed
from dpaudit.levels.rules import RuleTable, evened
from dpaudit.levels.scores import Scored
from dpaudit.levels.shrinkage import ExpectedDraws, shrunk_to

# Predicted log-ratios of cells, (fits, cells), from the counts of all of them, (fits, cells, 2).
Predictor = Callable[[IntArray], FloatArray]


class Scorer(Protocol):
    """Fits an estimate of the likelihood ratio to selection draws."""

    def __call__(self, selection: SelectionDraws) -> Sequence[Candidate]:
        """Return candidates; none when the scorer does not apply to such outcomes."""
        ...


@dataclass(frozen=True, eq=False)
class Candidate(ABC):
    """An order of outcomes into levels, from "surely d2" to "surely d1".

    attack: name of the scorer, as reports show it.
    held_out: (levels, 2), selection draws by level and input, each levelled by a fit to other
        draws. The last level is for outcomes that learning never saw.
    penalty: standard errors by which predictions from these counts are lowered.
    expected: expected draws by level, where they are known better than by the counts.
    """

    attack: str
    held_out: IntArray
    penalty: float
    expected: ExpectedDraws | None = field(default=None, kw_only=True)

    @abstractmethod
    def freeze(self) -> LevelMap:
        """Return the map from outcomes to levels, fitted to all draws."""

    @property
    @abstractmethod
    def counter(self) -> CellCounter:
        """What counts further draws for `add`."""

    @abstractmethod
    def add(self, counts: IntArray) -> Candidate:
        """Return the candidate after further draws, counted by `counter`."""

    @abstractmethod
    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> Candidate:
        """Return the same order of other outcomes. of: makes their level map from one of these."""

    @property
    @abstractmethod
    def is_counted(self) -> bool:
        """Whether estimates are shrunk counts, which allow for the luck of single cells."""

    @property
    @abstractmethod
    def is_pooled(self) -> bool:
        """Whether estimates come from one fit to all cells, and share its errors."""

    @property
    def is_smooth(self) -> bool:
        """Whether log-ratios change by little from level to level."""
        return False

    @property
    def has_score(self) -> bool:
        """Whether levels are bins of a score, an estimate over several columns."""
        return False

    @property
    def is_relearned(self) -> bool:
        """Whether further draws refit the order itself."""
        return False

    @cached_property
    def promises(self) -> dict[Hashable, tuple[float, float]]:
        """Cached predicted bounds and growths, by objective."""
        return {}

    @cached_property
    def table(self) -> RuleTable:
        """Expected guesses of every rule, on as many draws as were learned from."""
        if self.expected is None:
            return RuleTable.evened(self.held_out)
        ordered = evened(self.expected.draws, self.held_out.sum(axis=0))
        return RuleTable.of_smooth(ordered, int(self.held_out.sum()), self.expected.variance)

    @cached_property
    def smoothed(self) -> Smoothed:
        """Smoothed counts of the seen levels, as if both inputs had been drawn equally often."""
        return smoothed(evened(self.held_out[:-1], self.held_out.sum(axis=0)))

    def near(self, low: int, high: int) -> Candidate:
        """Return the candidate with finer levels near the starts of the levels `low` and `high`,
        if it can be cut finer."""
        return self


class BinSource:
    """Makes the level map of ordered bins and, on demand, what refines it."""

    # Whether `learner` may return something, which is costly to make.
    is_relearned: ClassVar[bool] = False

    def level_map(self) -> LevelMap:
        raise NotImplementedError

    def intervals(self) -> Intervals | None:
        """Return intervals finer than the levels, if there are any."""
        return None

    def learner(self) -> Learner | None:
        """Return what refits the order from counted draws, if anything does."""
        return None


class Learner(Protocol):
    """Refits an order from draws that are counted and not kept."""

    @property
    def counter(self) -> CellCounter: ...

    def after(self, order: OrderedBins, counts: IntArray) -> OrderedBins:
        """Return the order after further draws, counted by `counter`: (levels, 2)."""
        ...


@dataclass(frozen=True, eq=False)
class OrderedBins(Candidate):
    """Bins of a number or of a score.

    source: makes the level map and finer intervals.
    is_smooth: log-ratios change by little from level to level, as those of intervals do.
    position: (levels - 1,), mean number or score of each level; None: unknown.
    place: (levels - 1,), rising, the coordinate in which log-ratios are piecewise linear; None: the
        number of the level.
    scored: the score; None for bins of one column.
    """

    source: BinSource
    is_smooth: bool = False
    position: FloatArray | None = None
    place: FloatArray | None = None
    scored: Scored | None = None

    def freeze(self) -> LevelMap:
        return self.source.level_map()

    @property
    def is_counted(self) -> bool:
        return self.expected is not None

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
        """Intervals finer than the levels, if there are any."""
        return self.source.intervals()

    @cached_property
    def learner(self) -> Learner | None:
        """What refits the order from counted draws, if anything does."""
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
    """Levels without anything finer."""

    levels: LevelMap

    def level_map(self) -> LevelMap:
        return self.levels


@dataclass(frozen=True, slots=True, eq=False)
class Finer(BinSource):
    """Levels that intervals are joined into."""

    finer: Intervals

    def level_map(self) -> LevelMap:
        return self.finer.level_map()

    def intervals(self) -> Intervals:
        return self.finer


@dataclass(frozen=True, slots=True, eq=False)
class Mapped(BinSource):
    """Levels of outcomes that are mapped to others first, for which a source makes levels."""

    inner: BinSource
    of: Callable[[LevelMap], LevelMap]

    def level_map(self) -> LevelMap:
        return self.of(self.inner.level_map())

    def intervals(self) -> Intervals | None:
        finer = self.inner.intervals()
        return None if finer is None else finer.mapped(self.of)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreBins(BinSource):
    """Levels of a score. is_d1: (size,), the inputs of the draws that it was fitted to."""

    scored: Scored
    is_d1: NDArray[np.bool_]

    def level_map(self) -> LevelMap:
        return self.scored.freeze_levels()

    def intervals(self) -> Intervals | None:
        return self.scored.intervals(self.is_d1) if self.scored.has_finer else None


def by_score(
    scored: Scored, selection: SelectionDraws, source: BinSource | None = None
) -> OrderedBins:
    """Return the order by a score. source: of its levels; None: the score stays as it is."""
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
    """Cells that were made without the inputs, and the draws in each.

    cells: map from an outcome to its cell.
    counts: (cells, 2), learning draws by cell and input; the last cell is for unseen outcomes.
    predictor: predicts the log-ratio of each cell from the counts of all, for cells that are
        related, such as sequences; None: cells are taken for unrelated.
    """

    cells: LevelMap
    counts: IntArray
    predictor: Predictor | None = None

    def in_order(self) -> tuple[IntArray, FloatArray]:
        """Return the level of every cell, (cells - 1,), and the expected draws, (levels, 2)."""
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
    """Values or outputs, each ordered by its own counts.

    levels: map from an outcome to the level of its cell.
    counted: the cells, for further draws; None for rare outputs, which are counted elsewhere.
    """

    levels: LevelMap
    counted: CellCounts | None = None

    @classmethod
    def of(cls, attack: str, counted: CellCounts) -> UnorderedCells:
        """Return the order of cells by their shrunk counts."""
        level, expected = counted.in_order()
        levels = len(expected)
        group = np.append(level, levels).astype(np.intp)
        held_out = by_group(counted.counts, group, levels + 1).astype(np.int64)
        grouped = Grouped(counted.cells, group)
        draws = ExpectedDraws(expected, np.zeros(levels))
        penalty = tuning.PENALTY_COUNTED
        return cls(attack, held_out, penalty, grouped, counted, expected=draws)

    def freeze(self) -> LevelMap:
        return self.levels

    @property
    def is_counted(self) -> bool:
        return self.counted is not None

    @property
    def is_pooled(self) -> bool:
        is_related = self.counted is not None and self.counted.predictor is not None
        return is_related and self.expected is not None

    @property
    def counter(self) -> CellCounter:
        return self.levels if self.counted is None else self.counted.cells

    def add(self, counts: IntArray) -> UnorderedCells:
        if self.counted is None:
            return replace(self, held_out=self.held_out + counts)
        total = replace(self.counted, counts=self.counted.counts + counts)
        return UnorderedCells.of(self.attack, total)

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> OrderedBins:
        return OrderedBins(self.attack, self.held_out, self.penalty, Fixed(of(self.levels)))
