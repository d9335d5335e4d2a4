"""`dpaudit report`: recheck the results of `dpaudit run --json`, and show them again."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.cli import exit_codes
from dpaudit.cli.flags import some_flags
from dpaudit.cli.output import Printer
from dpaudit.cli.process.streams import set_apart
from dpaudit.cli.saving import Results, destinations
from dpaudit.errors import DpauditError, UsageError
from dpaudit.inputs.files import piped, read_text, reading
from dpaudit.reports.batch import unended
from dpaudit.reports.json import read_document
from dpaudit.reports.layout import wrap

_UNSCHEDULED = (
    " The file has an older format without the schedule, so the check cannot notice a truncated "
    "record."
)
_UNSEEN = (
    "A record cannot show that the draws really came from the mechanism, that nothing was left "
    "out at its end, or that bets and events were fixed before their draws. --rerun repeats the "
    "draws if the seed controls them."
)


@click.command
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--rerun",
    is_flag=True,
    help="Also repeat the audits with their seeds, and compare the results.",
)
@some_flags(quiet="Print one line for each audit.")
@some_flags("report", "verbose", "debug")
def report(file: Path, rerun: bool, quiet: bool, report: list[str], verbose: int) -> int:
    """Recompute the wealth, bounds and p-values in FILE from the draws recorded there, and show
    the audits as the run did.

    Exit code 0 if all numbers agree, whatever the verdicts; 3 if one differs, or the run did not
    end.
    """
    results, planned = read_results(file)
    saved = Results(destinations(None, report, [file]), sys.stdout, planned=planned)
    names = [result.name for result in results]
    printer = Printer(names, quiet=quiet, verbose=verbose, to=saved.beside)
    disagreements = []
    for result in results:
        disagreements += [f"{result.name}: {text}" for text in _recheck(file, result)]
        printer.show(result)
        saved.add(result)
    disagreements += _recheck_families(results, planned)
    printer.summarise(results)
    saved.finish()
    ended = [result for result in results if result.verdict is not Verdict.ERROR]
    if rerun and not disagreements:
        from dpaudit.cli.rerun import differences

        with set_apart():
            for result in ended:
                found = differences(result, quiet=quiet)
                disagreements += [f"{result.name}: {text}" for text in found]
    for text in disagreements:
        click.echo(f"error: {file}: {text}", err=True)
    if disagreements:
        return exit_codes.FAILURE
    if not quiet:
        said = wrap(_said(ended, len(results) - len(ended), rerun=rerun))
        click.echo("\n" + "\n".join(said), file=saved.beside)
    missing = unended(len(results), planned)
    if missing:
        click.echo(f"error: {file}: {missing}", err=True)
        return exit_codes.FAILURE
    return exit_codes.NOTHING_FOUND


def _said(ended: Sequence[AuditResult], errors: int, *, rerun: bool) -> str:
    """Return what was checked, and what the record does not show. errors: audits without a
    verdict."""
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
    unscheduled = "" if all(one.schedule or one.recording for one in drawn) else _UNSCHEDULED
    return f"{said}{unscheduled} {_UNSEEN}"


def read_results(file: Path) -> tuple[list[AuditResult], int]:
    """Return the results in a file, and how many there were to be. Raises UsageError, and
    ContradictoryFile for a file that was changed."""
    if file == Path("-") and sys.stdin is None:
        raise UsageError("standard input is closed; name a file of results, or pipe one")
    if file.suffix in (".yaml", ".yml"):
        raise UsageError(
            f"{file} is a file of audits; dpaudit run {file} --json FILE writes their results"
        )
    with reading(file):
        is_piped = file == Path("-")
        try:
            text = piped(sys.stdin.buffer).decode("utf-8-sig") if is_piped else read_text(file)
        except UnicodeDecodeError as error:
            remedy = "name a file that dpaudit run --json wrote"
            raise UsageError(f"it cannot be read, since it is not text; {remedy}") from error
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
    except Exception as error:  # what the bettors believed has no declared type to be checked by
        raise UsageError(
            f"{file}: {result.name} cannot be rechecked, so the file is damaged: "
            f"{type(error).__name__}: {error}"
        ) from error
