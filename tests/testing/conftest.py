"""What tests of the assertions are spared."""

from __future__ import annotations

import pytest

from dpaudit.auditing import engine
from tests.comparing import new_processes as new_processes
from tests.comparing import no_new_processes as no_new_processes


@pytest.fixture(autouse=True)
def no_traces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Violations have no trace, but where a test asks for `traces`: no assertion depends on it, and
    a fork of a process as large as this one costs more than most audits here."""
    if "traces" not in request.fixturenames:
        monkeypatch.setattr(engine, "_traced", lambda spec, result: result)


@pytest.fixture
def traces() -> None:
    """Results are to be whole."""
