"""Find the parameters of a mechanism for each role. `calling` reads the roles from the signature
before the first draw, so that a misspelt name of a parameter is an error. In a draw, the exception
would count as an outcome."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from dpaudit.errors import Name, TargetError
from dpaudit.targets.target import PythonTarget
from dpaudit.wording import did_you_mean

# Usual name of the parameter that takes the number of outputs which one call returns.
BATCH = "size"
# Usual name of the parameter for the random generator.
RNG = "rng"
# Names that mean a generator, and a seed, where the mechanism has no `RNG` and the user names none.
GENERATORS, SEED = ("random_state", "generator"), "seed"
# Value of the options `batch_arg` and `rng_arg`, which name the parameters for the number of
# outputs and for the random generator. It says that the mechanism has no such parameter.
NONE = "none"

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
# Maps each option that names a parameter to text that says what the parameter takes.
_ROLES = {
    "batch_arg": "the number of outputs",
    "rng_arg": "a numpy.random.Generator",
    "data_arg": "the dataset",
}


@dataclass(frozen=True, slots=True)
class Calling:
    """How to call a mechanism.

    batch: parameter for the number of outputs of a call; None if each call makes one draw.
    rng: parameter for the random generator; None if the mechanism takes none.
    by_seed: whether `rng` gets a new integer in each call instead, from which the mechanism makes
        its generator.
    data: parameter for the dataset; None if the dataset is the first positional argument.
    alone: required parameter for the number of outputs, if each call makes one draw; it always
        receives 1. None if there is no such parameter.
    usual: default value of the parameter `batch`, if it is an integer and the user did not name the
        parameter; else None. A value other than 1 leads to a warning: the parameter may not mean
        the number of outputs.
    few_sizes: whether calls for many outputs use only a few different numbers of outputs.
    """

    batch: str | None
    rng: str | None
    data: str | None = None
    alone: str | None = None
    usual: int | None = None
    few_sizes: bool = False
    by_seed: bool = False


def calling(
    function: Callable[..., Any],
    target: PythonTarget,
    *,
    unpacks: bool = False,
) -> Calling:
    """Return how to call the `function` of a target. Raises TargetError if the signature does not
    fit the options of the target. An unknown signature, as of a compiled function, always fits.

    unpacks: whether the caller can take a single output out of a list or array of one output. If
        so, a function that requires a parameter `size` can make one draw per call, with size=1.
    """
    _check_kind(function, target.name)
    _check_named_once(target)
    signature = _signature(function)
    if signature is None:
        names = target.batch_arg, target.rng_arg
        batch, rng = (None if name == NONE else name for name in names)
        return Calling(batch, rng, target.data_arg)
    return _RoleFinder(signature.parameters, target).read(unpacks=unpacks)


class _RoleFinder:
    """Finds the parameter of a function for each role."""

    def __init__(self, parameters: Mapping[str, Parameter], target: PythonTarget) -> None:
        self._every, self._left, self._target = parameters, dict(parameters), target
        self._takes_any_name = any(
            parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()
        )

    def read(self, *, unpacks: bool) -> Calling:
        target = self._target
        self._check_rng_is_no_seed()
        first = self._dataset()
        _check_bound(first, target.name)
        dataset = self._left.pop(first, None)  # None if **kwargs takes the dataset
        batch, (rng, by_seed) = self._role(BATCH, "batch_arg"), self._rng()
        self._check_params(first)
        alone = self._alone() if unpacks else None
        self._check_complete({*target.params, batch, rng, alone})
        is_first = first == next(iter(self._every))
        by_name = dataset is None or dataset.kind is Parameter.KEYWORD_ONLY or not is_first
        counts = self._every.get(batch or "") if target.batch_arg is None else None
        default = None if counts is None else counts.default
        usual = default if isinstance(default, int) and not isinstance(default, bool) else None
        return Calling(batch, rng, first if by_name else None, alone, usual, by_seed=by_seed)

    def _names(self) -> list[str]:
        return [name for name, parameter in self._left.items() if parameter.kind in _BY_NAME]

    def _dataset(self) -> str:
        """Return the parameter for the dataset: the first parameter that has no other role."""
        target = self._target
        if target.data_arg is not None:
            first = next(iter(self._left.values()), None)
            if first is not None and first.name == target.data_arg and first.kind in _POSITIONAL:
                return first.name
            return self._named_by_user("data_arg")
        for index, parameter in enumerate(self._left.values()):
            if parameter.name in (target.batch_arg, target.rng_arg):
                continue
            # The dataset is given by position only if its parameter is the first one; otherwise by
            # name.
            kinds = _BY_NAME[:1] if index else (*_POSITIONAL, Parameter.VAR_POSITIONAL)
            if parameter.kind in kinds:
                self._check_is_no_generator(parameter.name)
                return parameter.name
        raise TargetError(
            f"{target.name} takes no dataset; name the parameter that takes it with ",
            Name("data_arg"),
            code="parameter-missing",
        )

    def _role(self, usual: str, key: str) -> str | None:
        """Return the parameter that the user named in the option `key`, else the `usual` one."""
        name = getattr(self._target, key)
        if name is None:
            return usual if usual in self._names() and usual not in self._target.params else None
        return None if name == NONE else self._named_by_user(key)

    def _rng(self) -> tuple[str | None, bool]:
        """Return the parameter for the generator, if any, and whether it gets a seed instead."""
        if self._target.rng_arg is not None or RNG in self._names():
            return self._role(RNG, "rng_arg"), False
        free = {name: self._left[name] for name in self._names() if name not in self._target.params}
        for name in filter(free.__contains__, GENERATORS):
            # One with a default works without dpaudit, and its library may take no generator of
            # NumPy.
            is_of_torch = "torch" in str(free[name].annotation)
            if free[name].default is Parameter.empty and not is_of_torch:
                return name, False
        # Another default is a fixed seed: all draws are equal, which an audit must find.
        default = free[SEED].default if SEED in free else SEED
        is_seed = default is Parameter.empty or default is None
        return (SEED, True) if is_seed else (None, False)

    def _named_by_user(self, key: str) -> str:
        name: str = getattr(self._target, key)
        names = self._names()
        if name in names or self._takes_any_name:
            return name
        listing = _taken(names) if key == "data_arg" else _taken_besides(names)
        raise TargetError(
            f"{self._target.name} has no parameter {name!r} to take {_ROLES[key]} (",
            Name(key),
            f").{did_you_mean(name, names)}{listing}",
            code="parameter-unknown",
        )

    def _alone(self) -> str | None:
        """Return "size" if a function for single draws requires this parameter; else None."""
        size = self._left.get(BATCH)
        if self._target.batch_arg != NONE or size is None or BATCH in self._target.params:
            return None
        is_needed = size.default is Parameter.empty and size.kind not in _VARIABLE
        return BATCH if is_needed else None

    def _check_rng_is_no_seed(self) -> None:
        """Raise TargetError if `params` gives `rng` a number or a text in place of a generator."""
        # As a seed, it would make all draws equal.
        value = self._target.params.get(RNG)
        is_rng = self._target.rng_arg is None and RNG in self._names()
        if is_rng and isinstance(value, int | float | str):
            raise TargetError(
                Name("params"),
                f": {RNG}={value!r} replaces the numpy.random.Generator that dpaudit passes to "
                f"{self._target.name}, from ",
                Name("seed"),
                "; leave it out",
                code="options-conflict",
            )

    def _check_is_no_generator(self, name: str) -> None:
        if name != RNG or self._target.rng_arg == NONE:
            return
        raise TargetError(
            f"the first parameter of {self._target.name} is {RNG!r}, which takes a generator; name "
            "the one that takes the dataset with ",
            Name("data_arg"),
            code="parameter-missing",
        )

    def _check_params(self, dataset: str) -> None:
        if self._takes_any_name:
            return
        name, names = self._target.name, self._names()
        for keyword in self._target.params:
            if keyword == dataset:
                why = f": {keyword!r} is the dataset of {name}; give it as "
                parts = Name("params"), why, Name("d1"), " and ", Name("d2")
                raise TargetError(*parts, code="options-conflict")
            if keyword not in names:
                raise TargetError(
                    f"{name} has no parameter {keyword!r}.{did_you_mean(keyword, names)}"
                    f"{_taken_besides(names)}",
                    code="parameter-unknown",
                )

    def _check_complete(self, filled: set[str | None]) -> None:
        for parameter in self._left.values():
            optional = parameter.default is not Parameter.empty or parameter.kind in _VARIABLE
            if not optional and parameter.name not in filled:
                needs = f"{self._target.name} needs {parameter.name!r}, which has no default"
                remedy = "; give it with ", Name("params")
                roles = Name("rng_arg"), ", ", Name("batch_arg"), " or ", Name("data_arg")
                named = ", or name it in ", *roles
                raise TargetError(needs, *remedy, *named, code="parameter-missing")


def check_post_process(function: Any, name: str, role: str = "post_process") -> None:
    """Raise TargetError unless the `function` of the option `role` can be called with an output."""
    if not callable(function):
        why = f" {name} is of type {type(function).__name__}, not a function"
        raise TargetError(Name(role), why, code="not-callable")
    _check_kind(function, f"{role} {name}")
    try:
        signature = _signature(function)
        if signature is not None:
            signature.bind(None)
    except TypeError as error:
        why = f" {name} must take one output, but: {error}"
        raise TargetError(Name(role), why, code="not-callable") from None


def _check_kind(function: Callable[..., Any], name: str) -> None:
    for kind in (function, type(function).__call__):
        if inspect.iscoroutinefunction(kind) or inspect.isasyncgenfunction(kind):
            raise TargetError(
                f"{name} is an async function; give a plain one, "
                "e.g. def draw(dataset): return asyncio.run(mechanism(dataset))",
                code="not-callable",
            )
        if inspect.isgeneratorfunction(kind):
            raise TargetError(
                f"{name} is a generator function, which yields instead of returning one output; "
                "give a plain function that returns all it yields, e.g. def draw(dataset): return "
                "list(mechanism(dataset))",
                code="not-callable",
            )


def _check_named_once(target: PythonTarget) -> None:
    keys: dict[str, str] = {}
    for key in ("batch_arg", "data_arg", "rng_arg"):
        name = getattr(target, key)
        if name is None or (name == NONE and key != "data_arg"):
            continue
        first_key = "params" if name in target.params else keys.get(name)
        if first_key is not None:
            roles = Name(first_key), " and as ", Name(key)
            raise TargetError(
                f"{name!r} is given as ", *roles, "; give it once", code="options-conflict"
            )
        keys[name] = key


def _check_bound(dataset: str, name: str) -> None:
    """Raise TargetError for a method of a class: such a method needs an object."""
    module, colon, attribute = name.rpartition(":")
    owner, _, method = attribute.rpartition(".")
    if dataset == "self" and owner:
        path, remedy = f"{module}{colon}{owner}", f"give that of an object, {owner}(…).{method}"
        if colon:
            remedy = f"use {path} --call {method} (YAML: mechanism: {path}, call: {method})"
        why = f"{name} is a method, which needs an object of its class; {remedy}"
        raise TargetError(why, code="not-callable")


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def _taken(names: list[str]) -> str:
    return f" It takes: {', '.join(names)}." if names else " It takes nothing."


def _taken_besides(names: list[str]) -> str:
    if not names:
        return " It takes nothing but the dataset."
    return f" Besides the dataset it takes: {', '.join(names)}."
