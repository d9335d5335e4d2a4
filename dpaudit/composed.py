"""Compose a dataclass (a record) of smaller dataclasses, and access their fields as if they were
its own.

A field of a record holds a part, an object of the dataclass `kind`, if the metadata of the field is
`part(kind)`. All parts of a record have different field names, so that files, options and tests can
name a field without its part.
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
    """Return `function` with a cache. The result has the type of `function`, since type checkers do
    not accept classes as arguments of a function made by `functools.cache`."""
    return cast(Function, cache(function))


def part(kind: type[Any]) -> Mapping[str, type[Any]]:
    """Return the metadata of a dataclass field that holds a part: an object of the dataclass
    `kind`."""
    return {_PART: kind}


@_remembered
def parts(kind: Any) -> dict[str, type[Any]]:
    """Return {field: class} for the fields of a record class that hold a part: a smaller dataclass
    whose fields count as fields of the record.
    """
    return {
        field.name: field.metadata[_PART]
        for field in dataclasses.fields(kind)
        if _PART in field.metadata
    }


@_remembered
def flat_fields(kind: Any) -> dict[str, dataclasses.Field[Any]]:
    """Return {name: field} for a record class. A field that holds a part (a smaller dataclass whose
    fields count as fields of the record) is replaced by the fields of the part."""
    found: dict[str, dataclasses.Field[Any]] = {}
    for field in dataclasses.fields(kind):
        part = parts(kind).get(field.name)
        found |= {field.name: field} if part is None else flat_fields(part)
    return found


@_remembered
def flat_hints(kind: Any) -> dict[str, Any]:
    """Return the type hints of the fields of a record class, by name. The fields of a part (a
    dataclass that groups fields of the record) replace the field that holds the part."""
    hints = dict(typing.get_type_hints(kind))
    for name, part in parts(kind).items():
        del hints[name]
        hints |= flat_hints(part)
    return hints


def value_of(record: Any, name: str) -> Any:
    """Return the value of a field of a record, or of a field of one of its parts."""
    for part, kind in parts(type(record)).items():
        if name in flat_fields(kind):
            return getattr(getattr(record, part), name)
    return getattr(record, name)


def composed(kind: type[Record], /, **values: Any) -> Record:
    """Return a record of class `kind`.

    values: its fields by name, with the names that `flat_fields` returns. The value of a whole part
        may be given in place of its fields.

    Raises TypeError for unknown and missing names, and the errors of the constructors.
    """
    made = {name: values.pop(name) for name in parts(kind) if name in values}
    for name, part in parts(kind).items():
        if name not in made:
            own = flat_fields(part)
            made[name] = part(**{key: values.pop(key) for key in own if key in values})
    return kind(**made, **values)


def replace(record: Record, /, **changes: Any) -> Record:
    """Return a copy of a record in which some fields have other values, as `dataclasses.replace`
    does.

    changes: new values by name of a field of the record, or of a field of one of its parts
        (dataclasses that group fields of the record).
    """
    for name, part in parts(type(record)).items():
        own = {key: changes.pop(key) for key in flat_fields(part) if key in changes}
        if own:
            whole = changes.get(name, getattr(record, name))
            changes[name] = dataclasses.replace(whole, **own)
    return dataclasses.replace(record, **changes)  # type: ignore[type-var]  # any dataclass
