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


def test_tails_are_cut_finely() -> None:
    """Each cell holds a fifth more than the one beyond it at most, from twenty draws on."""
    numbers = np.random.default_rng(0).exponential(size=100_000)
    (column,) = from_raw(numbers).columns
    cells = make_cells(column)
    for edges, mass in ((cells.edges, numbers), (-cells.edges[::-1], -numbers)):
        below = np.searchsorted(np.sort(mass), edges)
        below = below[(below >= 20) & (below <= 2_000)]
        assert len(below) > 30
        assert (below[1:] / below[:-1]).max() < 1.2
