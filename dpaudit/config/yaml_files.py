"""Read audits from a YAML file. Error messages name the file, the line, the key and the remedy."""

from __future__ import annotations

import json
import logging
import pathlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpaudit.auditing.familywise import together
from dpaudit.auditing.options import owned
from dpaudit.auditing.spec import AuditSpec
from dpaudit.config.building import located_spec
from dpaudit.config.problems import (
    Locate,
    Path,
    PlacedError,
    about,
    located,
    problem,
    refusal,
    reported,
)
from dpaudit.config.project import NO_PROJECT, Project
from dpaudit.config.schema import FILE_KEYS, VERSION, unknown_keys
from dpaudit.config.settings import (
    check_filled_in,
    default_name,
    expanded_settings,
    overridden,
    with_curve,
)
from dpaudit.errors import ConfigurationError, DatasetError, DpauditError, code_of
from dpaudit.import_path import list_names
from dpaudit.inputs.decoding import MAX_CHARACTERS, doubted, refused
from dpaudit.inputs.files import near_file, read_text, why_unreadable
from dpaudit.inputs.yaml_values import YamlError, compose, construct, line_of
from dpaudit.wording import shown

# Keys of the two inputs in a configuration file.
_INPUTS = ("d1", "d2")
# Keys of values that are passed to a mechanism.
_ARGUMENTS = (*_INPUTS, "params", "init")
# Keys of values that are passed to a mechanism or returned by it. Strings in these values are
# checked for words such as `yes`, which YAML 1.1 reads as Booleans.
_VALUES = (*_ARGUMENTS, "range", "matrix")
# Keys whose lists or mappings are searched for the keys in `_VALUES`, the keys of values that a
# mechanism takes or returns, such as d1.
_AROUND_VALUES = ("audits", "defaults", "pairs", "compose", "search")

_log = logging.getLogger(__name__)

# Line numbers are recorded for the keys of a mapping whose own path, such as (audits, 0, pairs, 0),
# has at most this number of steps. Messages about deeper keys name the line of a key around them.
_MAX_STEPS = 6
# Keys whose value is a list. Line numbers are also recorded for the keys inside the entries of
# these lists.
_LISTS = (("audits",), ("pairs",), ("compose",))


@dataclass(frozen=True, slots=True)
class Loaded:
    """The audits and errors of a configuration file.

    specs: (locate, audit) for each audit without an error.
    problems: first the errors of the file as a whole, then the first error of each other audit.
    """

    specs: tuple[tuple[Locate, AuditSpec], ...]
    problems: tuple[DpauditError, ...]


def load_config(
    path: pathlib.Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    familywise: bool = False,
    project: Project = NO_PROJECT,
) -> list[AuditSpec]:
    """Return the audits of a configuration file, in order.

    overrides: settings from flags, which replace the settings of the file.
    familywise: whether all audits share one false-alarm probability (the flag --familywise).

    Raises the first error of the file: ConfigurationError, or an error of a claim, dataset or
    audit. All messages start with the place.
    """
    loaded = check_config(path, overrides, familywise=familywise, project=project)
    for error in loaded.problems:
        raise error
    return [spec for _, spec in loaded.specs]


def check_config(
    path: pathlib.Path,
    overrides: Mapping[str, Any] | None = None,
    *,
    familywise: bool = False,
    project: Project = NO_PROJECT,
) -> Loaded:
    """Return all audits without an error in a configuration file, and the first error of each other
    audit. The arguments are those of `load_config`."""
    try:
        document = YamlDocument(path)
    except DpauditError as error:
        return Loaded((), (error,))
    problems: list[DpauditError] = [*document.misread_problems()]
    problems += [located(error, document.locate) for error in _file_problems(document.content)]
    if not _has_shape(document.content):  # building an audit may import functions
        return Loaded((), tuple(problems))
    built: list[tuple[int, AuditSpec]] = []
    for index, entry in enumerate(document.content["audits"]):
        if isinstance(entry, Mapping):
            for spec in _specs(document, index, overrides or {}, project):
                if isinstance(spec, AuditSpec):
                    built.append((index, spec))
                else:
                    problems.append(spec)
    problems += [located(error, document.locate) for error in _name_problems(built, document)]
    problems += document.strict_problems(spec for _, spec in built)
    specs = [spec for _, spec in built]
    if familywise or document.content.get("familywise") is True:
        try:
            with reported(document.locate), about("familywise"):
                specs = together(specs, str(path))
        except DpauditError as error:
            problems.append(error)
    locates = [partial(document.locate_in, index) for index, _ in built]
    # An error in the defaults occurs in every audit, and one in a matrix in each of its audits.
    distinct = {str(error): error for error in problems}
    return Loaded(tuple(zip(locates, specs, strict=True)), tuple(distinct.values()))


def _specs(
    document: YamlDocument, index: int, overrides: Mapping[str, Any], project: Project
) -> Iterator[AuditSpec | DpauditError]:
    """Yield each audit of an entry in the list `audits`, or the first error of the audit."""
    locate = partial(document.locate_in, index, flags=overrides)
    flags = {*overrides, *overrides.get("claim", ())}
    audits: list[dict[str, Any]] = []
    try:
        with reported(locate):
            for settings in expanded_settings(document.content, index):
                settings = overridden(settings, overrides)
                check_filled_in(settings)
                audits += with_curve(settings)
    except DpauditError as error:
        yield error
    for settings in audits:
        placed = project.locating(settings, locate)
        try:
            yield located_spec(project.beneath(settings), placed, document.path.parent, flags)
        except DpauditError as error:
            yield error


def audit_names(path: pathlib.Path) -> list[str]:
    """Return the names of all audits in a configuration file. The audits are not built. Raises
    ConfigurationError for a file that cannot be read."""
    content, names = YamlDocument(path).content, list[str]()
    entries = content["audits"] if _has_shape(content) else ()
    for index in (i for i, entry in enumerate(entries) if isinstance(entry, Mapping)):
        with suppress(PlacedError):
            for settings in expanded_settings(content, index):
                names += [default_name(audit) for audit in with_curve(settings)]
    return names


class YamlDocument:
    """The content of a configuration file, and the line of each key. The constructor raises
    ConfigurationError for a file that is not YAML, and logs a warning about each ambiguous value,
    such as `yes`."""

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
            location = "".join(
                f":{coordinate}"
                for coordinate in (error.line, error.column)
                if coordinate is not None
            )
            raise ConfigurationError(f"{path}{location}: {error}", code=error.code) from None
        self.lines = dict(_lines(node))
        self.misread = list(dict.fromkeys(_misread(node, text)))
        self.doubted = list(dict.fromkeys(_doubted(node)))
        for number, warning in self.doubted:
            _log.warning("%s:%d: %s", path, number, warning)

    def misread_problems(self) -> list[ConfigurationError]:
        """Return an error for each text without quotes that YAML reads as a string although it
        looks like another Python value, such as `None` or `nan`."""
        return [
            ConfigurationError(f"{self.path}:{line}: {why}", code="value-misread")
            for line, why in self.misread
        ]

    def strict_problems(self, specs: Iterable[AuditSpec]) -> list[ConfigurationError]:
        """Return an error for each ambiguous value in the file, such as `yes`, if one of the audits
        is strict; else []."""
        if not any(spec.requirements.strict for spec in specs):
            return []
        failing = "(strict: this warning fails the run)"
        return [
            ConfigurationError(f"{self.path}:{line}: {why} {failing}", code="strict-warning")
            for line, why in self.doubted
        ]

    def line(self, path: Path) -> int | None:
        """Return the line of a key, from 1. If it is unknown, return that of the nearest key around
        it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path)

    def locate(self, path: Path) -> str:
        """Return the place of a key."""
        line = self.line(path)
        return f"{self.path}: " if line is None else f"{self.path}:{line}: "

    def locate_in(self, index: int, path: Path, flags: Collection[str] = ()) -> str:
        """Return the place of a setting of an audit; `index` is the position of its entry in the
        file. If the setting comes from the defaults of the file, return the place there. A setting
        in `flags` has a place without a line: `file.yaml: `."""
        if path and path[0] in flags:
            return self.locate(())
        entry_path: Path = ("audits", index, *path)
        inherited: Path = ("defaults", *path)
        is_inherited = path and entry_path[:3] not in self.lines and inherited[:2] in self.lines
        return self.locate(inherited if is_inherited else entry_path)


def _read(path: pathlib.Path) -> str:
    try:
        return read_text(path)
    except FileNotFoundError:
        folder = next(parent for parent in (*path.parents, pathlib.Path()) if parent.is_dir())
        known = sorted(file.name for file in folder.glob("*.y*ml"))
        raise ConfigurationError(
            f"there is no configuration file {str(path)!r}.{near_file(path) or list_names(known)}",
            code="file-not-found",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path}: cannot be read: {why_unreadable(error)}", code="file-unreadable"
        ) from None
    except (DatasetError, MemoryError) as error:
        why = str(error) or "out of memory"
        raise ConfigurationError(f"{path}: cannot be read: {why}", code=code_of(error)) from None


def _lines(node: Any, path: Path = ()) -> Iterator[tuple[Path, int]]:
    if node is None or len(path) > _MAX_STEPS:
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
    """Yield (line, message) for each text that looks like another Python value, such as `None`."""
    for key, value in _values(node):
        written = text[value.start_mark.index : value.end_mark.index]
        # The tag !!str states that the value is text.
        if len(written) > MAX_CHARACTERS or written.startswith("!"):
            continue
        for why in refused(written, construct(value), value, in_file=True):
            yield line_of(key), f"{key.value}: {why}"


def _doubted(node: Any) -> Iterator[tuple[int, str]]:
    """Yield (line, warning) for each input that YAML 1.1 would read as a Boolean, such as `yes`."""
    for key, value in _values(node):
        if key.value in _ARGUMENTS:
            yield from (
                (line_of(key), f"{key.value}: {doubt}") for doubt in doubted(value, in_file=True)
            )


def _values(node: Any, path: Path = ()) -> Iterator[tuple[Any, Any]]:
    """Yield (key, value), both as YAML nodes, for the keys in `_VALUES` below `node`."""
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
    """Return whether a text has the keys of a file that `dpaudit run --json` writes."""
    if not text.lstrip().startswith("{"):
        return False
    with suppress(ValueError, RecursionError):
        document = json.loads(text)
        audits = document.get("audits")
        first = audits[0] if isinstance(audits, list) and audits else None
        return isinstance(first, Mapping) and {"verdict", "ending"} <= first.keys()
    return False


def _file_problems(content: Any) -> Iterator[PlacedError]:
    """Yield the errors that concern the file as a whole, such as a wrong version."""
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
    for option in owned("file"):
        if not isinstance(content.get(option.name, False), bool):
            why = f"={shown(content[option.name])} must be {option.must}"
            yield refusal((option.name,), why)
    audits, defaults = content.get("audits"), content.get("defaults")
    if not isinstance(audits, list) or not audits:
        message = "audits must be a list with at least one audit; begin each audit with a dash"
        yield problem(("audits",), message, code="configuration-shape")
        return
    placed: list[tuple[Path, Any]] = [] if defaults is None else [(("defaults",), defaults)]
    for path, settings in [*placed, *((("audits", i), entry) for i, entry in enumerate(audits))]:
        if not isinstance(settings, Mapping):
            value = "an empty value" if settings is None else repr(settings)
            name = f"{path[0]}=" if len(path) == 1 else ""
            why = f"{name}{value} must be a mapping with keys such as mechanism and claim"
            yield problem(path, why, code="configuration-shape")


def _has_shape(content: Any) -> bool:
    """Return whether a file has the right version and a list of audits."""
    if not isinstance(content, Mapping) or not isinstance(content.get("audits"), list):
        return False
    version, defaults = content.get("version"), content.get("defaults")
    is_known = version == VERSION and not isinstance(version, bool)
    return is_known and (defaults is None or isinstance(defaults, Mapping))


def _name_problems(
    built: Iterable[tuple[int, AuditSpec]], document: YamlDocument
) -> Iterator[PlacedError]:
    """Yield an error for each audit with the same name as an earlier audit."""
    first: dict[str, int] = {}
    for index, name in ((index, spec.name) for index, spec in built):
        if name in first:
            line = document.line(("audits", first[name]))
            yield problem(
                ("audits", index, "name"),
                f"the audit name {name!r} is used twice (first on line {line}); "
                "give each audit its own name",
                code="name-not-unique",
            )
        first.setdefault(name, index)
