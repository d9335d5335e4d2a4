"""`dpaudit schema`: the JSON schema of configuration files, for editors and validators."""

from __future__ import annotations

import json

import click

from dpaudit.cli.group import debug_option
from dpaudit.config.schema import schema as configuration_schema


@click.command
@debug_option
def schema() -> None:
    """Print the JSON schema of the files that dpaudit run reads.

    \b
    dpaudit schema > dpaudit.schema.json
    """
    click.echo(json.dumps(configuration_schema(), indent=2, ensure_ascii=False))
