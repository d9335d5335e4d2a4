"""The fixtures of the command line."""

from __future__ import annotations

from tests.cli.conftest import asked as asked
from tests.cli.conftest import config as config
from tests.cli.conftest import dpaudit as dpaudit
from tests.cli.conftest import install_engine as install_engine
from tests.cli.conftest import no_traces as no_traces
from tests.cli.conftest import refused as refused
from tests.cli.conftest import traces as traces
from tests.comparing import new_processes as new_processes
from tests.comparing import no_new_processes as no_new_processes
