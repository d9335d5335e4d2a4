"""Whole audits of draws that depend on each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import ProfilePoint, PureDP
from dpaudit.draws import SelectionDraws
from dpaudit.outcomes import from_raw
from dpaudit.sampling.independence import check_independence
from mechanisms import dependence, laplace, randomized_response
from tests.raising import code

POINT = ProfilePoint(1.0, 0.0)
BLOCKS = [100, 125, 156, 195, 244, 305]
SIZE = sum(BLOCKS)


def audited(mechanism: Any, **more: Any) -> AuditResult:
    given = {"samples": 50_000, **more}
    return dpaudit.audit(mechanism, 0.0, 1.0, PureDP(1.0), **given)


def warned(result: AuditResult) -> str:
    return " ".join(text for one in result.certificates for text in one.warnings)


@pytest.mark.parametrize(
    "specimen",
    [dependence.fixed_seed, dependence.restarted, dependence.cached, dependence.depleted],
)
def test_what_cannot_be_is_an_error(specimen: Any) -> None:
    result = audited(specimen)
    assert (result.verdict, result.error_code) == (Verdict.ERROR, "draws-repeat")


@pytest.mark.parametrize("specimen", [dependence.counted, dependence.computed_once])
def test_what_is_unlikely_is_a_warning(specimen: Any) -> None:
    assert warned(audited(specimen)) != ""


def test_a_generator_that_every_worker_has_a_copy_of() -> None:
    """One process draws on; of two, the second repeats what the first one drew."""
    assert audited(dependence.copied).verdict is Verdict.NO_VIOLATION_FOUND
    noise = np.random.default_rng(1).laplace(size=SIZE)
    coins = np.random.default_rng(2).random(2 * SIZE) < 0.5
    values = np.where(coins, 0, 1) + np.concatenate([noise, noise])
    draws = SelectionDraws(from_raw(values), coins)
    for blocks in ([*BLOCKS, *BLOCKS], [2 * SIZE]):
        assert code(check_independence, draws, blocks, POINT) == "draws-repeat"


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
