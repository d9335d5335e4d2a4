"""`dpaudit trace`: find the line of a mechanism that leaks."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from dpaudit.auditing.options import OPTIONS, owned
from dpaudit.cli import exit_codes
from dpaudit.cli.click_classes import AuditCommand, option
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import (
    check_complete,
    check_target,
    given_settings,
    ignored_flags,
    some_flags,
    warn_of_inputs,
)
from dpaudit.cli.leaving import kept_from_leaving
from dpaudit.cli.saving import record_place, show_and_save
from dpaudit.cli.signals import heeded, over_after
from dpaudit.cli.streams import set_apart
from dpaudit.config.building import build_spec
from dpaudit.tracing.mechanism_trace import SEEDS, trace_pair
from dpaudit.tracing.runs.running import end_run

_CALL = (
    *("init", "call", "factory", "batch_arg", "data_arg", "rng_arg", "post_process"),
    *("python", "isolate", "timeout", "memory_limit", "repeat"),
)
_CLAIM = tuple(option.name for option in owned("claim") if option.flag)
_EXAMPLE = "--d1 '[1, 2]' --d2 '[1]' --epsilon 1"
# Claim to use internally if the user gives none. The report then lists the privacy cost of each
# line of the mechanism's code, and does not compare these costs with the claim.
_ANY_CLAIM = {"epsilon": 1}
_TRACE_SECONDS, _GRACE_SECONDS = 60.0, 0.2


@click.command(
    cls=AuditCommand,
    epilog="""\b
Example:
  dpaudit trace mine.py:noisy_count --d1 '[1, 2]' --d2 '[1]' --epsilon 1""",
)
@click.argument("target", metavar="TARGET", shell_complete=complete_targets)
@some_flags("d1", "d2", "params", *_CALL, "as", *_CLAIM)
@option(
    "--follow",
    multiple=True,
    metavar="NAME",
    section="Usual options",
    help="A package, folder or file to trace (repeatable). Default: all code that is not "
    "installed, and the file of TARGET.",
)
@option(
    "--primitive",
    multiple=True,
    metavar="PATH",
    section="Usual options",
    help="A function that adds noise to its first argument. Give its import path (repeatable).",
)
@option(
    "--noises",
    type=click.IntRange(1, 1000),
    default=SEEDS,
    metavar="NUMBER",
    section="Usual options",
    help=f"Number of noise seeds to try. From 1 to 1000. Default: {SEEDS}.",
)
@some_flags(
    time=f"Time limit, such as 30s or 5m. Default: {_TRACE_SECONDS:g}s.",
    json="Save the trace in this file. With '-', it goes to standard output, and the report to "
    "stderr.",
    quiet="Print only the findings.",
    verbose="Print all lines that draw noise, with the source code.",
)
@some_flags("debug")
@ignored_flags("time")
@click.pass_context
def trace(
    ctx: click.Context,
    /,
    target: str,
    follow: tuple[str, ...],
    primitive: tuple[str, ...],
    noises: int,
    time: str | None,
    json: str | None,
    quiet: bool,
    verbose: int,
    **flags: Any,
) -> int:
    """Find the line of TARGET that leaks, by running it on two inputs with the same noise.

    Causes of leaks are too little noise, a value without noise, control flow that depends on the
    data, and noise that is used twice. A trace proves neither that there is a leak nor that there
    is none. Without a claim, dpaudit lists every line that adds noise, with its privacy cost.

    Exit code 1 if a cause was found, 0 if none was found, 4 if the trace could not see the effect
    of the noise or stopped early, 2 for wrong usage.
    """
    stdout = ctx.with_resource(set_apart())
    settings = given_settings(ctx, flags)
    settings.pop("time", None)  # the time limit of the trace is no setting of an audit
    check_target(target, "; a trace takes one import path")
    has_claim = "claim" in settings
    settings.setdefault("claim", _ANY_CLAIM)
    check_complete(settings, ("d1", "d2"), "a trace", f"dpaudit trace {target} {_EXAMPLE}")
    file = record_place(json)
    spec = build_spec({"mechanism": target, **settings})
    warn_of_inputs(spec.pairs, spec.group)
    seconds = OPTIONS["time"].read(time) or _TRACE_SECONDS
    # A traced run stops at the first noise that it draws after `seconds`. A run that draws no noise
    # is interrupted `_GRACE_SECONDS` seconds later.
    with heeded(), kept_from_leaving(), over_after(seconds + _GRACE_SECONDS, end_run):
        result = trace_pair(
            spec.target,
            spec.pairs[0].d1,
            spec.pairs[0].d2,
            spec.claim if has_claim else None,
            seeds=noises,
            follow=follow,
            primitives=primitive,
            seconds=seconds,
        )
    from dpaudit.reports.trace_report import as_json, render

    text = render(result, quiet=quiet, verbose=verbose)
    show_and_save(text, partial(as_json, result), file, stdout)
    if result.causes:
        return exit_codes.VIOLATION
    return exit_codes.NOTHING_FOUND if result.understood else exit_codes.UNDERPOWERED
