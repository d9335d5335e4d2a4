"""Complete the command line when the user presses Tab in a shell. Names of mechanisms come from the
syntax tree of their file, which is not imported."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    split_arg_string,
)

VARIABLE = "_DPAUDIT_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_REQUESTS = tuple(f"{shell}_{what}" for shell in SHELLS for what in ("source", "complete"))

Completer = Callable[[click.Context, click.Parameter, str], Sequence[Any]]


def begin() -> bool:
    """Return whether a shell started this process to ask for a completion. If so, prepare for the
    completion. Raises SystemExit for an unknown kind of request."""
    request = os.environ.get(VARIABLE)
    if not request:
        return False
    if request not in _REQUESTS:
        sys.stderr.write(f"error: {VARIABLE}={request!r} must be one of {', '.join(_REQUESTS)}\n")
        raise SystemExit(2)
    if request.endswith("_complete"):
        # Discard standard error: the shell would print an error into the line that the user is
        # typing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    add_completion_class(_Bash)
    return True


class _Bash(BashComplete):
    """Completion for bash. bash splits `mine.py:f` into `mine.py`, `:` and `f`, and replaces only
    the last part. This class joins the parts before it looks for completions."""

    _prefix, _is_quoted = "", False

    def get_completion_args(self) -> tuple[list[str], str]:
        words, number = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
        if len(words) <= 1:  # a shell that does not separate words by newlines
            return super().get_completion_args()
        joined: list[str] = []
        for word in words[: number + 1]:
            last = joined[-1] if joined else ""
            # Bash also splits `--flag=value` at the equals sign, so these parts are joined again.
            is_of_flag = last.startswith("--") and (word == "=" or last.endswith("="))
            if last and (word.startswith(":") or (last.endswith(":") and word) or is_of_flag):
                joined[-1] += word
            else:
                joined.append(word)
        # If bash has split a word at colons, it replaces only the part after the last colon. So the
        # completion must not repeat the part up to this colon: `f`, for example, and not
        # `mine.py:f`.
        is_split = len(joined) <= number and ":" in joined[-1]
        plain = [next(iter(split_arg_string(part)), "") for part in joined]
        self._is_quoted = joined[-1][:1] in ("'", '"')
        if is_split:
            self._prefix = plain[-1][: plain[-1].rindex(":") + 1]
        return plain[1:-1], plain[-1]

    def format_completion(self, item: CompletionItem) -> str:
        value = str(item.value).removeprefix(self._prefix)
        if item.type == "plain" and value and not self._is_quoted:
            value = shlex.quote(value)  # bash does not quote what it inserts
        return f"{item.type},{value}"


def _formats(_: click.Context, __: click.Parameter, prefix: str) -> Sequence[Any]:
    """Return the report formats that begin with `prefix`; the shell completes FORMAT:FILE."""
    from dpaudit.reports.formats import FORMATS

    name, colon, file = prefix.partition(":")
    if colon:
        return [CompletionItem(file, type="file")]
    return [kind for kind in FORMATS if kind.startswith(name)]


def _attacks(_: click.Context, __: click.Parameter, prefix: str) -> Sequence[Any]:
    """Return the names of installed attacks that begin with `prefix`."""
    from dpaudit.attacks.user_attacks import installed_attacks

    return [name for name in installed_attacks() if name.startswith(prefix)]


def _relations(_: click.Context, __: click.Parameter, prefix: str) -> Sequence[Any]:
    from dpaudit.inputs.adjacency import ADJACENCIES, ARGUMENTS

    argued = {
        relation: f"{relation}:{ARGUMENTS[relation]}" if relation in ARGUMENTS else relation
        for relation in ADJACENCIES
    }
    shown = {argued[relation]: text for relation, text in ADJACENCIES.items()}
    return [
        CompletionItem(relation, help=text)
        for relation, text in shown.items()
        if relation.startswith(prefix)
    ]


def targets(_: click.Context, __: click.Parameter, incomplete: str) -> Sequence[Any]:
    """Return completions of `file.py:name`: the functions and classes of the file, which is not
    imported. Before the colon, let the shell complete the name of the file."""
    file, colon, name = incomplete.rpartition(":")
    if not colon or not file.endswith(".py"):
        return [CompletionItem(incomplete, type="file")]
    return [f"{file}:{attribute}" for attribute in _defined(file) if attribute.startswith(name)]


def _defined(file: str) -> list[str]:
    """Return the public functions and classes of a file by name; without any, the private ones."""
    import ast

    try:
        with open(os.path.expanduser(file), "rb") as opened:  # noqa: PTH123, PTH111  # at every key
            nodes: list[Any] = list(ast.parse(opened.read()).body)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    names = []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.If | ast.Try | ast.With):
            # Add the statements inside an `if` or `try` to the statements to visit: a function may
            # be defined there, such as one for a single platform.
            nodes += [*node.body, *getattr(node, "orelse", ())]
    public = [name for name in names if not name.startswith("_")]
    return list(dict.fromkeys(public or names))


def _audits(ctx: click.Context, _: click.Parameter, prefix: str) -> Sequence[Any]:
    """Return the audits of the files on the command line or, without files, of the project."""
    from dpaudit.config.project import here
    from dpaudit.config.yaml_files import audit_names
    from dpaudit.errors import DpauditError

    sign = "=" if prefix.startswith("=") else ""
    # Words of the command line, among them the names of configuration files. click puts these names
    # into the parameter `targets`; if the user is completing the value of an option, into `args`.
    words = [*(ctx.params.get("targets") or ()), *ctx.args]
    named = [word for word in words if word.endswith((".yaml", ".yml"))]
    names: list[str] = []
    with suppress(DpauditError):  # dpaudit check reports errors of a file
        for file in named or here().files():
            names += audit_names(Path(file))
    beginning = prefix.removeprefix(sign).lower()
    return [f"{sign}{name}" for name in dict.fromkeys(names) if name.lower().startswith(beginning)]


def files(_: click.Context, __: click.Parameter, incomplete: str) -> Sequence[Any]:
    """Return the value with which click lets the shell complete the name of a file."""
    return [CompletionItem(incomplete, type="file")]


def folders(_: click.Context, __: click.Parameter, incomplete: str) -> Sequence[Any]:
    """Return the value with which click lets the shell complete the name of a folder."""
    return [CompletionItem(incomplete, type="dir")]


# Maps the name of an option to the function that completes its value. Options with a fixed list of
# values are absent, since click completes them.
COMPLETERS: Mapping[str, Completer] = {
    "report": _formats,
    "pattern": _audits,
    "attacks": _attacks,
    "adjacency": _relations,
    "json": files,
    "python": files,
    "journal": folders,
}
