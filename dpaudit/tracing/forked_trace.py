"""Make the trace that the report of an audit contains.

On Linux, a forked copy of this process makes the trace. The copy is killed after 2 s, or after up
to 30 s for a slow mechanism. On other systems, a new interpreter makes the runs, as for an isolated
mechanism. A mechanism that has imported JAX is traced in this process.
"""

from __future__ import annotations

import gc
import linecache
import os
import signal
import sys
import warnings
from contextlib import suppress
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
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
    RepeatedTarget,
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
# Approximate number of runs in a trace. If this number of runs would take longer than the time
# limit, no trace is made.
_EXPECTED_RUNS = 20


def trace_apart(
    target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, *, pace: float
) -> Trace | None:
    """Return the trace of a pair for the report of an audit. Return None if it has no finding, or
    if the target cannot be traced. A trace that ran out of time has a note and no findings. `pace`
    is the approximate time of one run of the mechanism, in seconds."""
    if isinstance(target, IsolatedTarget):  # its mechanism already runs in a process of its own
        return _telling(_made(target, d1, d2, claim, TRACE_SECONDS))
    if runs_in_another_process(target) or isinstance(target, ComposedTarget):
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
    if sys.platform == "linux":
        return _by_fork(target, d1, d2, claim, seconds)
    single = target.target if isinstance(target, RepeatedTarget) else target
    return _telling(_made(IsolatedTarget(target=single), d1, d2, claim, seconds))


def _by_fork(
    target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, seconds: float
) -> Trace | None:
    """Make the trace in a forked copy of this process, so that nothing changes here."""
    import dpaudit.tracing.mechanism_trace  # noqa: F401  # not in the copy, whose time is limited

    receiver, sender = Pipe(duplex=False)
    with warnings.catch_warnings():
        # Hide Python's warning that the fork of a process with threads may deadlock. A deadlocked
        # copy does no harm: it sends no trace, and is killed when its time is over.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _send_and_exit(sender, target, d1, d2, claim, seconds)
    sender.close()
    try:
        with receiver, suppress(EOFError):  # the mechanism has ended the copy
            if not receiver.poll(seconds):
                return _cut(target, d1, d2, claim, seconds)
            return _telling(receiver.recv())
        return None
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(child, 0)


def _send_and_exit(
    sender: Connection, target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, seconds: float
) -> None:
    """Make the trace in the forked copy, send it, and end the copy. This function never returns."""
    try:
        # Without this call, a garbage collection would write to every page of memory, so that the
        # system would have to copy each page for the forked process.
        gc.freeze()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(seconds) + 2)  # ends this copy even if the parent process has died
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        sender.send(_made(target, d1, d2, claim, seconds))
    finally:
        os._exit(0)


def _made(target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, seconds: float) -> Trace | None:
    """Return the trace; None if it fails."""
    from dpaudit.tracing.mechanism_trace import trace_pair

    with suppress(DpauditError):
        return trace_pair(target, d1, d2, claim, seconds=seconds)
    return None


def _telling(trace: Trace | None) -> Trace | None:
    """Return the trace if it names a likely cause, or says why it names none; else None."""
    if trace is None:
        return None
    is_telling = trace.likely is not None or trace.cut is not None or _is_inside(trace)
    return trace if is_telling else None


def _is_inside(trace: Trace) -> bool:
    return any(note.endswith(INSIDE) for note in trace.notes)


def _cut(target: AnyTarget, d1: Any, d2: Any, claim: PrivacyClaim, seconds: float) -> Trace:
    note = f"{CUT}: they take longer than the {seconds:.2g} seconds that a report waits"
    return _empty(target.describe(), describe_pair(d1, d2), claim, note)


def _empty(target: str, pair: str, claim: PrivacyClaim, *notes: str) -> Trace:
    """Return a trace without runs and findings, with the given notes."""
    return Trace(
        target, pair, claim.describe(), findings=(), sites=(), total=None, exceeds=False,
        not_understood=(), excerpts=(), runs=0, notes=notes,
    )  # fmt: skip


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
    """Return the trace for the report, corrected by what the draws of the audit show. Return None
    if there is nothing to report.

    * The draws may show that the mechanism keeps state between calls, or that equal seeds give
      unequal outcomes. Then a trace that saw no noise is replaced by a note that says why the
      mechanism cannot be traced.
    * The audit may have refuted the claim by an exception that only one input raises. If no finding
      is a cause of a leak, the line that raises this exception is added as a finding.
    """
    certificate = result.decisive
    if not isinstance(certificate, Certificate):
        return trace
    keeps_state = any("keeps state" in warning for warning in certificate.warnings)
    was_cut = trace is not None and trace.cut is not None
    is_unlike = keeps_state or not (certificate.reproducible or was_cut)
    is_explained = not keeps_state and trace is not None and (_is_inside(trace) or trace.causes)
    if is_unlike and not is_explained and (trace is None or _may_be_stored(trace)):
        why = _CANNOT_BE_TRACED if keeps_state else _UNSEEN
        trace = _empty(result.target, certificate.pair, result.claim, why)
    if trace is not None and trace.causes:
        return trace
    exception = _raised(certificate)
    if exception is None:
        return trace
    trace = trace or _empty(result.target, certificate.pair, result.claim)
    return replace(trace, findings=(exception, *trace.findings))


def _may_be_stored(trace: Trace) -> bool:
    """Return whether a value that an earlier call stored may explain all findings of a trace."""
    return not trace.sites and all(cause.kind in _STORED for cause in trace.causes)


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
            message = f": {' '.join(first.message.split())}" if first.message else ""
            words = f"{kind} is raised for {event.guess} alone{message}"
            source = SourceLine(file, int(line), linecache.getline(file, int(line)).strip())
            return Finding("exception", True, source, words, GIVE_AN_OUTPUT)
    return None
