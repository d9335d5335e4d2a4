"""Make the function that draws, from a target: import the mechanism, make its object, find its
method. Find the source line of a mechanism, and packages that it needs and that are not installed.

A failed import is a fault of the installation. If only one input reached the branch with the
import, the exception would look like a leak. So a failed import in the first calls ends the audit
(exit code 2), whichever input raises it. In a rare branch, which the first calls do not reach, it
counts as an outcome.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

from dpaudit.errors import Name, TargetError
from dpaudit.float_errors import user_errstate
from dpaudit.import_path import list_names, loaded, package_of, public_callables, resolve
from dpaudit.inputs.values import resolved
from dpaudit.outcomes import Raised
from dpaudit.targets.parameters import check_post_process
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
    tuple_notation,
)
from dpaudit.watching import step
from dpaudit.wording import did_you_mean, shortened, shown

Function = Callable[..., Any]

# Ends the message that a class or factory lacks arguments.
NEEDS_INIT = "; give its arguments with --init '[…]' (YAML: init: […])"


def functions(target: PythonTarget) -> tuple[Function, Function | None]:
    """Return the function that draws, and the post-processing function or None. Raises TargetError
    if a function cannot be imported, made or called."""
    if isinstance(target, ImportedTarget):
        return build(target), post_processing(target.post_process)
    if inspect.isclass(target.function):
        why = f"{target.function.__qualname__} is a class; give an instance or its method"
        raise TargetError(why, code="not-callable")
    function = _callable(_as_function(target.function), f"mechanism={target.function!r}")
    return function, post_processing(target.post_process)


def post_processing(named: Function | str | None) -> Function | None:
    """Return the post-processing function, which may be named by its import path; None for None.
    Raises TargetError if it cannot be imported, or cannot be called with one argument."""
    return None if named is None else applied(named, "post_process")


def applied(named: Function | str, role: str) -> Function:
    """Return the function, to be applied to each output, that an option gives: itself, or by its
    import path. `role` is the option. Raises TargetError if the function cannot be imported, or
    cannot be called with one argument."""
    try:
        function: Function = resolve(named) if isinstance(named, str) else named
    except TargetError as error:
        words = str(error).removeprefix("target ")
        raise TargetError(Name(role), f": {words}", code=error.code) from error
    check_post_process(function, name_of(named), role)
    return function


def build(target: ImportedTarget) -> Function:
    """Return the function that draws. Raises TargetError if the target cannot be imported, or if
    its class or factory fails."""
    named = resolve(target.path)
    if inspect.isclass(named) and not target.factory:
        _check_usable(named, target)
    if inspect.isclass(named) or target.factory:
        mechanism = _instance(_callable(named, target.path), target)
        mechanism = _as_function(mechanism) if target.call is None else mechanism
        if target.factory and target.call is None and not callable(mechanism):
            raise TargetError(
                f"the factory {target.path} returned {shown(mechanism)}, which cannot be called; "
                "let it return the mechanism",
                code="not-callable",
            )
        return _method(mechanism, target)
    if target.init is not None:
        raise TargetError(
            f"{target.path} is of type {type(named).__name__}, not a class, so ",
            *(Name("init"), " has no use; leave it out"),
            code="options-conflict",
        )
    return _method(named, target)


def is_made(target: AnyTarget) -> bool:
    """Return whether a class or a factory makes the mechanism, so that `init` may have its
    arguments."""
    return isinstance(target, ImportedTarget) and (
        target.factory or inspect.isclass(resolve(target.path))
    )


def _instance(maker: Function, target: ImportedTarget) -> Any:
    init = resolved(target.init)
    try:
        with step(f"making {target.path}"), user_errstate():
            return maker(**init) if isinstance(init, Mapping) else maker(*(init or ()))
    except (Exception, SystemExit) as error:
        detail = "" if target.init is None else f" with init={target.init!r}"
        reason = shortened(str(error), 300)
        lacks_arguments = target.init is None and isinstance(error, TypeError)
        raise TargetError(
            f"{target.path} cannot be made{detail}: {type(error).__name__}: {reason}"
            f"{NEEDS_INIT if lacks_arguments else ''}{tuple_notation(str(error), target.init)}",
            code="mechanism-not-made",
        ) from error


def _method(mechanism: Any, target: ImportedTarget) -> Function:
    if target.call is None:
        return _callable(_as_function(mechanism), target.path)
    known = public_callables(mechanism)
    method = getattr(mechanism, target.call, None)
    if method is None:
        if inspect.isroutine(mechanism):
            why = f"{target.path} is a function, which has no methods; leave out "
            raise TargetError(why, Name("call"), code="name-not-found")
        raise TargetError(
            f"{target.path} has no method {target.call!r}."
            f"{did_you_mean(target.call, known)}{list_names(known)}",
            code="name-not-found",
        )
    return _callable(method, f"{target.path}.{target.call}")


def _check_usable(kind: type, target: ImportedTarget) -> None:
    from dpaudit.library_claims.dataset_functions import is_drawn_from

    # Whether instances can be called. `callable(kind)` does not show it: it is True for every
    # class, since calling a class makes an instance.
    is_callable = any("__call__" in vars(base) for base in kind.__mro__) or is_drawn_from(kind)
    if target.call is None and not is_callable:
        raise TargetError(
            f"{target.path} is a class without __call__; name the method that draws with --call "
            f"METHOD (YAML: call).{list_names(public_callables(kind))}",
            code="not-callable",
        )


def _as_function(mechanism: Any) -> Any:
    """Return a function that draws for an object of a known library; any other object unchanged."""
    if inspect.isroutine(mechanism):
        return mechanism
    from dpaudit.library_claims.dataset_functions import as_function

    return as_function(mechanism)


def _callable(value: Any, name: str) -> Function:
    if callable(value):
        return value  # type: ignore[no-any-return]  # `callable` narrows Any to Any
    raise TargetError(
        f"{name} is of type {type(value).__name__}, which cannot be called; "
        "name a function, a class or an object with __call__",
        code="not-callable",
    )


def source_of(target: AnyTarget) -> str | None:
    """Return the file and line of a mechanism, such as `mine.py:12`, relative to the working
    directory. Return None for a composition, for a mechanism without Python code, and for code that
    this process has not imported."""
    match single_targets(target):
        case (CallableTarget(function=function),):
            return _source_line(function)
        case (ImportedTarget(path=path, call=call),):
            named = loaded(path)
            return _source_line(getattr(named, call, named) if call else named)
    return None


class Argument(NamedTuple):
    """The value of a parameter, whether the user gave it, and the option that can give it."""

    value: Any
    is_given: bool
    option: Literal["params", "init"]


def arguments_of(target: AnyTarget) -> dict[str, Argument]:
    """Return the arguments of a mechanism, and of the class or factory that makes it, by name.
    Return {} for a composition and a program. If this process has not imported the mechanism,
    defaults are unknown and left out."""
    parts = single_targets(target)
    part = parts[0].target if isinstance(parts[0], IsolatedTarget) else parts[0]
    if len(parts) > 1 or not isinstance(part, CallableTarget | ImportedTarget):
        return {}
    if isinstance(part, CallableTarget):
        return _arguments(part.function, part.params, "params")
    named = loaded(part.path)
    if not (part.factory or inspect.isclass(named)):
        function = getattr(named, part.call, None) if part.call else named
        return _arguments(function, part.params, "params")
    method = getattr(named, part.call or "__call__", None) if inspect.isclass(named) else None
    arguments = _arguments(named, part.init or {}, "init")
    return {**arguments, **_arguments(method, part.params, "params")}


def _arguments(
    function: Any, arguments: Mapping[str, Any] | Sequence[Any], option: Literal["params", "init"]
) -> dict[str, Argument]:
    by_name = dict(arguments) if isinstance(arguments, Mapping) else {}
    by_position = () if isinstance(arguments, Mapping) else tuple(arguments)
    values, named = by_name, by_name.keys()
    with suppress(TypeError, ValueError):  # not imported, compiled, or called otherwise
        bound = inspect.signature(function).bind_partial(*by_position, **by_name)
        named = dict(bound.arguments).keys()
        bound.apply_defaults()
        values = bound.arguments
    return {name: Argument(value, name in named, option) for name, value in values.items()}


def _source_line(value: Any) -> str | None:
    while isinstance(value, functools.partial):
        value = value.func
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        value = type(value)
    with suppress(Exception):  # attributes of a user's object may raise anything
        # A mechanism of dpaudit.training holds the user's function in its attribute `traced_as`.
        value = inspect.unwrap(getattr(value, "traced_as", (value,))[0])
        code = getattr(value, "__code__", None)
        file = Path(code.co_filename if code else inspect.getfile(value))
        line = code.co_firstlineno if code else inspect.getsourcelines(value)[1]
        here = Path(os.getcwd())
        if file.is_file():
            return f"{file.relative_to(here) if file.is_relative_to(here) else file}:{line}"
    return None


_KINDS = ("ModuleNotFoundError", "ImportError")
_NAME = re.compile(r"No module named '([^']+)'")


def check_found(raised: Mapping[str, Raised], target: AnyTarget) -> None:
    """Raise TargetError if one of the exceptions, which are given by type, is a failed import."""
    for kind in filter(raised.__contains__, _KINDS):
        where = " or ".join(dict.fromkeys(map(_where, single_targets(target))))
        raise not_found(raised[kind].words, target.name, where)


def not_found(words: str, name: str, where: str = sys.executable) -> TargetError:
    """Return the error for a failed import. The message names the package to install.

    name: name of the mechanism.
    where: the interpreter or environment in which the import failed.
    """
    package = lacks(words)
    if package is None:
        return TargetError(
            f"{name} cannot import what it needs in {where} ({words}); repair the installation "
            "there",
            code="package-missing",
        )
    return TargetError(
        f"{name} needs the package {package_of(package)!r}, which is not installed in {where}; "
        "install it there",
        code="package-missing",
    )


def is_missing(words: str) -> bool:
    """Return whether an exception with these words is a failed import."""
    return words.partition(":")[0] in _KINDS


def lacks(words: str) -> str | None:
    """Return the package that is missing, from the words of a failed import; None if unknown."""
    match = _NAME.search(words)
    return None if match is None else match[1]


def _where(target: SingleTarget) -> str:
    """Return the interpreter in which a mechanism runs or, for a program, the environment."""
    if isinstance(target, CommandTarget):
        return f"the environment of {target.words[0]}"
    python = target.python if isinstance(target, IsolatedTarget) else None
    return python or sys.executable
