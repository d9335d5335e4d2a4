"""A YAML file to audits, with messages that name the file, the line and the key."""

from __future__ import annotations

import json
import logging
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from dpaudit.auditing.familywise import together
from dpaudit.auditing.options import owned
from dpaudit.auditing.spec import AuditSpec
from dpaudit.claims import DEFINITIONS
from dpaudit.config.building import default_name, located_spec
from dpaudit.config.holes import check_filled_in
from dpaudit.config.matrix import expand
from dpaudit.config.problems import Path, PlacedError, about, problem, refusal, reported
from dpaudit.config.project import NO_PROJECT, Project
from dpaudit.config.schema import FILE_KEYS, VERSION, check_audit_keys, unknown_keys
from dpaudit.config.targets import PROCESS, PYTHONIC, SINGLE_TARGET
from dpaudit.errors import ConfigurationError, DatasetError, code_of
from dpaudit.inputs.files import near_file, read_text, why_unreadable
from dpaudit.inputs.misread import LONGEST, doubted, refused
from dpaudit.inputs.yaml_values import YamlError, compose, construct, line_of
from dpaudit.wording import did_you_mean, shown

# Keys that flags add to instead of replacing: `--epsilon 2` keeps the file's δ.
_MERGED = ("claim", "params")
_CURVE = "curve"

# Keys of values that a mechanism gets, and of those that it gets or returns, and keys that such
# keys stand below.
_INPUTS = ("d1", "d2")
_GIVEN = (*_INPUTS, "params", "init")
_VALUES = (*_GIVEN, "range", "matrix")
_AROUND_VALUES = ("audits", "defaults", "pairs", "compose", "search")

_log = logging.getLogger(__name__)

# The deepest path a message points at: audits, 0, pairs, 0, adjacency.
_DEPTH = 6
_LISTS = (("audits",), ("pairs",), ("compose",))

# Two ways to say one thing: what is given for an audit displaces the other way among the defaults.
_ALTERNATIVES = (
    (("pairs",), ("d1", "d2")),
    (("d1", "d2"), ("pairs",)),
    (("compose",), SINGLE_TARGET),
    (("mechanism",), ("compose", "command")),
    (("command",), ("compose", *PYTHONIC, *PROCESS)),
    (("samples",), ("time",)),
    (("time",), ("samples",)),
)


def load_config(
    path: pathlib.Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    familywise: bool = False,
    project: Project = NO_PROJECT,
) -> list[AuditSpec]:
    """Return the audits of a configuration file, in its order, matrices expanded. overrides: keys
    of an audit, from flags, which win over the file. familywise: as the key, from a flag. project:
    defaults, below the flags and the file. Raises ConfigurationError (and the errors of claims,
    datasets and audits) with `file.yaml:12: ` in front."""
    document = Document(path)
    for error in document.misread_problems():
        raise error
    with reported(document.locate):
        _check_file(document.content)
    built = [
        (index, spec)
        for index, settings in _audits(document)
        for spec in document.specs(index, settings, overrides or {}, project)
    ]
    for error in document.strict_problems(spec for _, spec in built):
        raise error
    with reported(document.locate):
        for one in name_problems([(index, spec.name) for index, spec in built], document):
            raise one
        specs = [spec for _, spec in built]
        if not (familywise or document.content.get("familywise")):
            return specs
        with about("familywise"):
            return together(specs, str(path))


def audit_names(path: pathlib.Path) -> list[str]:
    """Return the names of the audits of a file, as far as they are known without building any.
    Raises ConfigurationError for a file that cannot be read."""
    content, found = Document(path).content, list[str]()
    entries = content["audits"] if has_shape(content) else ()
    for index in (place for place, one in enumerate(entries) if isinstance(one, Mapping)):
        with suppress(PlacedError):
            for settings in expanded_settings(content, index):
                found += [default_name(one) for one in with_curve(settings)]
    return found


class Document:
    """A parsed file that remembers on which line every key stands."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path
        if path.suffix == ".py" and path.is_file():
            raise ConfigurationError(
                f"{path} is a Python file, and no configuration; name a file of audits, as "
                f"audits.yaml, which dpaudit init {path}:FUNCTION writes",
                code="wrong-kind-of-file",
            )
        text = _read(path)
        if is_of_results(text):
            raise ConfigurationError(
                f"{path} is a file of results; recheck it with dpaudit report {path}",
                code="wrong-kind-of-file",
            )
        try:
            node = compose(text)
            self.content = construct(node)
        except YamlError as error:
            line = "" if error.line is None else f":{error.line}"
            raise ConfigurationError(f"{path}{line}: {error}", code=error.code) from None
        self.lines = dict(_lines(node))
        self.misread = list(dict.fromkeys(_misread(node, text)))
        self.doubted = list(dict.fromkeys(_doubted(node)))
        for number, said in self.doubted:
            _log.warning("%s:%d: %s", path, number, said)

    def misread_problems(self) -> list[ConfigurationError]:
        """Return an error for each value that became text and looks like another value."""
        return [
            ConfigurationError(f"{self.path}:{line}: {said}", code="value-misread")
            for line, said in self.misread
        ]

    def strict_problems(self, specs: Iterable[AuditSpec]) -> list[ConfigurationError]:
        """Return an error for each warning about a value, if one of the audits is strict."""
        if not any(spec.strict for spec in specs):
            return []
        failing = "(strict: this warning fails the run)"
        return [
            ConfigurationError(f"{self.path}:{line}: {said} {failing}", code="strict-warning")
            for line, said in self.doubted
        ]

    def line(self, path: Path) -> int | None:
        """Return the line of a path, or of the nearest thing around it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def locate(self, path: Path) -> str:
        line = self.line(path)
        return f"{self.path}: " if line is None else f"{self.path}:{line}: "

    def locate_in(self, index: int, path: Path, flags: Collection[str] = ()) -> str:
        """Return the place of a key of an audit, which may stand among the defaults. flags: keys
        that a flag has set, so that no line is to blame for them."""
        if path and path[0] in flags:
            return self.locate(())
        own: Path = ("audits", index, *path)
        inherited: Path = ("defaults", *path)
        is_inherited = path and own[:3] not in self.lines and inherited[:2] in self.lines
        return self.locate(inherited if is_inherited else own)

    def specs(
        self,
        index: int,
        settings: Mapping[str, Any],
        overrides: Mapping[str, Any],
        project: Project,
    ) -> list[AuditSpec]:
        """Return the audit that settings describe, and that of its claim's curve."""
        locate = partial(self.locate_in, index, flags=overrides)
        with reported(locate):
            given = _overridden(settings, overrides)
            check_filled_in(given)
            audits = list(with_curve(given))
        flags = {*overrides, *overrides.get("claim", ())}
        placed = project.locating(given, locate)
        complete = map(project.beneath, audits)
        return [located_spec(one, placed, self.path.parent, flags) for one in complete]


def _read(path: pathlib.Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no configuration file {str(path)!r}.{near_file(path)}", code="file-not-found"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path}: cannot be read: {why_unreadable(error)}", code="file-unreadable"
        ) from None
    except (DatasetError, MemoryError) as error:
        why = str(error) or "out of memory"
        raise ConfigurationError(f"{path}: cannot be read: {why}", code=code_of(error)) from None


def _lines(node: Any, path: Path = ()) -> Iterator[tuple[Path, int]]:
    if node is None or len(path) > _DEPTH:
        return
    if node.id == "mapping":
        for key, value in node.value:
            yield (*path, key.value), line_of(key)
            yield from _lines(value, (*path, key.value))
    elif node.id == "sequence" and path[-1:] in _LISTS:
        for index, item in enumerate(node.value):
            yield (*path, index), line_of(item)
            yield from _lines(item, (*path, index))


def _misread(node: Any, text: str) -> Iterator[tuple[int, str]]:
    """Yield a message for each value that became text and looks like another value of Python, with
    its line."""
    for key, value in _values(node):
        written = text[value.start_mark.index : value.end_mark.index]
        if len(written) > LONGEST or written.startswith("!"):  # !!str says that it is a text
            continue
        for said in refused(written, construct(value), value, in_file=True):
            yield line_of(key), f"{key.value}: {said}"


def _doubted(node: Any) -> Iterator[tuple[int, str]]:
    """Yield a warning for each text that a mechanism gets and that is a Boolean in YAML 1.1."""
    for key, value in _values(node):
        if key.value in _GIVEN:
            yield from (
                (line_of(key), f"{key.value}: {one}") for one in doubted(value, in_file=True)
            )


def _values(node: Any, path: Path = ()) -> Iterator[tuple[Any, Any]]:
    """Yield the nodes of values that a mechanism gets, or returns, with those of their keys."""
    if node is None:
        return
    if node.id == "mapping":
        is_space = "search" in path
        for key, value in node.value:
            if key.value in (("category",) if is_space else _VALUES):
                yield key, value
            elif is_space or key.value in _AROUND_VALUES:
                yield from _values(value, (*path, key.value))
    elif node.id == "sequence" and path[-1:] in _LISTS:
        for item in node.value:
            yield from _values(item, path)


def is_of_results(text: str) -> bool:
    """Return whether a text is what dpaudit run --json writes, as far as its keys tell."""
    if not text.lstrip().startswith("{"):
        return False
    with suppress(ValueError, RecursionError):
        found = json.loads(text)
        audits = found.get("audits")
        first = audits[0] if isinstance(audits, list) and audits else None
        return isinstance(first, Mapping) and {"verdict", "certificates"} <= first.keys()
    return False


def file_problems(content: Any) -> Iterator[PlacedError]:
    """Yield what is wrong with a file as a whole, but for the keys of its audits."""
    if content is None:
        yield problem((), "the file is empty; it needs version: 1 and audits:", code="file-empty")
        return
    if not isinstance(content, Mapping):
        yield problem(
            (), "the file must be a mapping with version: 1 and audits:", code="configuration-shape"
        )
        return
    yield from unknown_keys(content, FILE_KEYS)
    if "version" not in content:
        yield problem(
            (), f"the file has no version; start it with version: {VERSION}", code="version-unknown"
        )
    elif content["version"] != VERSION or isinstance(content["version"], bool):
        yield problem(
            ("version",),
            f"version={content['version']!r} is not known; this dpaudit reads version {VERSION}",
            code="version-unknown",
        )
    for one in owned("file"):
        if not isinstance(content.get(one.name, False), bool):
            yield refusal((one.name,), f"={shown(content[one.name])} must be {one.must}")
    audits, defaults = content.get("audits"), content.get("defaults")
    if not isinstance(audits, list) or not audits:
        yield problem(
            ("audits",), "audits must be a list with at least one audit", code="configuration-shape"
        )
        return
    placed: list[tuple[Path, Any]] = [] if defaults is None else [(("defaults",), defaults)]
    for path, settings in [*placed, *((("audits", i), one) for i, one in enumerate(audits))]:
        if not isinstance(settings, Mapping):
            given = "an empty value" if settings is None else repr(settings)
            why = f"{given} must be a mapping with keys such as mechanism and claim"
            yield problem(path, why, code="configuration-shape")


def has_shape(content: Any) -> bool:
    """Return whether a file is one of this version, with audits, whatever is wrong with them."""
    if not isinstance(content, Mapping) or not isinstance(content.get("audits"), list):
        return False
    version, defaults = content.get("version"), content.get("defaults")
    is_known = version == VERSION and not isinstance(version, bool)
    return is_known and (defaults is None or isinstance(defaults, Mapping))


def _check_file(content: Any) -> None:
    for one in file_problems(content):
        raise one
    if content.get("defaults") is not None:
        check_audit_keys(content["defaults"], ("defaults",))
    for index, audit in enumerate(content["audits"]):
        check_audit_keys(audit, ("audits", index))


def _audits(document: Document) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the settings of every audit, defaults filled in, and its place in the list."""
    for index in range(len(document.content["audits"])):
        with reported(partial(document.locate_in, index)):
            for expanded in expanded_settings(document.content, index):
                yield index, expanded


def expanded_settings(content: Mapping[str, Any], index: int) -> Iterator[dict[str, Any]]:
    """Yield the settings of every audit that an entry stands for, defaults filled in. Raises a
    PlacedError."""
    audit = content["audits"][index]
    settings = {**_without_displaced(content.get("defaults") or {}, audit), **audit}
    yield from expand(settings, default_name(settings))


def _overridden(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**_without_displaced(settings, overrides), **overrides}
    for key in _MERGED:
        below, above = settings.get(key), overrides.get(key)
        if isinstance(below, Mapping) and isinstance(above, Mapping):
            merged[key] = {**below, **above}
    return merged


def with_curve(settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the audit of the claim's point and, where `claim` has a `curve`, that of the curve: a
    wrong curve often leaves the point unrefuted, and the other way round."""
    claim = settings.get("claim")
    if not isinstance(claim, Mapping) or _CURVE not in claim:
        yield dict(settings)
        return
    point = {name: value for name, value in claim.items() if name != _CURVE}
    yield {**settings, "claim": point}
    curve, expect = _curve(claim[_CURVE])
    audit = {**settings, "name": f"{settings['name']} (curve)", "claim": curve}
    yield {**audit, "expect": expect} if expect is not None else audit


def _curve(curve: Any) -> tuple[dict[str, Any], Any]:
    """Return the claim that a curve is, one definition with its parameters, and what it expects."""
    given = dict(curve) if isinstance(curve, Mapping) else {}
    expect = given.pop("expect", None)
    definition = next(iter(given), None)
    if len(given) != 1 or not isinstance(given[definition], Mapping):
        raise problem(
            ("claim", _CURVE),
            f"curve={curve!r} must be one definition with its parameters, such as "
            "{gaussian: {sigma: 3.75}}",
            code="option-invalid",
        )
    if definition not in DEFINITIONS:
        raise problem(
            ("claim", _CURVE),
            f"unknown definition {definition!r}; known: {', '.join(DEFINITIONS)}."
            + did_you_mean(str(definition), DEFINITIONS),
            code="definition-unknown",
        )
    return {"definition": definition, **given[definition]}, expect


def _without_displaced(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    dropped = {
        key for given, other in _ALTERNATIVES if any(one in above for one in given) for key in other
    }
    return {key: value for key, value in below.items() if key not in dropped}


def name_problems(names: Iterable[tuple[int, str]], document: Document) -> Iterator[PlacedError]:
    """Yield where a name is used again. names: with the places of their audits in the list."""
    first: dict[str, int] = {}
    for index, name in names:
        if name in first:
            line = document.line(("audits", first[name]))
            yield problem(
                ("audits", index, "name"),
                f"the audit name {name!r} is used twice (first on line {line}); "
                "give each audit its own name",
                code="name-not-unique",
            )
        first.setdefault(name, index)
