"""Detect mechanisms that are compiled again for each number of draws in a call.

JAX and TensorFlow compile a function for each shape of its arrays. So dpaudit asks such a mechanism
only for a few different numbers of draws in a call. The detection reads only the mechanism's code,
so it gives the same answer in every process that draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

# Top-level packages of libraries that compile a function for each shape of its arrays.
COMPILERS = frozenset({"jax", "jaxlib", "flax", "tensorflow"})
# Number of levels of objects that are searched for the use of a library of `COMPILERS`. The first
# level is the mechanism. Each further level holds the attributes, closure variables and global
# variables that the objects of the level before refer to.
_MAX_DEPTH = 3
# Largest number of objects, reached from the mechanism, that are searched for the use of a library
# of `COMPILERS`.
_MAX_OBJECTS = 2_000


def is_compiled_by_size(mechanism: Any) -> bool:
    """Return whether a mechanism uses JAX or TensorFlow (`COMPILERS`). This is decided by the names
    in its code, in the functions of its module that it uses, in its closures, and in the attributes
    of its object."""
    level, known = [mechanism], set[int]()
    for _ in range(_MAX_DEPTH):
        following: list[Any] = []
        for value in level:
            if id(value) in known or len(known) > _MAX_OBJECTS:
                continue
            known.add(id(value))
            if _is_of_compiler(value):
                return True
            if isinstance(value, FunctionType) and COMPILERS & set(_names(value.__code__)):
                return True
            following.extend(_parts(value))
        level = following
    return False


def _is_of_compiler(value: Any) -> bool:
    module = value.__name__ if isinstance(value, ModuleType) else str(type(value).__module__)
    return str(module).partition(".")[0] in COMPILERS


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _parts(value: Any) -> Iterator[Any]:
    """Yield the objects to which an object, such as a function or a method, refers."""
    if isinstance(value, FunctionType):
        named = set(_names(value.__code__))
        yield from (value.__globals__[name] for name in named & value.__globals__.keys())
        for cell in value.__closure__ or ():
            yield from _contents(cell)
        yield from (value.__defaults__ or (), getattr(value, "__wrapped__", None))
    elif isinstance(value, MethodType):
        yield from (value.__func__, value.__self__)
    elif isinstance(value, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif not isinstance(value, type | ModuleType):
        yield from (vars(type(value)).get("__call__"), *islice(_data(value), _MAX_OBJECTS))


def _contents(cell: Any) -> tuple[Any, ...]:
    try:
        return (cell.cell_contents,)
    except ValueError:  # a variable that has not been assigned yet
        return ()


def _data(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from list(value.values())
    elif isinstance(value, list | tuple):
        yield from value
    else:
        attributes = getattr(value, "__dict__", None)
        yield from list(attributes.values()) if isinstance(attributes, dict) else ()
