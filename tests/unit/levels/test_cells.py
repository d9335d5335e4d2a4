from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from dpaudit.levels.cells import NO_OUTPUT, make_cells
from dpaudit.outcomes import from_raw
from dpaudit.outcomes.representation import SIGN


def test_the_largest_numbers_have_cells() -> None:
    """Rounded up they would be infinite, as their differences are."""
    largest = np.finfo(float).max
    values = [-largest, largest, 1.0, -1.0, largest / 2, np.inf, np.nan] * 100
    (column,) = from_raw(np.array(values)).columns
    placed = make_cells(column)(column)
    assert len({int(placed[n]) for n in range(7)}) == 7


@pytest.mark.parametrize(
    ("raw", "column", "label", "event"),
    [
        ([0.0, -0.0, 1.5], f"{SIGN}output", "-0.0", "output is -0.0"),
        ([1, 1.0, 2.5], "type of output", "int", "type of output is int"),
        (
            [Decimal("1.00"), Decimal("1.0"), "a"],
            "exponent of output",
            "-2",
            "output is written with 2 digits after the point, as in 1.00",
        ),
        (
            [dict.fromkeys((1, 2), 1.0), dict.fromkeys((2, 1), 1.0), {1: 1.0}],
            "order of keys of output",
            "in the order (2, 1)",
            "keys of output are in the order (2, 1)",
        ),
    ],
)
def test_the_event_of_a_representation_is_that_of_its_label_alone(
    raw: list[Any], column: str, label: str, event: str
) -> None:
    cells = make_cells(from_raw([*raw, *raw]).column(column))
    values = np.arange(int(cells.label_values.max()) + 1)
    chosen = values == cells.label_values[cells.labels.index(label)]
    assert cells.words(chosen) == event
    # No number is in such a column, so that an event with all numbers is the same event.
    assert cells.words(chosen | np.isin(values, cells.values)) == event
    assert cells.words(np.isin(values, cells.values)) == NO_OUTPUT


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
