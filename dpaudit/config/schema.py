"""The keys and types of a configuration file, derived from the table of options."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from keyword import iskeyword
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from dpaudit.auditing.option_parsing import REFERENCE, Option, Words
from dpaudit.auditing.options import OPTIONS, flag_of, owned
from dpaudit.claims import DEFINITIONS, parameters
from dpaudit.claims.base import Form
from dpaudit.config.problems import Path, PlacedError, about, problem
from dpaudit.errors import Name
from dpaudit.wording import did_you_mean_or_known, shown

VERSION = 1

TARGET_KEYS = tuple(option.name for option in owned("mechanism"))
AUDIT_KEYS = tuple(option.name for option in owned("mechanism", "inputs", "audit"))
SEARCH_KEYS = ("space", "inside", "outside", "keep")
PAIR_KEYS = ("d1", "d2", "adjacency", "name")
OF_THE_FILE = tuple(option.name for option in owned("file"))
FILE_KEYS = ("version", "audits", "defaults", *OF_THE_FILE)
# Parameters of claims that a file can set but no command-line flag. `name` is not among them, since
# the key `name` of an audit is the audit's name.
_UNFLAGGED = tuple(
    parameter.name
    for parameter in parameters()
    if not parameter.has_flag and parameter.name != "name"
)
CLAIM_KEYS = (*(option.name for option in owned("claim")), *_UNFLAGGED, "curve")
OF_THE_RUN = tuple(option.name for option in owned("run"))

_defined = partial(
    msgspec.defstruct, kw_only=True, forbid_unknown_fields=True, rename={"as_": "as"}
)


def _optional(option: Option, kind: Any) -> tuple[str, Any, Any]:
    """Return (name, type, default) of the field for an optional setting in a msgspec struct."""
    name = f"{option.name}_" if iskeyword(option.name) else option.name
    return name, Annotated[kind | UnsetType, Meta(description=option.must)], UNSET


_TARGET: Any = _defined(
    "TargetSettings",
    [_optional(option, option.in_files) for option in owned("mechanism")],
    namespace={"__doc__": "One mechanism."},
)
_PAIR: Any = _defined(
    "PairSettings",
    [(name, Annotated[Any, Meta(description=OPTIONS[name].must)]) for name in ("d1", "d2")]
    + [_optional(OPTIONS[name], OPTIONS[name].in_files) for name in ("adjacency", "name")],
    namespace={"__doc__": "One pair of neighbouring datasets."},
)
_TYPES: Mapping[str, Any] = {
    **{name: OPTIONS[name].in_files for name in AUDIT_KEYS},
    "pairs": Annotated[list[_PAIR], Meta(min_length=1)],
    "compose": Annotated[list[_TARGET | Words], Meta(min_length=2)],
}


def schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of configuration files, for editors and validators."""
    audit: Any = _defined(
        "AuditSettings",
        [_optional(OPTIONS[name], _TYPES[name]) for name in AUDIT_KEYS],
        namespace={"__doc__": "One audit."},
    )
    all_audits = Annotated[list[audit], Meta(min_length=1, description="a list of audits")]
    description = "a mapping of default keys, for every audit that does not set its own"
    file = _defined(
        "ConfigurationFile",
        [
            ("version", Annotated[Literal[1], Meta(description="1, the version of this format")]),
            ("audits", all_audits),
            ("defaults", Annotated[audit | UnsetType, Meta(description=description)], UNSET),
            *(_optional(option, option.in_files) for option in owned("file")),
        ],
        namespace={"__doc__": "A batch of audits for dpaudit run."},
    )
    document = msgspec.json.schema(file)
    document["$defs"]["AuditSettings"]["properties"]["claim"].update(_claim_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document}


def check_audit_keys(settings: Mapping[str, Any], path: Path = ()) -> None:
    """Raise a PlacedError for the first key of the settings at `path` that is unknown or
    misplaced."""
    for key, value in settings.items():
        location = _proper_place(key, value)
        if location:
            raise _misplaced((*path, key), f"{key!r} belongs {location}")
    claim = settings.get("claim")
    for key in claim if isinstance(claim, Mapping) else ():
        if key != "name" and key in AUDIT_KEYS:
            raise _misplaced((*path, "claim", key), f"{key!r} belongs beside claim, not in it")
    check_keys(settings, AUDIT_KEYS, path)
    for name, known in (("pairs", PAIR_KEYS), ("compose", TARGET_KEYS)):
        entries = settings.get(name)
        for index, entry in enumerate(entries if isinstance(entries, list) else []):
            if isinstance(entry, Mapping):
                check_keys(entry, known, (*path, name, index))


def _proper_place(key: str, value: Any) -> str:
    """Return where a misplaced key should be, such as `in claim: {epsilon: 1}`; "" if unknown."""
    if key in CLAIM_KEYS:
        written = shown(value) if isinstance(value, str) else json.dumps(value, default=str)
        return f"in claim: {{{key}: {written}}}"
    if key in OF_THE_FILE:
        return "beside audits: it is about all of them"
    if key in OF_THE_RUN:
        return f"to a run, not to an audit: give {flag_of(key)}"
    return ""


def _misplaced(path: Path, why: str) -> PlacedError:
    return problem(path, why, code="key-misplaced")


def check_keys(keys: Iterable[Any], known: Iterable[str], path: Path = ()) -> None:
    """Raise a PlacedError for the first of `keys`, which are those of the mapping at `path`, that
    is not in `known`."""
    for error in unknown_keys(keys, known, path):
        raise error


def unknown_keys(
    keys: Iterable[Any], known: Iterable[str], path: Path = ()
) -> Iterator[PlacedError]:
    """Yield an error for each of `keys`, which are those of the mapping at `path`, that is not in
    `known`."""
    known = list(known)
    for key in keys:
        if key not in known:
            yield problem(
                (*path, key),
                f"unknown key {key!r}.{did_you_mean_or_known(str(key), known)}",
                code="key-unknown",
            )


def decoded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with each value converted to its type. Raises PlacedError for the first
    value of a wrong type."""
    return {key: _decoded(key, value) for key, value in settings.items()}


def _decoded(key: str, value: Any) -> Any:
    option = OPTIONS[key]
    try:
        if key in ("pairs", "compose") or option.help.file is not None:
            msgspec.convert(value, _TYPES[key])
        if key in ("claim", "executor") or value is None:
            return value
        with about(key):
            return option.read(value)
    except msgspec.ValidationError as error:
        raise _wrong(key, value, str(error)) from None


# Matches a step of the path in a message of msgspec, such as the index and the key of `$[0].d1`.
_STEP = re.compile(r"\[(\d+)\]|\.(\w+)")


def _wrong(key: str, value: Any, message: str) -> PlacedError:
    """Return the error for a value of a wrong type. msgspec's message contains the path."""
    why, _, path = message.partition(" - at `$")
    steps = [int(index) if index else name for index, name in _STEP.findall(path)]
    for step in steps:
        value = value[step]
    name = next((step for step in reversed(steps) if step in OPTIONS), key)
    words = (Name(name), f"={shown(value)} must be {OPTIONS[name].must}")
    if "missing" in why:
        words = (Name(key), f": {shown(value)} has no {why.split('`')[1]}")
    return problem((key, *steps), *words, code="option-invalid")


def _claim_schema() -> dict[str, Any]:
    number = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^{REFERENCE}$"}]}
    text = {"type": "string"}
    table = {"type": "array", "items": {"type": "array", "items": number}}
    of_form: dict[Form, Any] = {
        "number": number, "text": text, "path": text, "function": text, "table": table
    }  # fmt: skip
    values = {
        parameter.name: {
            "description": parameter.help,
            "anyOf": [of_form[form] for form in parameter.forms],
        }
        for parameter in parameters()
    }
    curve = {
        "type": "object",
        "properties": {
            **dict.fromkeys(DEFINITIONS, _object(values)),
            "expect": {"enum": list(OPTIONS["expect"].choices)},
        },
        "additionalProperties": False,
    }
    definition = {"enum": list(DEFINITIONS)}
    groups = {"type": "integer", "minimum": 1}
    fields = {"from": {"enum": list(OPTIONS["from"].choices)}, "definition": definition}
    return _object({**fields, **values, "group": groups, "curve": curve})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}
