"""What a mechanism needs before it can be called, read from its signature without calling it."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter
from typing import Any

from dpaudit.claims import parameters as claim_parameters
from dpaudit.config.settings import FILL_IN
from dpaudit.errors import TargetError
from dpaudit.import_path import list_names, public_callables, resolve
from dpaudit.targets.construction import build
from dpaudit.targets.parameters import BATCH, RNG, calling
from dpaudit.targets.target import ImportedTarget
from dpaudit.wording import did_you_mean

# What a generator is called, where it is surely none of the numbers that a mechanism takes.
_GENERATORS = ("prng", "generator", "random_state", "random_generator")
# What takes a number of the claim, or of the noise, rather than the input.
_NO_DATA = (
    *(one.name for one in claim_parameters() if one.has_flag),
    "eps",
    "scale",
    "sensitivity",
)
# Numbers of a claim: a parameter of such a name hardly is anything else, even if it has a default.
CLAIMED = tuple(one.name for one in claim_parameters() if one.has_flag and one.forms == ("number",))
_GENERATOR_TYPE = "Generator"
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_CALLABLE = ("Callable", "FunctionType")

Parameters = dict[str, Parameter]


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a mechanism.

    target: it, with what its signature says of a factory, a method and generators; what is missing
    among its arguments is FILL_IN.  parameters: of the call that draws; empty where nobody can say.
    dataset: the one that takes the input.  init, params: what is missing.  methods: those that
    `call` may name, where one is to be chosen.  document: the docstring.  defaults: of parameters
    that have the name of a number of a claim.
    """

    target: ImportedTarget
    parameters: Parameters
    dataset: Parameter | None
    init: tuple[str, ...] = ()
    params: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    document: str = ""
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether the mechanism can be made and called."""
        return not (self.init or self.params or self.methods)


def read(target: ImportedTarget, known: Mapping[str, Any]) -> Reading:
    """Return what a mechanism needs. known: numbers of the claim, which parameters of their names
    get where nothing else is given, whether they have a default or not: FILL_IN for one that the
    claim still lacks. Raises TargetError for what no audit can call."""
    found = resolve(target.path)
    is_class = inspect.isclass(found)
    is_guessed = not (target.factory or is_class) and _is_factory(found)
    target = replace(target, factory=target.factory or is_guessed)
    missing: tuple[str, ...] = ()
    if is_class or target.factory:
        target, missing = _made(found, target, known)
    methods: tuple[str, ...] = ()
    if is_class and not target.factory and target.call is None:
        target, methods = _method(found, target)
    if methods or (missing and not is_class) or (missing and target.factory):
        return Reading(
            target, {}, None, init=missing, methods=methods, defaults=claimed_defaults(found)
        )
    function = _unbound(found, target) if missing else _built(target, found, is_guessed=is_guessed)
    reading = _called(function, target, known, missing)
    return replace(reading, defaults={**claimed_defaults(found), **claimed_defaults(function)})


def claimed_defaults(found: Any) -> dict[str, Any]:
    """Return the defaults of what has the name of a number of a claim, where they are numbers."""
    return {
        name: one.default
        for name, one in parameters_of(found).items()
        if name in CLAIMED and _is_number(one.default)
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _built(target: ImportedTarget, found: Any, *, is_guessed: bool) -> Callable[..., Any]:
    """Return what draws. is_guessed: nobody but its signature says that a factory makes it."""
    try:
        return build(target)
    except TargetError as error:
        if not is_guessed or error.__cause__ is not None:  # an error of its own code
            raise
        if not parameters_of(found):
            raise TargetError(
                f"{target.path} takes no input, and what it returns draws nothing either; a "
                f"mechanism takes its input first: def {found.__name__}(rows, rng)",
                code="not-callable",
            ) from None
        raise TargetError(
            f"{target.path} is annotated to return what draws, but what it returned cannot be "
            "called; let it return the mechanism, or mend the annotation",
            code="not-callable",
        ) from None


def parameters_of(function: Any) -> Parameters:
    """Return the parameters of a function; none where its signature cannot be read."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def annotation_of(parameter: Parameter) -> str:
    """Return what a signature says that a parameter is, as text; `""` for nothing."""
    said = parameter.annotation
    if said is Parameter.empty:
        return ""
    is_plain = isinstance(said, type) and not isinstance(said, types.GenericAlias)
    return said if isinstance(said, str) else said.__name__ if is_plain else str(said)


def _is_factory(found: Any) -> bool:
    """Return whether a function surely returns what draws, rather than an output."""
    if not inspect.isfunction(found):
        return False
    returned = found.__annotations__.get("return", "")
    words = returned if isinstance(returned, str) else str(returned)
    is_said = any(one in words.partition("[")[0] for one in _CALLABLE)
    return is_said or not parameters_of(found)


def _made(
    maker: Any, target: ImportedTarget, known: Mapping[str, Any]
) -> tuple[ImportedTarget, tuple[str, ...]]:
    """Return a target with the arguments of its constructor, and those that are missing."""
    if isinstance(target.init, list | tuple):  # by place: whoever makes it says what is wrong
        return target, ()
    given = dict(target.init or {})
    filled = _filled(parameters_of(maker), given, known)
    missing = tuple(name for name, value in filled.items() if value == FILL_IN)
    init = {**given, **filled} or target.init
    return replace(target, init=init), missing


def _filled(
    parameters: Mapping[str, Parameter], given: Iterable[str], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments that are written down beside those given: what has no default, and what
    has the name of a number of the claim. A default says nothing of the claim: the mechanism would
    be drawn from at a number that nobody claims. Where the claim has no such number, the default is
    written out, for everybody to see."""
    filled = {name: known.get(name, FILL_IN) for name in _unfilled(parameters, given)}
    for name, one in parameters.items():
        if name in filled or name in given or one.kind not in _BY_NAME or name not in CLAIMED:
            continue
        if name in known:
            filled[name] = known[name]
        elif _is_number(one.default):
            filled[name] = one.default
    return filled


def _unfilled(parameters: Mapping[str, Parameter], given: Iterable[str]) -> list[str]:
    return [
        name
        for name, one in parameters.items()
        if one.default is Parameter.empty and one.kind not in _VARIABLE and name not in given
    ]


def _method(found: type, target: ImportedTarget) -> tuple[ImportedTarget, tuple[str, ...]]:
    """Return a target with the method that draws, or those that may."""
    if any("__call__" in vars(base) for base in found.__mro__):
        return target, ()
    own = [one for one in public_callables(found) if not inspect.isclass(getattr(found, one))]
    if len(own) > 1:
        return target, tuple(own)
    # None at all is told by what makes it.
    return replace(target, call=own[0] if own else None), ()


def _unbound(found: Any, target: ImportedTarget) -> Callable[..., Any]:
    """Return what stands for the method of an object that cannot be made yet."""
    name = target.call or "__call__"
    method = getattr(found, name, None)
    if method is None:
        known = public_callables(found)
        raise TargetError(
            f"{target.path} has no method {name!r}.{did_you_mean(name, known)}{list_names(known)}",
            code="name-not-found",
        )
    own = inspect.getattr_static(found, name, None)
    parameters = list(parameters_of(method).values())
    is_bound = isinstance(own, staticmethod | classmethod)

    def stand_in(*_: Any, **__: Any) -> None: ...

    stand_in.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect heeds it
        parameters if is_bound else parameters[1:]
    )
    stand_in.__doc__ = getattr(method, "__doc__", None)
    return stand_in


def _called(
    function: Callable[..., Any],
    target: ImportedTarget,
    known: Mapping[str, Any],
    missing: tuple[str, ...],
) -> Reading:
    """Return the reading of what draws, whose arguments are checked as an audit does it."""
    parameters = parameters_of(function)
    document = inspect.getdoc(function) or ""
    if not parameters:
        calling(function, target)
        return Reading(target, {}, None, init=missing, document=document)
    target = _with_data(parameters, _with_generator(parameters, target))
    dataset = _dataset(parameters, target)
    beside = {target.rng_arg or RNG, target.batch_arg or BATCH}
    beside |= set() if dataset is None else {dataset.name}
    filled = _filled(parameters, {*target.params, *beside}, known)
    target = replace(target, params={**target.params, **filled})
    calling(function, target)
    holes = tuple(name for name, value in filled.items() if value == FILL_IN)
    return Reading(target, parameters, dataset, init=missing, params=holes, document=document)


def _with_generator(parameters: Parameters, target: ImportedTarget) -> ImportedTarget:
    """Return a target with the parameter that surely takes a generator, if it is not called rng."""
    if target.rng_arg is not None or RNG in parameters:
        return target
    found = next((name for name, one in parameters.items() if _is_generator(one)), None)
    if found is None or found in target.params:
        return target
    return replace(target, rng_arg=found)


def _with_data(parameters: Parameters, target: ImportedTarget) -> ImportedTarget:
    """Return a target with the parameter that takes the input, where the first one surely does
    not: a generator or a number of a claim, or where none is taken by position."""
    if target.data_arg is not None:
        return target
    beside = (target.rng_arg or RNG, target.batch_arg or BATCH, *_NO_DATA)
    first = next(iter(parameters.values()))
    if first.name not in beside and first.kind is not Parameter.KEYWORD_ONLY:
        return target
    others = [name for name in _unfilled(parameters, target.params) if name not in beside]
    return replace(target, data_arg=others[0] if others else None)


def _is_generator(parameter: Parameter) -> bool:
    is_said = annotation_of(parameter).rpartition(".")[2] == _GENERATOR_TYPE
    return is_said or parameter.name in _GENERATORS


def _dataset(parameters: Parameters, target: ImportedTarget) -> Parameter | None:
    """Return the parameter that takes the input: the one named, else the first for nothing else."""
    if target.data_arg is not None:
        return parameters.get(target.data_arg)
    beside = (target.rng_arg, target.batch_arg)
    positional = [one for one in parameters.values() if one.kind != Parameter.VAR_KEYWORD]
    return next((one for one in positional if one.name not in beside), None)
