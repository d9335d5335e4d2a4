"""After a violation: the line that raised is the cause, with a trace or without, and what may be a
stored value is none."""

from __future__ import annotations

import functools
import inspect
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
    monkeypatch.chdir(Path(__file__).parent)


def refuted(function: Any, d1: Any, d2: Any) -> AuditResult:
    found = dpaudit.audit(function, d1, d2, dpaudit.PureDP(1.0), samples=2_000)
    assert found.verdict is dpaudit.Verdict.VIOLATION
    return found


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
    (found,) = (number for number, line in enumerate(lines, start) if text in line)
    return found


@pytest.mark.parametrize(("function", "text"), [(refuses, "raise "), (averages, "mean(")])
@pytest.mark.parametrize("which", ["d1", "d2"])
def test_the_line_that_raised_is_the_cause(function: Any, text: str, which: str) -> None:
    found = refuted(function, *([], [1]) if which == "d1" else ([1], []))
    place = f"test_after.py:{line_of(function, text)}"
    assert github.place(found) == place
    words = " ".join(" ".join(laid_out(trace_report.rows(found))).split())
    assert f"likely {place}:" in words
    assert f"is raised for {which} alone: " in words
    # Of runs there were none to show.
    assert trace_report.details(found) == []


@pytest.mark.parametrize("function", [refuses_by_noise, bare])
def test_what_both_raise_or_none_is_no_cause(function: Any) -> None:
    found = refuted(function, [], [1])
    assert found.trace is not None
    assert found.trace.likely is None
    # Of a time of 0 s, the report says that it was over.
    assert found.trace.cut is not None


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
    found = refuted(function, [1], [1, 2])
    assert found.trace is not None
    assert found.trace.likely is None
    words = " ".join(" ".join(laid_out(trace_report.rows(found))).split())
    assert words.startswith("cause none: the mechanism keeps state between calls, such as a cache")
    assert github.place(found) == found.source
    assert trace_report.briefly(found) == ""


def test_a_bare_value_is_a_cause_where_no_state_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forked_trace, "TRACE_SECONDS", 60.0)
    found = refuted(bare, [1], [1, 2]).trace
    assert found is not None
    assert [one.kind for one in found.causes] == ["no-noise"]
