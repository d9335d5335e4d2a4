"""Settings, from a file or from flags, to an `AuditSpec`."""

from __future__ import annotations

import json
import re
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import UNSET, UnsetType

from dpaudit.auditing.spec import AuditSpec, DrawnSeed
from dpaudit.claims import PrivacyClaim, group, make_claim
from dpaudit.config.durations import parse_duration
from dpaudit.config.problems import Locate, Path, PlacedError, about, problem, reported
from dpaudit.config.schema import (
    AuditSettings,
    PairSettings,
    check_audit_keys,
    check_types,
)
from dpaudit.config.targets import Folder, target_of
from dpaudit.errors import UsageError
from dpaudit.import_path import located, resolve
from dpaudit.inputs.datasets import load_dataset
from dpaudit.inputs.frames import LIBRARIES
from dpaudit.inputs.pairs import (
    Adjacency,
    NeighbouringPair,
    check_pair,
    describe_pair,
    parse_adjacency,
)
from dpaudit.inputs.values import with_tuples, written
from dpaudit.targets.target import (
    AnyTarget,
    CommandTarget,
    ComposedTarget,
    RepeatedTarget,
    repeated,
)

# What a result keeps in a place of its own, or does not depend on.
_NOT_REPEATED = ("name", "seed", "workers", "executor", "expect")


def build_spec(settings: Mapping[str, Any], where: str = "") -> AuditSpec:
    """Return the audit that `settings` describe, with the keys of a configuration file.

    where: put in front of every message.  Raises ConfigurationError for unknown or missing keys
    and wrong types, and the errors of claims, datasets and audits for impossible values.
    """
    return located_spec(settings, lambda path: f"{where}: " if where else "")


def build_claim(parameters: Mapping[str, Any]) -> PrivacyClaim:
    """Return the claim that the key `claim` of an audit describes. Raises its errors."""
    with reported(lambda path: ""):
        return _claim(check_types({"claim": dict(parameters)}), None)


def located_spec(settings: Mapping[str, Any], locate: Locate, base: Folder = None) -> AuditSpec:
    """Return the audit; `locate` says where in the file a key stands.

    base: where relative files are looked for after the working directory.
    """
    with reported(locate):
        check_audit_keys(settings)
        spec = _spec(check_types(_given(settings)), base)
        return replace(spec, request=_request(settings, base))


def _request(settings: Mapping[str, Any], base: Folder) -> dict[str, Any] | None:
    """Return settings as a result keeps them; None where JSON would not give them back."""
    plain = {key: value for key, value in _given(settings).items() if key not in _NOT_REPEATED}
    request = {"folder": None if base is None else str(base), "settings": plain}
    try:
        return request if json.loads(json.dumps(request, allow_nan=False)) == request else None
    except (TypeError, ValueError):
        return None


def default_name(settings: Mapping[str, Any]) -> str:
    """Return the name of an audit before it is built: its own, else that of what draws."""
    composed = settings.get("compose")
    entries = composed if isinstance(composed, list) else [settings]
    return str(settings.get("name") or " + ".join(map(_entry_name, entries)))


def _entry_name(entry: Any) -> str:
    settings = entry if isinstance(entry, Mapping) else {"mechanism": entry}
    command = settings.get("command", "")
    if command:
        return shlex.join(map(str, command)) if isinstance(command, list) else str(command)
    return str(settings.get("mechanism", "")).rpartition(":")[2]


def _given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Drop keys without a value; for a dataset, null is one."""
    return {
        key: value
        for key, value in settings.items()
        if value is not UNSET and (value is not None or key in ("d1", "d2"))
    }


def _spec(given: AuditSettings, base: Folder) -> AuditSpec:
    options = {**_options(given), **_own_attacks(given, base), "group": _group(given)}
    target, claim = _repeated(given, base), _claim(given, base)
    pairs = _pairs(given, base)
    name = _or_none(given.name) or _name(target)
    try:
        return AuditSpec(name=name, target=target, pairs=pairs, claim=claim, **options)
    except UsageError as error:
        # Messages about a field start with its name, which is also the key.
        key = re.match(r"\w+", str(error))
        raise PlacedError((key[0],) if key else (), error) from error


def _repeated(given: AuditSettings, base: Folder) -> AnyTarget:
    target = target_of(given, base)
    if isinstance(given.repeat, UnsetType):
        return target
    with about("repeat"):
        return repeated(target, _whole("repeat", given.repeat))


def _name(target: AnyTarget) -> str:
    """Return the name of an audit that has none: that of its mechanism, or of all composed."""
    if isinstance(target, RepeatedTarget):
        return _name(target.target)
    parts = target.parts if isinstance(target, ComposedTarget) else (target,)
    return " + ".join(
        part.name if isinstance(part, CommandTarget) else part.name.rpartition(":")[2]
        for part in parts
    )


def _or_none(value: Any) -> Any:
    return None if isinstance(value, UnsetType) else value


def _claim(given: AuditSettings, base: Folder) -> PrivacyClaim:
    if isinstance(given.claim, UnsetType):
        raise problem((), "the audit has no claim; give e.g. claim: {epsilon: 1}")
    parameters = dict(given.claim)
    definition = parameters.pop("definition", None)
    if definition is not None and not isinstance(definition, str):
        raise problem(("claim", "definition"), f"definition={definition!r} must be a name")
    parameters.pop("group", None)
    size = _group(given)
    with about("claim"):
        claim = make_claim(_with_functions(parameters, base), definition)
        return claim if size == 1 else group(claim, size)


def _group(given: AuditSettings) -> Any:
    """Return in how many records the inputs differ, as it was given."""
    return 1 if isinstance(given.claim, UnsetType) else given.claim.get("group", 1)


def _with_functions(parameters: dict[str, Any], base: Folder) -> dict[str, Any]:
    """Find the functions that a claim names: the adversary by its path, which every worker loads
    for itself; the trade-off function here, since the claim takes its values."""
    found = dict(parameters)
    if isinstance(found.get("adversary"), str):
        found["adversary"] = located(found["adversary"], base)
    if isinstance(found.get("tradeoff"), str):
        path = found["tradeoff"]
        found["tradeoff"] = resolve(located(path, base))
        found.setdefault("name", path)
    return found


def _pairs(given: AuditSettings, base: Folder) -> tuple[NeighbouringPair, ...]:
    if not isinstance(given.pairs, UnsetType):
        if given.d1 is not UNSET or given.d2 is not UNSET:
            raise problem(("pairs",), "give either pairs, or d1 and d2, not both")
        return tuple(
            _pair(one, given, base, ("pairs", index)) for index, one in enumerate(given.pairs)
        )
    for key, value in (("d1", given.d1), ("d2", given.d2)):
        if value is UNSET:
            raise problem((), f"the audit has no {key}; give two neighbouring datasets, d1 and d2")
    return (_pair(PairSettings(d1=given.d1, d2=given.d2), given, base, ()),)


def _pair(one: PairSettings, given: AuditSettings, base: Folder, path: Path) -> NeighbouringPair:
    # What another Python makes the mechanism from has data frames of its own making, too.
    load = partial(load_dataset, form=_form(given), base=base, elsewhere=given.python is not UNSET)
    with about(*path, "d1"):
        d1 = load(one.d1)
    with about(*path, "d2"):
        d2 = load(one.d2)
    label = _or_none(one.name) or describe_pair(written(one.d1, base), written(one.d2, base))
    pair = NeighbouringPair(d1, d2, _adjacency(one, given, path), label)
    with about(*path, "d2"):
        check_pair(pair, _group(given))
    return pair


def _form(given: AuditSettings) -> str | None:
    form = None if isinstance(given.as_, UnsetType) else given.as_
    if form in LIBRARIES and given.command is not UNSET:
        raise problem(("as",), f"as={form!r} is for a mechanism under Python; a command reads JSON")
    return form


def _adjacency(one: PairSettings, given: AuditSettings, path: Path) -> Adjacency | None:
    if not isinstance(one.adjacency, UnsetType):
        with about(*path, "adjacency"):
            return parse_adjacency(one.adjacency)
    with about("adjacency"):
        return parse_adjacency(_or_none(given.adjacency))


def _options(given: AuditSettings) -> dict[str, Any]:
    """Return the fields of an AuditSpec that were given; it knows the defaults of the others."""
    if given.samples is not UNSET and given.time is not UNSET:
        raise problem(
            ("time",),
            "give either samples or time, not both: one says how many draws there are, the other "
            "how long they take",
        )
    options = {
        "samples": _whole("samples", given.samples),
        "time": _time(given.time),
        "confidence": _number("confidence", given.confidence),
        "seed": _seed(given.seed),
        "workers": _whole("workers", given.workers),
        "executor": given.executor,
        "bound": given.bound,
        "full": given.full,
        "allow_underpowered": given.allow_underpowered,
        "on_error": given.on_error,
        "exact": given.exact,
        "floating_point": given.floating_point,
        "timing": given.timing,
        "range": _range(given.range),
        "expect": given.expect,
    }
    return {key: value for key, value in options.items() if value is not UNSET}


def _own_attacks(given: AuditSettings, base: Folder) -> dict[str, Any]:
    """Return the import paths of what the user brings along to tell the inputs apart."""
    found: dict[str, Any] = {}
    if not isinstance(given.attacks, UnsetType):
        found["attacks"] = tuple(located(path, base) for path in given.attacks)
    if not isinstance(given.distinguisher, UnsetType):
        found["distinguisher"] = located(given.distinguisher, base)
    return found


def _number(key: str, value: Any) -> Any:
    if isinstance(value, str):
        raise problem((key,), f"{key}={value!r} must be a number")
    return value


def _whole(key: str, value: Any) -> Any:
    """Return an integer, also from 1e6, which YAML and JSON read as a float."""
    if value is UNSET:
        return value
    if isinstance(value, str) or (isinstance(value, float) and not value.is_integer()):
        raise problem((key,), f"{key}={value!r} must be a whole number")
    return int(value)


def _range(value: Any) -> Any:
    if value is UNSET:
        return value
    with about("range"):
        return tuple(map(with_tuples, value))


def _time(value: Any) -> Any:
    if value is UNSET:
        return value
    with about("time"):
        return parse_duration(value)


def _seed(value: Any) -> Any:
    if value == "random":
        return DrawnSeed(secrets.randbelow(2**32))
    if isinstance(value, str):
        raise problem(("seed",), f"seed={value!r} must be a whole number, at least 0, or random")
    return value
