"""Read the signature and docstring of a mechanism for `dpaudit init`, without calling the
mechanism. They show which arguments are missing, and suggest two neighbouring inputs for a first
audit."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from inspect import Parameter
from typing import Any

from dpaudit.claims import parameters as claim_parameters
from dpaudit.config.settings import FILL_IN
from dpaudit.errors import DatasetError, TargetError
from dpaudit.import_path import list_names, public_callables, resolve
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.datasets import load_dataset
from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import NeighbouringPair
from dpaudit.targets.construction import build
from dpaudit.targets.parameters import BATCH, RNG, calling
from dpaudit.targets.target import ImportedTarget
from dpaudit.wording import did_you_mean

# Names of parameters that receive a random generator.
_GENERATORS = ("prng", "generator", "random_state", "random_generator")
# Names of parameters that take a privacy parameter or a noise scale. Such a parameter is never
# taken for the input.
_NO_DATA = (
    *(one.name for one in claim_parameters() if one.has_flag),
    "eps",
    "scale",
    "sensitivity",
)
# Names of the numbers in a claim, such as epsilon and delta. A parameter of the mechanism with such
# a name receives the claimed number, even if it has a default.
CLAIMED = tuple(one.name for one in claim_parameters() if one.has_flag and one.forms == ("number",))
_GENERATOR_TYPE = "Generator"
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_CALLABLE = ("Callable", "FunctionType")

Parameters = dict[str, Parameter]


@dataclass(frozen=True, slots=True)
class Reading:
    """The properties of a mechanism that its signature and docstring show.

    target: the mechanism, with the factory, method and random generator that the signature shows.
        Missing arguments are FILL_IN.
    parameters: parameters of the function that draws; empty if they are unknown.
    dataset: parameter that takes the input; None if unknown.
    init: names of missing arguments of the constructor.
    params: names of missing arguments of the function that draws.
    methods: names of the methods that may draw, if there are several.
    document: docstring of the function that draws.
    defaults: defaults of parameters that are named like a parameter of a claim, such as epsilon.
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
        """Return whether no argument of the constructor or of the call is missing."""
        return not (self.init or self.params or self.methods)


def read(target: ImportedTarget, known: Mapping[str, Any]) -> Reading:
    """Return the `Reading` of a mechanism: its parameters and missing arguments.

    known: values of the claim's parameters, such as {"epsilon": 1.0}, with FILL_IN for a missing
        value. An argument with such a name gets this value, unless the user gave another one; the
        argument's default does not count.

    Raises TargetError for a mechanism that no audit can call.
    """
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
    """Return {name: default} for parameters of the callable `found` that have a number as default
    and are named like a parameter of a claim, such as epsilon."""
    return {
        name: one.default
        for name, one in parameters_of(found).items()
        if name in CLAIMED and _is_number(one.default)
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _built(target: ImportedTarget, found: Any, *, is_guessed: bool) -> Callable[..., Any]:
    """Return the function that makes draws. Raise TargetError if the target is no factory (a
    function that returns the mechanism) although it was taken for one.

    found: the object that the target names.
    is_guessed: whether the target is taken for a factory only because of its signature. False if
        the user declared it a factory, or if it is none.
    """
    try:
        return build(target)
    except TargetError as error:
        if not is_guessed or error.__cause__ is not None:  # the target's own code raised it
            raise
        if not parameters_of(found):
            raise TargetError(
                f"{target.path} takes no input, and does not return a mechanism either; a "
                f"mechanism takes its input first: def {found.__name__}(rows, rng)",
                code="not-callable",
            ) from None
        raise TargetError(
            f"{target.path} is annotated to return a function, but it returned an object that "
            "cannot be called; return the mechanism, or correct the annotation",
            code="not-callable",
        ) from None


def parameters_of(function: Any) -> Parameters:
    """Return the parameters of a function by name, or {} if Python cannot read its signature."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def annotation_of(parameter: Parameter) -> str:
    """Return the type annotation of a parameter as text, or "" if it has none."""
    kind = parameter.annotation
    if kind is Parameter.empty:
        return ""
    is_plain = isinstance(kind, type) and not isinstance(kind, types.GenericAlias)
    return kind if isinstance(kind, str) else kind.__name__ if is_plain else str(kind)


def _is_factory(found: Any) -> bool:
    """Return whether the callable `found` is a function that makes a mechanism: it is annotated to
    return a function, or has no parameters."""
    if not inspect.isfunction(found):
        return False
    returned = found.__annotations__.get("return", "")
    words = returned if isinstance(returned, str) else str(returned)
    is_annotated = any(name in words.partition("[")[0] for name in _CALLABLE)
    return is_annotated or not parameters_of(found)


def _made(
    maker: Any, target: ImportedTarget, known: Mapping[str, Any]
) -> tuple[ImportedTarget, tuple[str, ...]]:
    """Return (target, missing). The target has a value for every argument that its constructor
    needs; an argument with an unknown value gets the placeholder FILL_IN, and `missing` has its
    name. Positional arguments are left unchanged, and count as complete."""
    # Positional arguments are left unchanged; the constructor itself raises an error if one is
    # missing.
    if isinstance(target.init, list | tuple):
        return target, ()
    given = dict(target.init or {})
    filled = _filled(parameters_of(maker), given, known)
    missing = tuple(name for name, value in filled.items() if value == FILL_IN)
    init = {**given, **filled} or target.init
    return replace(target, init=init), missing


def _filled(
    parameters: Mapping[str, Parameter], given: Iterable[str], known: Mapping[str, Any]
) -> dict[str, Any]:
    """Return {name: value} for the constructor arguments that are added to the user's arguments.

    An argument without a default gets the number that the claim states for a parameter of the same
    name, such as epsilon. If the claim states no such number, the argument gets FILL_IN. An
    argument with a default is added only if it is named like a parameter of a claim. It gets the
    claimed number, since the default may differ; or, without a claimed number, its default, if that
    is a number, so that the user sees it in the file.
    """
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
    """Find the method that draws. Return (target, names of methods between which the user must
    choose).

    If objects of the class `found` can be called directly, the target is unchanged, and there are
    no names. Otherwise, if the class has only one public method, `call` of the target is set to
    this method, and there are no names. If the class has several public methods, the target is
    unchanged, and their names are returned.
    """
    if any("__call__" in vars(base) for base in found.__mro__):
        return target, ()
    own = [one for one in public_callables(found) if not inspect.isclass(getattr(found, one))]
    if len(own) > 1:
        return target, tuple(own)
    # If the class has no method, the target keeps `call=None`, and `build` raises the error later.
    return replace(target, call=own[0] if own else None), ()


def _unbound(found: Any, target: ImportedTarget) -> Callable[..., Any]:
    """Return a function with the signature of a method, which stands in for the method. It is
    needed if arguments of the constructor are missing, so that no object can be made."""
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
    """Return the `Reading` of a mechanism: its parameters and missing arguments, as the signature
    of its drawing function shows them.

    function: the function that draws. Its arguments are checked as in an audit.
    known: values of the claim's parameters, such as {"epsilon": 1.0}.
    missing: names of the constructor's arguments that have no value yet.
    """
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
    """Return the target with `rng_arg` set to the parameter that takes a random generator. A
    parameter named rng needs no `rng_arg`."""
    if target.rng_arg is not None or RNG in parameters:
        return target
    found = next((name for name, one in parameters.items() if _is_generator(one)), None)
    if found is None or found in target.params:
        return target
    return replace(target, rng_arg=found)


def _with_data(parameters: Parameters, target: ImportedTarget) -> ImportedTarget:
    """Return the target, with `data_arg` set if another parameter than the first takes the input.
    The first cannot take it if it is a random generator, a parameter of the claim, or
    keyword-only."""
    if target.data_arg is not None:
        return target
    beside = (target.rng_arg or RNG, target.batch_arg or BATCH, *_NO_DATA)
    first = next(iter(parameters.values()))
    if first.name not in beside and first.kind is not Parameter.KEYWORD_ONLY:
        return target
    others = [name for name in _unfilled(parameters, target.params) if name not in beside]
    return replace(target, data_arg=others[0] if others else None)


def _is_generator(parameter: Parameter) -> bool:
    is_annotated = annotation_of(parameter).rpartition(".")[2] == _GENERATOR_TYPE
    return is_annotated or parameter.name in _GENERATORS


def _dataset(parameters: Parameters, target: ImportedTarget) -> Parameter | None:
    """Return the parameter that takes the input: `data_arg` of the target, or else the first
    parameter that takes neither the random generator nor the batch size. None if there is no such
    parameter."""
    if target.data_arg is not None:
        return parameters.get(target.data_arg)
    beside = (target.rng_arg, target.batch_arg)
    positional = [one for one in parameters.values() if one.kind != Parameter.VAR_KEYWORD]
    return next((one for one in positional if one.name not in beside), None)


@dataclass(frozen=True, slots=True)
class Guess:
    """A guess of two inputs.

    d1, d2: the inputs; ignored if `has_inputs` is False.
    has_inputs: whether inputs were guessed.
    form: data type to which both inputs are converted (value of the key `as`), such as array; None
        if they are not converted.
    adjacency: neighbouring relation of the two inputs.
    why: reason for the guess, as words for a comment in the configuration file.
    """

    d1: Any = None
    d2: Any = None
    has_inputs: bool = False
    form: str | None = None
    adjacency: str | None = None
    why: str = ""


def _rows(*values: Any, form: str | None = None) -> Guess:
    """Return two example inputs: d1 is the list of `values`, d2 the same list without its last
    value.

    form: type to which both lists are converted, such as `array`; None for plain lists.
    """
    return Guess(list(values), list(values[:-1]), True, form, "add-remove")


def _single(d1: Any, d2: Any) -> Guess:
    return Guess(d1, d2, True)


# Example inputs for a list of whole numbers and for a list of real numbers: d1 = [0, 1, 1] and
# d2 = [0, 1]. The record that d2 lacks is 1, since most mechanisms clip larger values to 1.
_WHOLE, _REAL = _rows(0, 1, 1), _rows(0.0, 1.0, 1.0)
_ARRAY = _rows(0.0, 1.0, 1.0, form="array")
# Pairs (regular expression for the text of a type, inputs to propose). The first match counts.
# Types of collections come before types of numbers, since the text `list[int]` matches both.
_TYPES: tuple[tuple[str, Guess], ...] = (
    (r"pandas|\bpd\.|^(pandas )?data ?frame", Guess(form="pandas")),
    (r"polars|\bpl\.", Guess(form="polars")),
    (r"\b(ndarray|nd_?array|array_?-?like|array)\b.*\bint", _rows(0, 1, 1, form="array")),
    (r"ndarray|\barray|arraylike", _ARRAY),
    (r"\b(dict|mapping|set|frozenset|series)\b", Guess()),
    # No inputs are guessed for a tuple of fixed length, since each of its entries has its own
    # meaning.
    (r"\btuple\[[^\]]*,(?!\s*\.\.\.)", Guess()),
    (r"\b(list|sequence|iterable|collection|tuple)s?\b.*\b(list|tuple|dict|mapping)\b", Guess()),
    (r"\b(list|sequence|iterable|collection|tuple)s?\b.*\bbool", _rows(True, False, True)),
    (r"\b(list|sequence|iterable|collection|tuple)s?\b.*\bstr", _rows("a", "b", "c")),
    (r"\b(list|sequence|iterable|collection|tuple)s?\b.*\b(float|real)", _REAL),
    (r"\b(list|sequence|iterable|collection|tuple)s?\b", _WHOLE),
    (r"\bbool(ean)?\b", _single(False, True)),
    (r"\b(int|integer)\b", _single(0, 1)),
    (r"\b(float|real|number)\b", _single(0.0, 1.0)),
)
_ROWS = re.compile(
    r"(data|dataset|database|db|table|rows|records|values|samples|points|items|entries|users|ages|"
    r"incomes|numbers|xs|ys|\w+_(data|rows|records|values))$",
    re.IGNORECASE,
)
_BITS = re.compile(r"(bit|b|secret|truth|answer|is_\w+|has_\w+)$", re.IGNORECASE)
_NUMBERS = re.compile(
    r"(n|count|\w+_count|total|sum|x|y|v|value|number|score|query)$", re.IGNORECASE
)
# Matches the type of a parameter in a docstring in the style of numpydoc, Google or Sphinx.
_STATED = (
    r"^\s*{name}\s*:\s*(?P<type>\S.*)$",
    r"^\s*{name}\s*\((?P<type>[^)]*)\)\s*:",
    r"^\s*:type\s+{name}\s*:\s*(?P<type>.*)$",
    r"^\s*:param\s+(?P<type>[^:]+?)\s+{name}\s*:",
)


def guess(reading: Reading, works: Callable[[Guess], bool] | None) -> Guess:
    """Return two neighbouring inputs that the mechanism may accept.

    works: function that returns whether the mechanism accepts a guess; None if the mechanism cannot
    be called yet.
    """
    parameter = reading.dataset
    if parameter is None:
        return Guess()
    for why, found in _by_type(parameter, reading.document):
        if found is not None:
            fits = not found.has_inputs or works is None or works(found)
            return replace(found, why=why) if fits else Guess(form=found.form)
    candidates = list(_by_name(parameter))
    for found in candidates if works is not None else candidates[:1]:
        if works is None or works(found):
            tried = "; the mechanism accepts both" if works is not None else ""
            return replace(found, why=f"the name of the parameter {parameter.name!r}{tried}")
    return Guess()


def fitting(found: Guess, adjacency: Adjacency | None) -> Guess:
    """Return a guess that satisfies the neighbouring relation `adjacency`.

    If `found` does not satisfy it, and its inputs are lists, a record is appended to d2, so that d1
    and d2 differ in their last record. If these inputs do not satisfy it either, the guess has no
    inputs.
    """
    if not found.has_inputs or adjacency is None:
        return found
    others = [found]
    if isinstance(found.d1, list):
        others.append(replace(found, d2=[*found.d2, found.d1[0]]))
    return next((one for one in others if _are_related(one, adjacency)), Guess(form=found.form))


def _are_related(one: Guess, adjacency: Adjacency) -> bool:
    d1, d2 = (load_dataset(value, form=one.form) for value in (one.d1, one.d2))
    try:
        check_pair(NeighbouringPair(d1, d2, adjacency))
    except DatasetError:
        return False
    return True


def _by_type(parameter: Parameter, document: str) -> Iterator[tuple[str, Guess | None]]:
    """Yield (source, guess) for each source that states the type of a parameter: annotation,
    docstring and default. The guess is None if the type is unknown."""
    annotation = annotation_of(parameter)
    if annotation and annotation not in ("Any", "typing.Any", "object"):
        yield f"its annotation {annotation!r}", _of_type(annotation)
    for pattern in _STATED:
        stated = re.search(pattern.format(name=re.escape(parameter.name)), document, re.MULTILINE)
        if stated:
            yield "its docstring", _of_type(stated["type"])
    if parameter.default not in (Parameter.empty, None):
        yield "its default", _of_type(type(parameter.default).__name__)


def _of_type(words: str) -> Guess | None:
    """Return a guess for the type that `words` describe, such as `list[int]`. Return an empty guess
    if only the user can make such inputs, and None for an unknown type."""
    found = (one for pattern, one in _TYPES if re.search(pattern, words, re.IGNORECASE))
    return next(found, None)


def _by_name(parameter: Parameter) -> Iterator[Guess]:
    """Yield guesses of inputs d1 and d2 that fit the name of the parameter that takes them, such
    as two lists of numbers for `ages`. The most likely guess comes first."""
    name = parameter.name
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return
    if _ROWS.match(name):
        yield from (_WHOLE, _ARRAY)
    elif _BITS.match(name):
        yield _single(0, 1)
    elif _NUMBERS.match(name):
        yield from (_single(0, 1), _WHOLE, _ARRAY)
    else:
        yield from (_WHOLE, _single(0, 1), _ARRAY)
