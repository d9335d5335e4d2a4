"""What a mechanism takes: read from its signature once, so that a typo never reaches a draw."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from dpaudit.errors import TargetError, did_you_mean

BATCH = "size"
RNG = "rng"
NO_BATCH = "none"

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@dataclass(frozen=True, slots=True)
class Calling:
    """How to call a mechanism, beyond its dataset.

    batch: the parameter that takes the number of outputs wanted; None for one call a draw.
    takes_rng: whether it has a parameter `rng` that the sampler fills.
    """

    batch: str | None
    takes_rng: bool


def calling(
    function: Callable[..., Any], name: str, params: Mapping[str, Any], batch_arg: str | None
) -> Calling:
    """Return how to call `function`. Raises TargetError when it cannot be called as asked.

    A callable without a readable signature (compiled ones) is taken at the user's word.
    """
    _check_kind(function, name)
    signature = _signature(function)
    if signature is None:
        return Calling(None if batch_arg in (None, NO_BATCH) else batch_arg, False)
    parameters = dict(signature.parameters)
    dataset = _dataset_parameter(parameters, name)
    parameters.pop(dataset, None)
    batch = _batch_parameter(parameters, name, params, batch_arg)
    takes_rng = RNG in _named(parameters) and RNG not in params
    _check_params(parameters, name, params, dataset)
    _check_complete(parameters, name, {*params, batch, RNG if takes_rng else None})
    return Calling(batch, takes_rng)


def check_post_process(function: Any, name: str, role: str = "post_process") -> None:
    """Raise TargetError unless `function` can be applied to one output. role: its key."""
    if not callable(function):
        raise TargetError(f"{role} {name} is of type {type(function).__name__}, not a function")
    _check_kind(function, f"{role} {name}")
    signature = _signature(function)
    if signature is None:
        return
    try:
        signature.bind(None)
    except TypeError as error:
        raise TargetError(f"{role} {name} must take one output, but: {error}") from None


def _check_kind(function: Callable[..., Any], name: str) -> None:
    for one in (function, type(function).__call__):
        if inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one):
            raise TargetError(
                f"{name} is an async function; give a plain one, "
                "e.g. def draw(dataset): return asyncio.run(mechanism(dataset))"
            )
        if inspect.isgeneratorfunction(one):
            raise TargetError(
                f"{name} is a generator function, which yields instead of returning one output; "
                "give a plain function, e.g. def draw(dataset): return next(mechanism(dataset))"
            )


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def _dataset_parameter(parameters: Mapping[str, Parameter], name: str) -> str:
    for parameter in parameters.values():
        if parameter.kind in _POSITIONAL or parameter.kind is Parameter.VAR_POSITIONAL:
            return parameter.name
    raise TargetError(
        f"{name} takes no dataset: it needs a first positional parameter, as in def f(dataset)"
    )


def _named(parameters: Mapping[str, Parameter]) -> list[str]:
    return [name for name, one in parameters.items() if one.kind in _BY_NAME]


def _takes_any_name(parameters: Mapping[str, Parameter]) -> bool:
    return any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())


def _batch_parameter(
    parameters: Mapping[str, Parameter],
    name: str,
    params: Mapping[str, Any],
    batch_arg: str | None,
) -> str | None:
    names = _named(parameters)
    if batch_arg is None:
        return BATCH if BATCH in names and BATCH not in params else None
    if batch_arg == NO_BATCH:
        return None
    if batch_arg in params:
        raise TargetError(f"{batch_arg!r} is given as batch_arg and in params; give it once")
    if batch_arg in names or _takes_any_name(parameters):
        return batch_arg
    raise TargetError(
        f"{name} has no parameter {batch_arg!r} to take the number of outputs (batch_arg)."
        f"{did_you_mean(batch_arg, names)}{_takes(names)}"
    )


def _check_params(
    parameters: Mapping[str, Parameter], name: str, params: Mapping[str, Any], dataset: str
) -> None:
    if _takes_any_name(parameters):
        return
    names = _named(parameters)
    for given in params:
        if given == dataset:
            raise TargetError(f"params: {given!r} is the dataset of {name}; give it as d1 and d2")
        if given not in names:
            raise TargetError(
                f"{name} has no parameter {given!r}.{did_you_mean(given, names)}{_takes(names)}"
            )


def _takes(names: list[str]) -> str:
    if not names:
        return " It takes nothing but the dataset."
    return f" Besides the dataset it takes: {', '.join(names)}."


def _check_complete(
    parameters: Mapping[str, Parameter], name: str, filled: set[str | None]
) -> None:
    for parameter in parameters.values():
        optional = parameter.default is not Parameter.empty or parameter.kind in _VARIABLE
        if optional or parameter.name in filled:
            continue
        raise TargetError(
            f"{name} needs {parameter.name!r}, which has no default; give "
            f"--param {parameter.name}=VALUE (YAML: params: {{{parameter.name}: VALUE}})"
        )
