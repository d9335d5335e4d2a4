"""Records composed of smaller records, whose fields have names as if they were the record's own.

A field with the metadata `part(kind)` holds a part: a dataclass with fields of its own. Names of
fields differ between all parts of a record. Files, options and tests name fields without the part.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeVar, cast

_PART = "part"

Function = TypeVar("Function", bound=Callable[..., Any])
Record = TypeVar("Record")


def _remembered(function: Function) -> Function:
    """Return the function with a cache, but with its own type, since type checkers do not let a
    function made by `functools.cache` take classes."""
    return cast(Function, cache(function))


def part(kind: type[Any]) -> Mapping[str, type[Any]]:
    """Return the metadata of a dataclass field that holds a part: a dataclass of the
    given class."""
    return {_PART: kind}


@_remembered
def parts(kind: Any) -> dict[str, type[Any]]:
    """Return the parts of a record class, as field name -> class of the part.

    A part is a dataclass whose fields count as fields of the record.
    """
    return {
        field.name: field.metadata[_PART]
        for field in dataclasses.fields(kind)
        if _PART in field.metadata
    }


@_remembered
def flat_fields(kind: Any) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of a record class by name. A field that holds a part is replaced by the
    fields of the part."""
    found: dict[str, dataclasses.Field[Any]] = {}
    for field in dataclasses.fields(kind):
        part = parts(kind).get(field.name)
        found |= {field.name: field} if part is None else flat_fields(part)
    return found


@_remembered
def flat_hints(kind: Any) -> dict[str, Any]:
    """Return the types of the fields that `flat_fields` lists, by name."""
    hints = dict(typing.get_type_hints(kind))
    for name, part in parts(kind).items():
        del hints[name]
        hints |= flat_hints(part)
    return hints


def value_of(record: Any, name: str) -> Any:
    """Return the value of a record's field, which may belong to one of the record's parts."""
    for part, kind in parts(type(record)).items():
        if name in flat_fields(kind):
            return getattr(getattr(record, part), name)
    return getattr(record, name)


def composed(kind: type[Record], /, **values: Any) -> Record:
    """Return a record, given the values of its fields by name, with the names that `flat_fields`
    lists. The value of a whole part may be given instead.

    Raises TypeError for unknown and missing names, and the errors of the constructors.
    """
    made = {name: values.pop(name) for name in parts(kind) if name in values}
    for name, part in parts(kind).items():
        if name not in made:
            own = flat_fields(part)
            made[name] = part(**{key: values.pop(key) for key in own if key in values})
    return kind(**made, **values)


def replace(record: Record, /, **changes: Any) -> Record:
    """Return a copy of a record with other values, as dataclasses.replace does.

    Names of fields may also belong to parts of the record.
    """
    for name, part in parts(type(record)).items():
        own = {key: changes.pop(key) for key in flat_fields(part) if key in changes}
        if own:
            whole = changes.get(name, getattr(record, name))
            changes[name] = dataclasses.replace(whole, **own)
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]  # any dataclass
