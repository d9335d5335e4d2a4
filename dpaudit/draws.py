"""Draws of both inputs, in two types: what may certify, and what may be learned from.

A draw that enters a bound or a bet must not have been looked at when the event was fixed. So fresh
draws can only be tallied by something frozen before them; to learn from them is to give them up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes import Outcomes, concatenate
from dpaudit.tally import Tally, by_arm

LevelArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class SelectionDraws:
    """Draws to learn from: `outcomes`, and by which input (`is_d1`: (size,) of bool)."""

    outcomes: Outcomes
    is_d1: NDArray[np.bool_]

    @property
    def size(self) -> int:
        return self.outcomes.size

    def take(self, rows: NDArray[np.integer] | slice) -> SelectionDraws:
        return SelectionDraws(self.outcomes.take(rows), self.is_d1[rows])


def pool(parts: Sequence[SelectionDraws]) -> SelectionDraws:
    """Return all selection draws as one."""
    if len(parts) == 1:
        return parts[0]
    outcomes = concatenate([part.outcomes for part in parts])
    return SelectionDraws(outcomes, np.concatenate([part.is_d1 for part in parts]))


@dataclass(frozen=True, slots=True, eq=False)
class FreshDraws:
    """Draws that nothing has looked at, their inputs picked by independent fair coins."""

    _outcomes: Outcomes = field(repr=False)
    _is_d1: NDArray[np.bool_] = field(repr=False)

    @property
    def size(self) -> int:
        return self._outcomes.size

    def looks(
        self, level: Callable[[Outcomes], LevelArray], levels: int, stride: int
    ) -> tuple[Tally, ...]:
        """Return a tally for every `stride` draws, in the order of drawing; `level` is frozen."""
        looks = -(-self.size // stride)
        place = np.arange(self.size) // stride * levels + level(self._outcomes)
        counts = by_arm(place, looks * levels, self._is_d1)
        return tuple(map(Tally, counts.reshape(looks, levels, 2)))

    def release(self, size: int | None = None) -> SelectionDraws:
        """Give up the first `size` draws (all) as evidence, to learn from them."""
        every = SelectionDraws(self._outcomes, self._is_d1)
        return every if size is None or size >= self.size else every.take(slice(size))
