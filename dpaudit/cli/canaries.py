"""`dpaudit canaries make`: choose at random which canaries a training run includes."""

from __future__ import annotations

from pathlib import Path

import click

from dpaudit.cli import exit_codes
from dpaudit.cli.click_classes import option
from dpaudit.cli.flags import whole_number
from dpaudit.cli.group import SuggestingGroup, debug_option


@click.group(cls=SuggestingGroup)
def canaries() -> None:
    """Toss a coin for each canary, to include it in a training run or not.

    The run is then audited with `dpaudit bound --canaries`.
    """


@canaries.command(
    epilog="""\b
Example:
  dpaudit canaries make run.csv -n 5000"""
)
@click.argument("file", metavar="FILE")
@option(
    "-n", "--count", callback=whole_number, required=True, metavar="N", help="Number of canaries."
)
@option(
    "--seed",
    callback=whole_number,
    metavar="N",
    help="Seed of the coins. Default: drawn at random.",
)
@option("--force", is_flag=True, help="Write over an existing file.")
@debug_option
def make(file: str, count: int, seed: int | None, force: bool) -> int:
    """Write FILE, a CSV file with the columns canary and included (1 or 0).

    In the run, include exactly the canaries that have a 1. Then add a column score, and audit FILE.
    This command prints a digest of the coins. Publish it before the run, as proof that the coins
    came first: the audit reports it again.
    """
    from dpaudit.cli.saving import check_writable
    from dpaudit.errors import UsageError
    from dpaudit.inputs.canaries import Canaries

    if Path(file).exists() and not force:
        raise UsageError(
            f"{file} exists, and may hold the coins of an earlier run; name another file, or add "
            "--force",
            code="file-exists",
        )
    check_writable(file)
    coins = Canaries(count, seed)
    coins.save(file)
    click.echo(f"{int(coins.included.sum()):,} of {count:,} canaries are in: {file}")
    click.echo(f"seed {coins.seed}")
    click.echo(f"digest {coins.digest}")
    return exit_codes.NOTHING_FOUND
