"""Entries as small numbers: read of numbers by their bands as of the bands themselves."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

from dpaudit.outcomes import Column, Outcomes, from_raw
from dpaudit.outcomes.columns import find
from dpaudit.outcomes.known import Alphabet, Bands, Known

_RNG = np.random.default_rng(7)
_SPECIAL = [0.0, -0.0, 3.0, math.inf, -math.inf, math.nan]


def _entry() -> Any:
    kind = _RNG.integers(4)
    if kind == 0:
        return None if _RNG.random() < 0.5 else "x"
    return float(_RNG.choice(_SPECIAL)) if kind == 1 else float(_RNG.normal())


RETURNED: dict[str, Any] = {
    "numbers": np.where(_RNG.random((500, 4)) < 0.5, -1000.0, _RNG.normal(size=(500, 4))),
    "numbers and labels": [[_entry() for _ in range(4)] for _ in range(500)],
    "lists of several lengths": [
        [_entry() for _ in range(_RNG.integers(1, 5))] for _ in range(500)
    ],
}
ALONE = [(), (0.0,), (-1000.0, 0.0, 3.0)]


def bands_of(alone: tuple[float, ...]) -> Bands:
    names = frozenset(f"output[{index}]" for index in (0, 1, 3))
    return Bands(names, alone, (-1.0, 0.0, 0.5))


def entries(column: Column) -> list[float | str]:
    codes = np.zeros(len(column.numbers), int) if column.codes is None else column.codes
    rows = zip(codes.tolist(), column.numbers.tolist(), strict=True)
    return [column.labels[code - 1] if code else number for code, number in rows]


@pytest.mark.parametrize("alone", ALONE)
@pytest.mark.parametrize("name", RETURNED)
def test_symbols_of_numbers_by_their_bands_are_those_of_the_bands(
    name: str, alone: tuple[float, ...]
) -> None:
    outcomes, bands = from_raw(RETURNED[name]), bands_of(alone)
    banded = bands(outcomes)
    every = [*alone, *bands.labels, "None", "'x'", "absent", "NaN", 7.0]
    rng = np.random.default_rng(1)
    for _ in range(10):
        order = rng.permutation(len(every))[: rng.integers(1, 8)]
        values = tuple(every[index] for index in order)
        symbols = {value: index for index, value in enumerate(values)}
        for index in range(4):
            alphabet = Alphabet(f"output[{index}]", values)
            column = banded.column(alphabet.name)
            expected = [symbols.get(entry, len(values)) for entry in entries(column)]
            assert alphabet(column).tolist() == expected
            assert alphabet.through(bands)(outcomes.column(alphabet.name)).tolist() == expected


@pytest.mark.parametrize("alone", ALONE)
@pytest.mark.parametrize("name", RETURNED)
def test_known_bands_are_found_by_numbers(name: str, alone: tuple[float, ...]) -> None:
    outcomes, bands = from_raw(RETURNED[name]), bands_of(alone)
    banded: Outcomes = bands(outcomes).take(slice(250))
    keys, first = np.unique(banded.keys(), return_index=True)
    keys, first = keys[::2], first[::2]
    known = Known.of(keys, banded.take(first)).through(bands)
    expected = find(keys, bands(outcomes).keys())
    assert 0 < np.count_nonzero(expected == len(keys)) < outcomes.size
    assert known.places(outcomes).tolist() == expected.tolist()


def test_the_band_of_an_outcome_hangs_on_no_other_outcome() -> None:
    """All lists of a block may be as long, so that their length stands in no column."""
    bands = Bands(frozenset({"length of output", "output[1]"}), (0.0,), (2.5, 3.5))
    alike, others = [[0.0, 1.0, 9.0]] * 4, [[0.0, 3.0]]
    beside = bands(from_raw([*alike, *others])).keys()
    assert bands(from_raw(alike)).keys().tolist() == beside[:4].tolist()
    assert bands(from_raw(alike)).keys()[0] != beside[4]


BANDS = Bands(frozenset({"output[0]", "output[1]"}), (-1.0,), (0.5, 2.25, 1e6))


def banded(raw: Any) -> Outcomes:
    return BANDS(from_raw(raw))


def test_numbers_are_bands_and_what_stands_for_itself_stays() -> None:
    table = banded([[None, 0.4], [-1.0, 2.2, 7.0], "none", [2.25, 1e7], [np.nan, -1.0]])
    assert table.words(range(5)) == [
        "(None, number < 0.5)",
        "(-1, number 0.5 to 2.25, 7)",
        "'none'",
        "(number 2.25 to 1000000, number ≥ 1000000)",
        "(NaN, -1)",
    ]


def test_an_output_has_one_key_whatever_stands_beside_it() -> None:
    rng = np.random.default_rng(4)
    raw = [[-1.0 if rng.random() < 0.5 else rng.normal(), rng.normal()] for _ in range(50)]
    alone = [banded([output]).keys()[0] for output in raw]
    mixed = banded([*raw, "another shape"])
    assert type(mixed) is not type(banded(raw))
    assert banded(raw).keys().tolist() == alone == mixed.keys()[:-1].tolist()
    assert pickle.loads(pickle.dumps(BANDS))(from_raw(raw)).keys().tolist() == alone
