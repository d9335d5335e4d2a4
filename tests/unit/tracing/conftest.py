"""Runs that several claims judge."""

from __future__ import annotations

from typing import Any

import pytest

from dpaudit.tracing.runs.coupling import Runs, couple
from dpaudit.tracing.runs.running import Subject


@pytest.fixture
def shared_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each mechanism once for each pair of inputs of a test, without a claim: with a claim,
    counting may stop early."""
    known: dict[Any, Runs] = {}

    def coupled(subject: Subject, d1: Any, d2: Any, seeds: int) -> Runs:
        key = subject.function, repr((subject.params, d1, d2)), seeds
        if key not in known:
            known[key] = couple(subject._replace(claim=()), d1, d2, seeds)
        return known[key]

    monkeypatch.setattr("dpaudit.tracing.mechanism_trace.couple", coupled)
