"""The lookup grid is a binary search, for every float and every set of edges."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpaudit.levels.cells import make_cells
from dpaudit.levels.digitiser import Digitiser
from dpaudit.outcomes import from_raw

FLOATS = st.floats(allow_nan=False)
NEAR_ONE = st.integers(-40, 40).map(lambda steps: 1 + steps * 2.0**-52)
SMALL = st.integers(-60, 60).map(float)
TINY = st.integers(-60, 60).map(lambda steps: steps * 5e-324)


@st.composite
def edges_and_numbers(draw: st.DrawFn) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges, with neighbours, and numbers on, just beside and far from them."""
    kind = draw(st.sampled_from([FLOATS, NEAR_ONE, SMALL, TINY]))
    chosen = np.array(draw(st.lists(kind, max_size=60)), dtype=float)
    with np.errstate(over="ignore"):
        above = np.nextafter(chosen, np.inf) if draw(st.booleans()) else chosen
        edges = np.unique(np.concatenate([chosen, above]))
        beside = [np.nextafter(edges, -np.inf), edges, np.nextafter(edges, np.inf)]
    others = draw(st.lists(st.one_of(FLOATS, kind), max_size=30))
    far = [-np.inf, np.inf, 0.0, -0.0, 5e-324, -5e-324]
    return edges, np.concatenate([*beside, others, far])


@given(edges_and_numbers(), st.integers(1, 64))
def test_a_grid_finds_what_a_binary_search_does(
    given_: tuple[NDArray[np.float64], NDArray[np.float64]], levels: int
) -> None:
    edges, numbers = given_
    values = np.arange(len(edges) + 1) * 7 % levels
    expected = values[np.searchsorted(edges, numbers, side="right")]
    digitise = Digitiser(edges, values)
    for one in (digitise, pickle.loads(pickle.dumps(digitise))):
        assert np.array_equal(one(numbers), expected)
        assert np.array_equal(one.tally(numbers, levels), np.bincount(expected, minlength=levels))


@given(edges_and_numbers())
def test_nan_is_a_label_and_never_a_number(
    given_: tuple[NDArray[np.float64], NDArray[np.float64]],
) -> None:
    _, numbers = given_
    mixed = np.concatenate([numbers, [np.nan, np.nan]])
    column = from_raw(mixed).columns[0]
    cells = make_cells(column)
    place = cells(column)
    expected = np.searchsorted(cells.edges, numbers, side="right")
    assert np.array_equal(place[:-2], expected)
    assert (place[-2:] == cells.intervals).all()
