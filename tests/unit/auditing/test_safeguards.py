"""Safeguards say something about a certificate, and change no number in it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.auditing import pair_audit
from dpaudit.auditing.safeguards import safeguards
from dpaudit.certificates.certificate import Certificate
from tests.specs import replace


def laplace(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=size)


def constant(x: float, size: int, rng: np.random.Generator) -> Any:
    return np.zeros(size)


def shared(x: float, size: int, rng: np.random.Generator) -> Any:
    return x + rng.laplace(size=size) + 20 * rng.laplace()


def certified(mechanism: Any, epsilon: float) -> Certificate:
    (certificate,) = dpaudit.audit(
        mechanism, 0.0, 1.0, dpaudit.PureDP(epsilon), samples=20_000, no_trace=True
    ).certificates
    assert isinstance(certificate, Certificate)
    return certificate


@pytest.mark.parametrize(("mechanism", "epsilon"), [(laplace, 0.3), (constant, 1.0)])
def test_a_judged_certificate_has_the_same_numbers(
    mechanism: Any, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = certified(mechanism, epsilon)
    monkeypatch.setattr(pair_audit, "safeguards", lambda source, ledger: ())
    plain = certified(mechanism, epsilon)
    assert plain.warnings == ()
    said = {"warnings": (), "notes": (), "ignored": (), "adjacency": None}
    assert replace(judged, **said) == replace(plain, **said)


def test_a_safeguard_that_is_left_out_catches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant has a warning, and noise that a call shares is an error, from one safeguard."""
    assert certified(constant, 1.0).warnings != ()
    result = dpaudit.audit(shared, 0.0, 1.0, dpaudit.PureDP(1.0), samples=20_000, no_trace=True)
    assert result.error_code is not None

    def without(source: Any, ledger: Any) -> Any:
        left_out = ("Constants", "RepeatedDraws", "SharedNoise")
        return [
            guard for guard in safeguards(source, ledger) if type(guard).__name__ not in left_out
        ]

    monkeypatch.setattr(pair_audit, "safeguards", without)
    assert certified(constant, 1.0).warnings == ()
    certified(shared, 1.0)
