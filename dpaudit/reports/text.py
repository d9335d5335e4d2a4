"""Audits as plain text of 80 columns: a full report for one, a line each and a summary for several.

`dpaudit list reports` prints the first sentence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from dpaudit.certificates.result import (
    AuditResult,
    Family,
    Interrupted,
    Verdict,
)
from dpaudit.inputs.neighbouring import EQUAL, EQUAL_INPUTS
from dpaudit.reports import numbers, searched, trace
from dpaudit.reports.bounds import bounds, may_miss
from dpaudit.reports.endings import VIEWS
from dpaudit.reports.findings import is_expected, unable
from dpaudit.reports.layout import (
    WIDTH,
    Item,
    glued,
    laid_out,
    padded,
    pasted,
    row,
    width_of,
    wrap,
)
from dpaudit.wording import UNSEEDED, counted, in_a_line, shortened, visible


class Statements(NamedTuple):
    """The rows of an audit (settings and result), and the sentences about their meaning."""

    rows: list[Item]
    meaning: list[Item]


def render(result: AuditResult, *, verbose: int = 0, in_batch: bool = False) -> str:
    """Return the report of one audit, without a final newline. Its first word is the verdict.

    verbose: 1 also shows every pair and event, and the steps that led to the result.
    in_batch: leave out notes that the summary of several audits repeats.
    """
    said = statements(result, verbose)
    rows = laid_out([*said.rows, *_remarks(result, in_batch)])
    lines = [*wrap(headline(result), further="  "), "", *rows]
    # Commands are not broken into lines, so that users can copy them.
    lines += [f"  repeat      {pasted(result.command)}"] if result.command is not None else []
    witness = python = None
    if result.searched is not None:
        witness = searched.command(result)
        python = searched.snippet(result) if verbose or witness is None else None
    if witness is not None:
        lines += [f"  reproduce   {pasted(witness)}"]
        lines += laid_out(row("", searched.COMMANDS)) if result.command is not None else []
    unsettled = searched.unsettled_command(result)
    lines += [f"  settle      {pasted(unsettled)}"] if unsettled is not None else []
    traced = trace.command(result, witness or result.command)
    lines += [f"  trace       {pasted(traced)}"] if traced is not None else []
    lines += [] if python is None else ["", *(f"    {line}" for line in python.splitlines())]
    lines += laid_out(trace.details(result)) if verbose else []
    meaning = ["", *laid_out(said.meaning)] if said.meaning else []
    return numbers.unglued("\n".join([*lines, *meaning]))


def statements(result: AuditResult, verbose: int) -> Statements:
    """Return the rows and sentences of an audit below its headline. They include neither warnings
    nor notes."""
    view = VIEWS[type(result.ending)]
    found = view.found(result, result.ending, verbose)
    rows = [
        *_asked(result),
        *found,
        *trace.rows(result),
        *([] if result.searched is None else searched.rows(result, verbose)),
        *(_time(result) if found and verbose else []),
    ]
    if result.resumed:
        rows += row("runs", f"{result.resumed + 1}: this audit was resumed from its journal")
    return Statements(rows, view.meaning(result, result.ending, verbose))


def render_line(result: AuditResult) -> str:
    """Return the verdict of one audit and its reason as one line."""
    return numbers.unglued(in_a_line(headline(result)))


def render_warnings(result: AuditResult) -> list[str]:
    """Return the warnings of one audit, each as one line."""
    said = (in_a_line(f"warning: {result.name}: {text}") for text in warnings_of(result))
    return list(map(numbers.unglued, said))


def headline(result: AuditResult) -> str:
    """Return one sentence: verdict, name, reason and, if the user stated one, the expected
    verdict."""
    is_met = result.meets_expectation
    is_able = result.underpowered is None and not result.failing_warnings
    said = f"{result.verdict.value}  {result.name}: {reason(result)}"
    if result.expect is None or result.verdict is Verdict.ERROR or (is_met and not is_able):
        return said
    return f"{said} (as expected)" if is_met else f"{said} (expected: {result.expect})"


def reason(result: AuditResult) -> str:
    """Return the reason for the verdict. If the audit fails only because it is strict (option
    `strict`: warnings are failures), add these warnings."""
    is_interrupted = isinstance(result.ending, Interrupted)
    is_unable = result.underpowered is not None and not is_interrupted
    if is_unable and result.verdict is not Verdict.ERROR:
        said = f"under-powered: {result.underpowered}"
    else:
        said = VIEWS[type(result.ending)].said(result, result.ending)
    failing = result.failing_warnings
    if not failing:
        return said
    if result.underpowered is not None and result.verdict is Verdict.NO_VIOLATION_FOUND:
        said += "; the claim is not refuted"
    fail = "warning fails" if len(failing) == 1 else f"{len(failing)} warnings fail"
    return f"{said}; strict: {'1 ' * (len(failing) == 1)}{fail} the audit: {'; '.join(failing)}"


def _asked(result: AuditResult) -> list[Item]:
    claim = result.claim
    where = f" ({result.source})" if result.source else ""
    rows = row("claim", f"{claim.describe()}, {claim.title}: {glued(claim.formula)}")
    if result.claimed_by is not None:
        rows += row("claimed by", result.claimed_by.describe())
    of_one_run = claim if result.repeated is None else result.repeated.claim
    if result.grouped is not None:
        each, size = result.grouped.claim.describe(), result.grouped.size
        rows += row("", f"{each} for one record, {of_one_run.describe()} for {size:,}")
    if result.repeated is not None:
        times = result.repeated.times
        rows += row("", f"{of_one_run.describe()} for one run, {claim.describe()} for {times}")
    return [*rows, *row("mechanism", f"{result.target}{where}")]


def _time(result: AuditResult) -> list[Item]:
    lines = row("seed", str(result.seed)) if result.certificates else []
    lines += row("workers", str(result.workers)) if result.workers is not None else []
    lines += row("time", numbers.duration(result.seconds))
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    return lines + row("versions", versions)


def _remarks(result: AuditResult, in_batch: bool) -> list[Item]:
    # The headline already contains the warnings that fail the audit.
    shown = [text for text in warnings_of(result) if text not in result.failing_warnings]
    said = [("warning", text) for text in shown]
    said += [("note", text) for text in notes_of(result) if not (in_batch and text == UNSEEDED)]
    return [line for label, text in said for line in row(label, text)]


def warnings_of(result: AuditResult) -> list[str]:
    """Return the warnings of an audit that its headline does not contain, without repetitions."""
    is_said = result.underpowered == EQUAL_INPUTS
    return [text for text in result.all_warnings if not (is_said and text == EQUAL)]


def notes_of(result: AuditResult) -> list[str]:
    """Return the notes of an audit without repetitions."""
    of_pairs = (text for one in result.by_pair for text in getattr(one, "notes", ()))
    seeded = [one for one in result.certificates if one.reproducible]
    budgets = [one.evidence.budget for one in seeded if one.evidence.by_clock]
    timed = [_TIMED.format(max(budgets))] if budgets else []
    paced = [result.pace] if result.pace else []
    return list(dict.fromkeys([*paced, *result.notes, *of_pairs, *timed]))


# The number is the largest budget of a pair of inputs.
_TIMED = (
    "the time limit planned the blocks of draws, so no command makes these draws again; with "
    "samples={} in place of time, reruns are equal"
)
# Width of the column of verdicts, in characters.
_VERDICT = max(len(one.value) for one in Verdict)
# Largest width of the column of names, in characters.
_MAX_NAME = 34
# Shown in place of a verdict for an audit that was not run.
NOT_RUN = "not run"
_SHARED = (
    "Audits with the same seed share their random numbers: their false alarms are correlated, and "
    "a rerun with that seed repeats the same draws."
)


def name_width(names: Iterable[str]) -> int:
    """Return the width of the column with the names of audits, in columns of a terminal."""
    return min(_MAX_NAME, max((width_of(visible(one)) for one in names), default=0))


def title(are_met: Sequence[bool], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return words for the number of audits, the number of unexpected results, and whether the run
    is complete.

    are_met: whether the result was as expected, for each audit.
    planned: number of audits of a complete run.
    not_run: names of audits that were not run, because the run stopped early.
    """
    ended, unmet = len(are_met), are_met.count(False)
    if ended < planned:
        is_stopped = ended + len(not_run) >= planned
        how = f"{len(not_run):,} not run" if is_stopped else "the run did not end"
        said = f"{ended:,} of {counted(planned, 'privacy audit')}, {how}"
        return f"{said}: {unmet:,} not as expected" if unmet else said
    said = counted(ended, "privacy audit")
    return f"{said}: {unmet:,} not as expected" if unmet else f"{said}, as expected"


def render_row(result: AuditResult, width: int) -> str:
    """Return an audit as one line that begins with the verdict. If 80 columns suffice, it ends with
    the leak that the audit may miss.

    width: width of the column of names.
    """
    if is_expected(result) or (result.verdict is Verdict.VIOLATION and not result.expect):
        said = bounds(result)[0].brief(result)
    elif result.underpowered is not None:
        said = unable(result)
    elif result.failing_warnings:
        said = f"failed by {counted(len(result.failing_warnings), 'warning')} (strict)"
    else:
        said = f"expected: {result.expect}" if result.expect else ""
    name = padded(shortened(visible(result.name), width), width)
    line = f"{result.verdict.value:<{_VERDICT}}  {name}  {said}"
    missed = may_miss(result)
    power = f"{', ' if said else ''}may miss {missed}" if missed else ""
    line += power if width_of(line + power) <= WIDTH else ""
    return numbers.unglued(line).rstrip()


def render_remarks(result: AuditResult) -> list[str]:
    """Return the warnings of an audit as indented lines."""
    every = [wrap(f"warning: {text}", "  ", "    ") for text in warnings_of(result)]
    return [numbers.unglued(line) for lines in every for line in lines]


def render_not_run(name: str, width: int) -> str:
    """Return the line of a batch for an audit that was not run.

    width: width of the column of names.
    """
    return f"{NOT_RUN:<{_VERDICT}}  {shortened(visible(name), width)}"


def render_summary(
    results: Sequence[AuditResult], not_run: Sequence[str] = (), *, in_full: bool = False
) -> str:
    """Return a table with the number of audits for each verdict, followed by the name, the reason
    and the command of each unexpected result.

    not_run: names of audits that were not run.
    in_full: whether full reports of the unexpected results were printed above. If so, the summary
        leaves out likely causes, the texts of errors and, if only one result is unexpected, also
        its reason. If not, an error with the same text as an earlier one names the earlier audit.
    """
    lines = [*_table(results), *(["", *wrap(stopped(not_run))] if not_run else [])]
    others = [one for one in results if not is_expected(one)]
    # Maps the text of each error that was printed to the name of its audit.
    errors: dict[str, str] = {}
    for result in others:
        wanted = f" (expected: {result.expect})" if result.expect else ""
        lines += ["", *wrap(f"{result.name}: {result.verdict.value}{wanted}")]
        text, is_error = reason(result), result.verdict is Verdict.ERROR
        if not (in_full and (is_error or len(others) == 1)):
            same = errors.setdefault(text, result.name) if is_error else result.name
            lines += wrap(text if same == result.name else f"the same error as {same}", "  ", "  ")
        cause = "" if in_full else trace.briefly(result)
        lines += wrap(cause, "  ", "  ") if cause else []
        lines += [f"  {pasted(result.command)}"] if result.command else []
    chance = [line for text in [*_unseeded(results), *chances(results)] for line in wrap(text)]
    return numbers.unglued("\n".join([*lines, *([""] if chance else []), *chance]))


def chances(results: Sequence[AuditResult]) -> list[str]:
    """Return sentences on the probability that at least one of the audits gives a false alarm."""
    chance = _false_alarms(results)
    # If two audits draw with the same seed, the sentence `_SHARED` says that their false alarms are
    # correlated. Audits of recorded outputs do not draw, so their seeds do not matter here.
    drawn = (
        one for one in results if one.certificates and not one.certificates[0].evidence.recording
    )
    seeds = [one.seed for one in drawn]
    return [*([chance] if chance else []), *([_SHARED] if len(set(seeds)) < len(seeds) else [])]


def _unseeded(results: Sequence[AuditResult]) -> list[str]:
    """Return one note about all audits that a seed cannot repeat, or [] if there are none."""
    number = sum(UNSEEDED in notes_of(one) for one in results)
    return [f"Note: in {counted(number, 'audit')}, {UNSEEDED}."] if number else []


def unended(ended: int, planned: int, not_run: Sequence[str] = ()) -> str:
    """Return a remark if the run ended before all planned audits were made. Return "" if all
    were made, or if a failure stopped the run; `stopped` returns the remark for that case."""
    if ended + len(not_run) >= planned:
        return ""
    return f"{ended} of {counted(planned, 'audit')}: the run did not end"


def stopped(not_run: Sequence[str]) -> str:
    """Return the remark that a failure stopped the run, with the number of audits that were not
    run."""
    verb = "was" if len(not_run) == 1 else "were"
    left_out = f"{counted(len(not_run), 'audit')} {verb} not run"
    return f"A failure stopped the run (-x, --maxfail): {left_out}."


def entry(result: AuditResult) -> AuditResult:
    """Return the data about one audit that `document` needs, as every format of reports does. The
    text report needs the result itself."""
    return result


def document(results: Sequence[AuditResult], planned: int, not_run: Sequence[str] = ()) -> str:
    """Return the text report of one audit, or of several audits with details of unexpected results.

    planned: number of audits of a complete run.
    not_run: names of audits that were not run, because the run stopped early.
    """
    parts: list[str] = []
    if len(results) == 1 and not not_run:
        parts.append(render(results[0]))
    else:
        width = name_width([*(one.name for one in results), *not_run])
        for one in results:
            parts += [render_row(one, width), *(render_remarks(one) if is_expected(one) else [])]
        parts += [render_not_run(name, width) for name in not_run]
        parts += [f"\n{render(one, in_batch=True)}" for one in results if not is_expected(one)]
        parts += ["", render_summary(results, not_run, in_full=True)]
    missing = unended(len(results), planned, not_run)
    parts += [f"\n{missing}."] if missing else []
    return "\n".join([*parts, ""])


def _table(results: Sequence[AuditResult]) -> list[str]:
    tally = Counter((one.verdict, is_expected(one)) for one in results)
    lines = [f"{counted(len(results), 'audit'):<{_VERDICT}}  as expected  not as expected"]
    for verdict in Verdict:
        met, unmet = tally[verdict, True], tally[verdict, False]
        if met or unmet:
            lines.append(f"{verdict.value:<{_VERDICT}}  {met or '-':>11}  {unmet or '-':>15}")
    return lines


def _false_alarms(results: Sequence[AuditResult]) -> str:
    """Return the probability of a false alarm in words, or "" if no result depends on chance."""
    by_chance = [one for one in results if one.by_pair and one.ending.by_chance]
    alphas = [1 - one.confidence for one in by_chance if one.family is None]
    families = {one.family.name: one.family for one in by_chance if one.family is not None}
    if families:
        return _family_alarms(list(families.values()), alphas)
    if not alphas:
        return ""
    together = numbers.error_level(min(1.0, sum(alphas)))
    if len(alphas) == 1:
        return f"The chance of a false alarm is at most {together}."
    each = "" if len(set(alphas)) > 1 else f"{numbers.error_level(alphas[0])} for each audit, "
    return f"Chance of a false alarm: at most {each}{together} together."


def _family_alarms(families: Sequence[Family], others: Sequence[float]) -> str:
    """Return the probability of any false alarm, in words, for a run in which some audits form
    families. The audits of a family share one error probability (Holm).

    families: the families of the run.
    others: error probabilities of the audits that belong to no family.
    """
    alphas = [1 - one.confidence for one in families]
    if len(families) == 1 and not others:
        together = numbers.error_level(alphas[0])
        if families[0].size == 1:
            return f"The chance of a false alarm is at most {together}."
        of = counted(families[0].size, "audit")
        return f"Chance of any false alarm: at most {together} for all {of} together (Holm)."
    each = ", ".join(
        f"{numbers.error_level(alpha)} for the {counted(one.size, 'audit')} of {one.name} (Holm)"
        for alpha, one in zip(alphas, families, strict=True)
    )
    total = numbers.error_level(min(1.0, sum(alphas) + sum(others)))
    return f"Chance of any false alarm: at most {each}, {total} for all audits of the run together."
