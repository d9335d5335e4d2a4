"""An order of outcomes that an attack proposes, with what held-out draws say of it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Protocol

import numpy as np

from dpaudit.draws import SelectionDraws, by_arm
from dpaudit.levels import tuning
from dpaudit.levels.clusters import averaged, merged
from dpaudit.levels.intervals import Intervals
from dpaudit.levels.level_map import CellCounter, FloatArray, Grouped, IntArray, LevelMap, by_group
from dpaudit.levels.piecewise_logit import Smoothed, smoothed
from dpaudit.levels.rules import RuleTable, evened
from dpaudit.levels.scores import Scored
from dpaudit.levels.shrinkage import ShrunkLevels, shrunk_to


@dataclass(frozen=True, slots=True, eq=False)
class Fine:
    """Cells that were made without the inputs. cells: their map. counts: (cells, 2), the selection
    draws in each, the last one for unseen.

    kin: foretells the log-ratios of cells, (fits, cells - 1), from the counts of all of them,
        (fits, cells - 1, 2), where they have something to do with each other.
    """

    cells: LevelMap
    counts: IntArray
    kin: Callable[[IntArray], FloatArray] | None = None


class Learner(Protocol):
    """What learns an order anew from draws that are counted.

    counter: what these are to be counted by.
    """

    @property
    def counter(self) -> CellCounter: ...

    def after(self, order: Candidate, counts: IntArray) -> Candidate:
        """Return the order after more draws, counted by `counter`: (levels, 2)."""
        ...


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way of ordering outcomes, and how it fared on draws that it was not fitted to.

    held_out: (levels, 2), selection draws by level and arm, each levelled by a fit to the other
        folds. penalty: standard errors by which a prediction from it is lowered, more for orders
        with more freedom. freeze: makes the map, fitted to all of them. scored: the score, if the
        order is by one.
    shrunk: of an order that may be any, or is learned anew, what to expect at its levels, in place
    of a penalty.
    fine: cells that the levels are made of, where they may be put in any order.
    is_smooth: whether log-ratios can be expected to change by little from level to level, as
        those of intervals do. position: (levels - 1,), the mean number or score of each level.
    place: (levels - 1,), rising, what log-ratios can be expected to change evenly along, if not
        along the levels.
    finer: makes intervals that the levels are made of, where there are more. again: makes what
    learns the order anew from draws that are counted; None where it stays as it is.
    """

    attack: str
    held_out: IntArray
    penalty: float
    freeze: Callable[[], LevelMap]
    scored: Scored | None = None
    shrunk: ShrunkLevels | None = None
    fine: Fine | None = None
    is_smooth: bool = False
    position: FloatArray | None = None
    place: FloatArray | None = None
    finer: Callable[[], Intervals] | None = None
    again: Callable[[], Learner | None] | None = None

    @cached_property
    def intervals(self) -> Intervals | None:
        """What the levels are made of, if there are more of them."""
        return None if self.finer is None else self.finer()

    @cached_property
    def learner(self) -> Learner | None:
        """What learns the order anew, if anything does."""
        return None if self.again is None else self.again()

    @cached_property
    def promises(self) -> dict[Hashable, tuple[float, float]]:
        """What it was found to promise so far, by what for: each is asked for several times."""
        return {}

    @cached_property
    def table(self) -> RuleTable:
        """What every rule would guess on as many draws."""
        if self.shrunk is None:
            return RuleTable.evened(self.held_out)
        expected = evened(self.shrunk.expected, self.held_out.sum(axis=0))
        return RuleTable.of_smooth(expected, int(self.held_out.sum()), self.shrunk.variance)

    def counted_on(self, counts: IntArray) -> Candidate:
        """Return the order after more draws, counted by `counter`; of cells it is found anew."""
        if self.learner is not None:
            return self.learner.after(self, counts)
        if self.intervals is not None:
            more = self.intervals.with_more(counts)
            same = replace(self, held_out=more.held_out(), finer=partial(_same, more))
            if more.anew is None:
                return same
            return replace(same, freeze=more.by_level, position=more.positions())
        if self.fine is None:
            return replace(self, held_out=self.held_out + counts)
        fine = replace(self.fine, counts=self.fine.counts + counts)
        return of_cells(self.attack, fine)

    @property
    def is_foretold(self) -> bool:
        """Whether what is expected of a cell comes from all of them, and hardly from its luck."""
        is_kin = self.fine is not None and self.fine.kin is not None
        return self.shrunk is not None and (is_kin or self.again is not None)

    @property
    def counter(self) -> CellCounter:
        """What counts further draws for it."""
        if self.learner is not None:
            return self.learner.counter
        if self.intervals is not None:
            return self.intervals.each
        return self.freeze() if self.fine is None else self.fine.cells

    def mapped(self, of: Callable[[LevelMap], LevelMap]) -> Candidate:
        """Return the same order of other outcomes. of: makes their levels of those of the order."""
        finer = None if self.finer is None else partial(_mapped, self.finer, of)
        return replace(self, freeze=partial(_applied, of, self.freeze), finer=finer, again=None)

    def cut_near(self, low: int, high: int) -> Candidate:
        """Return the order with finer levels near where level `low` and level `high` begin."""
        if self.intervals is None:
            return self
        near = self.intervals.near(low, high)
        return replace(
            self,
            held_out=near.held_out(),
            freeze=near.by_level,
            position=near.positions(),
            place=near.places(),
            shrunk=near.shrunk(),
            finer=None,
        )

    @cached_property
    def smoothed(self) -> Smoothed:
        """The counts of what was seen, smoothed as if both inputs had come up as often."""
        counts = evened(self.held_out[:-1], self.held_out.sum(axis=0))
        return smoothed(counts, self.position, self.place)


def _same(intervals: Intervals) -> Intervals:
    return intervals


def _applied(of: Callable[[LevelMap], LevelMap], freeze: Callable[[], LevelMap]) -> LevelMap:
    return of(freeze())


def _mapped(finer: Callable[[], Intervals], of: Callable[[LevelMap], LevelMap]) -> Intervals:
    return finer().mapped(of)


def of_cells(attack: str, fine: Fine) -> Candidate:
    """Return the order of cells by what is to be expected of each."""
    level, expected = in_order(fine.counts, fine.kin)
    levels = len(expected)
    group = np.append(level, levels).astype(np.intp)
    held_out = by_group(fine.counts, group, levels + 1).astype(np.int64)
    freeze = partial(Grouped, fine.cells, group)
    shrunk = ShrunkLevels(expected, np.zeros(levels))
    penalty = tuning.PENALTY_COUNTED
    return Candidate(attack, held_out, penalty, freeze, shrunk=shrunk, fine=fine)


def in_order(
    counts: IntArray, kin: Callable[[IntArray], FloatArray] | None = None
) -> tuple[IntArray, FloatArray]:
    """Return the level of every cell, (cells,), and the draws to expect at each, (levels, 2).

    counts: (cells + 1, 2), the last one for unseen.  kin: as of `Fine`.
    """
    draws, arms = counts[:-1].sum(axis=1), counts.sum(axis=0)
    if kin is None:
        share = averaged(counts[:-1], arms)
    else:
        share = shrunk_to(kin(counts[None, :-1])[0], counts[:-1], arms)
    level, levels = merged(share, draws)
    expected = draws[:, None] * np.stack([share, 1 - share], axis=1)
    return level, by_group(expected, level, levels)


class Attack(Protocol):
    """Proposes orders of outcomes by an estimate of their likelihood ratio."""

    def __call__(self, selection: SelectionDraws) -> list[Candidate]:
        """Return candidates; none when the attack does not apply to such outcomes."""
        ...


def by_score(scored: Scored, selection: SelectionDraws) -> Candidate:
    """Return the order by a score."""
    table = by_arm(scored.levels, len(scored.edges) + 2, selection.is_d1)
    return Candidate(
        scored.attack,
        table,
        tuning.PENALTY,
        scored.freeze_levels,
        scored,
        is_smooth=True,
        position=scored.position(table.sum(axis=1)),
        finer=partial(scored.intervals, selection.is_d1) if scored.has_finer else None,
    )
