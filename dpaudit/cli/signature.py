"""Reads a signature and a docstring for init, without calling the mechanism: missing arguments, and
two neighbouring inputs to begin with."""

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

# Names of parameters that take a random generator.
_GENERATORS = ("prng", "generator", "random_state", "random_generator")
# Names of parameters that take a number of the claim or of the noise, not the input.
_NO_DATA = (
    *(one.name for one in claim_parameters() if one.has_flag),
    "eps",
    "scale",
    "sensitivity",
)
# Numbers of a claim. A parameter with such a name takes that number, even if it has a default.
CLAIMED = tuple(one.name for one in claim_parameters() if one.has_flag and one.forms == ("number",))
_GENERATOR_TYPE = "Generator"
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
_CALLABLE = ("Callable", "FunctionType")

Parameters = dict[str, Parameter]


@dataclass(frozen=True, slots=True)
class Reading:
    """The properties of a mechanism that its signature and docstring show.

    target: the mechanism, with the factory, method and generator that the signature shows; missing
    arguments are FILL_IN.  parameters: parameters of the call that draws; empty if unknown.
    dataset: parameter for the input.  init, params: names of missing arguments of the constructor
    and of the call.  methods: methods that may draw, if there are several.  document: docstring.
    defaults: defaults of parameters that are named like a number of a claim.
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
    """Return a mechanism's parameters and missing arguments, from its signature and docstring.

    Raises TargetError for a mechanism that no audit can call.
    known: numbers of the claim, FILL_IN for a missing number. Parameters with these names get them
        if no other value is given, even if they have a default.
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
    """Return the numeric defaults of parameters that are named like a number of a claim."""
    return {
        name: one.default
        for name, one in parameters_of(found).items()
        if name in CLAIMED and _is_number(one.default)
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _built(target: ImportedTarget, found: Any, *, is_guessed: bool) -> Callable[..., Any]:
    """Return the function that draws. is_guessed: only the signature shows that the target is a
    factory."""
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
    """Return the parameters of a function; none if its signature cannot be read."""
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return {}


def annotation_of(parameter: Parameter) -> str:
    """Return the annotation of a parameter as text; "" if there is none."""
    kind = parameter.annotation
    if kind is Parameter.empty:
        return ""
    is_plain = isinstance(kind, type) and not isinstance(kind, types.GenericAlias)
    return kind if isinstance(kind, str) else kind.__name__ if is_plain else str(kind)


def _is_factory(found: Any) -> bool:
    """Return whether the signature shows that a function returns a mechanism, not an output."""
    if not inspect.isfunction(found):
        return False
    returned = found.__annotations__.get("return", "")
    words = returned if isinstance(returned, str) else str(returned)
    is_annotated = any(name in words.partition("[")[0] for name in _CALLABLE)
    return is_annotated or not parameters_of(found)


def _made(
    maker: Any, target: ImportedTarget, known: Mapping[str, Any]
) -> tuple[ImportedTarget, tuple[str, ...]]:
    """Return a target with the arguments of its constructor, and the names of missing ones."""
    # The constructor itself checks arguments that are given by position.
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
    """Return arguments to write down in addition to those given: parameters without a default, and
    parameters named like a number of the claim.

    The latter get the claim's number, since their default may differ from it. If the claim has no
    such number, the default is written down, so that it is visible.
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
    """Return a target with the method that draws, and (). If several methods may draw, return the
    target unchanged and the names of these methods."""
    if any("__call__" in vars(base) for base in found.__mro__):
        return target, ()
    own = [one for one in public_callables(found) if not inspect.isclass(getattr(found, one))]
    if len(own) > 1:
        return target, tuple(own)
    # Without any method, `build` raises the error.
    return replace(target, call=own[0] if own else None), ()


def _unbound(found: Any, target: ImportedTarget) -> Callable[..., Any]:
    """Return a function with the signature of a method of an object that cannot be made yet."""
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
    """Return the `Reading` of a mechanism: target, parameters and missing arguments of the function
    that draws. Its arguments are checked as in an audit."""
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
    """Return a target with the parameter that takes a generator, if it is not called rng."""
    if target.rng_arg is not None or RNG in parameters:
        return target
    found = next((name for name, one in parameters.items() if _is_generator(one)), None)
    if found is None or found in target.params:
        return target
    return replace(target, rng_arg=found)


def _with_data(parameters: Parameters, target: ImportedTarget) -> ImportedTarget:
    """Return a target with the parameter that takes the input, if the first one does not: it is a
    generator, a number of a claim, or keyword-only."""
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
    """Return the parameter that takes the input: data_arg, else the first without another use."""
    if target.data_arg is not None:
        return parameters.get(target.data_arg)
    beside = (target.rng_arg, target.batch_arg)
    positional = [one for one in parameters.values() if one.kind != Parameter.VAR_KEYWORD]
    return next((one for one in positional if one.name not in beside), None)


@dataclass(frozen=True, slots=True)
class Guess:
    """Two guessed inputs.

    d1, d2: the inputs, if `has_inputs`.
    form: form of the inputs, as in the option `as`.
    adjacency: relation of the inputs.
    why: source of the guess, in words.
    """

    d1: Any = None
    d2: Any = None
    has_inputs: bool = False
    form: str | None = None
    adjacency: str | None = None
    why: str = ""


def _rows(*values: Any, form: str | None = None) -> Guess:
    """Return a guess: d1 is a list of the values, d2 the same list without its last record."""
    return Guess(list(values), list(values[:-1]), True, form, "add-remove")


def _single(d1: Any, d2: Any) -> Guess:
    return Guess(d1, d2, True)


# The last record is 1, the largest value that most mechanisms take.
_WHOLE, _REAL = _rows(0, 1, 1), _rows(0.0, 1.0, 1.0)
_ARRAY = _rows(0.0, 1.0, 1.0, form="array")
# (pattern of a type, inputs to propose for it). The first pattern that matches counts. Types of
# rows come before types of values, since list[int] matches both.
_TYPES: tuple[tuple[str, Guess], ...] = (
    (r"pandas|\bpd\.|^(pandas )?data ?frame", Guess(form="pandas")),
    (r"polars|\bpl\.", Guess(form="polars")),
    (r"\b(ndarray|nd_?array|array_?-?like|array)\b.*\bint", _rows(0, 1, 1, form="array")),
    (r"ndarray|\barray|arraylike", _ARRAY),
    (r"\b(dict|mapping|set|frozenset|series)\b", Guess()),
    # The entries of a tuple of fixed length have different meanings, so no inputs are guessed.
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
# Types in docstrings in the styles of numpydoc, Google and Sphinx.
_STATED = (
    r"^\s*{name}\s*:\s*(?P<type>\S.*)$",
    r"^\s*{name}\s*\((?P<type>[^)]*)\)\s*:",
    r"^\s*:type\s+{name}\s*:\s*(?P<type>.*)$",
    r"^\s*:param\s+(?P<type>[^:]+?)\s+{name}\s*:",
)


def guess(reading: Reading, works: Callable[[Guess], bool] | None) -> Guess:
    """Return two neighbouring inputs that the mechanism may accept. works: returns whether it
    accepts them; None if it cannot be called yet."""
    parameter = reading.dataset
    if parameter is None:
        return Guess()
    for why, found in _by_type(parameter, reading.document):
        if found is not None:
            fits = not found.has_inputs or works is None or works(found)
            return _because(found, why) if fits else Guess(form=found.form)
    candidates = list(_by_name(parameter))
    for found in candidates if works is not None else candidates[:1]:
        if works is None or works(found):
            tried = " and from what it takes" if works is not None else ""
            return _because(found, f"the name of its parameter {parameter.name!r}{tried}")
    return Guess()


def fitting(found: Guess, adjacency: Adjacency | None) -> Guess:
    """Return inputs that satisfy a relation: the guess, or the guess with another last record in
    d2, or no inputs."""
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


def _because(found: Guess, why: str) -> Guess:
    return Guess(found.d1, found.d2, found.has_inputs, found.form, found.adjacency, why)


def _by_type(parameter: Parameter, document: str) -> Iterator[tuple[str, Guess | None]]:
    """Yield (source in words, inputs that fit the type) for each source of the type of a parameter:
    annotation, docstring and default."""
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
    """Return inputs for a type: no inputs for a type that needs special ones, None for an unknown
    type."""
    found = (one for pattern, one in _TYPES if re.search(pattern, words, re.IGNORECASE))
    return next(found, None)


def _by_name(parameter: Parameter) -> Iterator[Guess]:
    """Yield inputs that fit the name of a parameter, the most likely first."""
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
