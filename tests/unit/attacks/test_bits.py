"""Low-order bits and decimals: seen exactly, caught where they leak, and never in what keeps."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpaudit.attacks.single_columns import bits
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import from_raw
from mechanisms.floating_point import (
    grid_rounded_laplace,
)
from mechanisms.truth import truth_of

ODD = [0.75, 1.0, -0.1, 120.0, 5e-324, 1e300, 2.0**-1040 * 3, 1e15, 12.345678901234561, 0.05]


def seen(values: Any, aspect: str) -> list[str]:
    column = from_raw(values).column(f"{aspect} of output")
    return [column.word(row) for row in range(len(values))]


def random_floats(size: int) -> list[float]:
    rng = np.random.default_rng(1)
    signs = rng.choice([-1.0, 1.0], size)
    return list((signs * rng.random(size) * 2.0 ** rng.integers(-1060, 1000, size)).tolist())


def test_set_bits_are_those_of_the_exact_fraction() -> None:
    values = [*ODD, *random_floats(2_000)]
    for value, low, high in zip(
        values, seen(values, "lowest set bit"), seen(values, "highest set bit"), strict=True
    ):
        exact = abs(Fraction(value))
        lowest = Fraction(2) ** int(low)
        assert (exact / lowest).denominator == 1
        assert (exact / lowest).numerator % 2 == 1
        assert Fraction(2) ** int(high) <= exact < Fraction(2) ** (int(high) + 1)


def decimal_numbers(size: int) -> list[float]:
    rng = np.random.default_rng(2)
    digits = [int(rng.integers(1, 10**length)) for length in rng.integers(1, 12, size)]
    places = rng.integers(-4, 13, size).tolist()
    return [
        float(Decimal(one).scaleb(-place)) * (-1) ** one
        for one, place in zip(digits, places, strict=True)
    ]


def test_decimals_are_those_that_python_writes() -> None:
    values = [*ODD, *decimal_numbers(3_000), *random_floats(500)]
    places, digits = seen(values, "decimal places"), seen(values, "last decimal")
    for value, place, digit in zip(values, places, digits, strict=True):
        written = Decimal(repr(value)).normalize().as_tuple()
        exponent = int(written.exponent)
        if len(written.digits) > 15 or exponent < -15 or len(written.digits) + exponent > 15:
            assert place == digit == "as many as fit"
        else:
            assert int(place) == -exponent
            assert Decimal(digit) == Decimal(written.digits[-1]).scaleb(exponent)


def test_what_has_no_bits_keeps_its_word() -> None:
    values = [0.0, -0.0, math.inf, -math.inf, math.nan, None, "a", 0.5]
    expected = ["zero", "zero", "infinite", "infinite", "NaN", "None", "'a'"]
    assert seen(values, "lowest set bit") == [*expected, "-1"]
    assert seen(values, "span of bits") == [*expected, "2^-1 to 2^-1"]
    assert seen(values, "decimal places") == [*expected, "1"]


def test_the_grid_has_the_law_that_it_states() -> None:
    truth = truth_of(grid_rounded_laplace)
    assert truth.epsilon(0.0, 1.0) == 1
    cells = np.arange(-60 * 4, 60 * 4) / 4
    laws = [[truth.density(one, x, bits=2) for one in cells] for x in (0.0, 1.0)]
    assert [math.fsum(law) for law in laws] == pytest.approx([1.0, 1.0])
    ratios = np.log(laws[0]) - np.log(laws[1])
    inside = np.abs(cells) < 25
    assert np.abs(ratios[inside]).max() == pytest.approx(1.0)
    drawn = grid_rounded_laplace(1.0, bits=2, size=100_000, rng=np.random.default_rng(0))
    for output in (0.0, 1.0, 1.25):
        probability = truth.density(output, 1.0, bits=2)
        assert abs(np.mean(drawn == output) - probability) <= 6 * math.sqrt(probability / 100_000)


def many_coordinates(seed: int) -> SelectionDraws:
    """Return draws of which each coordinate gives the input away once in some sixty times."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(8_000) < 0.5
    noise = rng.laplace(scale=16, size=(8_000, 20))
    return SelectionDraws(from_raw(noise + np.where(is_d1, 0.0, 1.0)[:, None]), is_d1)


def test_leaks_in_many_coordinates_add_up() -> None:
    found = next(one for one in bits(many_coordinates(1)) if one.scored)
    assert found.attack == "low-order bits: sum over coordinates"
    fresh = many_coordinates(2)
    score = found.scored.final_score()(fresh.outcomes) if found.scored is not None else np.empty(0)
    assert fresh.is_d1[np.argsort(score)[-800:]].mean() > 0.99
