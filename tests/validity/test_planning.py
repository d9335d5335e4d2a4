"""`dpaudit plan`: what it promises, audits keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.planning import draws_for_leak, trial_of
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.config.building import build_spec
from tests.specs import replace

IsBelow = Callable[[Iterable[bool], int, float], bool]

FACTOR, POWER, RUNS = 1.1, 0.9, 40


def spec_of(mechanism: str, params: dict[str, float], **claim: float) -> AuditSpec:
    settings: dict[str, Any] = {"mechanism": mechanism, "params": params, "claim": claim}
    # What is found is not traced, which a plan says nothing of.
    return replace(build_spec({**settings, "d1": 0, "d2": 1}), workers=1, no_trace=True)


def planned(spec: AuditSpec) -> int:
    return draws_for_leak(run_audit(trial_of(spec)).certificates, FACTOR, POWER)


def audited(spec: AuditSpec, samples: int, seed: int) -> AuditResult:
    return run_audit(replace(spec, samples=samples, seed=seed, require_power=FACTOR))


@pytest.fixture(scope="module")
def leaking() -> tuple[AuditSpec, int]:
    """A mechanism that leaks 1.1 times its claim, and the draws planned for it."""
    spec = spec_of("mechanisms.laplace:laplace", {"epsilon": FACTOR}, epsilon=1.0)
    return spec, planned(spec)


def refutations(spec: AuditSpec, samples: int) -> Iterator[bool]:
    return (audited(spec, samples, seed).verdict is Verdict.VIOLATION for seed in range(RUNS))


def test_a_leak_of_the_size_planned_for_is_caught_as_often_as_promised(
    leaking: tuple[AuditSpec, int], is_below: IsBelow
) -> None:
    assert not is_below(refutations(*leaking), RUNS, POWER)


def test_with_a_quarter_of_the_draws_it_is_not(
    leaking: tuple[AuditSpec, int], is_below: IsBelow
) -> None:
    spec, samples = leaking
    assert is_below(refutations(spec, samples // 4), RUNS, POWER)


def test_the_audit_has_the_power_that_is_required_of_it(is_below: IsBelow) -> None:
    spec = spec_of("mechanisms.randomized_response:randomized_response", {}, epsilon=1.0987)
    samples = planned(spec)
    enough = (audited(spec, samples, seed).underpowered is None for seed in range(15))
    assert not is_below(enough, 15, POWER)
    fewer = (audited(spec, samples // 4, seed).underpowered is None for seed in range(12))
    assert is_below(fewer, 12, POWER)
