"""The fixtures of whole audits."""

from __future__ import annotations

from tests.whole_audits import equal_counts_have_equal_bounds as equal_counts_have_equal_bounds
from tests.whole_audits import new_processes as new_processes
from tests.whole_audits import no_new_processes as no_new_processes
from tests.whole_audits import no_traces as no_traces
from tests.whole_audits import traces as traces
