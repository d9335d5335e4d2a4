"""After a violation: the line that raised is the cause, and a value that may be stored is none."""

from __future__ import annotations

import functools
import inspect
import math
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpaudit
from dpaudit.certificates.result import AuditResult
from dpaudit.reports import github, trace_report
from dpaudit.reports.layout import laid_out
from dpaudit.tracing import forked_trace


@pytest.fixture(autouse=True)
def _without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a mechanism that is too slow for one."""
    monkeypatch.setattr(forked_trace, "TRACE_SECONDS", 0.0)
    # After few draws, a busy machine makes any mechanism a slow one, which gets more time.
    monkeypatch.setattr(forked_trace, "_SLOW_SECONDS", math.inf)
    monkeypatch.chdir(Path(__file__).parent)


def refuted(function: Any, d1: Any, d2: Any) -> AuditResult:
    result = dpaudit.audit(function, d1, d2, dpaudit.PureDP(1.0), samples=2_000)
    assert result.verdict is dpaudit.Verdict.VIOLATION
    return result


def refuses(rows: Any, rng: Any) -> Any:
    if not rows:
        raise ValueError("no rows")
    return len(rows) + rng.laplace()


def averages(rows: Any, rng: Any) -> Any:
    return rng.laplace() + 0 * statistics.mean(rows)


def refuses_by_noise(rows: Any, rng: Any) -> Any:
    noisy = 3 * len(rows) + rng.laplace()
    if noisy < 1:
        raise ValueError("too few")
    return noisy


def bare(rows: Any) -> Any:
    return len(rows)


def line_of(function: Any, text: str) -> int:
    lines, start = inspect.getsourcelines(function)
    (number,) = (number for number, line in enumerate(lines, start) if text in line)
    return number


@pytest.mark.parametrize(
    ("function", "text", "which"), [(refuses, "raise ", "d1"), (averages, "mean(", "d2")]
)
def test_the_line_that_raised_is_the_cause(function: Any, text: str, which: str) -> None:
    result = refuted(function, *([], [1]) if which == "d1" else ([1], []))
    assert github.place(result) == f"test_after.py:{line_of(function, text)}"
    words = " ".join(" ".join(laid_out(trace_report.rows(result))).split())
    assert f"is raised for {which} alone: " in words


@pytest.mark.parametrize("function", [refuses_by_noise, bare])
def test_what_both_raise_or_none_is_no_cause(function: Any) -> None:
    trace = refuted(function, [], [1]).trace
    assert trace is not None
    assert trace.likely is None
    assert trace.cut is not None


@functools.cache
def stored(count: int) -> float:
    return count + float(np.random.default_rng().laplace())


def of_a_cache(rows: Any) -> Any:
    return stored(len(rows))


_RELEASED: dict[int, float] = {}


def of_a_dictionary(rows: Any, rng: Any) -> Any:
    if len(rows) not in _RELEASED:
        _RELEASED[len(rows)] = len(rows) + rng.laplace()
    return _RELEASED[len(rows)]


@pytest.mark.parametrize("function", [of_a_cache, of_a_dictionary])
@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_what_may_be_a_stored_value_is_no_cause(
    function: Any, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forked_trace, "TRACE_SECONDS", seconds)
    stored.cache_clear()
    _RELEASED.clear()
    result = refuted(function, [1], [1, 2])
    assert result.trace is not None
    assert result.trace.likely is None
    assert github.place(result) == result.source
    assert trace_report.briefly(result) == ""


def test_a_bare_value_is_a_cause_where_no_state_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_trace, "TRACE_SECONDS", 60.0)
    trace = refuted(bare, [1], [1, 2]).trace
    assert trace is not None
    assert [cause.kind for cause in trace.causes] == ["no-noise"]
