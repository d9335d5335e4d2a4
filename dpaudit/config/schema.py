"""The keys of a configuration file: names, types and what each must be.

A description starts with what the value must be, so that it serves both as the documentation in
the JSON schema and as the end of the message for a wrong value.
"""

from __future__ import annotations

import json
import typing
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from dpaudit.claims import DEFINITIONS
from dpaudit.config.problems import Path, PlacedError, problem
from dpaudit.errors import did_you_mean

VERSION = 1
REFERENCE = r"\$\{([^}]*)\}"

# A number, or a reference to an axis of the matrix, which is replaced before values are checked.
Reference = Annotated[str, Meta(pattern=f"^{REFERENCE}$")]
Whole = int | float | Reference
Number = int | float | Reference
Words = Annotated[str, Meta(min_length=1)]
AdjacencyValue = str | dict[str, Number]

# What a claim is made of. An audit has its `name` beside, too.
_PARAMETERS = {field.name for one in DEFINITIONS.values() for field in fields(one)}
_OF_THE_RUN = ("json", "journal", "resume", "quiet", "verbose", "debug")
CLAIM_KEYS = frozenset(_PARAMETERS - {"name"} | {"sigma", "definition", "group", "curve"})


class PairSettings(Struct, kw_only=True, forbid_unknown_fields=True):
    """One pair of neighbouring datasets."""

    d1: Annotated[Any, Meta(description="a dataset: any value, @file or import:module:name")]
    d2: Annotated[Any, Meta(description="its neighbour: any value, @file or import:module:name")]
    adjacency: Annotated[
        AdjacencyValue | UnsetType,
        Meta(description="add-remove, replace, or a distance such as l1:1"),
    ] = UNSET
    name: Annotated[Words | UnsetType, Meta(description="a text, the pair's name in reports")] = (
        UNSET
    )


class TargetSettings(Struct, kw_only=True, forbid_unknown_fields=True):
    """What draws: one mechanism."""

    mechanism: Annotated[
        Words | UnsetType,
        Meta(description="an import path: package.module:attr or path/to/file.py:attr"),
    ] = UNSET
    params: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="a mapping of keyword arguments, given with every call"),
    ] = UNSET
    init: Annotated[
        list[Any] | dict[str, Any] | UnsetType,
        Meta(description="a list or a mapping of constructor arguments"),
    ] = UNSET
    call: Annotated[Words | UnsetType, Meta(description="the name of the method that draws")] = (
        UNSET
    )
    factory: Annotated[
        bool | UnsetType,
        Meta(description="true or false: whether calling the mechanism returns what draws"),
    ] = UNSET
    batch_arg: Annotated[
        Words | UnsetType,
        Meta(description="the parameter that takes the number of outputs wanted, or none"),
    ] = UNSET
    data_arg: Annotated[
        Words | UnsetType,
        Meta(description="the parameter that takes the dataset, where it is not the first"),
    ] = UNSET
    rng_arg: Annotated[
        Words | UnsetType,
        Meta(description="the parameter that takes a numpy.random.Generator, or none"),
    ] = UNSET
    post_process: Annotated[
        Words | UnsetType,
        Meta(description="the import path of a function, applied to every output"),
    ] = UNSET
    command: Annotated[
        Annotated[list[Words], Meta(min_length=1)] | Words | UnsetType,
        Meta(
            description="a list of words, or a command line: a program that draws, in place of "
            "mechanism"
        ),
    ] = UNSET
    python: Annotated[
        Words | UnsetType,
        Meta(description="the path of the Python interpreter that runs the mechanism"),
    ] = UNSET
    isolate: Annotated[
        bool | UnsetType,
        Meta(description="true or false: whether to draw in a process of its own"),
    ] = UNSET
    timeout: Annotated[
        int | float | str | UnsetType,
        Meta(description="a duration such as 500ms or 5s, of one draw; needs isolate"),
    ] = UNSET
    memory_limit: Annotated[
        int | str | UnsetType,
        Meta(description="a size such as 512MB, of the process; needs isolate"),
    ] = UNSET


class AuditSettings(TargetSettings, kw_only=True, forbid_unknown_fields=True, rename={"as_": "as"}):
    """One audit."""

    name: Annotated[Words | UnsetType, Meta(description="a text, the audit's own name")] = UNSET
    compose: Annotated[
        Annotated[list[TargetSettings | Words], Meta(min_length=2)] | UnsetType,
        Meta(
            description="a list of at least two mechanisms, import paths or mappings, whose "
            "outputs on one input are one output; in place of mechanism"
        ),
    ] = UNSET
    d1: Annotated[Any, Meta(description="a dataset: any value, @file or import:module:name")] = (
        UNSET
    )
    d2: Annotated[
        Any, Meta(description="its neighbour: any value, @file or import:module:name")
    ] = UNSET
    pairs: Annotated[
        Annotated[list[PairSettings], Meta(min_length=1)] | UnsetType,
        Meta(description="a list of {d1, d2} that share the audit's error probability"),
    ] = UNSET
    as_: Annotated[
        Literal["array", "numpy", "pandas", "polars"] | UnsetType,
        Meta(
            description="array (or numpy), pandas or polars: datasets become arrays or data frames"
        ),
    ] = UNSET
    adjacency: Annotated[
        AdjacencyValue | UnsetType,
        Meta(description="add-remove, replace, or a distance such as l1:1"),
    ] = UNSET
    claim: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="a mapping such as {epsilon: 1, delta: 1e-5}: what is put to the test"),
    ] = UNSET
    samples: Annotated[
        Whole | UnsetType,
        Meta(description="a whole number of draws for each pair, at least 1000"),
    ] = UNSET
    time: Annotated[
        int | float | str | UnsetType,
        Meta(description="a duration such as 30s, 2m, 1h, or a number of seconds"),
    ] = UNSET
    confidence: Annotated[
        Number | UnsetType, Meta(description="a number between 0 and 1, such as 0.99")
    ] = UNSET
    seed: Annotated[
        int | str | UnsetType, Meta(description="a whole number, at least 0, or random")
    ] = UNSET
    workers: Annotated[
        int | Reference | UnsetType, Meta(description="a whole number of processes, at least 1")
    ] = UNSET
    executor: Annotated[
        Words | UnsetType,
        Meta(description="serial, processes, dask or dask://host:8786: who the workers are"),
    ] = UNSET
    bound: Annotated[
        Literal["game", "clopper-pearson"] | UnsetType,
        Meta(description="game or clopper-pearson: how counts become a bound"),
    ] = UNSET
    full: Annotated[
        bool | UnsetType,
        Meta(description="true or false: whether to go on after a refutation"),
    ] = UNSET
    allow_underpowered: Annotated[
        bool | UnsetType,
        Meta(description="true or false: whether an audit that cannot fail may pass"),
    ] = UNSET
    on_error: Annotated[
        Literal["outcome", "fail"] | UnsetType,
        Meta(description="outcome or fail: what an exception of the mechanism is"),
    ] = UNSET
    range: Annotated[
        Annotated[list[Any], Meta(min_length=2)] | UnsetType,
        Meta(description="a list of all outputs that there are, exceptions by name, at least two"),
    ] = UNSET
    exact: Annotated[
        bool | UnsetType,
        Meta(description="true or false: whether to compute from the mechanism's own pmf"),
    ] = UNSET
    repeat: Annotated[
        Whole | UnsetType,
        Meta(
            description="a whole number of independent runs on one input that are one output; the "
            "claim is for one of them"
        ),
    ] = UNSET
    floating_point: Annotated[
        bool | UnsetType,
        Meta(description="true or false: whether to look at the low-order bits of floats"),
    ] = UNSET
    timing: Annotated[
        bool | UnsetType,
        Meta(description="true or false: whether to look at how long every call takes"),
    ] = UNSET
    attacks: Annotated[
        list[Words] | UnsetType,
        Meta(
            description="a list of further attacks: import paths, package.module:Attack, or names "
            "of installed ones"
        ),
    ] = UNSET
    distinguisher: Annotated[
        Words | UnsetType,
        Meta(
            description="the import path of a function from an output to a score; only its scores "
            "are looked at"
        ),
    ] = UNSET
    expect: Annotated[
        Literal["violation", "pass"] | UnsetType,
        Meta(description="violation or pass: the verdict that is foreseen"),
    ] = UNSET
    matrix: Annotated[
        dict[str, Annotated[list[Any], Meta(min_length=1)]] | UnsetType,
        Meta(description="a mapping of names to lists of values, referred to as ${name}"),
    ] = UNSET


class ConfigurationFile(Struct, kw_only=True, forbid_unknown_fields=True):
    """A batch of audits for dpaudit run."""

    version: Annotated[Literal[1], Meta(description="1, the version of this format")]
    audits: Annotated[
        Annotated[list[AuditSettings], Meta(min_length=1)],
        Meta(description="a list of audits"),
    ]
    defaults: Annotated[
        AuditSettings | UnsetType,
        Meta(description="a mapping of keys for every audit that does not give its own"),
    ] = UNSET


def schema() -> dict[str, Any]:
    """Return the JSON schema (2020-12) of a configuration file, for editors and validators."""
    found = msgspec.json.schema(ConfigurationFile)
    claim = found["$defs"]["AuditSettings"]["properties"]["claim"]
    claim.update(_claim_schema())
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}


def key_names(struct: type[Struct]) -> list[str]:
    """Return the keys as a file spells them."""
    return [field.encode_name for field in msgspec.structs.fields(struct)]


def description(struct: type[Struct], key: str) -> str:
    """Return what the value of a key must be."""
    hints = typing.get_type_hints(struct, include_extras=True)
    name = next(one.name for one in msgspec.structs.fields(struct) if one.encode_name == key)
    metas = [one for one in hints[name].__metadata__ if isinstance(one, Meta)]
    return next((meta.description for meta in metas if meta.description), "valid")


def check_audit_keys(settings: Mapping[str, Any], path: Path = ()) -> None:
    """Raise a PlacedError for the first key that an audit does not have."""
    for key, value in settings.items():
        if key in CLAIM_KEYS:
            written = _short(value) if isinstance(value, str) else json.dumps(value, default=str)
            raise problem((*path, key), f"{key!r} belongs in claim: {{{key}: {written}}}")
        if key in _OF_THE_RUN:
            raise problem((*path, key), f"{key!r} is said of a run, not of an audit: --{key}")
    claim = settings.get("claim")
    for key in claim if isinstance(claim, Mapping) else ():
        if key != "name" and key in key_names(AuditSettings):
            raise problem((*path, "claim", key), f"{key!r} belongs beside claim, not in it")
    check_keys(settings, key_names(AuditSettings), path)


def check_keys(given: Iterable[Any], known: Iterable[str], path: Path = ()) -> None:
    """Raise a PlacedError for the first key that is not known."""
    known = list(known)
    for key in given:
        if key not in known:
            raise problem(
                (*path, key),
                f"unknown key {key!r}.{did_you_mean(str(key), known)} Known: {', '.join(known)}",
            )


def check_types(settings: Mapping[str, Any]) -> AuditSettings:
    """Return the settings of an audit with their types checked. Raises a PlacedError."""
    for key, value in settings.items():
        try:
            msgspec.convert({key: value}, AuditSettings)
        except msgspec.ValidationError:
            raise _wrong(key, value) from None
    return msgspec.convert(dict(settings), AuditSettings)


def _wrong(key: str, value: Any) -> PlacedError:
    if key in _ENTRIES and isinstance(value, list):
        kind, name, wanted = _ENTRIES[key]
        for index, entry in enumerate(value):
            try:
                msgspec.convert(entry, kind)
            except msgspec.ValidationError as error:
                return problem((key, index), f"{name} {_short(entry)} must be {wanted}: {error}")
    return problem((key,), f"{key}={_short(value)} must be {description(AuditSettings, key)}")


# What the entries of a list are, and in words.
_ENTRIES: Mapping[str, tuple[Any, str, str]] = {
    "pairs": (PairSettings, "pair", "a mapping with d1 and d2"),
    "compose": (TargetSettings | Words, "entry", "an import path, or a mapping with mechanism"),
}


def _short(value: Any, width: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _claim_schema() -> dict[str, Any]:
    number = {"anyOf": [{"type": "number"}, {"type": "string", "pattern": f"^{REFERENCE}$"}]}
    names = _PARAMETERS | {"sigma"}
    table = {"type": "array", "items": {"type": "array", "items": number}}
    parameters: dict[str, Any] = {
        **dict.fromkeys(sorted(names), number),
        "adversary": {"type": "string"},
        "name": {"type": "string"},
        "tradeoff": {"anyOf": [{"type": "string"}, table]},
    }
    curve = {
        "type": "object",
        "properties": {
            **dict.fromkeys(DEFINITIONS, _object(parameters)),
            "expect": {"enum": ["violation", "pass"]},
        },
        "additionalProperties": False,
    }
    definition = {"enum": list(DEFINITIONS)}
    groups = {"type": "integer", "minimum": 1}
    return _object({"definition": definition, **parameters, "group": groups, "curve": curve})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}
