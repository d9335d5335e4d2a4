"""`dpaudit check`: everything that `dpaudit run` would load, and all that is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli import exit_codes
from dpaudit.cli.group import DEBUG, debug_option, describe_error, print_traceback
from dpaudit.cli.process.streams import kept, set_apart
from dpaudit.wording import counted

if TYPE_CHECKING:
    from dpaudit.config.problems import Locate


@click.command
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@debug_option
@click.pass_context
def check(ctx: click.Context, /, files: tuple[Path, ...]) -> int:
    """Check configuration files as far as that can be done without a draw: keys, values, claims,
    inputs, and whether mechanisms can be imported and made.

    Exit code 0 if nothing is wrong, else 2; every problem of every file is a line.
    """
    # PyYAML and NumPy are not imported for other commands.
    from dpaudit.config.checking import check_config

    stdout = ctx.with_resource(set_apart())
    wrong = 0
    for file in dict.fromkeys(files):
        found = check_config(file)
        problems = [describe_error(error) for error in found.problems]
        problems += _unloadable(found.specs, debug=bool(ctx.meta.get(DEBUG)))
        for text in sorted(problems, key=_line):
            click.echo(text, err=True)
        wrong += len(problems)
        if not problems:
            said = f"{file}: {counted(found.audits, 'audit')}"
            for text in dict.fromkeys(_underpowered(found.specs)):
                click.echo(text, err=True)
            click.echo(said, file=stdout)
    if not wrong:
        return exit_codes.NOTHING_FOUND
    click.echo(counted(wrong, "problem"), err=True)
    return exit_codes.USAGE


def _unloadable(specs: Iterable[tuple[Locate, AuditSpec]], *, debug: bool) -> Iterator[str]:
    """Yield why audits cannot be loaded, each reason of an entry once."""
    from dpaudit.auditing.engine import check_attacks, check_mechanism

    seen = set()
    for locate, spec in specs:
        for key, loads in (("mechanism", check_mechanism), ("attacks", check_attacks)):
            try:
                with kept():
                    loads(spec)
            except (Exception, SystemExit) as error:  # noqa: BLE001  # a line, as all others are
                text = f"error: {locate((key,))}{_reason(error)}"
                if text in seen:
                    continue
                seen.add(text)
                if debug:
                    print_traceback(error)
                yield text


def _line(text: str) -> int:
    """Return the line that a message names; 0 for one that is about the whole file."""
    found = re.match(r"error: .*?:(\d+): ", text)
    return 0 if found is None else int(found[1])


def _reason(error: BaseException) -> str:
    if isinstance(error, Exception):
        return describe_error(error).removeprefix("error: ")
    return f"{type(error).__name__}: {error}, raised while the mechanism was loaded"


def _underpowered(specs: Iterable[tuple[Locate, AuditSpec]]) -> Iterator[str]:
    from dpaudit.auditing.underpowered import foreseen

    for locate, spec in specs:
        reason = None if spec.allow_underpowered else foreseen(spec)
        if reason is not None:
            yield f"warning: {locate(())}{spec.name}: under-powered: {reason}"
