"""Audits and results with other options or fields, for tests."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, cast

import msgspec

from dpaudit.auditing.options import Journaling, Requirements, Sampling, Statistics
from dpaudit.auditing.spec import AuditSpec, Origin
from dpaudit.certificates.certificate import Certificate, FixedTest
from dpaudit.certificates.evidence import FrozenRule

Record = TypeVar("Record")

RECORDS: dict[str, Any] = {
    "sampling": Sampling,
    "statistics": Statistics,
    "requirements": Requirements,
    "journaling": Journaling,
    "origin": Origin,
}


def names(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def audit_of(**settings: Any) -> AuditSpec:
    """Return an audit with options by name, whatever record holds them."""
    own = {name: value for name, value in settings.items() if name in names(AuditSpec)}
    for record, kind in RECORDS.items():
        options = {name: value for name, value in settings.items() if name in names(kind)}
        own.setdefault(record, kind(**options))
    unknown = settings.keys() - names(AuditSpec).union(*map(names, RECORDS.values()))
    assert not unknown, unknown
    return AuditSpec(**own)


def replace(record: Record, **changes: Any) -> Record:
    """Return a copy of a record, an audit or an ending of an audit with other fields.

    An option of an audit is named without its record, a field of evidence or of a
    rule without these.
    """
    if isinstance(record, msgspec.Struct):
        return cast(Record, msgspec.structs.replace(record, **changes))
    inner: dict[str, Any] = RECORDS if isinstance(record, AuditSpec) else {}
    if isinstance(record, Certificate):
        inner = {"evidence": type(record.evidence)}
    if isinstance(record, FixedTest):
        inner = {"rule": FrozenRule}
    for name, kind in inner.items():
        own = {key: changes.pop(key) for key in names(kind) & changes.keys() - names(type(record))}
        if own:
            changes[name] = dataclasses.replace(getattr(record, name), **own)
    return cast(Record, dataclasses.replace(cast(Any, record), **changes))


def setting(spec: AuditSpec, name: str) -> Any:
    """Return an option of an audit, whatever record holds it."""
    record = next((record for record, kind in RECORDS.items() if name in names(kind)), None)
    return getattr(spec if record is None else getattr(spec, record), name)
