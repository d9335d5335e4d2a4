"""`dpaudit report --rerun`: repeats the audits of a result file, and compares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult
from dpaudit.cli.batch import auditing, run_one
from dpaudit.config.building import located_spec
from dpaudit.errors import UsageError
from dpaudit.reports.records import as_lists, encode
from dpaudit.wording import counted, shown

# What differs from run to run: how long it took, whose versions it ran with, and what is said of it
# and of its inputs, which the request has (lines of code are named as seen from the working
# directory; a trace that takes too long is none).
_SAID = ("pair", "warnings", "first_failures", "adjacency", "notes", "trace", "redrawn")
_ANOTHERS = (
    "seconds", "versions", "request", "expect", "resumed", "source", "command", "grouped",
    "workers", *_SAID,
)  # fmt: skip


def differences(recorded: AuditResult, *, quiet: bool) -> list[str]:
    """Run an audit again with its seed; return what came out otherwise, one sentence each. Raises
    UsageError for an audit that cannot be run again, or of which a rerun would show nothing."""
    request, reason = recorded.request, _reason(recorded)
    if request is None or reason is not None:
        raise UsageError(f"{recorded.name} cannot be repeated: {reason}")
    named = {"name": recorded.name, "seed": recorded.seed, **as_lists(request["settings"])}
    folder = None if request["folder"] is None else Path(request["folder"])
    spec = located_spec(named, lambda path: f"{recorded.name}: ", folder)
    with auditing() as requests:
        again = run_one(spec, requests, spec.name, quiet=quiet)
    again = replace(again, family=recorded.family)  # which other audits decide on
    found = list(_compared(recorded, again))
    if found and recorded.versions != again.versions:
        before, after = (
            ", ".join(f"{name} {version}" for name, version in one.versions.items())
            for one in (recorded, again)
        )
        found.append(f"recorded with {before}, repeated with {after}; this may be the cause")
    return found


def _reason(recorded: AuditResult) -> str | None:
    """Return why an audit cannot be run again, or a rerun would show nothing."""
    if recorded.request is None:
        return (
            "the file does not hold the request of the audit (the audit was started from Python, "
            "used recorded outputs, or ran under an older dpaudit)"
        )
    if not all(one.reproducible for one in recorded.certificates):
        return "its seed does not control the mechanism, so a rerun has other draws"
    if any(one.schedule and one.schedule.by_clock for one in recorded.certificates):
        return "the clock set its number of draws (--time), and a rerun may take another number"
    return None


def _compared(recorded: AuditResult, again: AuditResult) -> Iterator[str]:
    names = [name for name in _names(recorded) if name != "ending"]
    by_pair = () if recorded.certificates else ("by_pair",)
    yield from _differences("", [*names, "verdict", "error", *by_pair], recorded, again)
    if len(recorded.certificates) != len(again.certificates):
        pairs = counted(len(recorded.certificates), "pair")
        yield f"{pairs} recorded, {len(again.certificates)} repeated"
        return
    for one, other in zip(recorded.certificates, again.certificates, strict=True):
        yield from _differences(f"{one.pair}: ", _names(one), one, other)


def _names(record: AuditResult | Certificate) -> list[str]:
    return [field.name for field in fields(record) if field.name not in _ANOTHERS]


def _differences(where: str, names: Iterable[str], one: Any, other: Any) -> Iterator[str]:
    for name in names:
        # As files have them: NaN is equal to itself there, and a list to a tuple.
        before, after = encode(getattr(one, name)), encode(getattr(other, name))
        if before != after:
            yield f"{where}{name}: recorded {shown(before)}, repeated {shown(after)}"
