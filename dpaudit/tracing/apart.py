"""A trace in a copy of this process: whatever the mechanism does there, it is over in time, and
nothing here has changed."""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import time
import warnings
from contextlib import suppress
from typing import Any

from dpaudit.certificates.traced import Trace
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import DpauditError
from dpaudit.targets.target import AnyTarget, ComposedTarget, IsolatedTarget, is_elsewhere
from dpaudit.tracing.trace import trace_pair

# So long a trace may take that nobody has asked for.
SECONDS = 2.0
# Runs of a trace, about; a mechanism that is too slow for them is not begun.
_RUNS = 20
_PIECE = 1 << 16


def trace_apart(
    target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, *, pace: float
) -> Trace | None:
    """Return the trace of a pair; None where it does not come to its end within two seconds, shows
    nothing, or cannot be made.

    pace: seconds that a run of the mechanism takes, about.
    """
    if isinstance(target, IsolatedTarget):
        return _of_a_process(target, d1, d2, claim)
    cannot = is_elsewhere(target) or isinstance(target, ComposedTarget)
    if cannot or pace * _RUNS > SECONDS or not hasattr(os, "fork"):
        return None
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Of threads, which may hold a lock for ever: the copy is ended in time.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _trace_and_leave(writing, reading, target, d1, d2, claim)
    os.close(writing)
    try:
        return _received(reading, time.monotonic() + SECONDS)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


def _of_a_process(target: IsolatedTarget, d1: Any, d2: Any, claim: PrivacyClaim) -> Trace | None:
    """Return the trace of a mechanism that has a process of its own anyway."""
    with suppress(DpauditError):
        return _telling(trace_pair(target, d1, d2, claim, seconds=SECONDS))
    return None


def _telling(found: Any) -> Trace | None:
    return found if isinstance(found, Trace) and found.likely is not None else None


def _trace_and_leave(
    writing: int, reading: int, target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim
) -> None:
    """Trace in the copy, send what came of it, and end it. Does not return."""
    try:
        # Else a collection goes through all that the process held, and copies every page of it.
        gc.freeze()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(SECONDS) + 2)  # also where the process that waits is no more
        os.close(reading)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        with suppress(DpauditError):
            found = trace_pair(target, d1, d2, claim, seconds=SECONDS)
            with open(writing, "wb") as pipe:
                pickle.dump(found, pipe)
    finally:
        os._exit(0)


def _received(reading: int, deadline: float) -> Trace | None:
    """Return what the copy has sent; None where the time is over before, or it is no trace."""
    pieces = []
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([reading], [], [], left)[0]:
            break
        piece = os.read(reading, _PIECE)
        if not piece:
            break
        pieces.append(piece)
    else:
        return None
    try:
        found = pickle.loads(b"".join(pieces))
    except (EOFError, pickle.UnpicklingError):
        return None
    return _telling(found)
