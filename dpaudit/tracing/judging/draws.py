"""What the draws of an audit say of its trace: the line of an exception that one input alone has
raised, and that runs cannot be compared where state is kept."""

from __future__ import annotations

import linecache
from dataclasses import replace

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult
from dpaudit.certificates.traced import Finding, SourceLine, Trace
from dpaudit.tracing.judging.remedies import GIVE_AN_OUTPUT

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
