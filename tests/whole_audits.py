"""Fixtures that make whole audits faster, for the folders system/audits/ and validity/."""

from __future__ import annotations

from functools import lru_cache

import pytest

from dpaudit.auditing import engine
from dpaudit.stats import game, power
from tests.comparing import new_processes as new_processes
from tests.comparing import no_new_processes as no_new_processes

# Bounds of counts take most of the time of many an audit. Who rechecks it asks for the same ones.
_KEPT = {
    (module, name): lru_cache(maxsize=512)(getattr(module, name))
    for module, names in (
        (game, ("delta_lower", "epsilon_lower", "p_value")),
        (power, ("detectable_epsilon",)),
    )
    for name in names
}


@pytest.fixture(autouse=True)
def equal_counts_have_equal_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds of the same counts are computed once."""
    for (module, name), kept in _KEPT.items():
        monkeypatch.setattr(module, name, kept)


@pytest.fixture(autouse=True)
def no_traces(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Violations have no trace, but where a test asks for `traces`.

    What follows a violation is tested in unit/tracing and in cli/test_trace.py. No verdict depends
    on it, and a fork of a process as large as this one costs more than most of these audits.
    """
    if "traces" not in request.fixturenames:
        monkeypatch.setattr(engine, "_traced", lambda spec, result: result)


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are to be whole, also on a busy machine."""
    monkeypatch.setattr("dpaudit.tracing.forked_trace.TRACE_SECONDS", 60.0)
