"""Seeds and tuples as parameters of mechanisms, in whole audits and traces."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.targets.target import CallableTarget, IsolatedTarget
from dpaudit.tracing.mechanism_trace import trace_pair


def noisy(x: float, seed: int | None = None) -> float:
    return x + float(np.random.default_rng(seed).laplace())


def batches(x: float, size: int, seed: int) -> Any:
    return x + np.random.default_rng(seed).laplace(size=size)


def fixed(x: float, seed: int = 0) -> float:
    return x + float(np.random.default_rng(seed).laplace())


@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("mechanism", [noisy, batches])
def test_a_seed_of_the_audit_gives_the_seeds_of_the_mechanism(
    mechanism: Any, isolate: bool
) -> None:
    options: dict[str, Any] = {"samples": 3_000, "isolate": isolate, "no_trace": True}
    first = dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(1), workers=1, **options)
    assert (first.error, first.refuted, first.certificates[0].reproducible) == (None, False, True)
    again = dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(1), workers=2, **options)
    assert again.certificates == first.certificates
    refuted = dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(0.3), workers=1, **options)
    assert refuted.refuted


def fixed_batches(x: float, size: int, seed: int = 0) -> Any:
    return x + np.random.default_rng(seed).laplace(size=size)


# The planted twin of batches: the draws of all calls are equal, so that no bound would hold.
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("params", [{}, {"seed": 3}])
def test_one_seed_for_all_calls_is_an_error(params: dict[str, int], isolate: bool) -> None:
    mechanism = batches if params else fixed_batches
    options: dict[str, Any] = {"params": params, "isolate": isolate, "samples": 50_000}
    result = dpaudit.audit(mechanism, 0, 1, dpaudit.PureDP(1), **options)
    assert (result.error_code, result.refuted) == ("draws-repeat", False)


# The planted twins: one seed for all draws, so that each input has one output.
@pytest.mark.parametrize("isolate", [False, True])
@pytest.mark.parametrize("mechanism", [fixed, noisy])
def test_a_fixed_seed_is_still_found(mechanism: Any, isolate: bool) -> None:
    params = {} if mechanism is fixed else {"seed": 3}
    result = dpaudit.audit(
        mechanism, 0, 1, dpaudit.PureDP(5), samples=3_000, isolate=isolate, params=params
    )
    assert result.refuted
    trace = dpaudit.trace(mechanism, 0, 1, dpaudit.PureDP(5), params=params)
    assert [cause.kind for cause in trace.causes] == ["constant-seed"]


def test_a_trace_sees_the_noise_of_a_seed_of_the_audit() -> None:
    trace = dpaudit.trace(noisy, 0, 1, dpaudit.PureDP(0.5))
    assert [(cause.kind, cause.cost) for cause in trace.causes] == [("too-little-noise", 1.0)]
    assert trace.sites[0].cost == 1.0
    isolated = IsolatedTarget(target=CallableTarget(function=noisy))
    assert trace_pair(isolated, 0, 1, dpaudit.PureDP(0.5)).sites == trace.sites
