"""Result dataclasses to plain JSON values and back, exactly, driven by their type hints.

JSON has no infinity and no NaN: they are the strings `Infinity`, `-Infinity` and `NaN`. In values
of no declared type (the settings of a request), a text that reads like one of them is escaped by
an apostrophe, and sequences come back as tuples.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any, Literal, Union

from dpaudit.claims import DEFINITIONS, PrivacyClaim, make_claim
from dpaudit.did_you_mean import did_you_mean
from dpaudit.errors import ClaimError
from dpaudit.wording import shown

_SPECIAL = {"Infinity": math.inf, "-Infinity": -math.inf, "NaN": math.nan}
_ESCAPE = "'"


class DamagedRecord(Exception):
    """A value that is not what its type says; the message starts with its path."""


def encode(value: Any, *, typed: bool = True) -> Any:
    """Return a value as dicts, lists, strings, finite numbers, Booleans and None. typed: whether
    `decode` will have a type for it."""
    # First what a result has a hundred thousand of.
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return _encode_float(value)
    if kind is tuple or kind is list:
        return [encode(part, typed=typed) for part in value]
    if isinstance(value, PrivacyClaim):  # by its definition, since its class is in no file
        return {"definition": value.key, **value.parameters()}
    if is_dataclass(value) and not isinstance(value, type):
        return encode_record(value)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(part, typed=typed) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [encode(part, typed=typed) for part in value]
    if hasattr(value, "tolist"):  # a NumPy array or number
        return encode(value.tolist(), typed=typed)
    if isinstance(value, str) and not typed and value.lstrip(_ESCAPE) in _SPECIAL:
        return _ESCAPE + value
    return _encode_float(value) if isinstance(value, float) else value


def _encode_float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def encode_record(value: Any, *, without: str | None = None) -> dict[str, Any]:
    """Return the fields of a dataclass, as `encode` has them. without: one to leave out."""
    # `request` is the one field whose entries have no declared type.
    return {
        one.name: encode(getattr(value, one.name), typed="Any" not in str(one.type))
        for one in fields(value)
        if one.name != without
    }


def decode(hint: Any, value: Any, path: str) -> Any:
    """Return the value of type `hint` that `encode` made `value` of. Raises DamagedRecord. path:
    where the value stands, e.g. `audits[0].claim`, for the message."""
    if hint is Any:
        return decode_untyped(value)
    if hint is PrivacyClaim:
        return _decode_claim(value, path)
    if is_dataclass(hint) and isinstance(hint, type):
        return decode_record(hint, value, path)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return _decode_choice({one.value: one for one in hint}, value, path)
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return _decode_choice({one: one for one in parts}, value, path)
    if origin in (Union, types.UnionType):  # only `X | None` occurs
        return None if value is None else decode(parts[0], value, path)
    if origin is tuple:
        return _decode_tuple(parts, decode(list, value, path), path)
    if origin is not None:
        mapping = decode(dict, value, path)
        return {key: decode(parts[1], part, f"{path}.{key}") for key, part in mapping.items()}
    return _decode_scalar(hint, value, path)


def decode_untyped(value: Any) -> Any:
    """Return the value that `encode` made `value` of without a type, its sequences as tuples."""
    if isinstance(value, dict):
        return {key: decode_untyped(part) for key, part in value.items()}
    if isinstance(value, list):
        return tuple(decode_untyped(part) for part in value)
    if isinstance(value, str) and value.startswith(_ESCAPE) and value.lstrip(_ESCAPE) in _SPECIAL:
        return value[1:]
    return _SPECIAL.get(value, value) if isinstance(value, str) else value


def as_lists(value: Any) -> Any:
    """Return JSON values as they were written: a result file gives sequences back as tuples."""
    if isinstance(value, Mapping):
        return {key: as_lists(part) for key, part in value.items()}
    return [as_lists(part) for part in value] if isinstance(value, list | tuple) else value


def decode_record(kind: type[Any], value: Any, path: str, **made: Any) -> Any:
    """Return the dataclass that a mapping describes; keys it does not know are an error. made:
    fields that are not in the mapping."""
    mapping = decode(dict, value, path)
    hints = typing.get_type_hints(kind)
    known = {one.name: one for one in fields(kind) if one.name not in made}
    for key in mapping:
        if key not in known:
            raise DamagedRecord(f"{path}: unknown key {key!r}.{did_you_mean(key, known)}")
    for name, one in known.items():
        if one.default is one.default_factory is MISSING and name not in mapping:
            raise DamagedRecord(f"{path}: the key {name!r} is missing")
    given = {key: decode(hints[key], part, f"{path}.{key}") for key, part in mapping.items()}
    try:
        return kind(**given, **made)
    except ValueError as error:  # a part that no computation gives
        raise DamagedRecord(f"{path}: {error}") from None


def _decode_claim(value: Any, path: str) -> PrivacyClaim:
    parameters = dict(decode(dict, value, path))
    definition = parameters.pop("definition", None)
    if not isinstance(definition, str) or definition not in DEFINITIONS:
        raise _wrong(f"{path}.definition", f"one of {', '.join(DEFINITIONS)}", definition)
    try:
        return make_claim(parameters, definition)
    except ClaimError as error:
        raise DamagedRecord(f"{path}: {error}") from None


def _decode_tuple(parts: Sequence[Any], values: list[Any], path: str) -> tuple[Any, ...]:
    if parts[-1] is Ellipsis:
        parts = [parts[0]] * len(values)
    if len(values) != len(parts):
        raise _wrong(path, f"a list of {len(parts)}", values)
    numbered = enumerate(zip(parts, values, strict=True))
    return tuple(decode(hint, one, f"{path}[{place}]") for place, (hint, one) in numbered)


def _decode_choice(known: Mapping[Any, Any], value: Any, path: str) -> Any:
    if not isinstance(value, str) or value not in known:
        raise _wrong(path, f"one of {', '.join(known)}", value)
    return known[value]


def _decode_scalar(hint: type[Any], value: Any, path: str) -> Any:
    if hint is float:
        value = _SPECIAL.get(value, value) if isinstance(value, str) else value
        value = float(value) if type(value) is int else value
    if type(value) is not hint:
        raise _wrong(path, _NAMES[hint], value)
    return value


_NAMES = {
    float: "a number",
    int: "a whole number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
}


def _wrong(path: str, wanted: str, value: Any) -> DamagedRecord:
    return DamagedRecord(f"{path} must be {wanted}, not {shown(value)}")
