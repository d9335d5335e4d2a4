"""`dpaudit search`: find the pair of neighbouring inputs that leaks most, then audit this pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from dpaudit.auditing.options import OPTIONS
from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli.click_classes import AuditCommand, option, repeating
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import (
    check_complete,
    check_target,
    given_settings,
    outside_flags,
    refuse_misread,
    some_flags,
    space_flag,
)
from dpaudit.cli.run import run_lone
from dpaudit.cli.streams import set_apart
from dpaudit.config.building import build_spec
from dpaudit.config.project import here

# Options of `dpaudit run` that `dpaudit search` does not have: those that give the inputs, avoid
# draws, or concern several audits.
_LEFT_OUT = (
    *("d1", "d2", "exact", "pattern", "familywise", "exitfirst", "maxfail"),
    *("evidence", "alarm"),
)
_FLAGS = tuple(
    option.name for option in OPTIONS.values() if option.flag and option.name not in _LEFT_OUT
)


@click.command(
    cls=AuditCommand,
    epilog="""\b
Example:
  dpaudit search mine.py:noisy_mean --space 'list of number in [0, 1]' \\
    --adjacency add-remove --epsilon 1

docs/guides/find-the-pair.md lists spaces and relations.""",
)
@click.argument("target", required=False, metavar="TARGET", shell_complete=complete_targets)
@space_flag
@some_flags(*_FLAGS, usual=["adjacency"])
@outside_flags("What to audit")
@option(
    "--keep",
    type=int,
    metavar="NUMBER",
    section="What to audit",
    help="Number of pairs to audit. They share the false-alarm probability. Default: 1.",
)
@click.pass_context
def search(ctx: click.Context, /, target: str | None, **_: Any) -> int:
    """Find the pair of neighbouring inputs on which TARGET leaks most, and audit it.

    About a quarter of the draws, or of the time, is spent on the search. The best pair is then
    audited on new draws, and simplified if it leaks. A leak on inputs outside the space is only
    noted, unless --outside is given.
    """
    stdout = ctx.with_resource(set_apart())
    spec = audit_of(ctx)
    refuse_misread(ctx, [spec])
    return run_lone(ctx, spec, [] if target is None else [target], stdout)


def audit_of(ctx: click.Context) -> AuditSpec:
    """Return the audit that a command line asks for."""
    target, settings = ctx.params["target"], given_settings(ctx, ctx.params)
    search = {name: ctx.params[name] or None for name in ("space", "inside", "outside")}
    search["keep"] = ctx.params["keep"]
    if search["space"]:
        settings["search"] = {name: value for name, value in search.items() if value is not None}
    if target is None and "command" not in settings:
        raise click.MissingParameter(ctx=ctx, param=ctx.command.params[0])
    instead = "write search: in it, in place of d1 and d2, and give it to dpaudit run"
    check_target(target, f": {instead}")
    example = (
        f"dpaudit search {target or '--command …'} --space 'list of number in [0, 1]' "
        "--adjacency add-remove --epsilon 1"
    )
    checked_settings = {
        **settings,
        **({"space": settings["search"]} if "search" in settings else {}),
    }
    check_complete(checked_settings, ("space", "adjacency"), "a search", example)
    named = {} if target is None else {"mechanism": target}
    spec = build_spec({**named, **settings}, here())
    command = repeating(ctx, [] if target is None else [target], spec.sampling.seed)
    return replace(spec, origin=replace(spec.origin, command=command))
