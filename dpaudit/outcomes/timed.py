"""Outcomes together with how long the calls took that returned them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.outcomes.columns import Column, FloatArray, KeyArray
from dpaudit.outcomes.tables import Outcomes
from dpaudit.outcomes.units import ELAPSED


@dataclass(frozen=True, slots=True, eq=False)
class TimedOutcomes(Outcomes):
    """A table with one column more, the last one. What an outcome *is* (its key, its words) is the
    same as without: two equal outputs are one atom, however long they took.

    nanoseconds: (size,).
    """

    outcomes: Outcomes
    nanoseconds: FloatArray
    size: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", self.outcomes.size)

    @property
    def columns(self) -> Sequence[Column]:
        return (*self.outcomes.columns, self._elapsed)

    @property
    def width(self) -> int:
        return self.outcomes.width

    def keys(self) -> KeyArray:
        return self.outcomes.keys()

    def words(self, rows: Iterable[int]) -> list[str]:
        return self.outcomes.words(rows)

    def take(self, index: NDArray[Any] | slice) -> TimedOutcomes:
        return TimedOutcomes(self.outcomes.take(index), self.nanoseconds[index])

    @property
    def _elapsed(self) -> Column:
        return Column(ELAPSED, self.nanoseconds)

    def _known(self) -> Callable[[str], Column]:
        known = self.outcomes._known()
        return lambda name: self._elapsed if name == ELAPSED else known(name)


def timed(outcomes: Outcomes, nanoseconds: NDArray[np.int64]) -> TimedOutcomes:
    """Return outcomes with the duration of every call: (size,), in nanoseconds."""
    return TimedOutcomes(outcomes, nanoseconds.astype(np.float64))
