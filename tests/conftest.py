"""What holds for every test."""

from __future__ import annotations

import gc
import os
import signal

# What a developer set for their own terminal would change what the programs under test print, also
# those in processes of their own. Removed here, before any test is collected.
for _variable in ("CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
    os.environ.pop(_variable, None)

# The suite starts some hundreds of programs. Each would compile the package anew, half a second,
# where this is set, as it is in many containers.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A shell that runs the suite in the background has it ignore Ctrl-C, and nohup that the terminal
# hangs up; so would every program that a test starts and sends such a signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of every later search for garbage: hundreds of
    thousands of objects, which live as long as the process and would be gone through each time."""
    gc.collect()
    gc.freeze()
