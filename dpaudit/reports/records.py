"""Convert dataclasses of results to plain JSON values and back without loss, guided by their type
hints.

JSON has no infinity and no NaN; the strings `Infinity`, `-Infinity` and `NaN` replace them. The
settings in a `request` have no declared types. In these settings, a user's string that equals one
of the three strings gets an apostrophe as escape, and lists are read back as tuples.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, is_dataclass
from enum import Enum
from functools import cache, partial
from itertools import repeat
from typing import Any, Literal, Union

from dpaudit.claims import DEFINITIONS, PrivacyClaim, make_claim
from dpaudit.composed import composed, flat_fields, flat_hints, value_of
from dpaudit.errors import ClaimError
from dpaudit.wording import did_you_mean, shown

SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_ESCAPE = "'"
# Bytes of untyped values are written as this prefix and their hex digits.
_BYTES = "bytes:"


class DamagedRecord(Exception):
    """Raised if a value does not have its declared type. The message begins with the value's path
    in the file, such as audits[0].claim."""

    def below(self, place: str) -> DamagedRecord:
        """Return this error with `place` in front of its message. The message begins with the path
        of a damaged value inside an outer value; `place` is the path of the outer value, such as
        `audits[0]`."""
        return DamagedRecord(place + str(self))


def encode(value: Any, *, typed: bool = True) -> Any:
    """Return a value as dicts, lists, strings, finite numbers, Booleans and None.

    typed: whether `decode` will get a type hint for the value. If not, strings that look like a
    special number, such as `NaN`, or like bytes get an apostrophe in front.
    """
    # Check the most frequent types first, since a result has a hundred thousand values.
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return _encode_float(value)
    if kind is tuple or kind is list:
        return [encode(part, typed=typed) for part in value]
    # A claim is written as its definition and parameters, so that the file contains no name of a
    # Python class.
    if isinstance(value, PrivacyClaim):
        return {"definition": value.key, **value.parameters()}
    if is_dataclass(value) and not isinstance(value, type):
        return encode_record(value)
    if isinstance(value, Mapping):
        return {str(key): encode(part, typed=typed) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [encode(part, typed=typed) for part in value]
    if hasattr(value, "tolist"):  # a NumPy array or number
        return encode(value.tolist(), typed=typed)
    if isinstance(value, bytes) and not typed:
        return _BYTES + value.hex()
    if isinstance(value, str) and not typed and _is_marked(value.lstrip(_ESCAPE)):
        return _ESCAPE + value
    return _encode_float(value) if isinstance(value, float) else value


def _is_marked(text: str) -> bool:
    return text in SPECIAL or text.startswith(_BYTES)


def _encode_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def encode_record(value: Any, *, without: str | None = None) -> dict[str, Any]:
    """Return the encoded fields of a dataclass as a dict.

    without: name of a field to leave out, or None.
    """
    # A field whose declared type contains Any, such as `request` with the settings of the user, is
    # encoded as untyped: its texts such as "NaN" are marked, since the type does not show that they
    # are texts and not numbers.
    return {
        name: encode(value_of(value, name), typed="Any" not in str(one.type))
        for name, one in flat_fields(type(value)).items()
        if name != without
    }


def decode(hint: Any, value: Any, path: str) -> Any:
    """Return the value of type `hint` from which `encode` made `value`. Raises DamagedRecord if
    `value` does not fit the type.

    path: place of the value for the message, such as `audits[0].claim`.
    """
    with _under(path):
        return _decoder(hint)(value)


def decode_untyped(value: Any) -> Any:
    """Return the value from which `encode` with typed=False made `value`, with tuples in place of
    lists."""
    if isinstance(value, dict):
        return {key: decode_untyped(part) for key, part in value.items()}
    if isinstance(value, list):
        return tuple(decode_untyped(part) for part in value)
    if isinstance(value, str) and _is_marked(value.lstrip(_ESCAPE)):
        if value.startswith(_ESCAPE):
            return value[1:]
        if value.startswith(_BYTES):
            return bytes.fromhex(value.removeprefix(_BYTES))
    return SPECIAL.get(value, value) if isinstance(value, str) else value


def decode_record(kind: Any, value: Any, path: str, **made: Any) -> Any:
    """Return an object of the dataclass `kind` from a dict of encoded fields. Raises DamagedRecord,
    also for an unknown key.

    made: values of fields that are not in the dict, by name.
    """
    with _under(path):
        return _record(kind)(value, **made)


@contextmanager
def _under(path: str) -> Iterator[None]:
    try:
        yield
    except DamagedRecord as error:
        raise error.below(path) from None


# Cached: a result may have a hundred thousand values but has few types, and each type is analysed
# only once. A decoder does not know the path of its value in the file; its callers add the path to
# an error.
@cache
def _decoder(hint: Any) -> Callable[[Any], Any]:
    """Return a function that decodes values of type `hint`. The function raises DamagedRecord for a
    value that has another type."""
    if hint is Any:
        return decode_untyped
    if hint is PrivacyClaim:
        return _claim
    if is_dataclass(hint) and isinstance(hint, type):
        return _record(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return partial(_choice, {one.value: one for one in hint})
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return partial(_choice, {one: one for one in parts})
    if origin in (Union, types.UnionType):  # only `X | None` occurs
        return partial(_optional, _decoder(parts[0]))
    if origin is tuple and parts[-1] is Ellipsis:
        return partial(_sequence, parts[0])
    if origin is tuple:
        return partial(_fixed, tuple(_decoder(part) for part in parts))
    if origin is not None:
        return partial(_mapping, _decoder(parts[1]))
    return partial(_scalar, hint)


@cache
def _record(kind: type[Any]) -> _Record:
    return _Record(kind)


class _Record:
    """Makes objects of one dataclass from dicts."""

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind
        self.hints = flat_hints(kind)
        self.known = flat_fields(kind)
        self.needed = [
            name
            for name, one in self.known.items()
            if one.default is one.default_factory is MISSING
        ]

    def __call__(self, value: Any, **made: Any) -> Any:
        mapping = _scalar(dict, value)
        for key in mapping:
            if key not in self.known or key in made:
                known = [one for one in self.known if one not in made]
                raise DamagedRecord(f": unknown key {key!r}.{did_you_mean(key, known)}")
        for name in self.needed:
            if name not in mapping and name not in made:
                raise DamagedRecord(f": the key {name!r} is missing")
        given = {key: self._part(key, part) for key, part in mapping.items()}
        try:
            return composed(self.kind, **given, **made)
        except ValueError as error:  # raised by constructors of parts for impossible values
            raise DamagedRecord(f": {error}") from None

    def _part(self, key: str, value: Any) -> Any:
        try:
            return _decoder(self.hints[key])(value)
        except DamagedRecord as error:
            raise error.below(f".{key}") from None


def _claim(value: Any) -> PrivacyClaim:
    parameters = dict(_scalar(dict, value))
    definition = parameters.pop("definition", None)
    if not isinstance(definition, str) or definition not in DEFINITIONS:
        raise _wrong(f"one of {', '.join(DEFINITIONS)}", definition).below(".definition")
    try:
        return make_claim(parameters, definition)
    except ClaimError as error:
        raise DamagedRecord(f": {error}") from None


def _optional(decoder: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else decoder(value)


def _sequence(hint: Any, value: Any) -> tuple[Any, ...]:
    values = _scalar(list, value)
    kinds = set(map(type, values))
    # Shortcut for the most frequent case: numbers and pairs of numbers.
    if hint in _NAMES and kinds <= {hint}:
        return tuple(values)
    parts = typing.get_args(hint)
    if parts and kinds == {list} and set(map(len, values)) == {len(parts)}:
        columns = zip(*values, strict=True)
        if all(set(map(type, one)) == {part} for one, part in zip(columns, parts, strict=True)):
            return tuple(map(tuple, values))
    return _decoded(repeat(_decoder(hint), len(values)), values)


def _fixed(decoders: Sequence[Callable[[Any], Any]], value: Any) -> tuple[Any, ...]:
    values = _scalar(list, value)
    if len(values) != len(decoders):
        raise _wrong(f"a list of {len(decoders)}", values)
    return _decoded(decoders, values)


def _decoded(decoders: Iterable[Callable[[Any], Any]], values: list[Any]) -> tuple[Any, ...]:
    made: list[Any] = []
    try:
        for decoder, one in zip(decoders, values, strict=True):
            made.append(decoder(one))
    except DamagedRecord as error:
        raise error.below(f"[{len(made)}]") from None
    return tuple(made)


def _mapping(decoder: Callable[[Any], Any], value: Any) -> dict[str, Any]:
    made = {}
    for key, part in _scalar(dict, value).items():
        try:
            made[key] = decoder(part)
        except DamagedRecord as error:
            raise error.below(f".{key}") from None
    return made


def _choice(known: Mapping[Any, Any], value: Any) -> Any:
    if not isinstance(value, str) or value not in known:
        raise _wrong(f"one of {', '.join(known)}", value)
    return known[value]


def _scalar(hint: type[Any], value: Any) -> Any:
    if hint is float:
        value = SPECIAL.get(value, value) if isinstance(value, str) else value
        value = float(value) if type(value) is int else value
    if type(value) is not hint:
        raise _wrong(_NAMES[hint], value)
    return value


_NAMES = {
    float: "a number",
    int: "a whole number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
}


def _wrong(wanted: str, value: Any) -> DamagedRecord:
    return DamagedRecord(f" must be {wanted}, not {shown(value)}")
