"""Completion of the command line by a shell, which asks at every press of a key and so must not
wait for libraries that compute: stand-ins take their place in that process, which only declares
commands and options."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import click
from click.shell_completion import CompletionItem

VARIABLE = "_DPAUDIT_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
_ASKED = tuple(f"{shell}_{what}" for shell in SHELLS for what in ("source", "complete"))
_HEAVY = ("numpy", "scipy")

Completer = Callable[[click.Context, click.Parameter, str], Sequence[Any]]


def begin() -> bool:
    """Return whether a shell asks, having prepared for that. Raises SystemExit for what no shell
    asks."""
    asked = os.environ.get(VARIABLE)
    if not asked:
        return False
    if asked not in _ASKED:
        sys.stderr.write(f"error: {VARIABLE}={asked!r} must be one of {', '.join(_ASKED)}\n")
        raise SystemExit(2)
    if asked.endswith("_complete"):
        # Whatever goes wrong, a line that somebody types at is not the place to say it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    sys.meta_path.insert(0, _StandIns())
    return True


class _StandIns(MetaPathFinder, Loader):
    """Finds stand-ins for heavy libraries that nobody has loaded."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        is_heavy = name.partition(".")[0] in _HEAVY
        return ModuleSpec(name, self, is_package=True) if is_heavy else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _StandIn(ModuleType):
    """A module in which there is everything, and which computes nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything


class _Whatever(type):
    """What classes are made of that take everything for everything."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __iter__(cls) -> Any:
        return iter(())

    def __len__(cls) -> int:
        return 0


def _itself(cls: Any, *_: Any) -> Any:
    return cls


_BINARY = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
]
for _name in (
    *("getitem", "neg", "pos", "abs", "invert", "lt", "le", "gt", "ge"),
    *_BINARY,
    *(f"r{one}" for one in _BINARY),
):
    setattr(_Whatever, f"__{_name}__", _itself)


class _Anything(metaclass=_Whatever):
    """Stands for any class, function or number."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        return _Anything


def _formats(_: click.Context, __: click.Parameter, given: str) -> Sequence[Any]:
    """Complete FORMAT[:FILE]; the file is left to the shell."""
    from dpaudit.reports.registry import FORMATS

    name, colon, file = given.partition(":")
    if colon:
        return [CompletionItem(file, type="file")]
    return [one for one in FORMATS if one.startswith(name)]


def _attacks(_: click.Context, __: click.Parameter, given: str) -> Sequence[Any]:
    """Complete the names of installed attacks."""
    from dpaudit.attacks.loading import installed_attacks

    return [name for name in installed_attacks() if name.startswith(given)]


def _relations(_: click.Context, __: click.Parameter, given: str) -> Sequence[Any]:
    from dpaudit.inputs.adjacency import ADJACENCIES, ARGUMENTS

    argued = {one: f"{one}:{ARGUMENTS[one]}" if one in ARGUMENTS else one for one in ADJACENCIES}
    shown = {argued[one]: said for one, said in ADJACENCIES.items()}
    return [CompletionItem(one, help=said) for one, said in shown.items() if one.startswith(given)]


def files(_: click.Context, __: click.Parameter, given: str) -> Sequence[Any]:
    """Leave it to the shell, which knows of files."""
    return [CompletionItem(given, type="file")]


def folders(_: click.Context, __: click.Parameter, given: str) -> Sequence[Any]:
    """Leave it to the shell, which knows of folders."""
    return [CompletionItem(given, type="dir")]


# By the name of the option; of those with choices, click knows.
COMPLETERS: Mapping[str, Completer] = {
    "report": _formats,
    "attacks": _attacks,
    "adjacency": _relations,
    "json": files,
    "python": files,
    "journal": folders,
}
