"""`dpaudit list`: list definitions, attacks, reports, adjacencies and audits. The lists come from
the tables that the other commands use."""

from __future__ import annotations

import inspect
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from dpaudit.auditing.options import flag_of
from dpaudit.claims import DEFINITIONS, required_parameters
from dpaudit.claims.registry import described
from dpaudit.cli.group import SuggestingGroup, debug_option
from dpaudit.import_path import (
    describe_non_file,
)
from dpaudit.inputs.adjacency import ADJACENCIES
from dpaudit.reports.formats import FORMATS
from dpaudit.reports.layout import padded, width_of, wrap
from dpaudit.reports.numbers import unglued
from dpaudit.wording import in_a_line, visible

_COLUMN, _NAMES = 38, 18


class ListGroup(SuggestingGroup):
    """A group of commands whose first argument may also be a file: `dpaudit list FILE` lists the
    audits of a YAML file or another existing file."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        file = Path(args[0])
        if self.get_command(ctx, args[0]) is None:
            if file.suffix in (".yaml", ".yml") or file.is_file():
                args = ["audits", *args]
            elif there := describe_non_file(file):
                raise click.UsageError(f"{args[0]!r} is {there}; name a file of audits", ctx)
        return super().resolve_command(ctx, args)


@click.group("list", cls=ListGroup)
def list_() -> None:
    """List definitions, attacks, reports, adjacencies, or the audits of a file: dpaudit list
    audits.yaml.
    """


@list_.command(short_help="The audits of configuration files.")
@click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(path_type=Path)
)
@debug_option
def audits(files: tuple[Path, ...]) -> None:
    """List the audits of configuration files by name. The option -k of dpaudit run selects audits
    by these names. An entry with a matrix gives several audits. Modules that the files name are
    imported, but no audit is run.
    """
    from dpaudit.config.project import here
    from dpaudit.config.yaml_files import load_config

    project = here()
    specs = [spec for file in files for spec in load_config(file, project=project)]
    width = min(_COLUMN, max(width_of(spec.name) for spec in specs))
    for spec in specs:
        expected = f", expect {spec.requirements.expect}" if spec.requirements.expect else ""
        description = f"{spec.tested.describe()}, {spec.target.describe()}{expected}"
        line = f"{padded(spec.name, width)}  {' '.join(description.split())}"
        click.echo(_cut(visible(in_a_line(line))))


@list_.command(short_help="The formats of reports.")
@debug_option
def reports() -> None:
    """List the formats for --report, each with the usual suffix of its files."""
    for name, form in FORMATS.items():
        summary = _summary(import_module(form.home))
        _show(name, f"{summary} ({form.suffix})")


@list_.command(short_help="The neighbouring relations.")
@debug_option
def adjacencies() -> None:
    """List the neighbouring relations for --adjacency."""
    for name, sentence in ADJACENCIES.items():
        _show(name, sentence)


@list_.command(short_help="The privacy definitions, with their formulas.")
@debug_option
def definitions() -> None:
    """List the privacy definitions for --definition, with their formulas."""
    for key, definition in DEFINITIONS.items():
        needed = required_parameters(key)
        named = {
            name: f"--{name}"
            if parameter.instead is None
            else f"--{name} or --{parameter.instead.name}"
            for name, parameter in described(key).items()
            if parameter.has_flag
        }
        flags = " ".join(flag if name in needed else f"[{flag}]" for name, flag in named.items())
        _show(key, f"{definition.title} ({flags or 'in files and Python'})")
        _show("", definition.formula)


@list_.command(short_help="The attacks that try to tell the inputs apart.")
@debug_option
def attacks() -> None:
    """List the attacks that try to tell the inputs apart: those of dpaudit, and those of installed
    packages, which --attack adds.
    """
    # Imported inside the function: attacks import SciPy, which takes most of this command's time
    # and which other lists do not need.
    from dpaudit.attacks.scorers import OPTIONAL, SCORERS
    from dpaudit.attacks.trees import trees
    from dpaudit.attacks.user_attacks import installed_attacks

    flags = {scorer: f" ({flag_of(name)})" for name, scorer in OPTIONAL.items()}
    scorers: list[Any] = [*SCORERS, *flags, trees]
    for attack in scorers:
        _show(attack.__name__, f"{_summary(attack)}{flags.get(attack, '')}")
    for name, offered in installed_attacks().items():
        _show(name, f"installed: {offered.value} (--attack {name})")


def _show(name: str, text: str) -> None:
    lines = wrap(text, padded(f"{name} ", _NAMES), " " * _NAMES)
    click.echo(unglued("\n".join(lines)))


def _summary(item: Any) -> str:
    """Return the first paragraph of the docstring of `item` as a single line."""
    return " ".join((inspect.getdoc(item) or "").partition("\n\n")[0].split())


def _cut(line: str) -> str:
    """Return a line, cut to the width of the terminal if standard output is a terminal."""
    width = shutil.get_terminal_size().columns
    if width_of(line) <= width or not sys.stdout.isatty():
        return line
    while width_of(line) >= width:
        line = line[:-1]
    return f"{line}…"
