"""`dpaudit list`: list definitions, attacks, reports, adjacencies, mechanisms and audits.

Values come from the tables that the other commands use.
"""

from __future__ import annotations

import inspect
import os
import pkgutil
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from dpaudit.auditing.options import flag_of
from dpaudit.claims import DEFINITIONS, required_parameters
from dpaudit.claims.registry import described
from dpaudit.cli import exit_codes
from dpaudit.cli.group import SuggestingGroup, debug_option
from dpaudit.errors import TargetError, UsageError
from dpaudit.import_path import (
    describe_non_file,
    file_module,
    is_file,
    make_importable,
    modules_on_path,
)
from dpaudit.inputs.adjacency import ADJACENCIES
from dpaudit.reports.layout import padded, width_of, wrap
from dpaudit.reports.numbers import unglued
from dpaudit.reports.registry import FORMATS
from dpaudit.wording import did_you_mean, in_a_line, visible

_COLUMN, _NAMES = 38, 18
_SPECIMENS = "mechanisms"


class ListGroup(SuggestingGroup):
    """A group of commands whose first argument may also be a file: `dpaudit list FILE`.

    For a Python file, the command lists the mechanisms in the file. For a YAML file, or any other
    existing file, it lists the audits in the file.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        file = Path(args[0])
        if self.get_command(ctx, args[0]) is None:
            if file.suffix == ".py":
                args = ["mechanisms", *args]
            elif file.suffix in (".yaml", ".yml") or file.is_file():
                args = ["audits", *args]
            elif there := describe_non_file(file):
                raise click.UsageError(
                    f"{args[0]!r} is {there}; name a file of audits, or the package of mechanisms: "
                    "dpaudit list mechanisms PACKAGE",
                    ctx,
                )
        return super().resolve_command(ctx, args)


@click.group("list", cls=ListGroup)
def list_() -> None:
    """List definitions, attacks, reports, adjacencies, the mechanisms of a package, or the audits
    of a file: dpaudit list audits.yaml.
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
    from dpaudit.config.loading import load_config
    from dpaudit.config.project import here

    project = here()
    specs = [spec for file in files for spec in load_config(file, project=project)]
    width = min(_COLUMN, max(width_of(spec.name) for spec in specs))
    for spec in specs:
        expected = f", expect {spec.requirements.expect}" if spec.requirements.expect else ""
        said = f"{spec.tested.describe()}, {spec.target.describe()}{expected}"
        line = f"{padded(spec.name, width)}  {' '.join(said.split())}"
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
            name: f"--{name}" if one.instead is None else f"--{name} or --{one.instead.name}"
            for name, one in described(key).items()
            if one.has_flag
        }
        flags = " ".join(one if name in needed else f"[{one}]" for name, one in named.items())
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

    asked = {scorer: f" ({flag_of(name)})" for name, scorer in OPTIONAL.items()}
    every: list[Any] = [*SCORERS, *asked, trees]
    for one in every:
        _show(one.__name__, f"{_summary(one)}{asked.get(one, '')}")
    for name, offered in installed_attacks().items():
        _show(name, f"installed: {offered.value} (--attack {name})")


def _show(name: str, text: str) -> None:
    lines = wrap(text, padded(f"{name} ", _NAMES), " " * _NAMES)
    click.echo(unglued("\n".join(lines)))


@list_.command(short_help="The functions of a package, as targets to audit.")
@click.argument("package", default=_SPECIMENS)
@debug_option
def mechanisms(package: str) -> int:
    """List the public functions of PACKAGE (default: mechanisms), as targets of dpaudit run.

    PACKAGE: a package or a module, by name or path, or a Python file.
    """
    if ":" in package:
        name = package.partition(":")[0]
        raise TargetError(
            f"{package!r} names a function; give its package, module or file: {name}",
            code="import-path-invalid",
        )
    if package.endswith((".yaml", ".yml")) and Path(package).is_file():
        raise UsageError(
            f"{package!r} is the name of a file of audits: dpaudit list {package}",
            code="wrong-kind-of-file",
        )
    found = [
        (f"{name}:{attribute}", _summary(one))
        for name, attribute, one in _mechanisms(dict(_modules(package)))
    ]
    if not found:
        click.echo(f"there is no public function in {package!r}", err=True)
        return exit_codes.NOTHING_MATCHED
    width = min(_COLUMN, max(width_of(target) for target, _ in found))
    for target, summary in found:
        click.echo(_cut(f"{padded(target, width)}  {summary}".rstrip()))
    return exit_codes.NOTHING_FOUND


def _modules(name: str) -> Iterator[tuple[str, ModuleType]]:
    """Yield (name for `dpaudit run`, module) for each public module of a package, or for a single
    file. Print a message for each module that cannot be imported, and skip it.

    name: name or path of the package, or path of the file.
    """
    make_importable(os.getcwd())  # as under `python -m`, and as dpaudit run does
    if is_file(name) and not Path(name).is_dir():
        yield name, file_module(name)
        return
    name = _package_name(name)
    package = _package(name)
    yield name, package
    folders = getattr(package, "__path__", [])
    # `walk_packages` calls `onerror` for a package that cannot be imported. Nothing is done there,
    # since the import below fails, too, and prints the message.
    for module in pkgutil.walk_packages(folders, f"{name}.", onerror=lambda _: None):
        if module.name.rpartition(".")[2].startswith("_"):
            continue
        try:
            yield module.name, import_module(module.name)
        except (Exception, SystemExit) as error:  # noqa: BLE001  # foreign code, run by importing
            click.echo(f"left out {module.name}: {type(error).__name__}: {error}", err=True)


def _package_name(name: str) -> str:
    """Return the import name of a package, such as `a.b`.

    name: the import name, or the path of the package's folder.
    """
    folder = Path(name)
    if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
        raise TargetError(
            f"the folder {name!r} cannot be read: Permission denied", code="file-unreadable"
        )
    if not folder.is_dir() or name.isidentifier():
        return name
    if not (folder / "__init__.py").is_file() or not all(map(str.isidentifier, folder.parts)):
        # A folder without __init__.py is not searched: its files may be scripts, which an import
        # would run. The error suggests one file instead.
        file = next(map(str, sorted(folder.glob("[!_]*.py"))), f"{folder / 'NAME'}.py")
        raise TargetError(
            f"{name!r} is a folder, but not a package that can be imported from here; give a "
            f"Python file, e.g. {file}",
            code="module-not-found",
        )
    return ".".join(folder.parts)


def _package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise TargetError(
                f"the package {name!r} cannot be imported: {error}", code="import-failed"
            ) from error
        if name == _SPECIMENS:
            raise TargetError(
                f"there is no package {name!r} here: the reference mechanisms are part of "
                "dpaudit's source and are not installed with it; name a package, a module or a "
                "file of your own, e.g. dpaudit list mechanisms my/file.py",
                code="module-not-found",
            ) from None
        raise TargetError(
            f"there is no package {name!r} in {os.getcwd()} or on sys.path."
            + did_you_mean(name, modules_on_path()),
            code="module-not-found",
        ) from None
    except (Exception, SystemExit) as error:
        raise TargetError(
            f"the package {name!r} cannot be imported: {type(error).__name__}: {error}",
            code="import-failed",
        ) from error


def _mechanisms(modules: Mapping[str, ModuleType]) -> list[tuple[str, str, Any]]:
    """Return a list of (module, name, object) for each mechanism in the modules.

    A mechanism is a public function that takes an input, or a class with a method that takes an
    input. dpaudit's own reference mechanisms state their true privacy loss in an attribute `truth`.
    If a module has objects with this attribute, its other objects are helpers and are left out.
    Objects of the module that defines the type of `truth` are left out, too.
    """
    every = [
        (place, name, one)
        for place, module in modules.items()
        for name, one in vars(module).items()
        if not name.startswith("_") and getattr(one, "__module__", None) == module.__name__
        if (inspect.isfunction(one) and inspect.signature(one).parameters)
        or (inspect.isclass(one) and _draws(one))
    ]
    specimens = [one for _, _, one in every if hasattr(one, "truth")]
    tools = {type(one.truth).__module__ for one in specimens}
    stating = {one.__module__ for one in specimens}
    return [
        (place, name, one)
        for place, name, one in every
        if one.__module__ not in tools and (one.__module__ not in stating or one in specimens)
    ]


def _draws(found: type) -> bool:
    """Return whether objects of the class `found` can draw: they can be called, or have a public
    method with a parameter."""
    if issubclass(found, BaseException) or inspect.isabstract(found):
        return False
    methods = {
        name: one
        for base in found.__mro__
        if base is not object
        for name, one in vars(base).items()
        if inspect.isfunction(one) and (name == "__call__" or not name.startswith("_"))
    }
    return any(len(inspect.signature(one).parameters) > 1 for one in methods.values())


def _summary(one: Any) -> str:
    """Return the first paragraph of the docstring of `one` as a single line."""
    return " ".join((inspect.getdoc(one) or "").partition("\n\n")[0].split())


def _cut(line: str) -> str:
    """Return `line` cut to the width of the terminal, or the whole line if the output is not a
    terminal."""
    width = shutil.get_terminal_size().columns
    if width_of(line) <= width or not sys.stdout.isatty():
        return line
    while width_of(line) >= width:
        line = line[:-1]
    return f"{line}…"
