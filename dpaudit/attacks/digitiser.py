"""Numbers to small integers through a lookup grid, several times faster than a binary search."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_CELLS = 4096
# Vectors have a grid for every coordinate, with few edges each.
_CELLS_FOR_FEW = 512
# With so few edges, comparing with each of them is faster still.
_FEW = 12
# Counting how many reach an edge takes less than looking up where each falls.
_FEW_TO_COUNT = 32


@dataclass(frozen=True, slots=True, eq=False)
class Digitiser:
    """x -> values[number of edges ≤ x].

    edges: (n,), strictly rising, not NaN. values: (n + 1,) of small integers.
    """

    edges: FloatArray
    values: NDArray[Any]
    _grid: _Grid | None = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_grid", _make_grid(self.edges, self.values))

    def __call__(self, numbers: FloatArray) -> NDArray[Any]:
        """Return the value of every number; none may be NaN."""
        if len(self.edges) <= _FEW:
            return self.values.take(self._compared(numbers))
        if self._grid is None:
            return np.asarray(self.values[np.searchsorted(self.edges, numbers, side="right")])
        return self._grid.look_up(numbers, self.edges, self.values)

    def counts(self, numbers: FloatArray, values: int) -> NDArray[np.int64]:
        """Return how many numbers have each value, (values,), for values of 0, 1, …"""
        if len(self.edges) > _FEW_TO_COUNT:
            return np.bincount(self(numbers), minlength=values)
        reached = np.empty(len(self.edges) + 2, dtype=np.int64)
        reached[0], reached[-1] = len(numbers), 0
        above = np.empty(len(numbers), dtype=np.bool_)
        for place, edge in enumerate(self.edges):
            reached[place + 1] = np.count_nonzero(np.greater_equal(numbers, edge, out=above))
        return np.bincount(self.values, weights=-np.diff(reached), minlength=values).astype(
            np.int64
        )

    def _compared(self, numbers: FloatArray) -> NDArray[np.intp]:
        place = np.zeros(len(numbers), dtype=np.uint8)
        above = np.empty(len(numbers), dtype=np.bool_)
        for edge in self.edges:
            place += np.greater_equal(numbers, edge, out=above)
        # `take` is seven times slower with indices of any other type.
        return place.astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Equal cells over the range of the edges.

    A number's cell is a monotone function of it, rounding included, so that it lies below every
    edge of a later cell and above every edge of an earlier one: only the edge in its own cell is
    left to compare with.
    """

    scale: float
    shift: float
    edge: FloatArray  # (cells,)
    values: NDArray[Any]
    crowded: NDArray[np.bool_] | None

    def look_up(self, numbers: FloatArray, edges: FloatArray, values: NDArray[Any]) -> NDArray[Any]:
        cell = _cell(numbers, self.scale, self.shift, len(self.edge))
        place = cell * 2
        place += numbers >= self.edge.take(cell)
        found = self.values.take(place)
        if self.crowded is not None:
            rest = np.flatnonzero(self.crowded.take(cell))
            found[rest] = values[np.searchsorted(edges, numbers[rest], side="right")]
        return found


def _cell(numbers: FloatArray, scale: float, shift: float, cells: int) -> NDArray[np.intp]:
    with np.errstate(over="ignore"):
        position = numbers * scale
    position += shift
    np.clip(position, 0, cells - 1, out=position)
    return position.astype(np.intp)


def _make_grid(edges: FloatArray, values: NDArray[Any]) -> _Grid | None:
    if len(edges) <= _FEW or not np.isfinite(edges).all():
        return None
    cells = _CELLS if len(edges) > _FEW_TO_COUNT else _CELLS_FOR_FEW
    width = float(edges[-1]) - float(edges[0])
    scale = (cells - 2) / width
    shift = 1 - float(edges[0]) * scale
    if not (math.isfinite(width) and math.isfinite(scale) and math.isfinite(shift)):
        return None
    place = _cell(edges, scale, shift, cells)
    below = np.searchsorted(place, np.arange(cells), side="left")
    upto = np.searchsorted(place, np.arange(cells), side="right")
    edge = np.where(upto > below, edges[np.minimum(below, len(edges) - 1)], np.inf)
    both = np.stack([values[below], values[upto]], axis=1).ravel()
    crowded = upto - below > 1
    return _Grid(scale, shift, edge, both, crowded if crowded.any() else None)
