"""An order of outcomes that an attack proposes, with what held-out draws say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from dpaudit.draws import SelectionDraws
from dpaudit.levels import tuning
from dpaudit.levels.level_map import FloatArray, IntArray, LevelMap
from dpaudit.levels.ramps import Smoothed, smoothed
from dpaudit.levels.scores import Scored
from dpaudit.tally import by_arm


@dataclass(frozen=True, eq=False)
class Candidate:
    """One way of ordering outcomes, and how it fared on draws that it was not fitted to.

    held_out: (levels, 2), selection draws by level and arm, each levelled by a fit to the other
        folds. penalty: standard errors by which a prediction from it is lowered, more for orders
        with more freedom. freeze: makes the map, fitted to all of them. scored: the score, if the
        order is by one.
    is_smooth: whether log-ratios can be expected to change by little from level to level, as
        those of intervals do. position: (levels - 1,), the mean number or score of each level.
    """

    attack: str
    held_out: IntArray
    penalty: float
    freeze: Callable[[], LevelMap]
    scored: Scored | None = None
    is_smooth: bool = False
    position: FloatArray | None = None

    @cached_property
    def smoothed(self) -> Smoothed:
        """The counts of what was seen, smoothed."""
        return smoothed(self.held_out[:-1], self.position)


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
    )
