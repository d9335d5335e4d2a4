"""Make the trace that the report of an audit contains. It is made in a forked copy of this process,
which is killed after two seconds, or later for a slow mechanism. `with_draws` then corrects the
trace where the draws of the audit contradict it."""

from __future__ import annotations

import gc
import linecache
import os
import pickle
import select
import signal
import sys
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from itertools import count
from typing import Any

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult
from dpaudit.certificates.traced import CUT, GIVE_AN_OUTPUT, INSIDE, Finding, SourceLine, Trace
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import DpauditError
from dpaudit.inputs.pairs import describe_pair
from dpaudit.targets.target import (
    AnyTarget,
    ComposedTarget,
    IsolatedTarget,
    runs_in_another_process,
)

# Time limit of the trace in seconds. It is short, since the user waits for the report of an audit
# and did not ask for a trace.
TRACE_SECONDS = 2.0
# A mechanism is slow if a draw takes at least this time, in seconds. The trace of a slow mechanism
# may take longer than `TRACE_SECONDS`, since the user has waited long for its audit, too.
_SLOW_SECONDS = 0.005
# Time limit of the trace of a slow mechanism: the time that this number of draws takes.
_SLOW_DRAWS = 100
# Largest time limit of the trace of a slow mechanism, in seconds.
_MAX_SECONDS = 30.0
# Smallest time limit of a trace, in seconds, if JAX is loaded. JAX compiles each operation at its
# first use, which may take longer than the usual limit, `TRACE_SECONDS`.
_JAX_SECONDS = 10.0
# Seconds that a forked copy may take to import the tracer. The time limit of the trace begins after
# that.
_LOADING_SECONDS = 30.0
# Sent by the forked copy when it has imported the tracer.
_READY = b"\0"
# Approximate number of runs in a trace. If this number of runs would take longer than the time
# limit, no trace is made.
_EXPECTED_RUNS = 20
# Number of bytes that are read from the pipe in one call.
_READ_BYTES = 1 << 16
# Results of `_received` in place of a trace: `_LATE` if the trace did not arrive before the
# deadline, `_UNLOADED` if the forked copy did not import the tracer within `_LOADING_SECONDS`
# seconds.
_LATE, _UNLOADED = object(), object()
# Counts the forked copies of this process.
_forks = count()


def trace_apart(
    target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, *, pace: float
) -> Trace | None:
    """Return the trace of a pair of inputs for the report of an audit. It is made in a forked copy
    of this process. Return None if the trace has no finding, or if the target cannot be traced. If
    the time limit is too short, return a trace without findings and with a note about this.

    claim: The privacy claim for one run of the target.
    pace: The approximate duration of one run of the mechanism, in seconds.
    """
    if isinstance(target, IsolatedTarget):  # its mechanism already runs in a process of its own
        return _telling(_made(target, d1, d2, claim, TRACE_SECONDS))
    cannot = runs_in_another_process(target) or isinstance(target, ComposedTarget)
    if cannot or not hasattr(os, "fork"):
        return None
    is_of_jax = "jax" in sys.modules
    allowed = min(_SLOW_DRAWS * pace, _MAX_SECONDS) if pace >= _SLOW_SECONDS else 0.0
    seconds = max(TRACE_SECONDS, _JAX_SECONDS * is_of_jax, allowed)
    if pace * _EXPECTED_RUNS > seconds:
        return _cut(target, d1, d2, claim, seconds)
    # A forked copy would wait forever for the threads of JAX, which a fork does not copy. So the
    # trace runs in this process.
    if is_of_jax:
        return _telling(_made(target, d1, d2, claim, seconds))
    if next(_forks):
        # For the first trace, only the forked copy imports the tracer. Before the second trace,
        # this process imports it, so that later copies have it already.
        import_module("dpaudit.tracing.trace")
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Hide Python's warning that the fork of a process with threads may deadlock. A deadlocked
        # copy does no harm: it sends no trace, and is killed when the time to import the tracer
        # (`_LOADING_SECONDS`) or the time limit of the trace is over.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _trace_and_leave(writing, reading, target, d1, d2, claim, seconds)
    os.close(writing)
    try:
        found = _received(reading, seconds)
        if found is _UNLOADED:
            note = f"{CUT}: the tracer was not imported within {_LOADING_SECONDS:.0f} seconds"
            return _empty(target.describe(), describe_pair(d1, d2), claim, note)
        return _cut(target, d1, d2, claim, seconds) if found is _LATE else _telling(found)
    finally:
        os.close(reading)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


def _made(target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, seconds: float) -> Trace | None:
    """Return the trace; None if it fails."""
    # Imported here, so that this process need not import the tracer. Usually only a forked copy of
    # this process traces.
    from dpaudit.tracing.trace import trace_pair

    with suppress(DpauditError):
        return trace_pair(target, d1, d2, claim, seconds=seconds)
    return None


def _telling(found: Any) -> Trace | None:
    if not isinstance(found, Trace):
        return None
    is_telling = found.likely is not None or found.cut is not None or _is_inside(found)
    return found if is_telling else None


def _is_inside(trace: Trace) -> bool:
    return any(note.endswith(INSIDE) for note in trace.notes)


def _cut(target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, seconds: float) -> Trace:
    note = f"{CUT}: they take longer than the {seconds:.2g} seconds that a report waits"
    return _empty(target.describe(), describe_pair(d1, d2), claim, note)


def _empty(target: str, pair: str, claim: PrivacyClaim, *notes: str) -> Trace:
    """Return a trace without runs and findings, with the given notes.

    target, pair: Descriptions of the target and of the pair of inputs, for the report.
    """
    return Trace(
        target, pair, claim.describe(), findings=(), sites=(), total=None, exceeds=False,
        not_understood=(), excerpts=(), runs=0, notes=notes,
    )  # fmt: skip


def _trace_and_leave(
    writing: int,
    reading: int,
    target: AnyTarget,
    d1: Any,
    d2: Any,
    claim: PrivacyClaim,
    seconds: float,
) -> None:
    """Make a trace in the forked copy of this process, send it to the parent process, and exit.
    This function does not return.

    writing, reading: The file descriptors of the pipe to the parent process.
    seconds: The time limit of the trace.
    """
    try:
        # Without this call, a garbage collection would write to every page of memory, so that the
        # system would have to copy each page for the forked process.
        gc.freeze()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        # ends this copy even if the parent process has died
        signal.alarm(int(_LOADING_SECONDS + seconds) + 2)
        os.close(reading)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        import_module("dpaudit.tracing.trace")
        os.write(writing, _READY)
        found = _made(target, d1, d2, claim, seconds)
        with open(writing, "wb") as pipe:
            pickle.dump(found, pipe)
    finally:
        os._exit(0)


def _received(reading: int, seconds: float) -> Any:
    """Return the trace that the forked copy of this process sends. Return `_LATE` if it does not
    arrive in time, `_UNLOADED` if the copy does not import the tracer in time, and None if the copy
    sends no valid pickle.

    reading: The file descriptor of the pipe.
    seconds: The time limit, after the copy has imported the tracer.
    """
    if not select.select([reading], [], [], _LOADING_SECONDS)[0]:
        return _UNLOADED
    os.read(reading, len(_READY))
    pieces = []
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([reading], [], [], left)[0]:
            return _LATE
        piece = os.read(reading, _READ_BYTES)
        if not piece:
            break
        pieces.append(piece)
    else:
        return _LATE
    try:
        return pickle.loads(b"".join(pieces))
    except (EOFError, pickle.UnpicklingError):
        return None


# Kinds of findings that may be wrong if a mechanism returns a value stored in an earlier call: the
# trace then sees no noise, although the stored value contains some.
_STORED = ("no-noise", "control-flow")
_CANNOT_BE_TRACED = (
    "the mechanism keeps state between calls, such as a cache, so that runs cannot be compared and "
    "it cannot be traced"
)
_UNSEEN = (
    "equal seeds do not give equal outcomes, so that runs cannot be compared: the mechanism draws "
    "by means that a trace does not see; dpaudit trace --primitive names a function that draws"
)


def with_draws(trace: Trace | None, result: AuditResult) -> Trace | None:
    """Return the trace for the report of an audit, corrected by the draws of the audit; None if
    there is nothing to report. There are two corrections.

    * The draws may show that the mechanism keeps state between calls, or that equal seeds give
      unequal outcomes. Then a trace that saw no noise is replaced by a trace without findings that
      says why the mechanism cannot be traced.
    * The audit may have refuted the claim by an exception that only one input raises. If no finding
      of the trace causes a leak, the line that raises this exception is added as a finding.
    """
    certificate = result.decisive
    if not isinstance(certificate, Certificate):
        return trace
    keeps_state = any("keeps state" in one for one in certificate.warnings)
    was_cut = trace is not None and trace.cut is not None
    is_unlike = keeps_state or not (certificate.reproducible or was_cut)
    is_explained = not keeps_state and trace is not None and (_is_inside(trace) or trace.causes)
    if is_unlike and not is_explained and (trace is None or _may_be_stored(trace)):
        why = _CANNOT_BE_TRACED if keeps_state else _UNSEEN
        trace = _empty(result.target, certificate.pair, result.claim, why)
    if trace is not None and trace.causes:
        return trace
    found = _raised(certificate)
    if found is None:
        return trace
    trace = trace or _empty(result.target, certificate.pair, result.claim)
    return replace(trace, findings=(found, *trace.findings))


def _may_be_stored(trace: Trace) -> bool:
    """Return whether the mechanism may have returned a value that an earlier call drew and stored:
    the trace saw no noise, and such a value may explain all its findings."""
    return not trace.sites and all(one.kind in _STORED for one in trace.causes)


def _raised(certificate: Certificate) -> Finding | None:
    for event in certificate.fixed.events:
        for kind, counts in certificate.failures.items():
            first = certificate.first_failures.get(kind)
            arm = 0 if event.guess == "d1" else 1
            is_alone = counts[arm] and not counts[1 - arm]
            if event.words != f"{kind} is raised" or not is_alone or first is None:
                continue
            file, _, line = first.where.rpartition(":")
            if not file or not line.isdecimal():
                continue
            said = f": {' '.join(first.message.split())}" if first.message else ""
            words = f"{kind} is raised for {event.guess} alone{said}"
            place = SourceLine(file, int(line), linecache.getline(file, int(line)).strip())
            return Finding("exception", True, place, words, GIVE_AN_OUTPUT)
    return None
