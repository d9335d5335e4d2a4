"""`dpaudit report`: recheck the results of `dpaudit run --json`, and show them again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from dpaudit.auditing.result import AuditResult
from dpaudit.cli import exit_codes
from dpaudit.cli.group import debug_option
from dpaudit.cli.output import Printer
from dpaudit.errors import DpauditError, UsageError
from dpaudit.reports.json import from_json
from dpaudit.targets.files import near_file


@click.command(short_help="Recheck and show the results of run --json.")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("-q", "--quiet", is_flag=True, help="One line for each audit.")
@click.option(
    "-v", "--verbose", count=True, help="Every pair of inputs, and how the result came about."
)
@debug_option
def report(file: Path, quiet: bool, verbose: int) -> int:
    """Recompute wealth, bounds and p-values of FILE from the draws recorded in it, and show the
    audits as the run did.

    Exits 0 when the numbers agree, whatever the verdicts; 3 when one does not.
    """
    results = _read(file)
    printer = Printer(quiet=quiet, verbose=verbose)
    disagreements = []
    for result in results:
        disagreements += [f"{result.name}: {text}" for text in _recheck(file, result)]
        printer.show(result)
    printer.summarise(results)
    for text in disagreements:
        click.echo(f"error: {file}: {text}", err=True)
    if disagreements:
        return exit_codes.FAILURE
    if not quiet:
        click.echo(f"\nRechecked: {_follows(results)}.")
    return exit_codes.NOTHING_FOUND


def _follows(results: Sequence[AuditResult]) -> str:
    exact = any(result.exact for result in results)
    if exact and not any(result.certificates for result in results):
        return "the numbers follow from the recorded laws"
    laws = ", and exact numbers from the laws" if exact else ""
    return f"wealth, bounds and p-values follow from the recorded draws{laws}"


def _read(file: Path) -> list[AuditResult]:
    try:
        with click.open_file(str(file), encoding="utf-8") as stream:
            return from_json(stream.read())
    except FileNotFoundError:
        raise UsageError(f"there is no file {str(file)!r}.{near_file(file)}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    except DpauditError as error:
        raise type(error)(f"{file}: {error}") from error


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
