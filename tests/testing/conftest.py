"""Audits here start no new processes, and violations have no trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpaudit.testing import session
from tests.comparing import new_processes as new_processes
from tests.comparing import no_new_processes as no_new_processes
from tests.whole_audits import no_traces as no_traces
from tests.whole_audits import traces as traces


@pytest.fixture(autouse=True)
def outside_of_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As from a script: without the settings and the name of the test that is running."""
    monkeypatch.setattr(session, "_current", [])
    monkeypatch.chdir(tmp_path)
