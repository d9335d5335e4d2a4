"""`dpaudit parity`: compare two implementations of one mechanism."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from dpaudit.auditing.options import OPTIONS
from dpaudit.auditing.spec import AuditSpec
from dpaudit.cli.click_classes import USUAL, AuditCommand, option, repeating
from dpaudit.cli.completing import targets as complete_targets
from dpaudit.cli.flags import (
    check_given,
    check_target,
    given_settings,
    parsed,
    refuse_misread,
    some_flags,
)
from dpaudit.cli.run import run_lone
from dpaudit.cli.streams import set_apart
from dpaudit.config.building import build_spec
from dpaudit.config.project import here
from dpaudit.errors import UsageError
from dpaudit.inputs.pairs import sides
from dpaudit.same_law import claim_of
from dpaudit.targets.target import TwoTargets, single_targets

# Options of `dpaudit run` that `dpaudit parity` does not have: those about two inputs, and those
# that avoid draws, time them, or concern several audits or nights.
_LEFT_OUT = (
    *("d1", "d2", "adjacency", "group", "repeat", "range", "exact", "timing", "no_trace"),
    *("require_power", "pattern", "familywise", "exitfirst", "maxfail", "python", "command"),
    *("certification_seed", "evidence", "alarm"),
)
_FLAGS = tuple(
    option.name
    for option in OPTIONS.values()
    if option.flag and option.of != "claim" and option.name not in _LEFT_OUT
)
# Settings of a mechanism that a program has not.
_OF_PYTHON = ("params", "init", "call", "factory", "data_arg", "rng_arg", "isolate", "as")


def _values(_: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> list[Any]:
    return [parsed(text, param) for text in texts]


@click.command(
    cls=AuditCommand,
    epilog="""\b
Example:
  dpaudit parity old.py:noisy_sum new.py:noisy_sum --d1 '[1, 2, 3]' --d1 '[]'

docs/guides/parity.md has examples.""",
)
@click.argument("a", shell_complete=complete_targets)
@click.argument("b", required=False, shell_complete=complete_targets)
@option(
    "--d1",
    multiple=True,
    callback=_values,
    metavar="VALUE",
    section=USUAL,
    help="An input that both get, as JSON or YAML (repeatable).",
)
@option(
    "--tau",
    type=float,
    default=0.0,
    metavar="NUMBER",
    section=USUAL,
    help="The largest total variation distance that is allowed. Default: 0.",
)
@option(
    "--python-b",
    metavar="PATH",
    section="Processes",
    help="The Python that runs B. Default: the value of --python.",
)
@some_flags(
    *_FLAGS,
    python="The Python that runs A and, without --python-b, B.",
    command="The program that is B, in place of the argument B.",
)
@click.pass_context
def parity(ctx: click.Context, /, a: str, b: str | None, **_: Any) -> int:
    """Find out whether A and B have the same distribution of outputs on an input.

    A and B are import paths of two implementations of one mechanism. A violation says that their
    total variation distance exceeds --tau, and states the certified distance. Options about the
    call are for A and for B.
    """
    stdout = ctx.with_resource(set_apart())
    spec = audit_of(ctx)
    return run_lone(ctx, spec, [a] if b is None else [a, b], stdout)


def audit_of(ctx: click.Context) -> AuditSpec:
    """Return the audit that a command line asks for."""
    a, b, inputs, python_b = (ctx.params[name] for name in ("a", "b", "d1", "python_b"))
    settings = given_settings(ctx, ctx.params)
    command = settings.pop("command", None)
    targets = [a] if b is None else [a, b]
    for target in targets:
        check_target(target, "; a comparison takes the import paths of two mechanisms")
    if (b is None) is (command is None):
        why = "give the second mechanism, B, either as an argument or as --command"
        raise UsageError(why, code="option-missing" if b is None else "options-conflict")
    check_given({"d1": inputs or None}, f"e.g. dpaudit parity {a} {b or '--command …'} --d1 0")
    claim, project = claim_of(ctx.params["tau"]), here()
    settings = {
        "stop": "never",
        **{key: value for key, value in settings.items() if key != "d1"},
        "pairs": [{"d1": value, "d2": value} for value in inputs],
        "claim": {"definition": claim.key, **claim.parameters()},
    }
    # The power that a project requires is a multiple of ε, which is 0 here.
    kept = {name: value for name, value in project.settings.items() if name != "require_power"}
    spec = build_spec({"mechanism": a, **settings}, replace(project, settings=kept))
    if command is None:
        python = {} if python_b is None else {"python": python_b}
        spec_b = build_spec({**settings, "mechanism": b, **python})
    else:
        plain = {key: value for key, value in settings.items() if key not in _OF_PYTHON}
        spec_b = build_spec({**plain, "command": command})
    (target_a,), (target_b,) = single_targets(spec.target), single_targets(spec_b.target)
    refuse_misread(ctx, [spec])
    return replace(
        spec,
        name=f"{spec.name} and {spec_b.name}",
        target=TwoTargets(a=target_a, b=target_b),
        pairs=sides([pair.d1 for pair in spec.pairs], [pair.d1 for pair in spec_b.pairs]),
        no_trace=True,
        origin=replace(
            spec.origin,
            request=None,
            files=(*spec.origin.files, *spec_b.origin.files),
            command=repeating(ctx, targets, spec.sampling.seed),
        ),
    )
