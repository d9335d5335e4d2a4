"""`dpaudit sensitivity`: find neighbouring inputs whose answers differ by more than claimed."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import click

from dpaudit.auditing.options import OPTIONS
from dpaudit.cli import exit_codes
from dpaudit.cli.click_classes import AuditCommand, Choice, option
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import check_given, given_settings, outside_flags, some_flags, space_flag
from dpaudit.cli.leaving import kept_from_leaving
from dpaudit.cli.saving import record_place, show_and_save
from dpaudit.cli.signals import heeded
from dpaudit.cli.streams import set_apart
from dpaudit.config.problems import reported
from dpaudit.config.targets import target_of
from dpaudit.errors import UsageError
from dpaudit.import_path import split
from dpaudit.sampling.seeding import preserved
from dpaudit.searching.distances import NORMS
from dpaudit.searching.sensitivity import SECONDS, Target, searched

_TARGET = ("params", "init", "call", "factory", "data_arg", "python")
_EXAMPLE = "--space 'list of number in [0, 1]' --adjacency add-remove --claimed 1"


@click.command(
    cls=AuditCommand,
    epilog="""\b
Example:
  dpaudit sensitivity mine.py:total --space 'list of number in [0, 1]' \\
    --adjacency add-remove --claimed 1""",
)
@click.argument("function", metavar="FUNCTION", shell_complete=complete_targets)
@space_flag
@some_flags(
    usual=["adjacency"],
    adjacency="The neighbouring relation, such as add-remove. Others: replace, or a distance such "
    "as linf:1.",
)
@option(
    "--claimed",
    metavar="NUMBER",
    section="Usual options",
    help="The claimed sensitivity, such as 1 or 1/30.",
)
@option(
    "--norm",
    type=Choice(list(NORMS)),
    default="l1",
    section="Usual options",
    help="Distance between two answers. records is for functions whose answers are datasets: the "
    "number of records that differ. Default: l1.",
)
@outside_flags("Usual options")
@some_flags(
    "params",
    "init",
    "call",
    "factory",
    "data_arg",
    "as",
    "python",
    time=f"Time limit, such as 30s or 5m. Default: {SECONDS:g}s.",
    seed="Seed of the random pairs. With random, dpaudit picks a seed and shows it.",
    json="Save the result in this file. With '-', it goes to standard output, and the report to "
    "stderr.",
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
    """Search for two neighbouring inputs whose answers differ by more than the claimed sensitivity.

    FUNCTION takes a dataset and returns numbers without noise (with --norm records, a dataset), so
    a pair that is found is a proof. If no pair is found, the claim may still be wrong.

    Exit code 1 if a pair inside the space (--space) exceeds the claim, or if FUNCTION raises an
    exception for only one input of such a pair; otherwise 0. With --outside, pairs outside count,
    too.
    """
    stdout = ctx.with_resource(set_apart())
    required = {"space": space, "adjacency": adjacency, "claimed": claimed}
    example = f"dpaudit sensitivity {function} {_EXAMPLE}"
    check_given(required, f"a search for a sensitivity looks like {example}")
    file = record_place(json)
    split(function)
    settings = given_settings(ctx, flags)
    named = {name: settings[name] for name in _TARGET if name in settings}
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
            time=OPTIONS["time"].read(settings.get("time")) or SECONDS,
            check=requests.check,
        )
    from dpaudit.reports.sensitivity_report import as_json, render

    show_and_save(render(result, quiet=quiet), partial(as_json, result), file, stdout)
    return exit_codes.VIOLATION if result.exceeded else exit_codes.NOTHING_FOUND


def _claimed(text: str) -> Fraction | float:
    """Return the claimed sensitivity as a number. The text may be a fraction, such as 1/3."""
    try:
        return Fraction(text.replace("_", "")) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError):
        raise UsageError(
            f"--claimed {text!r} must be a number, such as 1 or 1/30", code="option-invalid"
        ) from None
