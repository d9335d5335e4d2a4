"""`dpaudit report`: check the numbers in a file of results, show its reports, and repeat its
audits."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from dpaudit.certificates.certificate import Certificate
from dpaudit.certificates.result import AuditResult, Interrupted, Verdict
from dpaudit.cli import exit_codes
from dpaudit.cli.batch import Printer, auditing, run_one
from dpaudit.cli.flags import some_flags
from dpaudit.cli.messages import folded
from dpaudit.cli.options import AuditCommand, option
from dpaudit.cli.process import undisturbed
from dpaudit.cli.process.streams import set_apart
from dpaudit.cli.saving import STDOUT, Results, check_writable, destinations, write_whole
from dpaudit.composed import flat_fields, replace
from dpaudit.errors import DpauditError, UsageError
from dpaudit.inputs.files import piped, read_text, reading
from dpaudit.reports.findings import as_lists
from dpaudit.reports.json import Planned, read_document
from dpaudit.reports.layout import wrap
from dpaudit.reports.records import encode
from dpaudit.reports.text import unended
from dpaudit.wording import counted, shown, visible

_UNSEEN = (
    "A record cannot show that the draws really came from the mechanism, that nothing was left "
    "out at its end, or that bets and events were fixed before their draws. --rerun repeats the "
    "draws if the seed controls them."
)


@click.command(cls=AuditCommand)
@click.argument(
    "file", required=False, metavar="FILE", type=click.Path(path_type=Path, allow_dash=True)
)
@click.option(
    "--rerun",
    is_flag=True,
    help="Also repeat the audits, and compare the results. The seeds are those of the file.",
)
@option(
    "--badge",
    is_flag=False,
    flag_value=STDOUT,
    metavar="[FILE.svg]",
    help="Print a citation of FILE and a badge. They replace the reports. With FILE.svg, the badge "
    "is saved there.",
)
@some_flags(quiet="Print one line for each audit.")
@some_flags("report", "verbose", "debug")
@click.pass_context
def report(
    ctx: click.Context,
    /,
    file: Path | None,
    rerun: bool,
    badge: str | None,
    quiet: bool,
    report: list[str],
    verbose: int,
) -> int:
    """Recompute the wealth, bounds and p-values in FILE from its recorded draws, and show the
    reports.

    Exit code 0 if all numbers agree, whatever the verdicts; 3 if a number differs, or if the run
    did not end.
    """
    if file is None:
        raise _without_a_file(ctx, badge)
    if badge is not None:
        _check_badge(badge, file, plain=not (quiet or verbose or report))
    results, planned = read_results(file)
    saved = Results(destinations(None, report, [file]), sys.stdout, planned=planned)
    saved.not_run = planned.not_run
    names = [*(result.name for result in results), *planned.not_run]
    printer = Printer(names, quiet=quiet, verbose=verbose, to=saved.beside)
    disagreements = []
    for result in results:
        disagreements += [f"{result.name}: {text}" for text in _recheck(file, result)]
        saved.add(result)
        if badge is None:
            printer.show(result)
    disagreements += _recheck_families(results, planned)
    if badge is None:
        printer.summarise(results, planned.not_run)
    ended = [result for result in results if result.verdict is not Verdict.ERROR]
    if rerun and not disagreements:
        with set_apart():
            for result in ended:
                found = differences(result, quiet=quiet)
                disagreements += [f"{result.name}: {text}" for text in found]
    for text in disagreements:
        click.echo(folded(visible(f"error: {file}: {text}")), err=True)
    if disagreements:
        if report:
            click.echo("error: --report: nothing was written, since numbers disagree", err=True)
        return exit_codes.FAILURE
    if badge is None:
        saved.finish()
    if not quiet and badge is None:
        said = wrap(_said(ended, len(results) - len(ended), rerun=rerun))
        click.echo("\n" + "\n".join(said), file=saved.beside)
    missing = unended(len(results), planned, planned.not_run)
    if missing:
        click.echo(folded(visible(f"error: {file}: {missing}")), err=True)
        return exit_codes.FAILURE
    if badge is not None:
        _show_badge(badge, file, results)
    return exit_codes.NOTHING_FOUND


def _without_a_file(ctx: click.Context, badge: str | None) -> Exception:
    """Return the error for a command line without FILE. If --badge was given, the error says that
    its value may have been meant as FILE."""
    if badge not in (None, STDOUT):
        return UsageError(
            f"--badge took {badge!r}; put FILE first: dpaudit report {badge} --badge",
            code="arguments-wrong",
        )
    return click.MissingParameter(ctx=ctx, param=ctx.command.params[0])


def _check_badge(badge: str, file: Path, *, plain: bool) -> None:
    """Raise UsageError if the option --badge cannot be used: next to options for reports, without a
    file of results, or with a path to which no SVG image can be written.

    badge: path of the image; "-" for no image.
    file: file of results; "-" for standard input.
    plain: whether the options for reports (-q, -v, --report) are absent.
    """
    if not plain:
        raise UsageError(
            "--badge is printed in place of reports; leave out -q, -v and --report",
            code="options-conflict",
        )
    if file == Path("-"):
        raise UsageError("--badge states the digest of a file; name one", code="option-missing")
    if badge != STDOUT:
        if not badge.endswith(".svg"):
            raise UsageError(
                f"--badge {badge!r} must end in .svg; put FILE before --badge",
                code="option-invalid",
            )
        check_writable(badge, [file])


def _show_badge(badge: str, file: Path, results: Sequence[AuditResult]) -> None:
    """Print a statement on each result that others can cite, and write the badge, an image that
    shows the verdict. Call this only after the numbers of the results have been checked."""
    from dpaudit.reports import badge as badges
    from dpaudit.reports.html.page import clock

    date = clock().strftime("%Y-%m-%d")
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    said = [badges.statement(one, digest, date) for one in results]
    for line in said:
        click.echo(line)
    shown = badges.badge(results)
    if badge != STDOUT:
        write_whole(Path(badge), badges.svg(shown, "\n".join(said)))
    click.echo("\n" + badges.markdown(shown, None if badge == STDOUT else badge))


def _said(ended: Sequence[AuditResult], errors: int, *, rerun: bool) -> str:
    """Return sentences on the numbers that the command has checked, and on the facts that no check
    of a file can prove.

    ended: results with a verdict.
    errors: number of audits that ended with an error.
    rerun: whether the audits were repeated.
    """
    if not ended:
        subject = "the audit" if errors == 1 else "every audit"
        return f"There was nothing to recheck: {subject} ended with an ERROR."
    drawn = [one for result in ended for one in result.certificates]
    blocks = ", and their blocks from the schedule" if any(one.schedule for one in drawn) else ""
    follows = {
        f"wealth, bounds and p-values follow from the recorded draws{blocks}": drawn,
        "bounds and p-values follow from the recorded guesses": [
            one for one in ended if one.ending.by_chance and not one.certificates
        ],
        "exact numbers follow from the recorded laws": [
            one for one in ended if not one.ending.by_chance
        ],
    }
    said = f"Rechecked: {'; '.join(text for text, found in follows.items() if found)}."
    repeated = rerun and bool(drawn)
    if errors:
        said += f" Not rechecked{' or repeated' * repeated}: {errors} that ended with an ERROR."
    if not drawn:
        return said
    if repeated:
        return f"{said} Repeated with their seeds, the audits gave the same draws."
    return f"{said} {_UNSEEN}"


def read_results(file: Path) -> tuple[list[AuditResult], Planned]:
    """Return the results in `file`, and how many results its run planned.

    Raises UsageError if the file cannot be read, and ContradictoryFile if its numbers contradict
    each other, which shows that the file was changed.
    """
    if file == Path("-") and sys.stdin is None:
        raise UsageError(
            "standard input is closed; name a file of results, or pipe one", code="file-unreadable"
        )
    if file.suffix in (".yaml", ".yml"):
        raise UsageError(
            f"{file} is a file of audits; dpaudit run {file} --json FILE writes their results",
            code="wrong-kind-of-file",
        )
    with reading(file):
        is_piped = file == Path("-")
        try:
            text = piped(sys.stdin.buffer).decode("utf-8-sig") if is_piped else read_text(file)
        except UnicodeDecodeError as error:
            remedy = "name a file that dpaudit run --json wrote"
            raise UsageError(
                f"it cannot be read, since it is not text; {remedy}", code="file-malformed"
            ) from error
        with undisturbed():
            return read_document(text)


def _recheck_families(results: Sequence[AuditResult], planned: int) -> list[str]:
    if all(one.family is None for one in results):
        return []
    from dpaudit.auditing.recheck import recheck_families

    return recheck_families(results, has_ended=len(results) >= planned)


def _recheck(file: Path, result: AuditResult) -> list[str]:
    from dpaudit.auditing.recheck import recheck

    try:
        return recheck(result)
    except DpauditError:
        raise
    # Any exception is possible here. A damaged file may contain wrong states of the bettors, whose
    # wealth is the evidence against the claim. The states are not checked when the file is read,
    # only used when `recheck` recomputes the wealth.
    except Exception as error:
        raise UsageError(
            f"{file}: {result.name} cannot be rechecked, so the file is damaged: "
            f"{type(error).__name__}: {error}",
            code="results-damaged",
        ) from error


# Fields of a result that may differ when its audit is repeated: times, speed, number of processes,
# the request, paths (they depend on the working directory), and the trace (it may take too long).
# Warnings and versions are compared separately.
_ANOTHERS = (
    "seconds", "versions", "request", "resumed", "source", "command", "workers", "notes",
    "warnings", "first_failures", "first_version", "trace", "redrawn", "pace",
)  # fmt: skip


def differences(recorded: AuditResult, *, quiet: bool) -> list[str]:
    """Run an audit again with its seed. Return one sentence for each difference between the two
    results. Raises UsageError if the audit cannot be repeated, or if its repetition would prove
    nothing."""
    request, reason = recorded.request, _reason(recorded)
    if request is None or reason is not None:
        raise UsageError(f"{recorded.name} cannot be repeated: {reason}", code="rerun-impossible")
    from dpaudit.config.building import located_spec  # not needed without --rerun

    named = {"seed": recorded.seed, **as_lists(request["settings"])}
    folder = None if request["folder"] is None else Path(request["folder"])
    spec = located_spec(named, lambda path: f"{recorded.name}: ", folder)
    with auditing() as requests:
        again = run_one(spec, requests, spec.name, quiet=quiet)
    again = replace(again, family=recorded.family)  # other audits of the family decide its level
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
    """Return the reason why an audit cannot be repeated or why its repetition would prove nothing,
    or None if it can be repeated."""
    if recorded.request is None:
        return (
            "the file does not hold the request of the audit (the audit was started from Python, "
            "or used recorded outputs)"
        )
    if not all(one.reproducible for one in recorded.certificates):
        return "its seed does not control the mechanism, so a rerun has other draws"
    if isinstance(recorded.ending, Interrupted):
        return "it was interrupted, and a rerun would go on to its planned end"
    if any(one.schedule and one.schedule.by_clock for one in recorded.certificates):
        return "the clock set its number of draws (--time), and a rerun may take another number"
    return None


def _compared(recorded: AuditResult, again: AuditResult) -> Iterator[str]:
    names = [name for name in _names(recorded) if name != "ending"]
    by_pair = () if recorded.certificates else ("by_pair",)
    yield from _differences("", [*names, "verdict", "error", *by_pair], recorded, again)
    # A resumed run also has the warnings of the earlier run that wrote its journal. The repetition
    # has no journal, so warnings that it lacks are then left out of the comparison.
    kept = [one for one in recorded.warnings if not recorded.resumed or one in again.warnings]
    yield from _differences("", ("warnings",), replace(recorded, warnings=tuple(kept)), again)
    if len(recorded.certificates) != len(again.certificates):
        pairs = counted(len(recorded.certificates), "pair")
        yield f"{pairs} recorded, {len(again.certificates)} repeated"
        return
    # Imported inside the function: it imports NumPy, which other uses of the command do not need.
    from dpaudit.certificates.fixed_test import VERSION_WITH_LARGE_EVENTS, before_version_8

    first = recorded.first_version
    is_older = first is not None and first < VERSION_WITH_LARGE_EVENTS
    for one, other in zip(recorded.certificates, again.certificates, strict=True):
        if is_older:
            before = partial(before_version_8, point=other.betting_point)
            others = tuple(map(before, other.others))
            other = replace(other, fixed=before(other.fixed), others=others)
        yield from _differences(f"{one.pair}: ", _names(one), one, other)
        yield from _differences(f"{one.pair}: ", ("warnings", "notes"), one, other)


def _names(record: AuditResult | Certificate) -> list[str]:
    return [name for name in flat_fields(type(record)) if name not in _ANOTHERS]


def _differences(where: str, names: Iterable[str], one: Any, other: Any) -> Iterator[str]:
    for name in names:
        # Compare values in the form that files have, where NaN equals NaN and a tuple equals a
        # list.
        before, after = encode(getattr(one, name)), encode(getattr(other, name))
        if before != after:
            yield f"{where}{name}: recorded {shown(before)}, repeated {shown(after)}"
