"""From an import path to the callable that draws: constructors, factories and methods; and the file
and line that its code is in."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpaudit.errors import TargetError
from dpaudit.float_errors import user_errstate
from dpaudit.import_path import list_names, loaded, public_callables, resolve
from dpaudit.inputs.values import resolved
from dpaudit.outcomes import Raised
from dpaudit.targets.parameters import check_post_process, init_words
from dpaudit.targets.target import (
    AnyTarget,
    CallableTarget,
    CommandTarget,
    ImportedTarget,
    IsolatedTarget,
    PythonTarget,
    SingleTarget,
    name_of,
    single_targets,
)
from dpaudit.watching import step
from dpaudit.wording import did_you_mean, shown

Function = Callable[..., Any]


def functions(target: PythonTarget) -> tuple[Function, Function | None]:
    """Return what draws and what is applied to every output. Raises TargetError."""
    function = build(target) if isinstance(target, ImportedTarget) else _checked(target.function)
    return function, post_processing(target.post_process)


def post_processing(named: Function | str | None) -> Function | None:
    """Return what is applied to every output, if there is something. Raises TargetError."""
    return None if named is None else applied(named, "post_process")


def applied(named: Function | str, role: str) -> Function:
    """Return a function of outputs: itself, or what its import path names. Raises TargetError."""
    function: Function = resolve(named) if isinstance(named, str) else named
    check_post_process(function, name_of(named), role)
    return function


def _checked(function: Any) -> Function:
    if inspect.isclass(function):
        raise TargetError(f"{function.__qualname__} is a class; give an instance or its method")
    if not callable(function):
        raise TargetError(
            f"mechanism={function!r} is of type {type(function).__name__}, not callable"
        )
    return function  # type: ignore[no-any-return]  # `callable` narrows Any to Any


def build(target: ImportedTarget) -> Function:
    """Return the callable that draws. Raises TargetError when it cannot be found or built."""
    found = resolve(target.path)
    if inspect.isclass(found) and not target.factory:
        _check_usable(found, target)
    if inspect.isclass(found) or target.factory:
        made = _made(_callable(found, target.path), target)
        if target.factory and target.call is None and not callable(made):
            raise TargetError(
                f"the factory {target.path} returned {shown(made)}, which cannot be called; let it "
                "return the mechanism, or leave out --factory (YAML: factory)"
            )
        return _method(made, target)
    if target.init is not None:
        raise TargetError(
            f"{target.path} is of type {type(found).__name__}, not a class, so init has no use; "
            "set factory: true if it makes the mechanism, or give keyword arguments as params"
        )
    return _method(found, target)


def is_made(target: AnyTarget) -> bool:
    """Return whether a constructor or a factory makes what draws, with arguments of its own."""
    return isinstance(target, ImportedTarget) and (
        target.factory or inspect.isclass(resolve(target.path))
    )


def needs_init(target: PythonTarget) -> str:
    """Return how to give arguments to what makes a mechanism, for the end of a message."""
    if not target.params:
        return "; give its arguments with --init '[…]' (YAML: init: […])"
    return f"; params are for calls of what it makes, so give it {init_words(target.params)}"


def _lacks_arguments(maker: Function, target: ImportedTarget) -> bool:
    if target.init is not None:
        return False
    try:
        inspect.signature(maker).bind()
    except (TypeError, ValueError) as error:
        return isinstance(error, TypeError)  # the other is of a compiled one, without a signature
    return False


def _made(maker: Function, target: ImportedTarget) -> Any:
    init = resolved(target.init)
    try:
        with step(f"making {target.path}"), user_errstate():
            return maker(**init) if isinstance(init, Mapping) else maker(*(init or ()))
    except (Exception, SystemExit) as error:
        given = "" if target.init is None else f" with init={target.init!r}"
        reason = " ".join(str(error).split())[:300]
        raise TargetError(
            f"{target.path} cannot be made{given}: {type(error).__name__}: {reason}"
            f"{needs_init(target) if _lacks_arguments(maker, target) else ''}"
        ) from error


def _method(made: Any, target: ImportedTarget) -> Function:
    if target.call is None:
        return _callable(made, target.path)
    known = public_callables(made)
    method = getattr(made, target.call, None)
    if method is None:
        if inspect.isroutine(made):
            raise TargetError(f"{target.path} is a function, which has no methods; leave out call")
        raise TargetError(
            f"{target.path} has no method {target.call!r}."
            f"{did_you_mean(target.call, known)}{list_names(known)}"
        )
    return _callable(method, f"{target.path}.{target.call}")


def _check_usable(found: type, target: ImportedTarget) -> None:
    # Not `callable`, since the class itself can be called.
    if target.call is None and not any("__call__" in vars(base) for base in found.__mro__):
        init = needs_init(target) if _lacks_arguments(found, target) else ""
        raise TargetError(
            f"{target.path} is a class without __call__; name the method that draws with --call "
            f"METHOD (YAML: call){init}.{list_names(public_callables(found))}"
        )


def _callable(found: Any, name: str) -> Function:
    if callable(found):
        return found  # type: ignore[no-any-return]  # `callable` narrows Any to Any
    raise TargetError(
        f"{name} is of type {type(found).__name__}, which cannot be called; "
        "name a function, a class or an object with __call__"
    )


def source_of(target: AnyTarget) -> str | None:
    """Return file and line, e.g. `mine.py:12`, as seen from the working directory; None for what
    this process has not loaded, has no Python code, or is several mechanisms."""
    match single_targets(target):
        case (CallableTarget(function=function),):
            return _place(function)
        case (ImportedTarget(path=path, call=call),):
            found = loaded(path)
            return _place(getattr(found, call, found) if call else found)
    return None


def _place(found: Any) -> str | None:
    while isinstance(found, functools.partial):
        found = found.func
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        found = type(found)
    with suppress(Exception):  # whatever a user's object answers, an audit does not end of it
        found = inspect.unwrap(found)
        code = getattr(found, "__code__", None)
        file = Path(code.co_filename if code else inspect.getfile(found))
        line = code.co_firstlineno if code else inspect.getsourcelines(found)[1]
        here = Path(os.getcwd())
        if file.is_file():
            return f"{file.relative_to(here) if file.is_relative_to(here) else file}:{line}"
    return None


_KINDS = ("ModuleNotFoundError", "ImportError")
_NAME = re.compile(r"No module named '([^']+)'")


def check_found(raised: Mapping[str, Raised], target: AnyTarget) -> None:
    """Raise TargetError for an import that failed. raised: exceptions by type."""
    for kind in filter(raised.__contains__, _KINDS):
        where = " or ".join(dict.fromkeys(map(_where, single_targets(target))))
        raise not_found(raised[kind].words, target.name, where)


def not_found(words: str, name: str, where: str = sys.executable) -> TargetError:
    """Return the error of an import that failed. words: the exception. where: it was tried."""
    package = lacks(words)
    if package is None:
        return TargetError(
            f"{name} cannot import what it needs in {where} ({words}); repair the installation "
            "there"
        )
    return TargetError(
        f"{name} needs the package {package!r}, which is not installed in {where}; install it there"
    )


def is_missing(words: str) -> bool:
    """Return whether an exception in words is an import that failed."""
    return words.partition(":")[0] in _KINDS


def lacks(words: str) -> str | None:
    """Return the package that an exception in words says is missing."""
    found = _NAME.search(words)
    return None if found is None else found[1]


def _where(target: SingleTarget) -> str:
    """Return the interpreter, or the program, that makes the calls."""
    if isinstance(target, CommandTarget):
        return f"the environment of {target.words[0]}"
    python = target.python if isinstance(target, IsolatedTarget) else None
    return python or sys.executable
