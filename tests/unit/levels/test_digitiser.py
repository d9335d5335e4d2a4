"""Numbers to levels: the lookup grid, cells and their words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpaudit.levels.cells import RARELY_SEEN, Cells, listed, make_cells
from dpaudit.levels.digitiser import Digitiser
from dpaudit.outcomes import Column, Raised, from_raw
from dpaudit.outcomes.columns import kinds_of

RNG = np.random.default_rng(0)
INTEGERS = np.arange(50.0)
EDGES: dict[str, NDArray[np.float64]] = {
    "none": np.empty(0),
    "one": np.array([0.5]),
    "few": np.sort(RNG.normal(size=9)),
    "many": np.sort(RNG.normal(size=40)),
    "heavy tails": np.sort(RNG.standard_cauchy(size=250)),
    "adjacent floats": np.unique([*INTEGERS, *np.nextafter(INTEGERS, 99)]),
    "infinite": np.array([-np.inf, *range(20), np.inf]),
    "tiny range": 1 + np.arange(30) * np.finfo(float).eps,
    "huge range": np.array([*-np.geomspace(1e308, 1e-300, 20), *np.geomspace(1e-300, 1e308, 20)]),
}
NUMBERS = np.concatenate(
    [
        RNG.standard_cauchy(5_000),
        np.round(20 * RNG.normal(size=1_000)),
        [math.inf, -math.inf, 1e308, -1e308, 0.0, -0.0, 5e-324],
    ]
)


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a new generator, so that no other test changes the numbers."""
    return np.random.default_rng(1)


@pytest.mark.parametrize("name", EDGES)
def test_a_digitiser_is_a_binary_search(name: str, rng: np.random.Generator) -> None:
    edges = EDGES[name]
    near = [np.nextafter(edges, -math.inf), edges]
    with np.errstate(over="ignore"):
        near.append(np.nextafter(edges, math.inf))
    numbers = np.concatenate([NUMBERS, *near])
    values = rng.permutation(len(edges) + 1)
    digitise = Digitiser(edges, values)
    expected = values[np.searchsorted(edges, numbers, side="right")]
    assert np.array_equal(digitise(numbers), expected)
    for times in (1, 5):  # one piece, and several
        counts = digitise.tally(np.tile(numbers, times), len(values) + 2)
        assert np.array_equal(counts, times * np.bincount(expected, minlength=len(values) + 2))


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


@pytest.mark.parametrize(
    ("entries", "chosen", "event"),
    [
        ([1.0, 2.0, 3.0], [2.0, None], "output ≥ 2, or not a number"),
        ([1.0, 2.0, None], [2.0, "b"], "output ≥ 2, or neither a number nor None"),
        ([{"a": 1}, Raised("KeyError", "")], [Raised("KeyError", ""), None],
         "KeyError is raised, or output is neither a number nor a dict"),
        (["yes", "no", "maybe"], ["yes", "others"], "output is neither a number, 'no' nor 'maybe'"),
        ([f"{n}" for n in range(20)], ["3", "others"],
         f"output is '3', or {RARELY_SEEN}"),
        ([f"{n}" for n in range(20)], ["others"],
         f"output is {RARELY_SEEN}"),
    ],
)  # fmt: skip
def test_outputs_of_a_new_kind_are_described_by_those_that_are_left_out(
    entries: list[Any], chosen: list[Any], event: str
) -> None:
    """A number in `chosen` stands for all numbers from it on."""
    cells = make_cells(column_of(entries * 3))
    levels = [int(cells(column_of([one]))[0]) for one in chosen]
    if isinstance(chosen[0], float):
        levels += range(levels[0], cells.intervals)
    assert words(cells, *levels) == event


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


def test_equal_neighbours_become_one_interval() -> None:
    column = column_of(np.random.default_rng(3).normal(size=4_000))
    cells = make_cells(column)
    place = cells(column).astype(int)
    level = np.minimum(np.arange(cells.label_values[-1] + 1) // 10, 6)
    merged = cells.with_values(level)
    assert merged.intervals == 7
    assert np.array_equal(merged(column), level[place])


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


@pytest.mark.parametrize(
    ("parts", "said"), [([], ""), (["a"], "a"), (["a", "b"], "a or b"), ([*"abc"], "a, b or c")]
)
def test_alternatives(parts: list[str], said: str) -> None:
    assert listed(parts, "or") == said


def test_an_event_that_nothing_belongs_to() -> None:
    cells = make_cells(column_of([7, 7]))
    levels = cells.with_values(np.array([2, 0, 2, 2]))
    assert levels.words(np.array([False, True, False])) == "no output"
    assert levels.words(np.array([True, False, False])) == "output is 7"


def test_a_kind_that_has_no_name_of_its_own() -> None:
    cells = make_cells(kinds_of(column_of([True, 1.0, "a", None] * 3)))
    place = cells.labels.index("a value of another kind")
    assert words(cells, int(cells.label_values[place])) == "output is a value of another kind"
