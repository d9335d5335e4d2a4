"""A trace in a copy of this process: whatever the mechanism does there, it is over in time, and
nothing here has changed."""

from __future__ import annotations

import gc
import linecache
import os
import pickle
import select
import signal
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Any

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult
from dpaudit.certificates.traced import CUT, Finding, SourceLine, Trace
from dpaudit.claims import PrivacyClaim
from dpaudit.errors import DpauditError
from dpaudit.inputs.pairs import describe_pair
from dpaudit.targets.target import (
    AnyTarget,
    ComposedTarget,
    IsolatedTarget,
    runs_in_another_process,
)
from dpaudit.tracing.findings.remedies import GIVE_AN_OUTPUT
from dpaudit.tracing.trace import trace_pair

# So long a trace may take that nobody has asked for.
SECONDS = 2.0
# Runs of a trace, about; a mechanism that is too slow for them is not begun.
_RUNS = 20
_PIECE = 1 << 16
_LATE = object()


def trace_apart(
    target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, *, pace: float
) -> Trace | None:
    """Return the trace of a pair, or why it does not come to its end within two seconds; None where
    it shows nothing, or cannot be made.

    pace: seconds that a run of the mechanism takes, about.
    """
    if isinstance(target, IsolatedTarget):
        return _of_a_process(target, d1, d2, claim)
    cannot = runs_in_another_process(target) or isinstance(target, ComposedTarget)
    if cannot or not hasattr(os, "fork"):
        return None
    if pace * _RUNS > SECONDS:
        return _cut(target, d1, d2, claim)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Of threads, which may hold a lock for ever: the copy is ended in time.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _trace_and_leave(writing, reading, target, d1, d2, claim)
    os.close(writing)
    try:
        found = _received(reading, time.monotonic() + SECONDS)
        return _cut(target, d1, d2, claim) if found is _LATE else _telling(found)
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
    is_telling = isinstance(found, Trace) and (found.likely is not None or found.cut is not None)
    return found if is_telling else None


def _cut(target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim) -> Trace:
    """Return a trace that shows nothing but that it was ended."""
    return Trace(
        target=target.describe(),
        pair=describe_pair(d1, d2),
        claim=claim.describe(),
        findings=(),
        sites=(),
        total=None,
        exceeds=False,
        not_understood=(),
        excerpts=(),
        runs=0,
        notes=(f"{CUT}: they take longer than the {SECONDS:g} seconds that a report waits",),
    )


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


def _received(reading: int, deadline: float) -> Any:
    """Return what the copy has sent; `_LATE` where the time is over before, and None where that is
    no pickle."""
    pieces = []
    while (left := deadline - time.monotonic()) > 0:
        if not select.select([reading], [], [], left)[0]:
            return _LATE
        piece = os.read(reading, _PIECE)
        if not piece:
            break
        pieces.append(piece)
    else:
        return _LATE
    try:
        return pickle.loads(b"".join(pieces))
    except (EOFError, pickle.UnpicklingError):
        return None


# What a value looks like that was stored in an earlier call.
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
    """Return a trace, or None, with what the draws say: the exception by which the claim is
    refuted, unless there is a cause; and no cause that may be a stored value."""
    certificate = result.decisive
    if not isinstance(certificate, Certificate):
        return trace
    keeps_state = any("keeps state" in one for one in certificate.warnings)
    was_cut = trace is not None and trace.cut is not None
    is_unlike = keeps_state or not (certificate.reproducible or was_cut)
    if is_unlike and (trace is None or _may_be_stored(trace)):
        why = _CANNOT_BE_TRACED if keeps_state else _UNSEEN
        trace = replace(_empty(result, certificate), notes=(why,))
    if trace is not None and trace.causes:
        return trace
    found = _raised(certificate)
    if found is None:
        return trace
    trace = trace or _empty(result, certificate)
    return replace(trace, findings=(found, *trace.findings))


def _may_be_stored(trace: Trace) -> bool:
    """Return whether a trace saw no noise, perhaps since all was drawn in earlier calls."""
    return not trace.sites and all(one.kind in _STORED for one in trace.causes)


def _empty(result: AuditResult, certificate: Certificate) -> Trace:
    return Trace(
        target=result.target,
        pair=certificate.pair,
        claim=result.claim.describe(),
        findings=(),
        sites=(),
        total=None,
        exceeds=False,
        not_understood=(),
        excerpts=(),
        runs=0,
        notes=(),
    )


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
