"""Low-order bits and decimals: seen exactly, caught where they leak, and never in what keeps."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.attacks.bits import BitView, bits, has_fractions
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.draws import SelectionDraws
from dpaudit.errors import UsageError
from dpaudit.outcomes import from_raw
from dpaudit.reports import text
from dpaudit.reports.json import from_json, to_json
from mechanisms import scipy_noise
from mechanisms.floating_point import (
    grid_rounded_laplace,
    noise_rounded_laplace,
    textbook_laplace,
)
from mechanisms.truth import truth_of

Rng = np.random.Generator
ODD = [0.75, 1.0, -0.1, 120.0, 5e-324, 1e300, 2.0**-1040 * 3, 1e15, 12.345678901234561, 0.05]


def audited(mechanism: Any, d1: Any = 0.0, d2: Any = 1.0, **options: Any) -> AuditResult:
    given = {"samples": 50_000, "floating_point": True, **options}
    return dpaudit.audit(mechanism, d1, d2, dpaudit.PureDP(1.0), **given)


def words(result: AuditResult) -> list[str]:
    return [event.words for event in result.certificates[0].fixed.events]


def refuted(result: AuditResult) -> bool:
    return result.verdict is Verdict.VIOLATION


def seen(values: Any, aspect: str) -> list[str]:
    column = BitView(from_raw(values)).column(f"{aspect} of output")
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


def test_the_textbook_laplace_is_taken_apart() -> None:
    """Mironov 2012: the true ε is infinite, and what a million draws can show is about 10."""
    result = audited(textbook_laplace, samples=1_000_000, full=True)
    assert result.verdict is Verdict.VIOLATION
    assert result.epsilon_lower >= 8
    assert words(result) == ["lowest set bit of output ≤ 2^-54"]
    event = result.certificates[0].fixed.events[0]
    assert event.count_d1 / event.draws_d1 == pytest.approx(0.27, abs=0.01)
    assert event.count_d2 == 0


def test_over_the_reals_it_stays_unrefuted_and_the_report_says_what_was_not_seen() -> None:
    result = audited(textbook_laplace, floating_point=False)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    report = " ".join(text.render(result, verbose=1).split())
    assert "Not tested: low-order bits of floats (--floating-point)." in report


def test_what_was_looked_at_is_not_said_to_be_left_out() -> None:
    looked = audited(grid_rounded_laplace)
    integers = audited(scipy_noise.discrete_laplace_mech, [1], [2], floating_point=False)
    for result in (looked, integers):
        assert result.certificates[0].ignored == ()
        assert "Not tested" not in text.render(result, verbose=1)


@pytest.mark.parametrize(
    ("mechanism", "d1", "d2"),
    [
        (grid_rounded_laplace, 0.0, 1.0),
        (scipy_noise.discrete_laplace_mech, [3, 1, 0], [2, 1, 0]),
    ],
)
def test_noise_without_low_order_bits_stays_unrefuted(mechanism: Any, d1: Any, d2: Any) -> None:
    result = audited(mechanism, d1, d2, samples=1_000_000, full=True)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert 0.9 < result.epsilon_lower <= 1


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


def test_rounded_noise_shows_the_decimals_of_the_input() -> None:
    # At this scale outputs never repeat: neither thresholds nor single values see anything.
    params = {"epsilon": 1e-6}
    assert refuted(audited(noise_rounded_laplace, 0.0, 0.123, params=params, samples=5_000))
    blind = audited(
        noise_rounded_laplace, 0.0, 0.123, params=params, samples=5_000, floating_point=False
    )
    assert blind.verdict is Verdict.NO_VIOLATION_FOUND


def test_the_last_digit_of_an_output_that_is_rounded_for_one_input_only() -> None:
    def to_cents(x: float, size: int, rng: Rng) -> Any:
        step = 0.05 if x else 0.01
        return np.round(np.rint(rng.laplace(scale=1e5, size=size) / step) * step, 2)

    result = audited(to_cents, samples=20_000)
    assert refuted(result)
    assert any("decimal" in one for one in words(result)), words(result)


def test_every_number_of_an_outcome_is_looked_at() -> None:
    def leaks_in(place: int) -> Any:
        def mechanism(x: float, rng: Rng) -> dict[str, Any]:
            noise = [float(one) for one in rng.laplace(size=4)]
            noise[place] += x
            return {"a": noise[0], "b": [noise[1], noise[2]], "c": (noise[3], "text", None)}

        return mechanism

    for place, name in ((0, 'output["a"]'), (2, 'output["b"][1]'), (3, 'output["c"][0]')):
        result = audited(leaks_in(place), samples=6_000)
        assert refuted(result)
        assert any(name in one for one in words(result)), words(result)


def many_coordinates(seed: int) -> SelectionDraws:
    """Return draws of which each coordinate gives the input away once in some sixty times."""
    rng = np.random.default_rng(seed)
    is_d1 = rng.random(8_000) < 0.5
    noise = rng.laplace(scale=16, size=(8_000, 20))
    return SelectionDraws(from_raw(noise + np.where(is_d1, 0.0, 1.0)[:, None]), is_d1)


def test_leaks_in_many_coordinates_add_up() -> None:
    found = next(one for one in bits(many_coordinates(1)) if one.scored is not None)
    assert found.attack == "low-order bits: sum over coordinates"
    fresh = many_coordinates(2)
    score = found.scored.freeze()(fresh.outcomes) if found.scored is not None else np.empty(0)
    assert fresh.is_d1[np.argsort(score)[-800:]].mean() > 0.99


def test_nothing_without_numbers() -> None:
    labels = SelectionDraws(from_raw(["a", "b"] * 50), np.arange(100) % 2 == 0)
    assert bits(labels) == []


def test_which_outcomes_have_fractions() -> None:
    assert has_fractions(from_raw([1.0, 2.5]))
    assert has_fractions(from_raw([[1, 2.0], [3, 0.1]]))
    assert not has_fractions(from_raw([1.0, 2.0, math.inf, math.nan]))
    assert not has_fractions(from_raw(["a", None, 7]))


def test_workers_and_files_change_nothing() -> None:
    alone, shared = (
        audited("mechanisms.floating_point:textbook_laplace", samples=4_000, workers=workers)
        for workers in (1, 2)
    )
    assert alone.certificates == shared.certificates
    assert from_json(to_json([alone]))[0] == alone


def test_an_exact_audit_draws_nothing_to_look_at() -> None:
    with pytest.raises(UsageError, match="floating_point needs draws, and exact makes no draws"):
        audited("mechanisms.randomized_response:randomized_response", exact=True)
