from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from dpaudit.levels.cells import NO_OUTPUT, make_cells
from dpaudit.outcomes import RAISED, Raised, from_raw
from dpaudit.outcomes.representation import SIGN


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


OFFSET_OF_TWO = datetime.timezone(datetime.timedelta(hours=2))
NOON = datetime.datetime(2020, 1, 1, 12, tzinfo=datetime.UTC)
TWICE: dict[str, tuple[list[Any], str, dict[str, str]]] = {
    "signs": (
        [0.0, -0.0, 1.5, Raised("ValueError", "")],
        f"{SIGN}output",
        {
            "0.0": "output is 0.0",
            "-0.0": "output is -0.0",
            "not a zero": "output is not a zero",
            f"{RAISED}ValueError": "ValueError is raised",
        },
    ),
    "types": (
        [1, 1.0, 2.5],
        "type of output",
        {"int": "type of output is int", "float": "type of output is float"},
    ),
    "digits": (
        [Decimal("1.00"), Decimal("1.0"), Decimal(1), Decimal("1E+2"), Decimal("1E-20"), "a"],
        "exponent of output",
        {
            "-2": "output is written with 2 digits after the point, as in 1.00",
            "-1": "output is written with 1 digit after the point, as in 1.0",
            "0": "output is written with no digits after the point, as in 1",
            "2": "output is written with the exponent 2, as in 1E+2",
            "-20": "output is written with 20 digits after the point",
            "absent": "output is no finite Decimal",
        },
    ),
    "digits inside": (
        [[Decimal("1.00")], [Decimal("1.0")]],
        "exponent of output[0]",
        {"-2": "output[0] is written with 2 digits after the point, as in 1.00"},
    ),
    "orders": (
        [dict.fromkeys((1, 2), 1.0), dict.fromkeys((2, 1), 1.0), {1: 1.0}],
        "order of keys of output",
        {
            "in the order (2, 1)": "keys of output are in the order (2, 1)",
            "in an order of the set (1, 2)": (
                "keys of output are in an order that a set of them has"
            ),
            "absent": "output has fewer than two keys",
        },
    ),
    "offsets": (
        [NOON, NOON.astimezone(OFFSET_OF_TWO), "a"],
        "UTC offset of output",
        {
            "0:00:00": "UTC offset of output is 0:00:00",
            "2:00:00": "UTC offset of output is 2:00:00",
            "absent": "output has no UTC offset",
        },
    ),
}


@pytest.mark.parametrize("name", TWICE)
def test_events_of_representations_are_sentences(name: str) -> None:
    raw, column, words = TWICE[name]
    cells = make_cells(from_raw([*raw, *raw]).column(column))
    values = dict(zip(cells.labels, cells.label_values[:-1], strict=True))
    count = int(cells.label_values.max()) + 1
    for label, expected in words.items():
        chosen = np.arange(count) == values[label]
        assert cells.words(chosen) == expected
        # No number is in such a column, so that an event with all numbers is the same event.
        assert cells.words(chosen | np.isin(np.arange(count), cells.values)) == expected
    if "absent" in words:
        chosen = np.isin(np.arange(count), [one for key, one in values.items() if key != "absent"])
        assert cells.words(chosen) not in (NO_OUTPUT, *words.values())
    assert cells.words(np.isin(np.arange(count), cells.values)) == NO_OUTPUT


def test_events_of_representations_are_joined() -> None:
    raw = [Decimal("1.00"), Decimal("1.0"), "a"]
    cells = make_cells(from_raw([*raw, *raw]).column("exponent of output"))
    some = np.ones(int(cells.label_values.max()) + 1, dtype=bool)
    some[[cells.label_values[-1], cells.label_values[cells.labels.index("-1")]]] = False
    assert cells.words(some) == (
        "output is no finite Decimal or output is written with 2 digits after the point, as in 1.00"
    )
