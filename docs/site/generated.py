"""Directives for what is made from the code: the commands and the public names of Python."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from itertools import groupby
from pathlib import Path

import click
from docutils import nodes
from msgspec import Struct
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import dpaudit
import dpaudit.testing
from dpaudit.claims.base import PrivacyClaim
from dpaudit.cli.click_classes import SECTIONS, SingleOption
from dpaudit.cli.commands import cli
from dpaudit.config.schema import schema
from dpaudit.reports.json import schema as result_schema


class Commands(SphinxDirective):
    """Every command: how it is called, what it does, and its options by section."""

    def run(self) -> list[nodes.Node]:
        root = click.Context(cli, info_name="dpaudit", **cli.context_settings)
        text = "\n".join(_command(cli, root))
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def _command(command: click.Command, ctx: click.Context) -> Iterator[str]:
    usage = " ".join(command.collect_usage_pieces(ctx))
    yield from ("", f"## {ctx.command_path}", "")
    yield from ("```text", f"{ctx.command_path} {usage}", "```", "")
    yield from _prose(command.help or "")
    options = [one for one in command.get_params(ctx) if isinstance(one, click.Option)]
    options.sort(key=lambda one: SECTIONS.index(_section(one)))
    sections = {one.section for one in options if isinstance(one, SingleOption)}
    for section, some in groupby(options, key=_section):
        yield from ("", f"**{section}**", "") if section in sections else ()
        for one in some:
            flags, said = one.get_help_record(ctx) or ("", "")
            yield from (f"`{flags}`", f": {_escaped(said)}", "")
    yield from _prose(command.epilog or "")
    if isinstance(command, click.Group):
        for name in command.list_commands(ctx):
            inner = command.get_command(ctx, name)
            if inner is not None:
                yield from _command(inner, click.Context(inner, parent=ctx, info_name=name))


def _section(one: click.Option) -> str:
    return one.section if isinstance(one, SingleOption) else SECTIONS[-1]


def _prose(text: str) -> Iterator[str]:
    """Yield a help text as Markdown: what click must not wrap is shown as it is."""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if paragraph.startswith("\b"):
            yield from ("", "```text", paragraph.removeprefix("\b\n"), "```", "")
        else:
            yield from ("", _escaped(paragraph), "")


def _escaped(text: str) -> str:
    """Return a help text as Markdown, in which flags are code."""
    words = re.split(r"((?<![\w-])--?[a-z][\w-]*)", text)
    plain = [re.sub(r"([*_<>\[\]{}`])", r"\\\1", word) for word in words]
    return "".join(f"`{word}`" if place % 2 else word for place, word in enumerate(plain))


class Schema(SphinxDirective):
    """A link to the JSON schema of configuration or result files, written beside the page."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name, made = {
            "config": ("dpaudit.schema.json", schema),
            "result": ("result.schema.json", result_schema),
        }[self.arguments[0]]
        text = json.dumps(made(), indent=2, ensure_ascii=False)
        (Path(self.env.app.outdir) / name).write_text(text + "\n", encoding="utf-8")
        link = nodes.reference("", f"The schema of version {dpaudit.__version__}", refuri=name)
        return [nodes.paragraph("", "", link)]


class Docstring(SphinxDirective):
    """The docstring of a module as Markdown, without its first line."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        text = inspect.getdoc(import_module(self.arguments[0])) or ""
        numbered = re.sub(r"^(\d+)   ", r"\1.  ", text.partition("\n\n")[2], flags=re.MULTILINE)
        return self.parse_text_to_nodes(numbered)


class PublicNames(SphinxDirective):
    """The public names of a kind: functions, results, claims, errors, training or tests."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        text = "\n".join(_documented(self.arguments[0]))
        return self.parse_text_to_nodes(f"```{{eval-rst}}\n{text}\n```")


class Records(SphinxDirective):
    """What results hold: the records of certificates that are not public names by themselves."""

    def run(self) -> list[nodes.Node]:
        lines = "\n".join(f".. autoclass:: {name}" for name in _records())
        inner = self.parse_text_to_nodes(f"```{{eval-rst}}\n{lines}\n```")
        return [nodes.container("", *inner, classes=["records"])]


def _records() -> Iterator[str]:
    for name in ("result", "certificate", "evidence", "canary_certificate", "traced"):
        module = import_module(f"dpaudit.certificates.{name}")
        for key, one in vars(module).items():
            is_record = is_dataclass(one) or (isinstance(one, type) and issubclass(one, Struct))
            is_own = is_record and one.__module__ == module.__name__
            if is_own and key not in dpaudit.__all__ and not key.startswith("_"):
                yield f"{module.__name__}.{key}"


def _documented(kind: str) -> Iterator[str]:
    modules = {"tests": "dpaudit.testing", "training": "dpaudit.training"}
    module = modules.get(kind, "dpaudit")
    for name in import_module(module).__all__:
        public = getattr(import_module(module), name)
        if name != "__version__" and _kind(public, module) == kind:
            directive = "autofunction" if inspect.isfunction(public) else "autoclass"
            directive = "autoexception" if kind == "errors" else directive
            members = ("   :members:",) if _has_members(public) else ()
            yield from (f".. {directive}:: {module}.{name}", *members, "")


def _has_members(public: object) -> bool:
    """Return whether methods are documented: of a definition, those of PrivacyClaim are enough."""
    is_definition = isinstance(public, type) and issubclass(public, PrivacyClaim)
    return inspect.isclass(public) and (not is_definition or public is PrivacyClaim)


def _kind(public: object, module: str) -> str:
    if module == "dpaudit.testing":
        return "tests"
    if module == "dpaudit.training":
        return "training"
    if not isinstance(public, type):
        return "functions"
    if issubclass(public, PrivacyClaim):
        return "claims"
    return "errors" if issubclass(public, Exception) else "results"


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("commands", Commands)
    app.add_directive("schema", Schema)
    app.add_directive("docstring", Docstring)
    app.add_directive("public-names", PublicNames)
    app.add_directive("records", Records)
    return {"parallel_read_safe": True}
