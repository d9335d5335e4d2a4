"""Whole audits of draws that depend on each other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import ProfilePoint, PureDP
from dpaudit.draws import SelectionDraws
from dpaudit.errors import MechanismError
from dpaudit.outcomes import from_raw
from dpaudit.sampling.independence import check_independence
from mechanisms import dependence, laplace, randomized_response

POINT = ProfilePoint(1.0, 0.0)
BLOCKS = [100, 125, 156, 195, 244, 305]
SIZE = sum(BLOCKS)


def audited(mechanism: Any, **more: Any) -> AuditResult:
    given = {"samples": 50_000, **more}
    return dpaudit.audit(mechanism, 0.0, 1.0, PureDP(1.0), **given)


def warned(result: AuditResult) -> str:
    return " ".join(text for one in result.certificates for text in one.warnings)


def drawn(values: Any, is_d1: Any = None, seed: int = 0) -> SelectionDraws:
    outcomes = from_raw(values)
    tossed = np.random.default_rng(seed).random(outcomes.size) < 0.5
    return SelectionDraws(outcomes, tossed if is_d1 is None else is_d1)


@pytest.mark.parametrize(
    ("specimen", "message"),
    [
        (dependence.fixed_seed, "block 2 .*block 1"),
        (dependence.restarted, "block 2 .*block 1"),
        (dependence.cached, "functools.cache"),
        (dependence.depleted, " 701 before them"),
    ],
)
def test_what_cannot_be_is_an_error(specimen: Any, message: str) -> None:
    result = audited(specimen)
    assert (result.verdict, result.error_code) == (Verdict.ERROR, "draws-repeat")
    assert re.search(message, str(result.error))


@pytest.mark.parametrize(
    ("specimen", "message"),
    [
        (dependence.counted, "(output: Ljung–Box p"),
        (dependence.computed_once, "a stored result (a cache)"),
    ],
)
def test_what_is_unlikely_is_a_warning(specimen: Any, message: str) -> None:
    assert message in warned(audited(specimen))


def test_a_generator_that_every_worker_has_a_copy_of() -> None:
    """One process draws on; of two, the second repeats what the first one drew."""
    assert audited(dependence.copied).verdict is Verdict.NO_VIOLATION_FOUND
    noise = np.random.default_rng(1).laplace(size=SIZE)
    coins = np.random.default_rng(2).random(2 * SIZE) < 0.5
    values = np.where(coins, 0, 1) + np.concatenate([noise, noise])
    with pytest.raises(MechanismError, match=r"block 7 .*block 1"):
        check_independence(drawn(values, coins), [*BLOCKS, *BLOCKS], POINT)
    with pytest.raises(MechanismError, match=f"repeat those {SIZE:,} before them"):
        check_independence(drawn(values, coins), [2 * SIZE], POINT)


@pytest.mark.parametrize(
    "mechanism",
    [
        laplace.laplace,
        laplace.laplace_scalar,
        laplace.wrong_density,
        randomized_response.randomized_response,
    ],
)
def test_correct_and_broken_mechanisms_are_not_warned_about(mechanism: Any) -> None:
    result = audited(mechanism)
    assert result.verdict is not Verdict.ERROR
    assert warned(result) == ""
