"""The line of an exception that one input alone has raised in an audit, where no trace names it."""

from __future__ import annotations

import linecache
from dataclasses import replace

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult
from dpaudit.certificates.traced import Finding, SourceLine, Trace
from dpaudit.tracing.selecting import GIVE_AN_OUTPUT


def with_what_is_raised(trace: Trace | None, result: AuditResult) -> Trace | None:
    """Return a trace with the exception by which the claim is refuted, unless it has a cause."""
    certificate = result.decisive
    if not isinstance(certificate, Certificate) or (trace is not None and trace.causes):
        return trace
    found = _raised(certificate)
    if found is None:
        return trace
    if trace is not None:
        return replace(trace, findings=(found, *trace.findings))
    return Trace(
        target=result.target,
        pair=certificate.pair,
        claim=result.claim.describe(),
        findings=(found,),
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
