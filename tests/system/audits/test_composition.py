"""Several mechanisms as one, audited whole."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import dpaudit
from dpaudit.adapters.loading import load_mechanism
from dpaudit.auditing.engine import run_audit
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.target import CallableTarget, ComposedTarget, ImportedTarget
from tests.specs import audit_of

RESPONSE = ImportedTarget(path="mechanisms.randomized_response:randomized_response")


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def joined(*functions: Any) -> Any:
    return load_mechanism(
        ComposedTarget(parts=tuple(CallableTarget(function=one) for one in functions))
    )


def test_privacy_losses_add_up() -> None:
    """Two answers at ε = ln 3: 2 ln 3 together, attained, and refuted below."""
    target = ComposedTarget(parts=(RESPONSE, RESPONSE))

    def audit(epsilon: float) -> dpaudit.AuditResult:
        pair = NeighbouringPair(0, 1, None, "0 and 1")
        claim = dpaudit.PureDP(epsilon)
        return run_audit(
            audit_of(
                name="two",
                target=target,
                pairs=(pair,),
                claim=claim,
                samples=20_000,
                stop="never",
            )
        )

    assert audit(2 * math.log(3)).verdict is dpaudit.Verdict.NO_VIOLATION_FOUND
    refuted = audit(1.5 * math.log(3))
    assert refuted.verdict is dpaudit.Verdict.VIOLATION
    assert refuted.epsilon_lower > 1.8


def test_outputs_of_any_shape_are_entries() -> None:
    def histogram(dataset: int) -> dict[str, int]:
        return {"bread": dataset}

    drawn = joined(histogram, lambda x: [x, x], lambda x, size: np.full((size, 2), x)).sample(
        1, 2, rng()
    )
    assert [(one[0], one[1], one[2].tolist()) for one in drawn] == [
        ({"bread": 1}, [1, 1], [1, 1])
    ] * 2
    leaks = ComposedTarget(
        parts=(CallableTarget(function=lambda x: [0] * 3), CallableTarget(function=histogram))
    )
    pair = NeighbouringPair(0, 1, None, "0 and 1")
    spec = audit_of(name="it", target=leaks, pairs=(pair,), claim=dpaudit.PureDP(1), samples=5_000)
    result = run_audit(spec)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    assert 'output[1]["bread"]' in result.certificates[0].fixed.events[0].words
