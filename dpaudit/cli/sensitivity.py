"""`dpaudit sensitivity`: neighbouring inputs whose answers are further apart than claimed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO

import click

from dpaudit.auditing.options import OPTIONS
from dpaudit.cli import exit_codes
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.files import check_writable, write_whole
from dpaudit.cli.flags import given_settings, some_flags
from dpaudit.cli.options import Choice, option
from dpaudit.cli.process.interruption import heeded
from dpaudit.cli.process.leaving import kept_from_leaving
from dpaudit.cli.process.parent import end_with_parent
from dpaudit.cli.process.streams import set_apart
from dpaudit.cli.repeat_command import RepeatableCommand
from dpaudit.config.problems import reported
from dpaudit.config.targets import parse_duration, target_of
from dpaudit.errors import UsageError
from dpaudit.import_path import split
from dpaudit.sampling.generators import preserved
from dpaudit.searching.distances import NORMS
from dpaudit.searching.sensitivity import SECONDS, SensitivityResult, Target, searched

_TARGET = ("params", "init", "call", "factory", "data_arg", "python")
_EXAMPLE = "--space 'list of number in [0, 1]' --adjacency add-remove --claimed 1"
_STDOUT = "-"


@click.command(
    cls=RepeatableCommand,
    epilog="""\b
Example:
  dpaudit sensitivity mine.py:total --space 'list of number in [0, 1]' \\
    --adjacency add-remove --claimed 1""",
)
@click.argument("function", metavar="FUNCTION", shell_complete=complete_targets)
@option(
    "--space",
    metavar="SPACE",
    section="Usual options",
    help="What one input may be, in a line: 'list of number in [0, 1]', or a table: "
    "'table {age: integer in [0, 120], city: category [a, b]}'.",
)
@some_flags(adjacency="The neighbouring relation: add-remove, replace, or a distance as linf:1.")
@option(
    "--claimed",
    metavar="NUMBER",
    section="Usual options",
    help="The sensitivity that is claimed, such as 1 or 1/30.",
)
@option(
    "--norm",
    type=Choice(list(NORMS)),
    default="l1",
    show_default=True,
    section="Usual options",
    help="How the distance of two answers is measured; records: of transformations, whose answers "
    "are datasets, how many records differ.",
)
@option(
    "--inside",
    is_flag=True,
    section="Usual options",
    help="Leave out inputs outside the space, such as values beyond the bounds, or NaN. By "
    "default they are tried, and what they show is noted.",
)
@option(
    "--outside",
    is_flag=True,
    section="Usual options",
    help="Let inputs outside the space count, too.",
)
@some_flags(
    "params",
    "init",
    "call",
    "factory",
    "data_arg",
    "as",
    "python",
    time=f"End the search after so long, such as 30s or 5m. Default: {SECONDS:g}s.",
    seed="Of the random pairs: a number, or random, which picks one and shows it.",
    json="Write the result to this file; '-': to standard output, and the report to stderr.",
    quiet="Print one sentence.",
)
@some_flags("debug")
@click.pass_context
def sensitivity(
    ctx: click.Context,
    /,
    function: str,
    space: str | None,
    adjacency: Any,
    claimed: str | None,
    norm: str,
    inside: bool,
    outside: bool,
    json: str | None,
    quiet: bool,
    **flags: Any,
) -> int:
    """Search for neighbouring inputs for which the answers of FUNCTION are further apart than the
    claimed sensitivity. FUNCTION takes a dataset and returns numbers, or for --norm records a
    dataset, without noise: nothing is drawn, and what is found is certain.

    Exit code 1 if a pair of the space is further apart than claimed, or one input alone raises; 0
    if no such pair was found, which does not show that the claim is right. Inputs outside the space
    are noted; with --outside they count.
    """
    stdout = ctx.with_resource(set_apart())
    given = {"space": space, "adjacency": adjacency, "claimed": claimed}
    missing = [f"--{name}" for name, value in given.items() if value is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise UsageError(
            f"{', '.join(missing)} {verb} missing; a search for a sensitivity looks like "
            f"dpaudit sensitivity {function} {_EXAMPLE}",
            code="option-missing",
        )
    if json is not None and json != _STDOUT:
        check_writable(json)
    split(function)
    settings = given_settings(ctx, flags)
    named = {name: settings[name] for name in _TARGET if name in settings}
    # Found here, since a function may go to another folder.
    file = None if json in (None, _STDOUT) else Path(str(json)).absolute()
    end_with_parent()
    with reported(lambda path: "", OPTIONS):
        target = target_of({"mechanism": function, **named}, None)
    assert isinstance(target, Target)
    with heeded() as requests, kept_from_leaving(), preserved():
        result = searched(
            target,
            space=space,
            adjacency=adjacency,
            claimed=_claimed(str(claimed)),
            norm=norm,
            form=settings.get("as"),
            inside_only=inside,
            outside=outside,
            seed=settings.get("seed", 0),
            time=parse_duration(settings["time"]) if "time" in settings else SECONDS,
            check=requests.check,
        )
    _show(result, file, stdout, quiet=quiet, as_json=json == _STDOUT)
    return exit_codes.VIOLATION if result.exceeded else exit_codes.NOTHING_FOUND


def _claimed(text: str) -> Fraction | float:
    """Return a number, also where it is written as a fraction."""
    try:
        return Fraction(text.replace("_", "")) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"--claimed {text!r} must be a number, such as 1 or 1/30", code="option-invalid"
        ) from None


def _show(
    result: SensitivityResult, file: Path | None, stdout: TextIO, *, quiet: bool, as_json: bool
) -> None:
    from dpaudit.reports import sensitivity as reports

    if file is not None:
        write_whole(file, reports.as_json(result).encode(errors="backslashreplace"))
    click.echo(reports.render(result, quiet=quiet), nl=False, file=None if as_json else stdout,
               err=as_json)  # fmt: skip
    if as_json:
        click.echo(reports.as_json(result).encode(errors="backslashreplace"), nl=False, file=stdout)
