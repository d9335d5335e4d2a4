"""Elapsed time as part of the outcome, audited whole."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import dpaudit
from dpaudit.adapters.loading import load_mechanism, timed_calls
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.targets.target import CallableTarget, IsolatedTarget, repeated
from tests.raising import code

Rng = np.random.Generator


def wait(microseconds: float) -> None:
    end = time.perf_counter_ns() + int(microseconds * 1_000)
    while time.perf_counter_ns() < end:
        pass


def slower(x: int, rng: Rng) -> float:
    wait(400 if x else 20)
    return float(rng.normal())


def equal(x: int, rng: Rng) -> float:
    wait(20)
    return float(rng.normal())


def audited(mechanism: Any, **options: Any) -> AuditResult:
    given = {"samples": 2_000, "timing": True, **options}
    return dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(1.0), **given)


def test_a_longer_call_is_caught_and_explained() -> None:
    result = audited(slower)
    assert result.verdict is Verdict.VIOLATION
    events = [event.words for event in result.certificates[0].fixed.events]
    assert any("elapsed time" in one and "µs" in one for one in events), events
    assert any("no seed " in one for one in result.certificates[0].warnings)


def test_equal_calls_stay_unrefuted() -> None:
    assert audited(equal).verdict is Verdict.NO_VIOLATION_FOUND


def test_without_timing_nobody_looks_at_the_clock() -> None:
    result = audited(slower, timing=False, samples=1_000)
    assert result.verdict is Verdict.NO_VIOLATION_FOUND
    assert result.certificates[0].warnings == ()


def test_time_does_not_make_equal_outputs_different() -> None:
    """Single outputs, a declared range and the check of the seed look at the outputs alone."""

    def coin(x: int, rng: Rng) -> int:
        return int(rng.random() < 0.5)

    result = audited(coin, range=[0, 1], samples=4_000)
    certificate = result.certificates[0]
    assert certificate.reproducible
    assert certificate.interval is not None
    assert certificate.interval.upper < 1


def test_several_workers_and_bits_beside_time() -> None:
    path = "mechanisms.laplace:laplace_scalar"
    result = audited(path, samples=4_000, workers=2, floating_point=True, stop="never")
    assert result.error is None
    assert result.draws == 4_000
    tried = {one.attack.partition(":")[0] for one in result.certificates[0].attacks}
    assert {"time", "low-order bits"} <= tried


def many(x: int, size: int, rng: Rng) -> Any:
    return rng.normal(size=size)


def test_what_cannot_be_timed_is_refused() -> None:
    for target in (
        repeated(CallableTarget(function=many), 2),
        IsolatedTarget(target=CallableTarget(function=equal)),
    ):
        assert code(timed_calls, load_mechanism(target)) == "timing-impossible"
    assert code(audited, many) == "timing-impossible"
    path = "mechanisms.randomized_response:randomized_response"
    assert code(audited, path, exact=True) == "options-conflict"
    assert audited("mechanisms.laplace:laplace_scalar", samples=1_000).error is None
