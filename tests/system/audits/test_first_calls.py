"""Whole audits of mechanisms whose first calls are not like the others."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit import PureDP, Verdict
from dpaudit.auditing import pace
from dpaudit.auditing.schedule import SLOW_DRAW


def test_an_audit_of_long_outputs_ends_after_the_first_one() -> None:
    calls: list[int] = []

    def long(dataset: int) -> list[int]:
        calls.append(dataset)
        return [dataset] * 1_000_000

    result = dpaudit.audit(long, 0, 1, PureDP(1.0))
    assert result.verdict is Verdict.ERROR
    assert "too long (a list of 1,000,000)" in str(result.error)
    assert calls == [0]


class Slow:
    """A clock, and a mechanism that advances it."""

    def __init__(self, seconds: float) -> None:
        self.now, self.seconds = 0.0, seconds

    def clock(self) -> float:
        return self.now

    def draw(self, dataset: float) -> float:
        self.now += self.seconds
        return dataset + float(np.random.laplace())


def audited(monkeypatch: pytest.MonkeyPatch, seconds: float, **more: Any) -> dpaudit.AuditResult:
    slow = Slow(seconds)
    monkeypatch.setattr("time.perf_counter", slow.clock)
    return dpaudit.audit(slow.draw, 0.0, 0.1, PureDP(1.0), time=30.0, **more)


def test_time_that_is_not_enough_is_told_before_it_is_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[float] = []
    slow = Slow(1 / 14)
    monkeypatch.setattr("time.perf_counter", slow.clock)
    monkeypatch.setattr(pace, "SLOW_DRAW", SLOW_DRAW)

    def handled(record: logging.LogRecord) -> bool:
        told.append(slow.now)
        return True

    monkeypatch.setattr(caplog.handler, "filter", handled)
    result = dpaudit.audit(slow.draw, 0.0, 0.1, PureDP(1.0), time=3.0)
    (one,) = result.certificates
    assert (one.draws, one.fixed.draws) == (101, 75)
    (notice,) = result.warnings
    assert "at 14 draws per second" in notice
    assert caplog.messages == [f"{result.name}: {notice}"]
    # After the first four calls, and it was so: within a tenth.
    assert max(told) < 1
    foreseen = float(notice.rpartition("about ")[2].removesuffix(" s"))
    assert abs(foreseen - slow.now) < 0.1 * slow.now


def test_time_that_is_enough_is_not_spoken_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    result = audited(monkeypatch, 1 / 1_000)
    assert result.warnings == ()
    assert not caplog.messages
