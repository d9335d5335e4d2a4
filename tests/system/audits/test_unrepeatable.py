"""Mechanisms whose draws no seed controls: their notes and their journals."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpaudit import AuditResult, PureDP
from dpaudit.auditing.engine import run_audit
from dpaudit.auditing.spec import AuditSpec
from dpaudit.certificates.result import Progress, Verdict
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.reports.text import render
from dpaudit.targets.target import CallableTarget
from dpaudit.wording import UNSEEDED
from tests.specs import audit_of, replace


class Cut(BaseException):
    """Stands for whatever ends a run."""


class Counter:
    """Keeps a state between calls."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, x: float, rng: np.random.Generator) -> float:
        self.calls += 1
        return float(x + rng.laplace()) + 1e-9 * self.calls


def from_the_system(x: int) -> int:
    return x ^ (os.urandom(1)[0] < 100)


def seeded(x: float, rng: np.random.Generator) -> float:
    return float(x + rng.laplace())


def spec_of(function: Callable[..., Any], **more: Any) -> AuditSpec:
    return audit_of(
        name=more.pop("name", "audit"),
        target=CallableTarget(function=function),
        pairs=(NeighbouringPair(0, 1, None, "0, 1"),),
        claim=PureDP(1.0),
        samples=6_000,
        **more,
    )


def cut_after(spec: AuditSpec, blocks: int) -> AuditResult:
    def count(progress: Progress) -> None:
        nonlocal blocks
        blocks -= 1
        if blocks < 0:
            raise Cut

    return run_audit(spec, count)


def test_draws_that_no_seed_decides_have_a_note_and_no_warning() -> None:
    result = run_audit(spec_of(from_the_system))
    (certificate,) = result.certificates
    assert not certificate.reproducible
    assert certificate.warnings == ()
    assert certificate.notes == (UNSEEDED,)


def test_state_that_was_seen_is_a_warning() -> None:
    (certificate,) = run_audit(spec_of(Counter())).certificates
    assert not certificate.reproducible
    (warning,) = certificate.warnings
    assert "calls changed Counter.calls" in warning
    assert UNSEEDED not in certificate.notes


@pytest.mark.usefixtures("traces")
def test_a_violation_by_draws_that_no_seed_decides_is_not_put_down_to_state() -> None:
    result = run_audit(replace(spec_of(from_the_system), claim=PureDP(0.1)))
    assert result.verdict is Verdict.VIOLATION
    assert result.trace is not None
    assert result.trace.likely is None
    assert "keeps state" not in render(result)


def test_draws_that_a_seed_decides_are_not_warned_about() -> None:
    (certificate,) = run_audit(spec_of(seeded)).certificates
    assert certificate.reproducible
    assert certificate.warnings == ()


def test_they_are_continued_with_new_draws_and_the_result_says_so(tmp_path: Path) -> None:
    spec = spec_of(from_the_system, journal=tmp_path, resume=True)
    with pytest.raises(Cut):
        cut_after(spec, 3)
    (warning,) = run_audit(spec).warnings
    assert "with other draws" in warning
    assert run_audit(spec).warnings == (warning,)  # read again, without a draw


def test_neither_an_undisturbed_run_nor_one_that_repeats_itself_says_so(tmp_path: Path) -> None:
    spec = spec_of(from_the_system, journal=tmp_path, resume=True)
    assert run_audit(spec).warnings == run_audit(spec).warnings == ()
    repeats = replace(spec_of(seeded, name="seeded"), journal=tmp_path, resume=True)
    with pytest.raises(Cut):
        cut_after(repeats, 3)
    assert run_audit(repeats).warnings == ()
