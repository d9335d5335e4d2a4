"""Two neighbouring inputs to begin with, guessed from what a signature and a docstring say."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Any

from dpaudit.cli.starting.needs import Reading, annotation_of
from dpaudit.errors import DatasetError
from dpaudit.inputs.adjacency import Adjacency
from dpaudit.inputs.datasets import load_dataset
from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import NeighbouringPair


@dataclass(frozen=True, slots=True)
class Guess:
    """Two inputs, or none (has_inputs is False), the form that they have (`as`), how they are
    neighbours, and what all this was guessed from."""

    d1: Any = None
    d2: Any = None
    has_inputs: bool = False
    form: str | None = None
    adjacency: str | None = None
    why: str = ""


def _rows(*values: Any, form: str | None = None) -> Guess:
    """Return a list, and the same without its last record."""
    return Guess(list(values), list(values[:-1]), True, form, "add-remove")


def _single(d1: Any, d2: Any) -> Guess:
    return Guess(d1, d2, True)


# With a record of 1, the largest that most mechanisms take.
_WHOLE, _REAL = _rows(0, 1, 1), _rows(0.0, 1.0, 1.0)
_ARRAY = _rows(0.0, 1.0, 1.0, form="array")
# By what a type is called, the first that fits; those of rows before those of single values, since
# a type names both: list[int].
_TYPES: tuple[tuple[str, Guess], ...] = (
    (r"pandas|\bpd\.|^(pandas )?data ?frame", Guess(form="pandas")),
    (r"polars|\bpl\.", Guess(form="polars")),
    (r"\b(ndarray|nd_?array|array_?-?like|array)\b.*\bint", _rows(0, 1, 1, form="array")),
    (r"ndarray|\barray|arraylike", _ARRAY),
    (r"\b(dict|mapping|set|frozenset|series)\b", Guess()),
    (r"\btuple\[[^\]]*,(?!\s*\.\.\.)", Guess()),  # of so many entries, each with a meaning
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
# How docstrings state a type: numpydoc, Google and Sphinx.
_STATED = (
    r"^\s*{name}\s*:\s*(?P<type>\S.*)$",
    r"^\s*{name}\s*\((?P<type>[^)]*)\)\s*:",
    r"^\s*:type\s+{name}\s*:\s*(?P<type>.*)$",
    r"^\s*:param\s+(?P<type>[^:]+?)\s+{name}\s*:",
)


def guess(reading: Reading, works: Callable[[Guess], bool] | None) -> Guess:
    """Return two neighbouring inputs that the mechanism may take. works: whether it takes them;
    None where it cannot be called yet."""
    parameter = reading.dataset
    if parameter is None:
        return Guess()
    for why, found in _said(parameter, reading.document):
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
    """Return inputs that a relation which was given does not contradict: as guessed, or with
    another record in the place of the last one, or none."""
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


def _said(parameter: Parameter, document: str) -> Iterator[tuple[str, Guess | None]]:
    """Yield what is said of the type of a parameter, where something is."""
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
    """Return inputs of a type in words; without them for one that is known to need others; None for
    one that is not known."""
    found = (one for pattern, one in _TYPES if re.search(pattern, words, re.IGNORECASE))
    return next(found, None)


def _by_name(parameter: Parameter) -> Iterator[Guess]:
    """Yield inputs that a parameter may take by its name, the most likely first."""
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
