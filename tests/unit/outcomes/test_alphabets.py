"""Entries as small numbers: read of numbers by their bands as of the bands themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpaudit.outcomes import Column, Outcomes, from_raw
from dpaudit.outcomes.alphabets import Alphabet
from dpaudit.outcomes.bands import Bands
from dpaudit.outcomes.columns import find
from dpaudit.outcomes.known import Known

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
    names = frozenset(f"output[{place}]" for place in (0, 1, 3))
    return Bands(names, alone, (-1.0, 0.0, 0.5))


def entries(column: Column) -> list[float | str]:
    codes = np.zeros(len(column.numbers), int) if column.codes is None else column.codes
    both = zip(codes.tolist(), column.numbers.tolist(), strict=True)
    return [column.labels[code - 1] if code else number for code, number in both]


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
        values = tuple(every[place] for place in order)
        for place in range(4):
            alphabet = Alphabet(f"output[{place}]", values)
            column = banded.column(alphabet.name)
            wanted = [
                values.index(one) if one in values else len(values) for one in entries(column)
            ]
            assert alphabet(column).tolist() == wanted
            assert alphabet.through(bands)(outcomes.column(alphabet.name)).tolist() == wanted


@pytest.mark.parametrize("alone", ALONE)
@pytest.mark.parametrize("name", RETURNED)
def test_known_bands_are_found_by_numbers(name: str, alone: tuple[float, ...]) -> None:
    outcomes, bands = from_raw(RETURNED[name]), bands_of(alone)
    banded: Outcomes = bands(outcomes).take(slice(250))
    keys, first = np.unique(banded.keys(), return_index=True)
    keys, first = keys[::2], first[::2]
    known = Known.of(keys, banded.take(first)).through(bands)
    wanted = find(keys, bands(outcomes).keys())
    assert 0 < np.count_nonzero(wanted == len(keys)) < outcomes.size
    assert known.places(outcomes).tolist() == wanted.tolist()


def test_an_alphabet_of_a_column_has_each_of_its_entries() -> None:
    column = from_raw([1.0, None, -0.0, 0.0, "a", 1.0]).column("output")
    alphabet = Alphabet.of(column)
    assert alphabet.values == (0.0, 1.0, "None", "'a'")
    assert alphabet(column).tolist() == [1, 2, 0, 0, 3, 1]
