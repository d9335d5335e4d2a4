"""From an import path to the callable that draws: constructors, factories and methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dpaudit.did_you_mean import did_you_mean
from dpaudit.errors import TargetError
from dpaudit.import_path import public_callables, resolve, there_is
from dpaudit.inputs.values import resolved
from dpaudit.targets.parameters import check_post_process, init_words
from dpaudit.targets.target import AnyTarget, CallableTarget, ImportedTarget
from dpaudit.watching import step
from dpaudit.wording import shown

Function = Callable[..., Any]


def functions(target: ImportedTarget | CallableTarget) -> tuple[Function, Function | None]:
    """Return what draws and what is applied to every output. Raises TargetError."""
    if isinstance(target, ImportedTarget):
        return build(target), post_processing(target.post_process)
    post_process = target.post_process
    if post_process is not None:
        check_post_process(post_process, getattr(post_process, "__qualname__", repr(post_process)))
    return _checked(target.function), post_process


def post_processing(path: str | None) -> Function | None:
    """Return the function that is applied to every output, if there is one. Raises TargetError."""
    return None if path is None else imported_function(path, "post_process")


def imported_function(path: str, role: str) -> Function:
    """Return the function that a path names, to be applied to outputs. Raises TargetError.

    role: its key.
    """
    function: Function = resolve(path)
    check_post_process(function, path, role)
    return function


def _checked(function: Any) -> Function:
    if inspect.isclass(function):
        raise TargetError(f"{function.__qualname__} is a class; give an instance or its method")
    if not callable(function):
        raise TargetError(
            f"mechanism={function!r} is of type {type(function).__name__}, not callable"
        )
    return function  # type: ignore[no-any-return]  # `callable` narrows Any to Any


def build(target: ImportedTarget) -> Callable[..., Any]:
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
    if not isinstance(target, ImportedTarget):
        return False
    return target.factory or inspect.isclass(resolve(target.path))


def needs_init(target: ImportedTarget) -> str:
    """Return how to give arguments to what makes a mechanism, for the end of a message."""
    if not target.params:
        return "; give its arguments with --init '[…]' (YAML: init: […])"
    return f"; params are for calls of what it makes, so give it {init_words(target.params)}"


def _lacks_arguments(maker: Callable[..., Any], target: ImportedTarget) -> bool:
    if target.init is not None:
        return False
    try:
        inspect.signature(maker).bind()
    except TypeError:
        return True
    except ValueError:  # a compiled one, without a signature
        pass
    return False


def _made(maker: Callable[..., Any], target: ImportedTarget) -> Any:
    init = resolved(target.init)
    try:
        with step(f"making {target.path}"):
            return maker(**init) if isinstance(init, Mapping) else maker(*(init or ()))
    except (Exception, SystemExit) as error:
        given = "" if target.init is None else f" with init={target.init!r}"
        reason = " ".join(str(error).split())[:300]
        raise TargetError(
            f"{target.path} cannot be made{given}: {type(error).__name__}: {reason}"
            f"{needs_init(target) if _lacks_arguments(maker, target) else ''}"
        ) from error


def _method(made: Any, target: ImportedTarget) -> Callable[..., Any]:
    if target.call is None:
        return _callable(made, target.path)
    known = public_callables(made)
    method = getattr(made, target.call, None)
    if method is None and inspect.isroutine(made):
        raise TargetError(f"{target.path} is a function, which has no methods; leave out call")
    if method is None:
        raise TargetError(
            f"{target.path} has no method {target.call!r}."
            f"{did_you_mean(target.call, known)}{there_is(known)}"
        )
    return _callable(method, f"{target.path}.{target.call}")


def _check_usable(found: type, target: ImportedTarget) -> None:
    # Not `callable`, since the class itself can be called.
    if target.call is not None or any("__call__" in vars(base) for base in found.__mro__):
        return
    raise TargetError(
        f"{target.path} is a class without __call__; name the method that draws with call."
        f"{there_is(public_callables(found))}"
    )


def _callable(found: Any, name: str) -> Callable[..., Any]:
    if callable(found):
        return found  # type: ignore[no-any-return]  # `callable` narrows Any to Any
    raise TargetError(
        f"{name} is of type {type(found).__name__}, which cannot be called; "
        "name a function, a class or an object with __call__"
    )
