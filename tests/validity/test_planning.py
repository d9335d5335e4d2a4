"""`dpaudit plan`: what it promises, audits keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.planning import plan
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.composed import replace
from dpaudit.config.building import build_spec

from .deciding import interval

Interval = Callable[[int, int], tuple[float, float]]

FACTOR, POWER, RUNS = 1.1, 0.9, 20


def spec_of(mechanism: str, params: dict[str, float], **claim: float) -> AuditSpec:
    settings: dict[str, Any] = {"mechanism": mechanism, "params": params, "claim": claim}
    # What is found is not traced, which a plan says nothing of.
    return replace(build_spec({**settings, "d1": 0, "d2": 1}), workers=1, no_trace=True)


def audited(spec: AuditSpec, samples: int, seed: int) -> AuditResult:
    return run_audit(replace(spec, samples=samples, seed=seed, require_power=FACTOR))


@pytest.fixture(scope="module")
def leaking() -> tuple[AuditSpec, int]:
    """A mechanism that leaks 1.1 times its claim, and the draws planned for it."""
    spec = spec_of("mechanisms.laplace:laplace", {"epsilon": FACTOR}, epsilon=1.0)
    samples = plan(spec, FACTOR, POWER, run_audit).samples
    assert samples is not None
    return spec, samples


def reaches_power(spec: AuditSpec, samples: int) -> bool:
    """Return whether the interval of the power, of `RUNS` audits, is not below `POWER`. Audits end
    once the others cannot change this. The interval of any count is not above `POWER`."""
    assert interval(RUNS, RUNS)[0] <= POWER
    least = next(count for count in range(RUNS + 1) if interval(count, RUNS)[1] >= POWER)
    refuted = 0
    for seed in range(RUNS):
        refuted += audited(spec, samples, seed).verdict is Verdict.VIOLATION
        if refuted >= least or refuted + RUNS - 1 - seed < least:
            break
    return refuted >= least


def test_a_leak_of_the_size_planned_for_is_caught_as_often_as_promised(
    leaking: tuple[AuditSpec, int], count_comparison: Callable[[], None]
) -> None:
    count_comparison()
    assert reaches_power(*leaking)


def test_with_a_quarter_of_the_draws_it_is_not(
    leaking: tuple[AuditSpec, int], count_comparison: Callable[[], None]
) -> None:
    spec, samples = leaking
    count_comparison()
    assert not reaches_power(spec, samples // 4)


def test_the_audit_has_the_power_that_is_required_of_it(share: Interval) -> None:
    """Of nine audits alike, eight of them trials, it is one of the two that need most with 2/9."""
    spec = spec_of("mechanisms.randomized_response:randomized_response", {}, epsilon=1.0987)
    samples = plan(spec, FACTOR, POWER, run_audit).samples
    assert samples is not None
    enough = [audited(spec, samples, seed).underpowered is None for seed in range(15)]
    assert share(sum(enough), 15)[1] >= 7 / 9
    fewer = [audited(spec, samples // 2, seed).underpowered is None for seed in range(12)]
    assert share(sum(fewer), 12)[1] < 7 / 9
