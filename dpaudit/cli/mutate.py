"""`dpaudit mutate`: plant typical bugs in mechanisms, and count how many of them audits notice."""

from __future__ import annotations

import math
from typing import Any

import click

from dpaudit.auditing.options import OPTIONS
from dpaudit.cli import exit_codes
from dpaudit.cli.click_classes import NUMBER, AuditCommand, option
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import some_flags
from dpaudit.cli.messages import tell
from dpaudit.cli.run import audits_of, inputs_of
from dpaudit.cli.saving import outputs_of, write_outputs
from dpaudit.cli.signals import heeded
from dpaudit.cli.streams import set_apart
from dpaudit.errors import UsageError
from dpaudit.mutating.kinds import KINDS, checked

# Options of audits that have no effect here: mutants are audited in one process, and by draws.
_LEFT_OUT = (
    *("time", "workers", "executor", "exact", "expect", "no_trace", "python", "command"),
    *("require_power", "require_rare", "allow_underpowered", "strict"),
)
_FLAGS = tuple(
    option.name
    for option in OPTIONS.values()
    if option.flag and option.of not in ("run", "file") and option.name not in _LEFT_OUT
)


@click.command(
    cls=AuditCommand,
    epilog="""\b
Examples:
  dpaudit mutate audits.yaml --time 10m --min-score 0.8
  dpaudit mutate mine.py:count --d1 '[1, 2]' --d2 '[1]' --epsilon 1""",
)
@click.argument(
    "targets", nargs=-1, metavar="[TARGET|FILE.yaml...]", shell_complete=complete_targets
)
@some_flags(*_FLAGS)
@option(
    "--time",
    "total",
    metavar="DURATION",
    section="Usual options",
    help="Time limit for all, such as 10m. Bugs that are left then are not run.",
)
@option(
    "--kinds",
    metavar="KINDS",
    section="Usual options",
    help=f"Kinds of bugs to plant, separated by commas: {', '.join(KINDS)}. Default: all.",
)
@option(
    "--min-score",
    type=NUMBER,
    metavar="SHARE",
    section="Usual options",
    help="Exit code 1 if a smaller share is killed. From 0 to 1.",
)
@some_flags(
    pattern="Run only audits whose name contains PATTERN. 'not PATTERN' runs all others; =NAME "
    "runs the audit of this name.",
    json="Save the result in this file. With '-', it goes to standard output, and the report to "
    "stderr.",
    report="Also write a report (repeatable): text, json, html or junit.",
    quiet="Print only the score.",
)
@some_flags("debug")
@click.pass_context
def mutate(
    ctx: click.Context,
    /,
    total: str | None,
    kinds: str | None,
    min_score: float | None,
    pattern: str | None,
    json: str | None,
    report: list[str],
    quiet: bool,
    **_: Any,
) -> int:
    """Plant typical bugs in mechanisms, one at a time, and count how many the audits notice.

    The same audits run on each mechanism with a bug, in a process of its own. None of your source
    files is written; files that a mechanism writes are written with each bug. A bug is killed if an
    audit fails, and missed if none does although a trace or a search shows that it leaks. The score
    is the share of killed bugs among both. Audits that do not pass without a bug are left out.

    Exit code 1 if the score is below --min-score. Exit code 4 if there is no score; with
    --min-score, also if a bug was not run, or if an audit fails without a bug.
    """
    stdout = ctx.with_resource(set_apart())
    if min_score is not None and not 0 <= min_score <= 1:
        why = f"--min-score {min_score:g} must lie between 0 and 1, e.g. 0.8"
        raise UsageError(why, code="option-invalid")
    chosen = checked(KINDS if kinds is None else [name.strip() for name in kinds.split(",")])
    seconds = math.inf if total is None else float(OPTIONS["time"].read(total))
    specs = audits_of(ctx)
    inputs = inputs_of(ctx, specs)
    outputs = outputs_of(json, report, ("text", "json", "html", "junit"), inputs)
    if not specs:
        tell(f"no audit's name matches -k {pattern!r}")
        return exit_codes.NOTHING_MATCHED
    # Imported here, since a mistake in the command needs no engine.
    from dpaudit.auditing.engine import check_mechanism
    from dpaudit.mutating.scoring import mutated
    from dpaudit.reports.mutation_report import FORMATS, summary

    if len(specs) == 1:  # in a batch, an audit with a mistake is left out
        check_mechanism(specs[0])
    with heeded():
        result = mutated(specs, chosen, seconds, (lambda _: None) if quiet else tell)

    def text_of(kind: str) -> str:
        return f"{summary(result)}\n" if quiet and kind == "text" else FORMATS[kind](result)

    write_outputs(outputs, text_of, stdout)
    if result.score is None:
        return exit_codes.UNDERPOWERED
    if min_score is not None and result.score < min_score:
        return exit_codes.VIOLATION
    is_enough = min_score is None or result.is_complete
    return exit_codes.NOTHING_FOUND if is_enough else exit_codes.UNDERPOWERED
