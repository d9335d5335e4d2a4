"""Show the evidence of an audit over nights (docs/guides/nightly.md)."""

from __future__ import annotations

from collections.abc import Sequence

from dpaudit.certificates.result import AuditResult, LikelyFirst, Nights
from dpaudit.reports import numbers
from dpaudit.reports.layout import Item, row
from dpaudit.wording import counted


def alarm(nights: Nights, first: LikelyFirst) -> str:
    """Return the reason of an alarm, with the likely first night and its commit."""
    number = counted(nights.since_alarm, "night")
    since = " since the last alarm" if nights.since_alarm < nights.count else ""
    return (
        f"alarm after {number}{since}: {_evidence(nights)}; the first of them with the leak likely "
        f"ended {first.time}, with code {first.code}"
    )


def rows(nights: Nights) -> list[Item]:
    """Return the rows on the nights, their evidence, the alarm level and the likely first night."""
    text = counted(nights.count, "night")
    if nights.since_alarm < nights.count:
        text += f", {nights.since_alarm:,} since the last alarm"
    lines = row("nights", f"{text}; {_evidence(nights)}")
    if nights.first is not None:
        versions = ", ".join(f"{name} {version}" for name, version in nights.first.versions.items())
        lines += row("since", f"{nights.first.time}, code {nights.first.code}; {versions}")
    return lines


def summary(results: Sequence[AuditResult]) -> list[str]:
    """Return a sentence on the largest evidence of several audits, if they have records."""
    nights = [
        (result.nights, result.name)
        for result in results
        if result.nights is not None and result.expect != "violation"
    ]
    if not nights:
        return []
    largest, name = max(nights, key=lambda entry: entry[0].evidence)
    evidence, needed = numbers.at_least(largest.evidence), numbers.about(1 / largest.level)
    return [
        f"Over nights, the largest evidence is {evidence} ({name}), and an "
        f"alarm is at {needed}. While a claim holds, the mean number of nights to an alarm of its "
        f"audit is at least {needed}."
    ]


def _evidence(nights: Nights) -> str:
    evidence = numbers.at_least(nights.evidence)
    return f"evidence {evidence} (alarm at {numbers.about(1 / nights.level)})"
