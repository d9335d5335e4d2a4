"""Convert the settings of one audit, from a file or from flags, to an `AuditSpec`."""

from __future__ import annotations

import json
import os
import pathlib
import secrets
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from dpaudit.auditing.options import (
    DEFAULTS,
    OPTIONS,
    TWO_BUDGETS,
    DrawnSeed,
    owned,
    records_of,
)
from dpaudit.auditing.spec import AuditSpec, Origin, PairSearch
from dpaudit.certificates.result import Grouped
from dpaudit.claims import PrivacyClaim, group, make_claim, parameters
from dpaudit.claims.base import ClaimSource, checked_delta
from dpaudit.config.problems import (
    Locate,
    Path,
    PlacedError,
    about,
    conflict,
    missing,
    problem,
    refusal,
    reported,
)
from dpaudit.config.project import NO_PROJECT, Project
from dpaudit.config.schema import OF_THE_RUN, SEARCH_KEYS, check_audit_keys, check_keys, decoded
from dpaudit.config.targets import Folder, Settings, target_of
from dpaudit.errors import ClaimError, DatasetError, Name, TargetError, UsageError
from dpaudit.import_path import located, make_importable, resolve
from dpaudit.inputs.adjacency import parse_adjacency
from dpaudit.inputs.datasets import FILE, load_dataset, parse_dataset
from dpaudit.inputs.neighbouring import check_pair
from dpaudit.inputs.pairs import NeighbouringPair, describe_pair
from dpaudit.inputs.values import IMPORT, LIBRARIES, with_tuples, written
from dpaudit.targets.target import AnyTarget, CommandTarget, repeated, single_targets

# Keys that are left out when a result stores the settings of its audit. They do not affect the
# result, or the result stores their values in other fields.
_NOT_REPEATED = ("seed", "workers", "executor")
# Texts with more characters than this are not taken for names of files.
_MAX_CHARACTERS = 4096


def build_spec(settings: Mapping[str, Any], project: Project = NO_PROJECT) -> AuditSpec:
    """Return the audit with the settings of the command line and of the project. Raises
    UsageError."""
    locate = project.locating(settings, lambda path: "")
    flags = set(OPTIONS) - project.inherited(settings)
    if "search" in flags:
        flags |= {*SEARCH_KEYS}  # keys of `search`, with flags of their own
    return located_spec(project.beneath(settings), locate, flags=flags)


def build_claims(parameters: Mapping[str, Any]) -> tuple[PrivacyClaim, Grouped | None]:
    """Return the claim for the settings of a claim, such as `{"epsilon": 1}`, and its `Grouped`. If
    the inputs may differ in several records, the claim is derived from `Grouped`, which has the
    claim for one record and the number of records; else `Grouped` is None. Raises the exceptions of
    the claims' constructors."""
    with reported(lambda path: "", OPTIONS):
        return _claims({"claim": dict(parameters)}, None)


def located_spec(
    settings: Settings, locate: Locate, base: Folder = None, flags: Collection[str] = ()
) -> AuditSpec:
    """Return the audit that `settings`, with all defaults filled in, describe. Raises a
    DpauditError whose message begins with the place of the wrong setting."""
    with reported(locate, flags):
        spec = placed_spec(settings, base)
    return replace(spec, origin=replace(spec.origin, flags=frozenset({*flags, *OF_THE_RUN})))


def placed_spec(settings: Settings, base: Folder = None) -> AuditSpec:
    """Return the audit that `settings`, with all defaults filled in, describe. Raises a
    PlacedError, which contains the path of the wrong setting."""
    check_audit_keys(settings)
    values = _without_nulls(settings)
    if not str(values.get("name", "audit")).strip():
        why = f"={values['name']!r} says nothing; give the audit a name, or leave it out"
        raise problem(("name",), Name("name"), why, code="option-invalid")
    if values.get("seed") == "random":
        values["seed"] = DrawnSeed(secrets.randbelow(2**32))
    spec = _spec(decoded(values), base)
    request = _request({**settings, "name": spec.name}, base)
    origin = Origin(request=request, files=named_files(settings, base), flags=frozenset(OF_THE_RUN))
    return replace(spec, origin=origin)


def _request(settings: Mapping[str, Any], base: Folder) -> dict[str, Any] | None:
    """Return the settings as a result stores them; None if JSON cannot represent them exactly."""
    plain = {
        key: value for key, value in _without_nulls(settings).items() if key not in _NOT_REPEATED
    }
    request = {"folder": None if base is None else str(base), "settings": plain}
    try:
        return request if json.loads(json.dumps(request, allow_nan=False)) == request else None
    except (TypeError, ValueError):
        return None


def _without_nulls(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that are not null, and d1 and d2: a dataset may be null."""
    return {
        key: value for key, value in settings.items() if value is not None or key in ("d1", "d2")
    }


def _attack(named: str, base: Folder) -> str:
    from dpaudit.attacks.user_attacks import check_installed, is_import_path

    if not is_import_path(named):
        check_installed(named)
    return located(named, base)


def _spec(settings: Settings, base: Folder) -> AuditSpec:
    if "samples" in settings and "time" in settings:
        raise conflict(("time",), *TWO_BUDGETS)
    names = [option.name for option in owned("audit") if option.name in settings]
    options: dict[str, Any] = {"workers": "auto", **{name: settings[name] for name in names}}
    if "range" in options:
        with about("range"):
            options["range"] = tuple(map(with_tuples, options["range"]))
    if "attacks" in options:
        with about("attacks"):
            options["attacks"] = tuple(_attack(attack, base) for attack in options["attacks"])
    once = target_of(settings, base)
    with about("repeat"):
        target = repeated(once, settings.get("repeat", DEFAULTS["repeat"]))
    # With `claim: {from: library}`, the library of the mechanism is asked for its claim.
    claims = None if "from" in settings.get("claim", {}) else _claims(settings, base)
    search = _search(settings, base)
    pairs = _pairs(settings, base) if search is None else ()
    claimed_by = None
    if claims is None:
        claim, claimed_by = _library_claim(settings, target, pairs, base)
        claims = claim, None
    try:
        records = records_of(options)
        return AuditSpec(
            name=settings.get("name") or _name(target),
            target=target,
            pairs=pairs,
            search=search,
            claim=claims[0],
            claimed_by=claimed_by,
            group=_group(settings),
            grouped=claims[1],
            no_trace=options.get("no_trace", DEFAULTS["no_trace"]),
            sampling=records.sampling,
            statistics=records.statistics,
            requirements=records.requirements,
            journaling=records.journaling,
        )
    except UsageError as error:
        key = next((part for part in error.parts if isinstance(part, Name)), None)
        raise PlacedError(() if key is None else (str(key),), error) from error


def _name(target: AnyTarget) -> str:
    return " + ".join(
        part.name if isinstance(part, CommandTarget) else part.name.rpartition(":")[2]
        for part in single_targets(target)
    )


def _claims(settings: Settings, base: Folder) -> tuple[PrivacyClaim, Grouped | None]:
    """Return the claim to audit and its `Grouped`, as `build_claims` does."""
    if "claim" not in settings:
        raise missing((), "the audit has no claim; give e.g. claim: {epsilon: 1}")
    parameters = dict(settings["claim"])
    definition = parameters.pop("definition", None)
    if definition is not None and not isinstance(definition, str):
        raise refusal(("claim", "definition"), f"={definition!r} must be a name")
    parameters.pop("group", None)
    size = _group(settings)
    with about("claim"):
        claim = make_claim(_with_functions(parameters, base), definition)
        return (claim, None) if size == 1 else (group(claim, size), Grouped(size, claim))


def _library_claim(
    settings: Settings, target: AnyTarget, pairs: Sequence[NeighbouringPair], base: Folder
) -> tuple[PrivacyClaim, ClaimSource]:
    """Return the claim that the library of the mechanism makes, and the call that gave it."""
    parameters = dict(settings["claim"])
    source = parameters.pop("from")
    with about("claim"):
        OPTIONS["from"].read(source)
        delta = parameters.pop("delta", None)
        for key in parameters:
            why = "=library states the whole claim; leave out "
            raise conflict(("claim", key), Name("from"), why, Name(key))
        if delta is not None:
            delta = checked_delta("delta", delta)
        adjacency = parse_adjacency(settings.get("adjacency"), base)
        # Imported here to save time, since most users state the claim themselves.
        from dpaudit.adapters.asking import library_claim

        try:
            return library_claim(target, pairs, adjacency, delta)
        except TargetError as error:
            raise PlacedError(("mechanism",), error) from error


def _group(settings: Settings) -> Any:
    """Return the number of records in which the two inputs may differ, as the user wrote it."""
    return settings["claim"].get("group", DEFAULTS["group"])


def _with_functions(settings: dict[str, Any], base: Folder) -> dict[str, Any]:
    """Return the parameters of a claim, with texts for functions and tables converted."""
    # The import path of an adversary stays a text, since every worker imports it itself; it only
    # gets the folder `base`, so that workers find its file.
    values = dict(settings)
    for parameter in parameters():
        text = values.get(parameter.name)
        if not isinstance(text, str):
            continue
        if "path" in parameter.forms:
            values[parameter.name] = located(text, base)
        if "table" in parameter.forms and text.startswith("["):
            try:
                values[parameter.name] = parse_dataset(text)
            except DatasetError:
                why = f"={text!r} must be a list of pairs, such as [[0, 1], [1, 0]]"
                raise ClaimError(Name(parameter.name), why, code="option-invalid") from None
        elif "function" in parameter.forms:
            values[parameter.name] = resolve(located(text, base))
            values.setdefault("name", text)
    return values


def _search(settings: Settings, base: Folder) -> PairSearch | None:
    """Return the search that chooses the pairs; None if the settings state the pairs."""
    if "search" not in settings:
        return None
    for key in ("d1", "d2", "pairs"):
        if key in settings:
            raise conflict((key,), f"give either search, or {key}, not both")
    if _group(settings) != 1:
        why = "a search is for inputs that differ in one record; leave out "
        raise conflict(("claim", "group"), why, Name("group"))
    value = settings["search"]
    search = dict(value) if isinstance(value, Mapping) else {"space": value}
    check_keys(search, SEARCH_KEYS, ("search",))
    if "space" not in search:
        raise missing(("search",), "search has no space; give e.g. space: list of number in [0, 1]")
    with about("adjacency"):
        adjacency = parse_adjacency(settings.get("adjacency"), base)
    # Imported here to save time, since most settings state the pairs.
    from dpaudit.searching.pair_search import neighbour_search

    with about("search"):
        return neighbour_search(
            search["space"],
            adjacency,
            form=settings.get("as"),
            inside=search.get("inside", False),
            outside=search.get("outside", False),
            keep=search.get("keep", 1),
            base=base,
            elsewhere="python" in settings,
        )


def _pairs(settings: Settings, base: Folder) -> tuple[NeighbouringPair, ...]:
    if "pairs" in settings:
        if "d1" in settings or "d2" in settings:
            raise conflict(("pairs",), "give either pairs, or d1 and d2, not both")
        pairs = [
            _pair(entry, settings, base, ("pairs", index))
            for index, entry in enumerate(settings["pairs"])
        ]
        return tuple(_with_unique_labels(pairs, ["name" in entry for entry in settings["pairs"]]))
    for key in ("d1", "d2"):
        if key not in settings:
            raise missing((), f"the audit has no {key}; give two neighbouring datasets, d1 and d2")
    return (_pair({"d1": settings["d1"], "d2": settings["d2"]}, settings, base, ()),)


def _with_unique_labels(
    pairs: Sequence[NeighbouringPair], named: Sequence[bool]
) -> Iterator[NeighbouringPair]:
    """Yield the pairs. If unnamed pairs have the same label, add their numbers: `pair 2: …`."""
    often = Counter(pair.label for pair in pairs)
    for number, (pair, has_name) in enumerate(zip(pairs, named, strict=True), 1):
        is_alone = has_name or often[pair.label] == 1
        yield pair if is_alone else replace(pair, label=f"pair {number}: {pair.label}")


def _pair(entry: Settings, settings: Settings, base: Folder, path: Path) -> NeighbouringPair:
    form: str | None = settings.get("as")
    if form in LIBRARIES and "command" in settings:
        why = f"={form!r} is for a mechanism under Python; a command reads JSON"
        raise conflict(("as",), Name("as"), why)
    # If another Python interpreter runs the mechanism, no data frame is made here: the process of
    # the mechanism makes the data frames with its own libraries.
    load = partial(load_dataset, form=form, base=base, elsewhere="python" in settings)
    with about(*path, "d1"):
        d1 = load(entry["d1"])
    with about(*path, "d2"):
        d2 = load(entry["d2"])
    source, source_path = (entry, path) if "adjacency" in entry else (settings, ())
    with about(*source_path, "adjacency"):
        adjacency = parse_adjacency(source.get("adjacency"), base)
    label = entry.get("name") or describe_pair(
        written(entry["d1"], base), written(entry["d2"], base)
    )
    pair = NeighbouringPair(d1, d2, adjacency, label)
    with about(*path, "d2"):
        check_pair(pair, _group(settings))
    return pair


def named_files(settings: Any, base: pathlib.Path | None = None) -> tuple[pathlib.Path, ...]:
    """Return the existing files that settings name: in import paths, as `@file`, and as programs
    and arguments of programs. Callers use them to avoid overwriting a file of the user with a
    result."""
    names = dict.fromkeys(name for text in _texts(settings) for name in _names(text))
    files = dict.fromkeys(file for name in names for file in _files(name, base))
    return tuple(file for file in files if os.path.isfile(file))  # noqa: PTH113  # never raises


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    if isinstance(value, Mapping):
        value = [part for key, part in value.items() if key != "name"]
    if isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _names(text: str) -> Iterator[str]:
    if len(text) > _MAX_CHARACTERS:
        return
    words = text.split()
    with suppress(ValueError):  # a quote may not be closed
        words = shlex.split(text)
    for word in (text, *words):
        name = word.removeprefix(FILE).removeprefix(IMPORT)
        yield from (name, name.rpartition(":")[0], name.rpartition("=")[2])


def _files(name: str, base: pathlib.Path | None) -> Iterator[pathlib.Path]:
    path = pathlib.Path(name).expanduser() if name.startswith("~/") else pathlib.Path(name)
    yield path.absolute()
    if base is not None:
        yield (base / path).absolute()
    if all(map(str.isidentifier, name.split("."))):
        yield from _of_module(name)


def _of_module(name: str) -> Iterator[pathlib.Path]:
    """Yield paths where the source file of a module may be, without importing the module."""
    first, *submodules = name.split(".")
    make_importable(os.getcwd())
    spec = None
    with suppress(Exception):
        spec = find_spec(first)
    if spec is None:
        return
    if not submodules:
        yield from [pathlib.Path(spec.origin)] if spec.origin else []
    for folder in spec.submodule_search_locations or () if submodules else ():
        module = pathlib.Path(folder, *submodules)
        yield from (module.with_suffix(".py"), module / "__init__.py")
