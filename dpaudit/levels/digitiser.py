"""Find the interval of each number, several times faster than by binary search.

This is the inner loop of certification: `cells.py` and `scores.py` call a `Digitiser` for each
outcome. With few edges it compares each number with each edge; otherwise it looks intervals up in a
grid of equal cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.levels.limits import CACHE_FLOATS

FloatArray = NDArray[np.float64]

# The interval of a number is looked up in a grid of equal cells. Number of cells per edge (boundary
# between two intervals). A look-up is slow in a cell that contains several edges. A finer grid has
# fewer such cells, but takes more memory, and each column of a vector has its own grid.
_CELLS_PER_EDGE = 16
# With at most this number of edges, each number is compared with every edge: that is about as fast
# as a look-up in a grid.
_MAX_COMPARED_EDGES = 12
# Largest number of edges in a grid cell with which a look-up compares a number; numbers in cells
# with more edges are found by binary search. It is more than 2, since an interval that contains a
# single value usually has both of its edges in one cell.
_MAX_EDGES_PER_CELL = 3


@dataclass(frozen=True, slots=True, eq=False)
class Digitiser:
    """Maps each number x to a small integer: `values[k]`, where k is the number of edges ≤ x.

    edges: (n,), strictly rising, not NaN.
    values: (n + 1,), small integers.
    """

    edges: FloatArray
    values: NDArray[Any]
    # Holds the grid once it is made, at the first long call: an empty list, [grid], or [None] if no
    # grid is possible.
    _grids: list[_EdgeGrid | None] = field(default_factory=list, init=False, repr=False)

    def __call__(self, numbers: FloatArray) -> NDArray[Any]:
        """Return the small integer of every number. The numbers may not be NaN."""
        if len(self.edges) <= _MAX_COMPARED_EDGES:
            return self.values.take(self._compared(numbers))
        grid = self._grid(len(numbers))
        if grid is None:
            return np.asarray(self.values[np.searchsorted(self.edges, numbers, side="right")])
        return grid.look_up(numbers, self.edges, self.values)

    def tally(self, numbers: FloatArray, values: int) -> NDArray[np.int64]:
        """Count how many of the numbers are mapped to each of 0, …, `values` - 1: (values,)."""
        if len(self.edges) > _MAX_COMPARED_EDGES:
            total = np.zeros(values, dtype=np.int64)
            piece = CACHE_FLOATS // 4  # a lookup has several intermediate results
            for start in range(0, len(numbers), piece):
                total += np.bincount(self(numbers[start : start + piece]), minlength=values)
            return total
        reached = np.empty(len(self.edges) + 2, dtype=np.int64)
        reached[0], reached[-1] = len(numbers), 0
        above = np.empty(len(numbers), dtype=np.bool_)
        for index, edge in enumerate(self.edges):
            reached[index + 1] = np.count_nonzero(np.greater_equal(numbers, edge, out=above))
        return np.bincount(self.values, weights=-np.diff(reached), minlength=values).astype(
            np.int64
        )

    def _grid(self, numbers: int) -> _EdgeGrid | None:
        """Return the grid for fast look-up; None if a binary search is faster."""
        if not self._grids:
            # If there are fewer numbers than the look-up grid would have cells, making the grid
            # would take longer than finding the numbers by binary search.
            if numbers < _CELLS_PER_EDGE * len(self.edges):
                return None
            self._grids.append(_make_grid(self.edges, self.values))
        return self._grids[0]

    def __reduce__(self) -> tuple[type[Digitiser], tuple[FloatArray, NDArray[Any]]]:
        """Pickle the edges and values only. The grid for fast look-up is many times larger, and is
        made again when it is needed."""
        return Digitiser, (self.edges, self.values)

    def _compared(self, numbers: FloatArray) -> NDArray[np.intp]:
        interval = np.zeros(len(numbers), dtype=np.uint8)
        above = np.empty(len(numbers), dtype=np.bool_)
        as_bytes = above.view(np.uint8)  # sums of two arrays of one type take half of the time
        for edge in self.edges:
            np.greater_equal(numbers, edge, out=above)
            interval += as_bytes
        # `take` is seven times slower with indices of another type than `intp`.
        return interval.astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class _EdgeGrid:
    """A grid for fast look-up of the interval between two edges. Its cells have equal width.

    The cell of a number is a monotone function of the number, rounding included. So a number is
    compared only with the edges in its own cell.

    scale, shift: a number x is in cell floor(scale · x + shift), clipped to the grid.
    edges: (depth, cells), the edges in each cell, rising; filled up with infinity where a cell has
        fewer than `depth`.
    values: (cells · (depth + 1),), the results of a look-up, cell after cell: one for each of the
        depth + 1 intervals into which the edges divide a cell.
    crowded: (cells,), whether a cell has more than `depth` edges, so that its numbers need a binary
        search; None if no cell has.
    """

    scale: float
    shift: float
    edges: FloatArray
    values: NDArray[Any]
    crowded: NDArray[np.bool_] | None

    def look_up(self, numbers: FloatArray, edges: FloatArray, values: NDArray[Any]) -> NDArray[Any]:
        depth, cells = self.edges.shape
        cell = _cell(numbers, self.scale, self.shift, cells)
        index = cell * (depth + 1)
        for edge in self.edges:
            index += numbers >= edge.take(cell)
        result: NDArray[Any] = self.values.take(index)
        if self.crowded is not None:
            crowded = np.flatnonzero(self.crowded.take(cell))
            result[crowded] = values[np.searchsorted(edges, numbers[crowded], side="right")]
        return result


def _cell(numbers: FloatArray, scale: float, shift: float, cells: int) -> NDArray[np.intp]:
    with np.errstate(over="ignore"):
        position = numbers * scale
    position += shift
    np.clip(position, 0, cells - 1, out=position)
    return position.astype(np.intp)


def _make_grid(edges: FloatArray, values: NDArray[Any]) -> _EdgeGrid | None:
    if len(edges) <= _MAX_COMPARED_EDGES or not np.isfinite(edges).all():
        return None
    cells = _CELLS_PER_EDGE * len(edges)
    width = float(edges[-1]) - float(edges[0])
    scale = (cells - 2) / width
    shift = 1 - float(edges[0]) * scale
    if not (math.isfinite(width) and math.isfinite(scale) and math.isfinite(shift)):
        return None
    cell = _cell(edges, scale, shift, cells)
    below = np.searchsorted(cell, np.arange(cells), side="left")
    upto = np.searchsorted(cell, np.arange(cells), side="right")
    inside = upto - below
    depth = min(int(inside.max()), _MAX_EDGES_PER_CELL)
    nth = np.arange(depth)[:, None]
    result = np.where(inside > nth, edges[np.minimum(below + nth, len(edges) - 1)], np.inf)
    every = values[np.minimum(below + np.arange(depth + 1)[:, None], upto)]
    crowded = inside > depth
    return _EdgeGrid(scale, shift, result, every.T.ravel(), crowded if crowded.any() else None)
