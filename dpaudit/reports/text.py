"""Audits as plain text: a full report for one, a line each and a summary for
several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from dpaudit.certificates.result import AuditResult, Family, Verdict
from dpaudit.reports import inputs_report, nights_report, numbers, trace_report
from dpaudit.reports.audit_report import (
    headline,
    is_expected,
    notes_of,
    reason,
    statements,
    unable,
    warnings_of,
)
from dpaudit.reports.bounds_report import bounds, may_miss
from dpaudit.reports.layout import laid_out, padded, pasted, row, width_of, wrap
from dpaudit.wording import UNSEEDED, counted, in_a_line, report_width, shortened, visible

# Width of the column of verdicts, and largest width of the column of names, in columns of a
# terminal.
_VERDICT, _MAX_NAME = max(len(verdict.value) for verdict in Verdict), 34
# Shown in place of a verdict for an audit that was not run.
NOT_RUN = "not run"
_SHARED = (
    "Audits with the same seed share their random numbers: their false alarms are correlated, and "
    "a rerun with that seed repeats the same draws."
)


def render(result: AuditResult, *, verbose: int = 0, in_batch: bool = False) -> str:
    """Return the report of one audit, without a final newline. Its first word is the verdict.

    verbose: 1 also shows every pair and event, and the steps that led to the result.
    in_batch: leave out notes that the summary of several audits repeats.
    """
    rows, meaning = statements(result, verbose)
    # The headline already contains the warnings that fail the audit.
    warnings = [text for text in warnings_of(result) if text not in result.failing_warnings]
    notes = [text for text in notes_of(result) if not (in_batch and text == UNSEEDED)]
    for label, texts in (("warning", warnings), ("note", notes)):
        rows += [line for text in texts for line in row(label, text)]
    lines = [*wrap(headline(result), further="  "), "", *laid_out(rows), *_commands(result)]
    python = inputs_report.snippet(result)
    if python is not None and (verbose or inputs_report.command(result) is None):
        lines += ["", *(f"    {line}" for line in python.splitlines())]
    lines += laid_out(trace_report.details(result)) if verbose else []
    lines += ["", *laid_out(meaning)] if meaning else []
    return numbers.unglued("\n".join(lines))


def _commands(result: AuditResult) -> list[str]:
    """Return the commands with which a user can continue, each on one line, to copy it."""
    witness = inputs_report.command(result)
    lines = [] if result.command is None else [f"  repeat      {pasted(result.command)}"]
    if witness is not None:
        lines += [f"  reproduce   {pasted(witness)}"]
        lines += laid_out(row("", inputs_report.COMMANDS)) if result.command is not None else []
    unsettled = inputs_report.unsettled_command(result)
    lines += [] if unsettled is None else [f"  settle      {pasted(unsettled)}"]
    traced = trace_report.command(result, witness or result.command)
    return lines + ([] if traced is None else [f"  trace       {pasted(traced)}"])


def render_line(result: AuditResult) -> str:
    """Return the verdict of one audit and its reason as one line."""
    return numbers.unglued(in_a_line(headline(result)))


def render_warnings(result: AuditResult) -> list[str]:
    """Return the warnings of one audit, each as one line."""
    lines = (in_a_line(f"warning: {result.name}: {text}") for text in warnings_of(result))
    return list(map(numbers.unglued, lines))


def render_remarks(result: AuditResult) -> list[str]:
    """Return the warnings of an audit as indented lines."""
    remarks = [wrap(f"warning: {text}", "  ", "    ") for text in warnings_of(result)]
    return [numbers.unglued(line) for lines in remarks for line in lines]


def name_width(names: Iterable[str]) -> int:
    """Return the width of the column with the names of audits, in columns of a terminal."""
    return min(_MAX_NAME, max((width_of(visible(name)) for name in names), default=0))


def render_row(result: AuditResult, name_columns: int) -> str:
    """Return an audit as one line that begins with the verdict and a name of `name_columns`
    columns. If there is room, it ends with the leak that the audit may miss."""
    if is_expected(result) or (result.verdict is Verdict.VIOLATION and not result.expect):
        text = bounds(result)[0].brief(result)
    elif result.underpowered is not None:
        text = unable(result)
    elif result.failing_warnings:
        text = f"failed by {counted(len(result.failing_warnings), 'warning')} (strict)"
    else:
        text = f"expected: {result.expect}" if result.expect else ""
    name = padded(shortened(visible(result.name), name_columns), name_columns)
    line = f"{result.verdict.value:<{_VERDICT}}  {name}  {text}"
    missed = may_miss(result)
    power = f"{', ' if text else ''}may miss {missed}" if missed else ""
    line += power if width_of(line + power) <= report_width() else ""
    return numbers.unglued(line).rstrip()


def render_not_run(name: str, width: int) -> str:
    """Return the line of a batch for an audit that was not run, with a name of `width` columns."""
    return f"{NOT_RUN:<{_VERDICT}}  {shortened(visible(name), width)}"


def title(are_met: Sequence[bool], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return words for the number of audits and of unexpected results, and whether the run is
    complete. `are_met` has one entry per audit: whether its result is as expected."""
    ended, unmet = len(are_met), are_met.count(False)
    unexpected = f": {unmet:,} not as expected" if unmet else ""
    if ended >= planned:
        return f"{counted(ended, 'privacy audit')}{unexpected or ', as expected'}"
    is_stopped = ended + len(not_run) >= planned
    how = f"{len(not_run):,} not run" if is_stopped else "the run did not end"
    return f"{ended:,} of {counted(planned, 'privacy audit')}, {how}{unexpected}"


def unended(ended: int, planned: int, not_run: Sequence[str] = ()) -> str:
    """Return a remark if the run ended before all planned audits were made. Return "" if all were
    made, or if a failure stopped the run, since `stopped` makes that remark."""
    if ended + len(not_run) >= planned:
        return ""
    return f"{ended} of {counted(planned, 'audit')}: the run did not end"


def stopped(not_run: Sequence[str]) -> str:
    """Return the remark that a failure stopped the run, with the number of audits in `not_run`."""
    verb = "was" if len(not_run) == 1 else "were"
    left_out = f"{counted(len(not_run), 'audit')} {verb} not run"
    return f"A failure stopped the run (-x, --maxfail): {left_out}."


def render_summary(
    results: Sequence[AuditResult], not_run: Sequence[str] = (), *, in_full: bool = False
) -> str:
    """Return a table with the number of audits for each verdict. Below it are the name, the reason
    and the command of each unexpected result.

    in_full: whether full reports of the unexpected results were printed above. If so, the summary
        leaves out likely causes, the texts of errors and, if only one result is unexpected, its
        reason. If not, an error with the same text as an earlier one names the earlier audit.
    """
    lines = [*_table(results), *(["", *wrap(stopped(not_run))] if not_run else [])]
    unexpected = [result for result in results if not is_expected(result)]
    # Maps the text of each error that was printed to the name of its audit.
    errors: dict[str, str] = {}
    for result in unexpected:
        wanted = f" (expected: {result.expect})" if result.expect else ""
        lines += ["", *wrap(f"{result.name}: {result.verdict.value}{wanted}")]
        text, is_error = reason(result), result.verdict is Verdict.ERROR
        if not (in_full and (is_error or len(unexpected) == 1)):
            same = errors.setdefault(text, result.name) if is_error else result.name
            lines += wrap(text if same == result.name else f"the same error as {same}", "  ", "  ")
        cause = "" if in_full else trace_report.briefly(result)
        lines += wrap(cause, "  ", "  ") if cause else []
        lines += [f"  {pasted(result.command)}"] if result.command else []
    unseeded = sum(UNSEEDED in notes_of(result) for result in results)
    remarks = [f"Note: in {counted(unseeded, 'audit')}, {UNSEEDED}."] if unseeded else []
    chance = [line for text in [*remarks, *chances(results)] for line in wrap(text)]
    return numbers.unglued("\n".join([*lines, *([""] if chance else []), *chance]))


def _table(results: Sequence[AuditResult]) -> list[str]:
    tally = Counter((result.verdict, is_expected(result)) for result in results)
    lines = [f"{counted(len(results), 'audit'):<{_VERDICT}}  as expected  not as expected"]
    for verdict in Verdict:
        met, unmet = tally[verdict, True], tally[verdict, False]
        if met or unmet:
            lines.append(f"{verdict.value:<{_VERDICT}}  {met or '-':>11}  {unmet or '-':>15}")
    return lines


def chances(results: Sequence[AuditResult]) -> list[str]:
    """Return sentences on the probability that at least one of the audits gives a false alarm."""
    chance = _false_alarms(results)
    # If two audits draw with the same seed, `_SHARED` says that their false alarms are correlated.
    # Audits of recorded outputs do not draw, so their seeds do not matter here. Fresh draws have
    # seeds of their own.
    seeds = [
        result.seed
        for result in results
        if result.certificates and not (result.certificates[0].evidence.recording or result.fresh)
    ]
    shared = [_SHARED] if len(set(seeds)) < len(seeds) else []
    return [*([chance] if chance else []), *shared, *nights_report.summary(results)]


def _false_alarms(results: Sequence[AuditResult]) -> str:
    by_chance = [result for result in results if result.by_pair and result.ending.by_chance]
    alphas = [1 - result.confidence for result in by_chance if result.family is None]
    shared = (result.family for result in by_chance)
    families = {family.name: family for family in shared if family is not None}
    if families:
        return _family_alarms(list(families.values()), alphas)
    if not alphas:
        return ""
    together = numbers.error_level(min(1.0, sum(alphas)))
    if len(alphas) == 1:
        return f"The chance of a false alarm is at most {together}."
    by_audit = "" if len(set(alphas)) > 1 else f"{numbers.error_level(alphas[0])} for each audit, "
    return f"Chance of a false alarm: at most {by_audit}{together} together."


def _family_alarms(families: Sequence[Family], other_alphas: Sequence[float]) -> str:
    """Return the probability that a run with families of audits gives any false alarm."""
    alphas = [1 - family.confidence for family in families]
    if len(families) == 1 and not other_alphas:
        together = numbers.error_level(alphas[0])
        if families[0].size == 1:
            return f"The chance of a false alarm is at most {together}."
        of = counted(families[0].size, "audit")
        return f"Chance of any false alarm: at most {together} for all {of} together (Holm)."
    by_family = ", ".join(
        f"{numbers.error_level(alpha)} for the {counted(family.size, 'audit')} of {family.name} "
        "(Holm)"
        for alpha, family in zip(alphas, families, strict=True)
    )
    total = numbers.error_level(min(1.0, sum(alphas) + sum(other_alphas)))
    return (
        f"Chance of any false alarm: at most {by_family}, {total} for all audits of the run "
        "together."
    )


def entry(result: AuditResult) -> AuditResult:
    """Return the result itself, from which `document` makes the text report."""
    return result


def document(results: Sequence[AuditResult], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return the text report of one audit, or of several with details of unexpected results."""
    parts: list[str] = []
    if len(results) == 1 and not not_run:
        parts.append(render(results[0]))
    else:
        width = name_width([*(result.name for result in results), *not_run])
        for result in results:
            parts.append(render_row(result, width))
            parts += render_remarks(result) if is_expected(result) else []
        parts += [render_not_run(name, width) for name in not_run]
        unexpected = [result for result in results if not is_expected(result)]
        parts += [f"\n{render(result, in_batch=True)}" for result in unexpected]
        parts += ["", render_summary(results, not_run, in_full=True)]
    missing = unended(len(results), planned, not_run)
    parts += [f"\n{missing}."] if missing else []
    return "\n".join([*parts, ""])
