"""Low-order bits of floats, audited whole: what is caught, and what is not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult, Verdict
from mechanisms import scipy_noise
from mechanisms.floating_point import (
    grid_rounded_laplace,
    noise_rounded_laplace,
    textbook_laplace,
)
from tests.result_files import from_json, to_json

Rng = np.random.Generator


def audited(mechanism: Any, d1: Any = 0.0, d2: Any = 1.0, **options: Any) -> AuditResult:
    given = {"samples": 50_000, "floating_point": True, **options}
    return dpaudit.audit(mechanism, d1, d2, dpaudit.PureDP(1.0), **given)


def words(result: AuditResult) -> list[str]:
    return [event.words for event in result.certificates[0].fixed.events]


def refuted(result: AuditResult) -> bool:
    return result.verdict is Verdict.VIOLATION


def test_over_the_reals_it_stays_unrefuted_and_the_report_says_what_was_not_seen() -> None:
    result = audited(textbook_laplace, floating_point=False)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    bits, times = result.certificates[0].ignored
    assert ("(--floating-point)" in bits, "(--timing)" in times) == (True, True)
    (times,) = audited(grid_rounded_laplace).certificates[0].ignored
    assert "(--timing)" in times


@pytest.mark.parametrize(
    ("mechanism", "d1", "d2"),
    [
        (grid_rounded_laplace, 0.0, 1.0),
        (scipy_noise.discrete_laplace_mech, [3, 1, 0], [2, 1, 0]),
    ],
)
def test_noise_without_low_order_bits_stays_unrefuted(mechanism: Any, d1: Any, d2: Any) -> None:
    result = audited(mechanism, d1, d2, samples=300_000, stop="never")
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert 0.9 < result.epsilon_lower <= 1


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
        result = audited(leaks_in(place), samples=3_000)
        assert refuted(result)
        assert any(name in one for one in words(result)), words(result)


def test_workers_and_files_change_nothing() -> None:
    alone, shared = (
        audited("mechanisms.floating_point:textbook_laplace", samples=4_000, workers=workers)
        for workers in (1, 2)
    )
    assert alone.certificates == shared.certificates
    assert from_json(to_json([alone]))[0] == alone
