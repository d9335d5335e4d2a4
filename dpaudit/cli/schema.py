"""`dpaudit schema`: the JSON schemas of configuration and of result files, for editors and others
who read or write them."""

from __future__ import annotations

import json

import click

from dpaudit.cli.group import debug_option
from dpaudit.cli.options import Choice


@click.command
@click.argument("what", type=Choice(["config", "result"]), default="config")
@debug_option
def schema(what: str) -> None:
    """Print the JSON schema (2020-12) of configuration files (config), or of the files that --json
    writes (result).

    \b
    dpaudit schema > dpaudit.schema.json
    dpaudit schema result > result.schema.json
    """
    from dpaudit.config.schema import schema as configuration_schema
    from dpaudit.reports.result_schema import result_schema

    found = configuration_schema() if what == "config" else result_schema()
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))
