"""`dpaudit report --rerun`: repeats the audits of a result file, and compares."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult
from dpaudit.cli.batch import auditing, run_one
from dpaudit.composed import flat_fields, replace
from dpaudit.config.building import located_spec
from dpaudit.errors import UsageError
from dpaudit.reports.records import as_lists, encode
from dpaudit.wording import counted, shown

# Fields that a rerun need not repeat: times and processes, the request itself, names of files and
# lines, which depend on the working directory, and a trace, which may take too long. Warnings and
# versions are compared by themselves.
_ANOTHERS = (
    "seconds", "versions", "request", "resumed", "source", "command", "workers", "notes",
    "warnings", "first_failures", "first_version", "trace", "redrawn",
)  # fmt: skip


def differences(recorded: AuditResult, *, quiet: bool) -> list[str]:
    """Run an audit again with its seed; return what came out otherwise, one sentence each. Raises
    UsageError for an audit that cannot be run again, or of which a rerun would show nothing."""
    request, reason = recorded.request, _reason(recorded)
    if request is None or reason is not None:
        raise UsageError(f"{recorded.name} cannot be repeated: {reason}", code="rerun-impossible")
    named = {"seed": recorded.seed, **as_lists(request["settings"])}
    folder = None if request["folder"] is None else Path(request["folder"])
    spec = located_spec(named, lambda path: f"{recorded.name}: ", folder)
    with auditing() as requests:
        again = run_one(spec, requests, spec.name, quiet=quiet)
    again = replace(again, family=recorded.family)  # which other audits decide on
    found = list(_compared(recorded, again))
    if found and recorded.workers != again.workers:
        before, after = (
            counted(one.workers, "process") if one.workers else "no process"
            for one in (recorded, again)
        )
        found.append(f"recorded with {before}, repeated with {after}; this may be the cause")
    if recorded.versions != again.versions:
        before, after = (
            ", ".join(f"{name} {version}" for name, version in one.versions.items())
            for one in (recorded, again)
        )
        which = "this may be the cause" if found else "all else is equal"
        found.append(
            f"versions: recorded with {before}, repeated with {after}; {which}; repeat it with the "
            "recorded versions"
        )
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
    # A resumed run has the warnings of its journal, too.
    kept = [one for one in recorded.warnings if not recorded.resumed or one in again.warnings]
    yield from _differences("", ("warnings",), replace(recorded, warnings=tuple(kept)), again)
    if len(recorded.certificates) != len(again.certificates):
        pairs = counted(len(recorded.certificates), "pair")
        yield f"{pairs} recorded, {len(again.certificates)} repeated"
        return
    for one, other in zip(recorded.certificates, again.certificates, strict=True):
        yield from _differences(f"{one.pair}: ", _names(one), one, other)
        yield from _differences(f"{one.pair}: ", ("warnings", "notes"), one, other)


def _names(record: AuditResult | Certificate) -> list[str]:
    return [name for name in flat_fields(type(record)) if name not in _ANOTHERS]


def _differences(where: str, names: Iterable[str], one: Any, other: Any) -> Iterator[str]:
    for name in names:
        # As files have them: NaN is equal to itself there, and a list to a tuple.
        before, after = encode(getattr(one, name)), encode(getattr(other, name))
        if before != after:
            yield f"{where}{name}: recorded {shown(before)}, repeated {shown(after)}"
