"""The fixtures of assertions."""

from __future__ import annotations

from tests.testing.conftest import new_processes as new_processes
from tests.testing.conftest import no_new_processes as no_new_processes
from tests.testing.conftest import no_traces as no_traces
from tests.testing.conftest import traces as traces
