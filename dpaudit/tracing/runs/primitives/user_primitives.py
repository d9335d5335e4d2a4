"""Replace the user's primitives: functions or methods that add noise to their first argument.

A user names one with `--primitive my.lib:add_noise`. It may have the attributes `law` (laplace,
normal, discrete, …); `scale`, a number or a function of its arguments that returns the scale; and
`bounds`, a function of its arguments that returns the least and the largest output. Without
`scale`, the scale is the argument called `scale`, `b` (Laplace noise) or `sigma` (standard
deviation of normal noise).
"""

from __future__ import annotations

import functools
import inspect
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..noisy_numbers import TracedArray, bare
from ..primitives import Replacement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ..noise_log import Recorder


# Maps the name of an argument that is the scale of the noise to the distribution that this name
# implies.
_SCALES = {"scale": "unknown", "b": "laplace", "sigma": "normal"}
_NUMBERS = (int, float, np.integer, np.floating)


def named(function: Callable[..., Any], recorder: Recorder) -> Iterator[Replacement]:
    """Yield the replacements of a user's primitive. A function is replaced under each name by which
    a loaded module refers to it; a method is replaced in its class. Calls are counted, for the
    report."""
    recorder.calls.setdefault(_label(function), 0)
    function = getattr(function, "__func__", function)
    owner = _owner(function)
    if owner is not None:
        yield from _in_class(function, owner, recorder)
        return
    noised = _noised(function, recorder, is_method=False)
    # The type is compared first, to save time: the loaded modules may have some hundred thousand
    # names.
    kind, called = FunctionType, getattr(function, "__qualname__", None)
    for module in list(sys.modules.values()):
        scope = getattr(module, "__dict__", None)
        if not isinstance(scope, dict):
            continue
        for name, value in list(scope.items()):
            if value is function or (
                type(value) is kind and value.__qualname__ == called and _is_twin(value, function)
            ):
                yield Replacement(module, name, noised)


def _owner(function: Any) -> type[Any] | None:
    """Return the class in which a method is defined; None for a function outside of classes."""
    owner: Any = sys.modules.get(getattr(function, "__module__", None) or "")
    if not isinstance(function, FunctionType) or not isinstance(owner, ModuleType):
        return None
    for name in function.__qualname__.split(".")[:-1]:
        owner = getattr(owner, name, None)
    return owner if isinstance(owner, type) else None


def _in_class(function: Any, owner: type[Any], recorder: Recorder) -> Iterator[Replacement]:
    """Yield a replacement for each name under which the class or a base class defines a method."""
    for kind in owner.__mro__:
        for name, value in list(vars(kind).items()):
            if value is function:
                yield Replacement(kind, name, _noised(function, recorder, is_method=True))
            elif getattr(value, "__func__", None) is function:
                is_static = isinstance(value, staticmethod)
                noised = _noised(function, recorder, is_method=not is_static)
                yield Replacement(kind, name, type(value)(noised))


def _noised(function: Any, recorder: Recorder, *, is_method: bool) -> Any:
    skipped = int(is_method)

    def noised(*args: Any, **named: Any) -> Any:
        if recorder.is_inside:
            return function(*args, **named)
        args, named = bare(args), {key: bare(value) for key, value in named.items()}
        result = recorder.real(function, *args, **named)
        arguments = _arguments(function, args, named)
        label = _label(function)
        recorder.calls[label] += 1
        operand = list(arguments.values())[skipped] if len(arguments) > skipped else None
        value, what = _numbers(result), _numbers(operand)
        if value is None or what is None or np.shape(value) != np.shape(what):
            return recorder.opaque(label, result)
        law, scale = _law(function, args, named, arguments)
        bounds = _bounds(function, args, named, what)
        noise = recorder.released(label, value, what, law=law, scale=scale, parameters=bounds)
        return type(result)(noise.tolist()) if isinstance(result, (list, tuple)) else noise

    return functools.update_wrapper(noised, function) if _has_name(function) else noised


def _label(function: Any) -> str:
    return function.__name__ if _has_name(function) else type(function).__name__


def _is_twin(value: Any, function: Any) -> bool:
    """Return whether two functions come from the same lines of a file that two names import."""
    if not isinstance(value, FunctionType) or not isinstance(function, FunctionType):
        return False
    code, declared_code = value.__code__, function.__code__
    is_of_a_file = (
        code.co_filename == declared_code.co_filename and not code.co_filename.startswith("<")
    )
    same_line = code.co_firstlineno == declared_code.co_firstlineno
    return is_of_a_file and same_line and value.__qualname__ == function.__qualname__


def _has_name(function: Any) -> bool:
    return isinstance(getattr(function, "__name__", None), str)


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]
) -> Mapping[str, Any]:
    """Return the arguments by parameter; without a signature, the names are "0", "1" and so on."""
    try:
        return inspect.signature(function).bind(*args, **named).arguments
    except (TypeError, ValueError):  # a compiled function has no signature
        return {**{str(position): value for position, value in enumerate(args)}, **named}


def _numbers(value: Any) -> Any:
    """Return a number unchanged; a list, tuple or array of numbers as an array; else None."""
    if isinstance(value, _NUMBERS) and not isinstance(value, (bool, np.bool_)):
        return value
    if isinstance(value, (list, tuple, np.ndarray)) and not isinstance(value, TracedArray):
        try:
            array = np.asarray(value)
        except ValueError:  # nested lists of unequal lengths
            return None
        return array if array.dtype.kind in "iuf" and array.size else None
    return None


def _law(
    function: Any, args: tuple[Any, ...], named: dict[str, Any], arguments: Mapping[str, Any]
) -> tuple[str, Any]:
    law, scale = getattr(function, "law", "unknown"), getattr(function, "scale", None)
    if callable(scale):
        scale = scale(*args, **named)
    for name, meant in _SCALES.items():
        if scale is None and isinstance(arguments.get(name), _NUMBERS):
            law, scale = (meant if law == "unknown" else law), float(arguments[name])
    return law, scale


def _bounds(
    function: Any, args: tuple[Any, ...], named: dict[str, Any], operand: Any
) -> dict[str, Any] | None:
    bounds = getattr(function, "bounds", None)
    if bounds is None or np.ndim(operand):
        return None
    lower, upper = bounds(*args, **named)
    return {"value": operand, "lower": float(lower), "upper": float(upper)}
