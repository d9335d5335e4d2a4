"""Runs that several claims judge."""

from __future__ import annotations

from tests.unit.tracing.conftest import shared_runs as shared_runs
