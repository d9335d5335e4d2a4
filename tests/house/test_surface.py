"""Every name that users rely on, in one golden file, `surface.txt`, which `make generated` writes.
A change of the public surface shows as a diff of that file."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

import dpaudit
from dpaudit import testing, training
from dpaudit.api import MoreOptions
from dpaudit.claims import DEFINITIONS
from dpaudit.cli import exit_codes
from dpaudit.cli.commands import cli
from dpaudit.config.project import SETTINGS
from dpaudit.config.schema import schema
from dpaudit.inputs.adjacency import ADJACENCIES
from dpaudit.reports.formats import FORMATS
from dpaudit.reports.json import schema as result_schema
from tests import generated

FILE = Path(__file__).with_name("surface.txt")


def surface() -> str:
    """Return the inventory: one section per kind of name, one name per line."""
    sections = {
        "exit codes": _exit_codes(),
        "command line": _commands(click.Context(cli, **cli.context_settings), cli, "dpaudit"),
        "configuration files": _properties(schema(), schema()),
        "result files": _properties(result_schema(), result_schema()),
        "Python": _names(dpaudit, "dpaudit"),
        "Python, keywords of dpaudit.audit": sorted(MoreOptions.__annotations__),
        "training": _names(training, "dpaudit.training"),
        "pytest": [*_names(testing, "dpaudit.testing"), *_of_pytest()],
        "definitions": DEFINITIONS,
        "adjacencies": ADJACENCIES,
        "reports": FORMATS,
    }
    parts = ["\n".join([f"# {title}", *dict.fromkeys(lines)]) for title, lines in sections.items()]
    return "\n\n".join(parts) + "\n"


def _exit_codes() -> Iterator[str]:
    for name, value in vars(exit_codes).items():
        if name.isupper() and type(value) is int:
            yield f"{value} {name}"


def _commands(context: click.Context, command: click.Command, path: str) -> Iterator[str]:
    """Yield a line per command, argument and option, with the values of a choice."""
    yield path
    for parameter in command.params:
        names = "/".join([*parameter.opts, *parameter.secondary_opts])
        choices = getattr(parameter.type, "choices", ())
        values = f" {{{', '.join(map(str, choices))}}}" if choices else ""
        if parameter.param_type_name == "argument":
            names = parameter.make_metavar(context)
        yield f"{path} {names}{values}"
    # click makes the option of --help once per command, with the names of its first context.
    yield f"{path} {'/'.join(sorted(command.get_help_option_names(context), key=len))}"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(click.Context(inner, context), inner, f"{path} {name}")


def _properties(node: Any, root: Any, path: str = "", seen: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the path of every property that a JSON schema names; [] stands for list entries."""
    if isinstance(node, list):
        for part in node:
            yield from _properties(part, root, path, seen)
    if not isinstance(node, dict):
        return
    reference = node.get("$ref")
    if reference is not None and reference not in seen:
        target = root
        for key in reference.removeprefix("#/").split("/"):
            target = target[key]
        yield from _properties(target, root, path, (*seen, reference))
    if "enum" in node and path:
        yield f"{path} {{{', '.join(map(str, node['enum']))}}}"
    for name, inner in node.get("properties", {}).items():
        yield f"{path}.{name}".lstrip(".")
        yield from _properties(inner, root, f"{path}.{name}".lstrip("."), seen)
    yield from _properties(node.get("items"), root, f"{path}[]", seen)
    yield from _properties(node.get("additionalProperties"), root, f"{path}.*", seen)
    for key in ("anyOf", "oneOf", "allOf", "if", "then", "else", "not"):
        yield from _properties(node.get(key), root, path, seen)


def _names(module: Any, path: str) -> Iterator[str]:
    """Yield the public names of a module, with parameters of functions and fields of classes."""
    for name in sorted(module.__all__):
        value = getattr(module, name)
        if inspect.isclass(value):
            yield f"{path}.{name}"
            yield from (f"{path}.{name}.{member}" for member in _members(value))
        elif callable(value):
            parameters = inspect.signature(value).parameters.values()
            yield f"{path}.{name}({', '.join(map(_parameter, parameters))})"
        else:
            yield f"{path}.{name}"


def _parameter(parameter: inspect.Parameter) -> str:
    return str(
        parameter.replace(annotation=inspect.Parameter.empty, default=inspect.Parameter.empty)
    )


def _members(kind: type) -> list[str]:
    fields = (
        {one.name for one in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    )
    own = {
        name
        for base in kind.__mro__
        if base.__module__.startswith("dpaudit")
        for name in vars(base)
    }
    return sorted(name for name in fields | own if not name.startswith("_"))


def _of_pytest() -> Iterator[str]:
    plugin = import_module("dpaudit.testing.plugin")
    parser = pytest.Parser(_ispytest=True)
    plugin.pytest_addoption(parser)
    group = parser.getgroup("dpaudit")
    yield from (name for option in group.options for name in option.names())
    yield from (f"[tool.dpaudit] {key}" for key in sorted(SETTINGS))
    yield "fixture dp_audit"
    yield "marker dpaudit"


def test_the_public_surface_is_what_the_inventory_lists() -> None:
    generated.check(FILE, surface())


if __name__ == "__main__":
    FILE.write_text(surface(), encoding="utf-8")
