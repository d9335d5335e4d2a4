"""Fixtures of rooms whose tests audit: violations start no new processes unless a test asks."""

from __future__ import annotations

import math

import pytest

_MODULE = "dpaudit.sampling.executors.new_processes"


@pytest.fixture(autouse=True)
def no_new_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare no violation with draws of new processes, unless a test uses `new_processes`: they
    take as long to start as ten audits."""
    if "new_processes" not in request.fixturenames:
        monkeypatch.setattr(f"{_MODULE}.PROCESSES", 0)


@pytest.fixture
def new_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare violations with draws of new processes, also on a busy machine."""
    monkeypatch.setattr(f"{_MODULE}.DRAWING_SECONDS", 60.0)
    monkeypatch.setattr(f"{_MODULE}.SLOW_IMPORT", math.inf)
