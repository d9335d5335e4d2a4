"""Make the JSON schema (2020-12) of result files from the dataclasses of results.

The schema describes the files that this version writes: every field must be present, and no other
field, so that a misspelt name is an error. There are three exceptions. The document may have
additional fields, which the digest does not cover, so that others can add facts about a run.
`request` holds settings as they were written. `versions` and counts by kind may have any keys.

A schema checks only the form. `dpaudit report` checks that the numbers follow from the draws.

Whenever a field is added or removed, or its meaning changes, the format gets a new version, a new
`$id` and an entry in the history (json.py). dpaudit reads the versions from `OLDEST` up to its own.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, Literal, Union

from dpaudit.certificates.certificate import Certificate, ExactCertificate
from dpaudit.certificates.one_run import OneRunCertificate
from dpaudit.certificates.records import Block
from dpaudit.certificates.result import AuditResult, Verdict
from dpaudit.claims import DEFINITIONS, PrivacyClaim
from dpaudit.claims.registry import described
from dpaudit.composed import flat_fields, flat_hints, parts
from dpaudit.reports.json import CERTIFICATE, VERSION
from dpaudit.reports.records import SPECIAL

Schema = dict[str, Any]

ID = f"urn:dpaudit:result:{VERSION}"
_NUMBER = {"$ref": "#/$defs/number"}
_TEXT = {"type": "string"}
_NULL = {"type": "null"}
_COUNT = {"type": "integer", "minimum": 0}
_PAIRS: Schema = {"type": "array", "items": {"type": "array", "items": _NUMBER}}
_OF_FORM: Mapping[str, Schema] = {
    "number": _NUMBER,
    "text": _TEXT,
    "path": _TEXT,
    "function": _PAIRS,
    "table": _PAIRS,
}
_PROBABILITY = {"type": "number", "minimum": 0, "maximum": 1}
_BOUNDED = ("p_value", "confidence", "alpha", "alpha_betting")
# Parameters that a claim in a file of results may lack: `adversary` is left out if the claim names
# no adversary.
_OPTIONAL = ("adversary",)
# Matches the section of a numpydoc docstring that describes fields.
_FIELDS = re.compile(r"(?:Attributes|Parameters)\n-+\n(.*?)(?:\n\n\w+\n-+\n|\Z)", re.DOTALL)
# Matches one entry of the section `Attributes` or `Parameters` of a numpydoc docstring: the names
# of fields, and the text that describes them.
_ENTRY = re.compile(r"^([a-z]\w*(?:, \w+)*) : [^\n]*\n((?:[ ]{4}[^\n]*\n?)+)", re.MULTILINE)


def result_schema() -> Schema:
    found = _Definitions()
    audit = _audit(found)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": ID,
        "title": f"Results of dpaudit, version {VERSION}",
        "description": "Written by dpaudit run --json, and rechecked by dpaudit report.",
        "type": "object",
        "properties": {
            "version": {"const": VERSION},
            "count": {**_COUNT, "description": "Number of audits."},
            "planned": {
                **_COUNT,
                "description": "Planned number of audits, if the run did not end.",
            },
            "not_run": {
                "type": "array",
                "items": _TEXT,
                "description": "Names of audits that were not run after a failure.",
            },
            "digest": {
                **_TEXT,
                "pattern": "^sha256:[0-9a-f]{64}$",
                "description": "SHA-256 of version, planned, not_run and audits.",
            },
            "audits": {"type": "array", "items": audit},
        },
        "required": ["version", "count", "digest", "audits"],
        "$defs": dict(sorted(found.made.items())),
    }


class _Definitions:
    """Collects the schemas of dataclasses; each one is made once and then referred to by name."""

    def __init__(self) -> None:
        self.made: dict[str, Schema] = {
            "number": {
                "description": "A number, or the name of a number that JSON lacks.",
                "anyOf": [{"type": "number"}, {"enum": list(SPECIAL)}],
            }
        }

    def of(self, hint: Any) -> Schema:
        """Return the schema of encoded values that have the type `hint`."""
        if hint is Any:
            return {}
        if hint is PrivacyClaim:
            return self._named("claim", _claim)
        if isinstance(hint, type) and is_dataclass(hint):
            return self._named(hint.__name__, lambda: self.record(hint))
        return self._composed(typing.get_origin(hint), typing.get_args(hint), hint)

    def _composed(self, origin: Any, parts: Sequence[Any], hint: Any) -> Schema:
        if origin is Literal:
            return {"enum": list(parts)}
        if origin in (Union, types.UnionType):
            return {"anyOf": [_NULL if one is type(None) else self.of(one) for one in parts]}
        if origin is tuple and parts[-1] is Ellipsis:
            return {"type": "array", "items": self.of(parts[0])}
        if origin is tuple:
            entries = list(map(self.of, parts))
            length = {"items": False, "minItems": len(parts)}
            return {"type": "array", "prefixItems": entries, **length}
        if origin is not None:
            return {"type": "object", "additionalProperties": self.of(parts[1])}
        scalar: Mapping[Any, Schema] = {
            float: _NUMBER,
            int: {"type": "integer"},
            str: _TEXT,
            bool: {"type": "boolean"},
        }
        return scalar[hint]

    def _named(self, name: str, make: Any) -> Schema:
        if name not in self.made:
            # Register the class before its schema is made: a class that contains itself then finds
            # this entry, and the recursion ends.
            self.made[name] = {}
            self.made[name] = make()
        return {"$ref": f"#/$defs/{name}"}

    def record(self, kind: type, *without: str) -> Schema:
        """Return the schema of a dataclass.

        without: names of fields to leave out.
        """
        hints, said = flat_hints(kind), _said(kind)
        for part in parts(kind).values():
            said |= _said(part)
        names = [name for name in flat_fields(kind) if name not in without]
        summary = (inspect.getdoc(kind) or "").partition("\n\n")[0]
        return _object(
            {name: {**self._field(name, hints[name]), **said.get(name, {})} for name in names},
            " ".join(summary.split()),
        )

    def _field(self, name: str, hint: Any) -> Schema:
        if name in _BOUNDED:
            return dict(_PROBABILITY)
        return dict(_COUNT) if hint is int else self.of(hint)


def _audit(found: _Definitions) -> Schema:
    """Return the schema of an audit in a file of results. The file has no field `ending`: its place
    is taken by the fields that `AuditResult.ending` contains, such as `certificates`."""
    audit = found.record(AuditResult, "ending")
    certificate = found.record(Certificate, "blocks")
    certificate["properties"] = {name: certificate["properties"][name] for name in CERTIFICATE}
    certificate["required"] = list(CERTIFICATE)
    block = found.record(Block)
    block["properties"] = {"certificate": _COUNT, **block["properties"]}
    block["required"] = ["certificate", *block["required"]]
    found.made |= {"Certificate": certificate, "Block": block}
    text_or_none = {"anyOf": [_TEXT, _NULL]}
    own: dict[str, Schema] = {
        "verdict": {"enum": [one.value for one in Verdict]},
        "epsilon_lower": _NUMBER,
        "delta_lower": _NUMBER,
        "p_value": _PROBABILITY,
        "draws": _COUNT,
        "event": {**text_or_none, "description": "The leading event of the deciding pair."},
        "error": {**text_or_none, "description": "The reason for the verdict ERROR."},
        "error_code": {
            "anyOf": [{**_TEXT, "pattern": "^[a-z]+(-[a-z]+)*$"}, _NULL],
            "description": "Kind of the error; docs/errors.md lists all kinds.",
        },
        "certificates": {
            "type": "array",
            "items": {"$ref": "#/$defs/Certificate"},
            "description": "One for each pair with draws.",
        },
        "exact": {"type": "array", "items": found.of(ExactCertificate)},
        "one_run": {"anyOf": [found.of(OneRunCertificate), _NULL]},
        "blocks": {
            "type": "array",
            "items": {"$ref": "#/$defs/Block"},
            "description": "All draws, in order; `certificate` is an index into `certificates`.",
        },
    }
    whole = _object({**audit["properties"], **own}, audit["description"])
    whole["properties"]["interrupted"] = {
        **_COUNT,
        "description": "Planned number of pairs, if a signal ended the audit.",
    }
    is_error = {"properties": {"verdict": {"const": Verdict.ERROR.value}}}
    whole |= {
        "if": is_error,
        "then": {"properties": {"error": _TEXT}},
        "else": {"properties": {"error": _NULL, "error_code": _NULL}},
    }
    return whole


def _claim() -> Schema:
    """Return the schema of a claim: for each privacy definition, the parameters that it has."""
    kinds = []
    for key, definition in DEFINITIONS.items():
        values = {
            name: {**_OF_FORM[one.forms[0]], "description": one.help}
            for name, one in described(key).items()
        }
        kind = _object({"definition": {"const": key}, **values}, f"{definition.title}.")
        kind["required"] = [one for one in kind["required"] if one not in _OPTIONAL]
        kinds.append(kind)
    return {"oneOf": kinds}


def _object(properties: Mapping[str, Schema], description: str) -> Schema:
    return {
        "description": description,
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _said(kind: type) -> dict[str, Schema]:
    """Return {field: schema} with a description for each field that the docstring of a class
    describes."""
    part = _FIELDS.search(f"{inspect.getdoc(kind) or ''}\n")
    found = _ENTRY.findall(f"{part[1]}\n") if part else []
    return {
        name: {"description": " ".join(text.split())}
        for names, text in found
        for name in names.split(", ")
    }
