"""Audits here start no new processes, and violations have no trace."""

from __future__ import annotations

from tests.comparing import new_processes as new_processes
from tests.comparing import no_new_processes as no_new_processes
from tests.whole_audits import no_traces as no_traces
from tests.whole_audits import traces as traces
