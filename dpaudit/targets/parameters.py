"""What a mechanism takes: read from its signature once, so that a typo never reaches a draw."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from dpaudit.errors import Given, Name, TargetError
from dpaudit.targets.target import PythonTarget
from dpaudit.wording import did_you_mean

BATCH = "size"
RNG = "rng"
NONE = "none"

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
# What a parameter is called that takes how many outputs are wanted.
_COUNT = re.compile(
    r"[nkm]|((n|num|number)_?(of_)?)?(batch|count|draws|reps|samples|shots|size|times|trials)"
    r"|num|number|\w+_(count|size)",
    re.IGNORECASE,
)
_BESIDES = "Besides the dataset it"
# What generators of random numbers are called elsewhere.
_LIKE_RNG = ("rng", "prng", "rand", "random", "random_state", "generator", "gen", "key", "seed")


@dataclass(frozen=True, slots=True)
class Calling:
    """How to call a mechanism: the parameters that take the number of outputs wanted (None for one
    call a draw), the generator (None where there is none), and the dataset (None for the first one,
    which gets it by position). alone: one that must have a number of outputs, in calls for one
    draw each: it is 1, and the output the only one in what is returned. usual: how many outputs
    there are where nobody asks, of a parameter for that which nobody has named."""

    batch: str | None
    rng: str | None
    data: str | None = None
    alone: str | None = None
    usual: int | None = None


def calling(
    function: Callable[..., Any],
    target: PythonTarget,
    *,
    is_made: bool = False,
    unpacks: bool = False,
) -> Calling:
    """Return how to call the `function` of a target. Raises TargetError when it cannot be called as
    asked; one without a readable signature (compiled ones) is taken at the user's word.

    is_made: something made it, which takes arguments of its own (init).  unpacks: who calls it can
    ask for a batch of one output, and take that out of it.
    """
    _check_kind(function, target.name)
    _check_named_once(target)
    signature = _signature(function)
    if signature is None:
        batch, rng = (None if one == NONE else one for one in (target.batch_arg, target.rng_arg))
        return Calling(batch, rng, target.data_arg)
    parameters = dict(signature.parameters)
    _check_generator_given(parameters, target)
    first = _dataset_parameter(parameters, target)
    _check_bound(first, target.name)
    dataset = parameters.pop(first, None)  # ** may take it
    batch = _parameter(parameters, target, BATCH, "batch_arg", "the number of outputs")
    rng = _parameter(parameters, target, RNG, "rng_arg", "a numpy.random.Generator")
    _check_params(parameters, target, first, is_made=is_made)
    alone = _alone(parameters, target) if unpacks else None
    _check_complete(parameters, target.name, first, {*target.params, batch, rng, alone})
    is_first = first == next(iter(signature.parameters))
    by_name = dataset is None or dataset.kind is Parameter.KEYWORD_ONLY or not is_first
    usual = (
        None if target.batch_arg is not None else _default(signature.parameters.get(batch or ""))
    )
    return Calling(batch, rng, first if by_name else None, alone, usual)


def _default(parameter: Parameter | None) -> int | None:
    """Return the default of a parameter, if that is an integer."""
    default = None if parameter is None else parameter.default
    return default if isinstance(default, int) and not isinstance(default, bool) else None


def _alone(parameters: Mapping[str, Parameter], target: PythonTarget) -> str | None:
    """Return the parameter for the number of outputs where one call a draw is asked for, and it has
    no default."""
    one = parameters.get(BATCH)
    if target.batch_arg != NONE or one is None or BATCH in target.params:
        return None
    is_needed = one.default is Parameter.empty and one.kind not in _VARIABLE
    return BATCH if is_needed else None


def init_words(arguments: Mapping[str, Any]) -> str:
    """Return how arguments are given to what makes a mechanism."""
    listed = ", ".join(f"{name}: {value!r}" for name, value in arguments.items())
    return f"--init '{{{listed}}}' (YAML: init: {{{listed}}})"


def check_post_process(function: Any, name: str, role: str = "post_process") -> None:
    """Raise TargetError unless `function` can be applied to one output. role: its key."""
    if not callable(function):
        raise TargetError(f"{role} {name} is of type {type(function).__name__}, not a function")
    _check_kind(function, f"{role} {name}")
    try:
        signature = _signature(function)
        if signature is not None:
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
                "give a plain function that returns all it yields, e.g. def draw(dataset): return "
                "list(mechanism(dataset))"
            )


def _check_generator_given(parameters: Mapping[str, Parameter], target: PythonTarget) -> None:
    """Raise for a number or a text in the place of the generator: as the seed of every draw it
    would make all of them alike."""
    value = target.params.get(RNG)
    is_its_own = target.rng_arg is None and RNG in _named(parameters)
    if is_its_own and isinstance(value, int | float | str):
        raise TargetError(
            f"params: {RNG}={value!r} replaces the numpy.random.Generator that dpaudit passes to "
            f"{target.name}, from ",
            Name("seed"),
            "; leave it out, or give ",
            _option("rng_arg", NONE),
            f" if {RNG} means something else there",
        )


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def _check_named_once(target: PythonTarget) -> None:
    seen: dict[str, str] = {}
    for key in ("batch_arg", "data_arg", "rng_arg"):
        one = getattr(target, key)
        if one is None or (one == NONE and key != "data_arg"):
            continue
        if one in target.params:
            raise TargetError(f"{one!r} is given as {key} and in params; give it once")
        if one in seen:
            raise TargetError(f"{one!r} is given as {seen[one]} and as {key}; give it once")
        seen[one] = key


def _dataset_parameter(parameters: Mapping[str, Parameter], target: PythonTarget) -> str:
    """Return the parameter that takes the dataset: the first one not named for something else."""
    if target.data_arg is not None:
        first = next(iter(parameters.values()), None)
        if first is not None and first.name == target.data_arg and first.kind in _POSITIONAL:
            return first.name
        return _asked(parameters, target, "data_arg", "the dataset")
    for place, parameter in enumerate(parameters.values()):
        if parameter.name in (target.batch_arg, target.rng_arg):
            continue
        # Only the first one gets it by position, any other by its name.
        kinds = _BY_NAME[:1] if place else (*_POSITIONAL, Parameter.VAR_POSITIONAL)
        if parameter.kind in kinds:
            _check_no_generator(parameter, parameters, target)
            return parameter.name
    raise TargetError(
        f"{target.name} takes no dataset: it needs a first positional parameter, as in def "
        "f(dataset), or name the one that takes it with ",
        Given("data_arg", "--data-arg (YAML: data_arg)"),
    )


def _check_no_generator(
    parameter: Parameter, parameters: Mapping[str, Parameter], target: PythonTarget
) -> None:
    if parameter.name != RNG or target.rng_arg == NONE:
        return
    example = next((one for one in _named(parameters) if one != RNG), "NAME")
    raise TargetError(
        f"the first parameter of {target.name} is {RNG!r}, which takes a generator; name the one "
        "that takes the dataset with ",
        Name("data_arg"),
        ", e.g. ",
        _option("data_arg", example),
    )


def _check_bound(dataset: str, name: str) -> None:
    """Raise for a method that was found in its class, where no object comes with it."""
    module, colon, attribute = name.rpartition(":")
    owner, _, method = attribute.rpartition(".")
    if dataset == "self" and owner:
        found, remedy = f"{module}{colon}{owner}", f"give that of an object, {owner}(…).{method}"
        if colon:
            remedy = f"use {found} --call {method} (YAML: mechanism: {found}, call: {method})"
        raise TargetError(f"{name} is a method, which needs an object of its class; {remedy}")


def _named(parameters: Mapping[str, Parameter]) -> list[str]:
    return [name for name, one in parameters.items() if one.kind in _BY_NAME]


def _takes_any_name(parameters: Mapping[str, Parameter]) -> bool:
    return any(one.kind is Parameter.VAR_KEYWORD for one in parameters.values())


def _parameter(
    parameters: Mapping[str, Parameter], target: PythonTarget, usual: str, key: str, what: str
) -> str | None:
    """Return the parameter that takes something: the one that a user has named by a key, None for
    `none`; else the usual one, if there is one of that name."""
    asked = getattr(target, key)
    if asked is None:
        return usual if usual in _named(parameters) and usual not in target.params else None
    return None if asked == NONE else _asked(parameters, target, key, what)


def _asked(parameters: Mapping[str, Parameter], target: PythonTarget, key: str, what: str) -> str:
    """Return the parameter that a user has named by a key. Raises TargetError if there is none."""
    asked: str = getattr(target, key)
    names = _named(parameters)
    if asked in names or _takes_any_name(parameters):
        return asked
    raise TargetError(
        f"{target.name} has no parameter {asked!r} to take {what} ({key})."
        f"{did_you_mean(asked, names)}{_takes(names, 'It' if key == 'data_arg' else _BESIDES)}"
    )


def _check_params(
    parameters: Mapping[str, Parameter], target: PythonTarget, dataset: str, *, is_made: bool
) -> None:
    if _takes_any_name(parameters):
        return
    name, names = target.name, _named(parameters)
    for given, value in target.params.items():
        if given == dataset:
            raise TargetError(f"params: {given!r} is the dataset of {name}; give it as d1 and d2")
        if given not in names:
            raise TargetError(
                f"{name} has no parameter {given!r}.{did_you_mean(given, names)}{_takes(names)}"
                + (f" For what makes it, give {init_words({given: value})}" if is_made else "")
            )


def _takes(names: list[str], who: str = _BESIDES) -> str:
    if not names:
        return f" {who} takes nothing{' but the dataset' if who == _BESIDES else ''}."
    return f" {who} takes: {', '.join(names)}."


def _check_complete(
    parameters: Mapping[str, Parameter], name: str, dataset: str, filled: set[str | None]
) -> None:
    for parameter in parameters.values():
        optional = parameter.default is not Parameter.empty or parameter.kind in _VARIABLE
        if not optional and parameter.name not in filled:
            needs = f"{name} needs {parameter.name!r}, which has no default"
            raise TargetError(needs, *_remedy(parameter.name, dataset))


def _remedy(missing: str, dataset: str) -> tuple[str, ...]:
    """Return how to give what is missing: as a parameter, a generator or the dataset."""
    given = Given(
        f"params={{{missing!r}: VALUE}}",
        f"--param {missing}=VALUE (YAML: params: {{{missing}: VALUE}})",
    )
    if missing.lower() in _LIKE_RNG:
        takes = "; if it takes a numpy.random.Generator, give "
        return (takes, _option("rng_arg", missing), ", else ", given)
    if dataset.lower() in _LIKE_RNG:
        takes = (
            f", and would get the dataset as its first parameter, {dataset!r}; if that takes a "
            "numpy.random.Generator, give "
        )
        both = Given(
            f"rng_arg={dataset!r}, data_arg={missing!r}",
            f"--rng-arg {dataset} --data-arg {missing} "
            f"(YAML: rng_arg: {dataset}, data_arg: {missing})",
        )
        return (takes, both, ", else ", given)
    or_batch: tuple[str, ...] = ()
    if _COUNT.fullmatch(missing):
        batch = Given(f"batch_arg={missing!r}", f"--batch-arg {missing} (batch_arg: {missing})")
        or_batch = (", or ", batch, " if it sets the number of outputs")
    or_dataset = (", or ", _option("data_arg", missing), " if it takes the dataset")
    return ("; give ", given, *or_batch, *or_dataset)


def _option(name: str, value: str) -> Given:
    """Return an option with the parameter that it names."""
    flag = f"--{name.replace('_', '-')}"
    return Given(f"{name}={value!r}", f"{flag} {value} (YAML: {name}: {value})")
