"""`dpaudit compare`: find regressions between two files that `dpaudit run --json` wrote."""

from __future__ import annotations

from pathlib import Path

import click

from dpaudit.certificates.result import Interrupted
from dpaudit.cli import exit_codes
from dpaudit.cli.click_classes import AuditCommand
from dpaudit.cli.flags import some_flags
from dpaudit.cli.report import read_results
from dpaudit.cli.saving import add_at_end, destinations
from dpaudit.errors import DpauditError, UsageError
from dpaudit.reports.comparison import compare as compared
from dpaudit.reports.comparison import render
from dpaudit.reports.json import Document
from dpaudit.reports.text import unended

_FILE = click.Path(path_type=Path, allow_dash=True)


@click.command(cls=AuditCommand)
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@some_flags("debug")
def compare(old: Path, new: Path) -> int:
    """Compare the results in NEW with those in OLD, audit by audit, in a table of Markdown. dpaudit
    run --json writes such files.

    \b
    Exit codes:
      0  no regression
      1  regression: a new violation or error, a missing audit, less power, or a
         new audit that is not as expected
      2  files that cannot be compared, or a NEW whose run did not end
    """
    if old == new or (old.exists() and new.exists() and old.samefile(new)):
        raise UsageError(
            f"{old} and {new} are one file, in which nothing can have changed", code="file-twice"
        )
    read = [(file, _read(file)) for file in (old, new)]
    missing = [(file, _missing(saved)) for file, saved in read]
    remarks = [f"{file}: {remark}" for file, remark in missing if remark]
    (_, old_results), (_, new_results) = read
    comparison = compared(old_results.results, new_results.results, remarks, new_results.not_run)
    text = render(comparison)
    click.echo(text, nl=False)
    for summary in destinations(None, [], [old, new]):  # the summary of the step in GitHub Actions
        add_at_end(Path(summary.file), text)
    if comparison.regressions:
        return exit_codes.VIOLATION
    # The file NEW may lack audits, because its run was interrupted. Such an audit might have shown
    # a regression, so then the comparison fails; otherwise NEW shows no regression.
    return exit_codes.USAGE if missing[1][1] else exit_codes.NOTHING_FOUND


def _missing(saved: Document) -> str:
    """Return a message if the saved run was interrupted or left out audits, else ""."""
    left_out = f"not run: {', '.join(saved.not_run)}" if saved.not_run else ""
    complete = [result for result in saved.results if not isinstance(result.ending, Interrupted)]
    return unended(len(complete), saved.planned, saved.not_run) or left_out


def _read(file: Path) -> Document:
    """Return the results in a file. Raises UsageError, also if the file was changed by hand."""
    try:
        return read_results(file)
    except UsageError:
        raise
    except DpauditError as error:
        raise UsageError(*error.parts, code=error.code) from error
