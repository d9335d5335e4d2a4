from __future__ import annotations

import numpy as np

from dpaudit.levels.cells import make_cells
from dpaudit.outcomes import from_raw


def test_the_largest_numbers_have_cells() -> None:
    """Rounded up they would be infinite, as their differences are."""
    largest = np.finfo(float).max
    values = [-largest, largest, 1.0, -1.0, largest / 2, np.inf, np.nan] * 100
    (column,) = from_raw(np.array(values)).columns
    placed = make_cells(column)(column)
    assert len({int(placed[n]) for n in range(7)}) == 7
