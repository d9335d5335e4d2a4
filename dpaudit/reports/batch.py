"""Several audits as text: a line for each, and at the end what somebody has to look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.reports import numbers
from dpaudit.reports.bounds import bounds
from dpaudit.reports.findings import is_expected
from dpaudit.reports.layout import padded, wrap
from dpaudit.reports.numbers import unglued
from dpaudit.reports.text import reason, render, warnings_of
from dpaudit.wording import counted, shortened

# Verdict, name and finding share a line.
_VERDICT = max(len(one.value) for one in Verdict)
_LONGEST_NAME = 34
_SHARED = (
    "Audits with the same seed share their random numbers: false alarms come together, and a rerun "
    "with that seed adds no evidence."
)


def name_width(names: Iterable[str]) -> int:
    """Return how wide the names of a batch are, in its lines."""
    return min(_LONGEST_NAME, max(map(len, names), default=0))


def render_row(result: AuditResult, width: int) -> str:
    """Return an audit as one line of a batch, aligned with the others; its first word is the
    verdict. width: of the names."""
    name = shortened(result.name, width)
    text = f"{result.verdict.value:<{_VERDICT}}  {padded(name, width)}  {_said(result)}"
    return unglued(text).rstrip()


def render_remarks(result: AuditResult) -> list[str]:
    """Return the warnings of an audit, as lines below that of the audit."""
    every = [wrap(f"warning: {text}", "  ", "    ") for text in warnings_of(result)]
    return [unglued(line) for lines in every for line in lines]


def render_summary(results: Sequence[AuditResult]) -> str:
    """Return how many audits came out as expected, and for each of the others its name, why, and
    how to repeat it."""
    lines = _table(results)
    for result in results:
        if not is_expected(result):
            wanted = f" (expected: {result.expect})" if result.expect else ""
            lines += ["", *wrap(f"{result.name}: {result.verdict.value}{wanted}")]
            lines += wrap(reason(result), "  ", "  ")
            lines += [f"  {result.command}"] if result.command else []
    chance = _false_alarms(results)
    lines += ["", *wrap(chance)] if chance else []
    lines += wrap(_SHARED) if _share_a_seed(results) else []
    return unglued("\n".join(lines))


def unended(ended: int, planned: int) -> str:
    """Return that a run did not come to its end; nothing when it did."""
    if ended >= planned:
        return ""
    return f"{ended} of {counted(planned, 'audit')}: the run did not end"


def render_all(results: Sequence[AuditResult], planned: int = 1) -> str:
    """Return the text report of one audit, or of several: details only of what nobody expected.

    planned: how many there are to be.
    """
    missing = unended(len(results), planned)
    return f"{_rendered(results)}\n{missing}.\n" if missing else _rendered(results)


def _rendered(results: Sequence[AuditResult]) -> str:
    if len(results) == 1:
        return f"{render(results[0])}\n"
    width = name_width(one.name for one in results)
    parts = []
    for one in results:
        parts += [render_row(one, width), *(render_remarks(one) if is_expected(one) else [])]
    details = [f"\n{render(one)}" for one in results if not is_expected(one)]
    return "\n".join([*parts, *details, "", render_summary(results), ""])


def _said(result: AuditResult) -> str:
    if not is_expected(result) and (result.expect or result.verdict is not Verdict.VIOLATION):
        unmet = f"expected: {result.expect}" if result.expect else ""
        return unmet if result.underpowered is None else "under-powered"
    return bounds(result)[0].brief(result)


def _table(results: Sequence[AuditResult]) -> list[str]:
    tally = Counter((one.verdict, is_expected(one)) for one in results)
    lines = [f"{counted(len(results), 'audit'):<{_VERDICT}}  as expected  not as expected"]
    for verdict in Verdict:
        met, unmet = tally[verdict, True], tally[verdict, False]
        if met or unmet:
            lines.append(f"{verdict.value:<{_VERDICT}}  {met or '-':>11}  {unmet or '-':>15}")
    return lines


def _false_alarms(results: Sequence[AuditResult]) -> str:
    """Return the chance of a false alarm; nothing where chance had no part."""
    alphas = [1 - one.confidence for one in results if one.by_pair and one.ending.by_chance]
    if not alphas:
        return ""
    together = numbers.error_level(min(1.0, sum(alphas)))
    if len(alphas) == 1:
        return f"The chance of a false alarm is at most {together}."
    each = "" if len(set(alphas)) > 1 else f"{numbers.error_level(alphas[0])} for each audit, "
    return f"Chance of a false alarm: at most {each}{together} together."


def _share_a_seed(results: Sequence[AuditResult]) -> bool:
    # Of recorded outputs the seed did not decide what the mechanism drew.
    drawn = (one for one in results if one.certificates and not one.certificates[0].recording)
    seeds = [one.seed for one in drawn]
    return len(set(seeds)) < len(seeds)
