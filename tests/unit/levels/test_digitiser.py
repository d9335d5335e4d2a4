"""Numbers to levels: the lookup grid, cells and their words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.levels.cells import Cells, make_cells
from dpaudit.levels.digitiser import Digitiser
from dpaudit.outcomes import Column, Raised, from_raw


def test_many_numbers_are_counted_in_pieces_as_at_once() -> None:
    """Of few numbers, and of one at a time, tests/property/test_digitiser.py."""
    rng = np.random.default_rng(0)
    edges, numbers = np.sort(rng.standard_cauchy(size=250)), rng.standard_cauchy(size=200_000)
    values = rng.permutation(len(edges) + 1)
    expected = np.bincount(values[np.searchsorted(edges, numbers, side="right")])
    assert np.array_equal(Digitiser(edges, values).tally(numbers, len(values)), expected)


def column_of(entries: Any) -> Column:
    return from_raw(entries).columns[0]


def words(cells: Cells, *values: int) -> str:
    chosen = np.zeros(int(cells.label_values[-1]) + 1, dtype=bool)
    chosen[list(values)] = True
    return cells.words(chosen)


def test_few_values_have_a_cell_each() -> None:
    column = column_of([1, 2, 5, 2, 1, 5, 5, 2])
    cells = make_cells(column)
    place = cells(column_of([0, 1, 1.5, 2, 3, 5, 6]))
    assert len(set(place.tolist())) == 7
    assert words(cells, int(place[1])) == "output is 1"
    assert words(cells, *range(place[3] + 1)) == "output ≤ 2"
    assert words(cells, *range(place[5], cells.intervals)) == "output ≥ 5"
    assert words(cells, int(place[1]), int(place[5])) == "output is 1 or 5"


def test_labels_are_cells_and_unseen_ones_share_the_last() -> None:
    entries = ["a", None, 1.0, True, math.nan, Raised("KeyError", "k")] * 3
    cells = make_cells(column_of(entries))
    known = cells(column_of(["a", None, True, math.nan, Raised("KeyError", "other")]))
    assert len(set(known.tolist())) == 5
    unseen = cells(column_of(["b", Raised("ValueError", "")]))
    assert unseen.tolist() == [cells.label_values[-1]] * 2
    assert words(cells, int(known[0])) == "output is 'a'"
    assert words(cells, int(known[4])) == "KeyError is raised"
    every = ("a number", "'a'", "None", "True", "NaN", "a raised KeyError")
    assert all(word in words(cells, int(unseen[0])) for word in ("neither", *every))
    assert words(cells, *unseen, *known[:4]) == "output is neither a number nor a raised KeyError"
    assert words(cells, *unseen, *known, *range(cells.intervals)) == "any output"


def test_continuous_cells_hold_about_as_much_each() -> None:
    numbers = np.random.default_rng(1).normal(size=20_000)
    cells = make_cells(column_of(numbers))
    counts = np.bincount(cells(column_of(numbers)).astype(int))
    assert cells.intervals > 200
    # Quantiles are refined in the tails, and edges are rounded to short decimals.
    assert counts.max() < 4 * len(numbers) / cells.intervals
    assert all(len(f"{edge:.17g}") and len(repr(float(edge))) < 9 for edge in cells.edges)


def test_frequent_values_stand_alone_among_continuous_ones() -> None:
    numbers = np.random.default_rng(2).normal(size=5_000)
    numbers[::3] = 0.25
    cells = make_cells(column_of(numbers))
    place = cells(column_of(np.array([0.25, np.nextafter(0.25, 1), np.nextafter(0.25, 0)])))
    assert len(set(place.tolist())) == 3
    assert words(cells, int(place[0])) == "output is 0.25"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (-math.inf, 0.13, "output < 0.13"),
        (-math.inf, math.nextafter(0.13, 1), "output ≤ 0.13"),
        (0.5, math.inf, "output ≥ 0.5"),
        (math.nextafter(3, 9), math.inf, "output > 3"),
        (1.0, 2.5, "1 ≤ output < 2.5"),
        (-math.inf, math.inf, "output is a number"),
    ],
)
def test_words_of_an_interval(low: float, high: float, said: str) -> None:
    edges = np.array([edge for edge in (low, high) if math.isfinite(edge)])
    inside = 0 if low == -math.inf else 1
    values = np.zeros(len(edges) + 1, dtype=np.intp)
    values[inside] = 1
    cells = Cells("output", edges, (), values, np.array([2]))
    assert words(cells, 1) == said
