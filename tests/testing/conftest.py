"""What tests of the assertions are spared."""

from __future__ import annotations

import pytest

from dpaudit.auditing import engine


@pytest.fixture(autouse=True)
def no_traces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Violations have no trace, but where a test asks for `traces`: no assertion depends on it, and
    a fork of a process as large as this one costs more than most audits here."""
    if "traces" not in request.fixturenames:
        monkeypatch.setattr(engine, "_traced", lambda spec, result: result)


@pytest.fixture
def traces() -> None:
    """Results are to be whole."""


@pytest.fixture(autouse=True)
def no_new_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Violations are not compared with draws of new processes, but where a test asks for it: they
    take as long to start as ten audits."""
    if "new_processes" not in request.fixturenames:
        monkeypatch.setattr("dpaudit.sampling.executors.new_processes.PROCESSES", 0)


@pytest.fixture
def new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Violations are to be compared with draws of new processes, also on a busy machine."""
    monkeypatch.setattr("dpaudit.sampling.executors.new_processes.SECONDS", 60.0)
