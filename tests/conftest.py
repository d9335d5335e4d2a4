"""What holds for every test."""

from __future__ import annotations

import ctypes
import gc
import math
import os
import signal
import sys
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, and no clock.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")

# Each folder has a target of its own. It needs Chromium (make browser) or other environments (make
# libraries), builds and installs (make package), runs the pages of docs (make docs), runs whole
# programs, processes and audits (make system), or simulates many audits (make validity).
collect_ignore = ["browser", "libraries", "package", "pages", "system", "validity"]

# What a developer set for their own terminal would change what the programs under test print, also
# those in processes of their own. Removed here, before any test is collected.
# So would, where the suite runs on GitHub, a summary of its own and the root of its repository, and
# where tox runs it, a hash seed, which stands in front of a command.
for _variable in (
    *("CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"),
    *("GITHUB_STEP_SUMMARY", "GITHUB_WORKSPACE", "PYTHONHASHSEED"),
):
    os.environ.pop(_variable, None)

# The suite starts some hundreds of programs. Each would compile the package again, half a second,
# where this is set, as it is in many containers; and pytest would rewrite the assertions of all
# tests in every run, six seconds of each worker.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Each would start threads for linear algebra, too, which takes a third of the import of NumPy.
# Their matrices are small.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell that runs the suite in the background has it ignore Ctrl-C, and nohup that the terminal
# hangs up; so would every program that a test starts and sends such a signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Memory that an array leaves stays with the process: glibc would hand it back to the system and ask
# for it again, page by page, some hundred thousand times. (Other systems have no such function.)
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
with suppress(OSError, AttributeError):
    _libc = ctypes.CDLL(None)
    _libc.mallopt(_TRIM_THRESHOLD, 1 << 28)
    _libc.mallopt(_MMAP_THRESHOLD, 1 << 25)


@pytest.fixture(autouse=True)
def draws_take_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an audit without a stated budget choose the largest number of draws, and one without a
    stated `stop` a confirmation, whatever the load of the machine."""
    monkeypatch.setattr("dpaudit.auditing.pace.clock", lambda: 0.0)
    monkeypatch.setattr("dpaudit.auditing.pace.SLOW_DRAW", math.inf)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later search for garbage: hundreds of
    thousands of objects, which live as long as the process and would be gone through each time."""
    gc.collect()
    gc.freeze()
    # Searches are rare besides: what is made in between is soon gone, or lives as long.
    gc.set_threshold(20_000, 20, 20)


@pytest.hookimpl(optionalhook=True)  # of xdist
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return the number of cores, plus one where tests often wait for a program: each worker
    collects all tests, which takes about ten seconds."""
    from dpaudit.processes.cores import cores  # not before OPENBLAS_NUM_THREADS is set

    return cores() + any("system" in argument for argument in config.args)
