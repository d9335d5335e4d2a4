"""Which modules a mechanism can reach, by what they name: in a large program, all others stay as
they are."""

from __future__ import annotations

import functools
import sys
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# So many items of a container are looked at.
_MOST = 100


def reached(objects: Iterable[Any], owns: Callable[[str], bool]) -> list[ModuleType]:
    """Return the modules that objects come from, those that these name, and so on.

    owns: whether a file is one to look into.
    """
    found: dict[int, ModuleType] = {}
    waiting = [home for one in objects for home in _homes(one)]
    while waiting:
        module = waiting.pop()
        file = getattr(module, "__file__", None)
        if id(module) not in found and isinstance(file, str) and owns(file):
            found[id(module)] = module
            waiting += _named(module)
    return sorted(found.values(), key=lambda one: one.__name__)


def _named(module: ModuleType) -> Iterator[ModuleType]:
    """Yield the modules that a module names, also those that its functions import."""
    for value in list(vars(module).values()):
        yield from _homes(value)
        functions = list(vars(value).values()) if isinstance(value, type) else [value]
        for one in functions:
            if isinstance(one, property):
                one = one.fget
            elif isinstance(one, (staticmethod, classmethod)):
                one = one.__func__
            while isinstance(one, FunctionType):
                if one.__module__ == module.__name__:
                    yield from _imported(one.__code__, module)
                one = getattr(one, "__wrapped__", None)


def _imported(code: CodeType, module: ModuleType) -> Iterator[ModuleType]:
    """Yield the loaded modules that code may import: names of any other use are names of modules
    that are loaded, too."""
    package = getattr(module, "__package__", None) or ""
    for name in code.co_names:
        for full in (name, f"{package}.{name}", f"{package.rpartition('.')[0]}.{name}"):
            found = sys.modules.get(full)
            if isinstance(found, ModuleType):
                yield found
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imported(constant, module)


def _homes(value: Any, depth: int = 0) -> Iterator[ModuleType]:
    """Yield the modules that a value, and what it holds, comes from."""
    if isinstance(value, ModuleType):
        yield value
    elif isinstance(value, functools.partial):
        yield from _homes((value.func, *value.args, *value.keywords.values()), depth)
    elif isinstance(value, MethodType):
        yield from _homes((value.__func__, value.__self__), depth)
    elif isinstance(value, type):
        for one in value.__mro__:
            yield from _module(one.__module__)
    elif isinstance(value, FunctionType):
        yield from _module(value.__module__)
        for cell in value.__closure__ or ():
            if depth < 2:
                yield from _homes(_content(cell), depth + 1)
        yield from _homes(getattr(value, "__wrapped__", None), depth + 1)
    elif isinstance(value, (dict, list, tuple, set, frozenset)):
        if depth < 2:
            for one in list(value.values() if isinstance(value, dict) else value)[:_MOST]:
                yield from _homes(one, depth + 1)
    elif value is not None:
        yield from _homes(type(value))


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has not been assigned yet
        return None


def _module(name: Any) -> Iterator[ModuleType]:
    found = sys.modules.get(name) if isinstance(name, str) else None
    if isinstance(found, ModuleType):
        yield found
