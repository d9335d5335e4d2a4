"""Traces in a copy of the process: in time, without a change here, whatever the mechanism does."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import PureDP
from dpaudit.targets.target import AnyTarget, CallableTarget, CommandTarget
from dpaudit.tracing import forked_trace
from dpaudit.tracing.forked_trace import trace_apart
from tests import sent

Rng = np.random.Generator
calls: list[int] = []


def half(rows: Sequence[int], rng: Rng) -> float:
    calls.append(os.getpid())
    return len(rows) + rng.laplace(scale=0.5)


def traced(function: Any, **options: Any) -> Any:
    target: AnyTarget = CallableTarget(function=function)
    return trace_apart(target, [1, 2], [1], PureDP(1.0), **{"pace": 0.0, **options})


def test_the_trace_comes_back_and_neither_a_change_nor_a_copy_stays_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copies: list[int] = []
    fork = os.fork

    def recorded() -> int:
        copies.append(fork())
        return copies[-1]

    monkeypatch.setattr(os, "fork", recorded)
    calls.clear()
    trace = traced(half)
    assert trace.causes[0].kind == "too-little-noise"
    assert trace.cut is None
    assert not calls
    (copy,) = copies
    with pytest.raises(ChildProcessError):
        os.waitpid(copy, os.WNOHANG)


def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_trace, "TRACE_SECONDS", 0.5)

    def slow(rows: Sequence[int], rng: Rng) -> float:
        time.sleep(60)
        return half(rows, rng)

    began = time.monotonic()
    trace = traced(slow)
    assert trace.likely is None
    assert trace.cut is not None
    assert time.monotonic() - began < 20


def test_what_is_known_to_be_slow_is_not_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a copy was made"))
    trace = traced(half, pace=2.0)
    assert trace.likely is None
    assert trace.cut is not None


def test_of_a_mechanism_that_ends_its_process_shows_nothing_or_cannot_be_traced_is_none() -> None:
    assert traced(lambda rows: os._exit(0)) is None
    assert traced(lambda rows: os.kill(os.getpid(), 9)) is None
    assert traced(lambda rows: 3) is None
    assert trace_apart(CommandTarget(words=("./p",)), 0, 1, PureDP(1.0), pace=0.0) is None


def test_elsewhere_a_new_interpreter_makes_the_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    target = CallableTarget(function=sent.single)
    here = trace_apart(target, 0, 3, PureDP(0.1), pace=0.0)
    monkeypatch.setattr(sys, "platform", "darwin")
    elsewhere = trace_apart(target, 0, 3, PureDP(0.1), pace=0.0)
    assert here is not None
    assert elsewhere is not None
    assert elsewhere.findings == here.findings
    monkeypatch.setattr(os, "fork", lambda: pytest.fail("a copy was made"))
    assert traced(lambda rows, rng: half(rows, rng)) is None  # cannot be sent


def test_an_audit_has_the_trace_of_the_pair_that_refutes_it() -> None:
    result = dpaudit.audit(half, [1, 2], [1], PureDP(1.0), samples=5_000)
    assert result.trace is not None
    assert result.trace.pair == result.certificates[0].pair
    assert dpaudit.audit(half, [1, 2], [1], PureDP(3.0), samples=5_000).trace is None
    without = dpaudit.audit(half, [1, 2], [1], PureDP(1.0), samples=5_000, no_trace=True)
    assert without.trace is None
    assert without.certificates == result.certificates
