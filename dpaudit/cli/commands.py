"""Declare the command `dpaudit` and its subcommands, which are imported when they are used."""

from __future__ import annotations

import os
import sys

import click

from dpaudit.cli import exit_codes, leaving, streams
from dpaudit.cli.group import RootGroup, guarded
from dpaudit.cli.messages import columns_of
from dpaudit.version import __version__
from dpaudit.wording import MAX_WIDTH, of_width

COMMANDS = {
    "init": ("dpaudit.cli.init:init", "Write a first audit, a test and a workflow."),
    "run": ("dpaudit.cli.run:run", "Audit a mechanism, or all audits of configuration files."),
    "search": (
        "dpaudit.cli.search:search",
        "Find the pair of inputs that leaks most, and audit it.",
    ),
    "parity": ("dpaudit.cli.parity:parity", "Compare two implementations of one mechanism."),
    "trace": ("dpaudit.cli.trace:trace", "Find the line of code that leaks."),
    "plan": ("dpaudit.cli.plan:plan_", "Compute how many draws an audit needs."),
    "bound": ("dpaudit.cli.bound:bound", "Audit recorded outputs, or the canaries of one run."),
    "canaries": ("dpaudit.cli.canaries:canaries", "Toss a coin for each canary of a run."),
    "sensitivity": (
        "dpaudit.cli.sensitivity:sensitivity",
        "Search for a larger sensitivity than claimed.",
    ),
    "mutate": (
        "dpaudit.cli.mutate:mutate",
        "Count the planted bugs that the audits of a file notice.",
    ),
    "bisect": ("dpaudit.cli.bisect:bisect", "Find the releases of a package that leak."),
    "explain": ("dpaudit.cli.explain:explain", "Show what a privacy claim means."),
    "report": ("dpaudit.cli.report:report", "Recheck and show saved results."),
    "check": ("dpaudit.cli.check:check", "Check configuration files without running them."),
    "compare": ("dpaudit.cli.compare:compare", "Compare the results of two runs."),
    "list": ("dpaudit.cli.list:list_", "List the values of options, or the audits of a file."),
    "schema": (
        "dpaudit.cli.check:schema",
        "Print the JSON schema of configurations or results.",
    ),
}


@click.group(
    cls=RootGroup,
    lazy=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.version_option(__version__, message="dpaudit %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> int:
    """Look for statistical proof that a mechanism leaks more than its privacy claim allows.

    \b
    dpaudit run my.module:mechanism --d1 0 --d2 1 --epsilon 1
    dpaudit run audits.yaml

    \b
    Exit codes:
      0  no violation, or every expectation met
      1  violation, expectation not met, or warning with --strict
      2  wrong usage or configuration, or a mistake in a training step
      3  error of the mechanism or of dpaudit
      4  under-powered
      5  no audit matched
      130 interrupted, 143 terminated
    """
    # NO_COLOR and FORCE_COLOR count if they are set to any text that is not empty:
    # https://no-color.org and https://force-color.org.
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    elif os.environ.get("FORCE_COLOR"):
        ctx.color = True
    elif os.environ.get("TERM") == "dumb":
        ctx.color = False
    if ctx.invoked_subcommand is not None:
        return exit_codes.NOTHING_FOUND
    click.echo(ctx.get_help())
    return exit_codes.USAGE


def run_commands(*, completes: bool) -> None:
    """Run the command line and exit. `completes` says that the shell asks for a completion."""
    if not completes:
        leaving.begin()
    streams.prepare()
    with of_width(columns_of(sys.stdout) if sys.stdout.isatty() else MAX_WIDTH):
        code = guarded(_checked)
    leaving.leave(code)


def _checked() -> int:
    streams.check_open()
    code: int = cli.main(prog_name="dpaudit", standalone_mode=False)
    return code
