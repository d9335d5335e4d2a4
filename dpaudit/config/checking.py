"""Find all errors of a configuration file, not only the first.

An audit is built from its settings. If that fails, the wrong setting is removed, or replaced by a
valid value, and the audit is built again, until there are no more errors.
"""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from dpaudit.auditing.familywise import together
from dpaudit.auditing.options import owned
from dpaudit.auditing.spec import AuditSpec
from dpaudit.config.building import placed_spec
from dpaudit.config.loading import Document, file_problems, has_shape, name_problems
from dpaudit.config.problems import Locate, Path, PlacedError, about, problem, reported
from dpaudit.config.project import NO_PROJECT, Project
from dpaudit.config.settings import (
    check_filled_in,
    default_name,
    expanded_settings,
    holes,
    unfilled,
    with_curve,
)
from dpaudit.errors import DpauditError
from dpaudit.inputs.adjacency import parse_adjacency

# Valid claim that replaces a wrong one, so that the search for further errors can go on.
_CLAIM = {"epsilon": 1.0}
# Import path of a valid mechanism that replaces a wrong one, so that the search for further errors
# can go on.
_MECHANISM = "builtins:abs"
# Valid input that replaces a wrong input.
_INPUT = 0
_TARGET = {one.name for one in owned("mechanism")} | {"compose"}
# Largest number of attempts to build an audit. Each attempt corrects one key, and an audit has
# fewer keys than this.
_MAX_ATTEMPTS = 60


@dataclass(frozen=True, slots=True)
class Found:
    """The audits and errors of a configuration file.

    specs: (locate, audit) for each audit that could be built with the mechanism that the file
        names. To find further errors, an audit with a wrong mechanism is built with a valid one; it
        is left out here. `locate` is a function that takes the path of a setting, such as ("claim",
        "epsilon"), and returns its place in the file, such as `audits.yaml:12: `.
    problems: all errors of the file.
    audits: number of audits in the file.
    """

    specs: tuple[tuple[Locate, AuditSpec], ...]
    problems: tuple[DpauditError, ...]
    audits: int = 0


@dataclass(slots=True)
class _Mending:
    """The settings of one audit, which `build` corrects until the audit can be built.

    problems: errors found so far.
    spec: the audit; None until it is built.
    mended: keys whose values were removed or replaced.
    """

    settings: dict[str, Any]
    problems: list[PlacedError] = field(default_factory=list)
    spec: AuditSpec | None = None
    mended: set[str] = field(default_factory=set)

    def build(self, base: pathlib.Path) -> None:
        """Build the audit. After each error, correct the wrong setting and try again. Add the
        errors to `problems`.

        base: folder in which relative files are looked for.
        """
        self._fill_in()
        for _ in range(_MAX_ATTEMPTS):
            try:
                self.spec = placed_spec(self.settings, base)
                return
            except PlacedError as error:
                is_new = not self._follows(error)
                self.problems += [error] if is_new else []
                if not self._mend(error):
                    return

    def _fill_in(self) -> None:
        """Replace each text FILL_IN, which `dpaudit init` writes where the user must choose a
        value, by a valid value. Add one error to `problems` that names all of these places."""
        try:
            check_filled_in(self.settings)
        except PlacedError as error:
            self.problems.append(error)
            for path in list(holes(self.settings)):
                self._mend(problem(path, "", code="fill-in-left"))

    @property
    def can_be_loaded(self) -> bool:
        """Whether the audit was built with the mechanism that the file names. False if no audit
        could be built, or if a wrong setting of the mechanism was removed or replaced to build
        it."""
        return self.spec is not None and not self.mended & _TARGET

    def _follows(self, error: PlacedError) -> bool:
        """Return whether the correction of an earlier error may have caused this error. For
        example, the correction of a claim removes a wrong parameter, and the next error says that
        this parameter is missing."""
        is_general = error.path in ((), ("claim",)) and self._named(error) is None
        return is_general and "claim" in self.mended

    def _named(self, error: PlacedError) -> str | None:
        """Return the key of the claim, such as `epsilon`, whose value is wrong; None if the error
        is not about a single key of the claim."""
        claim = self.settings.get("claim")
        keys = claim if isinstance(claim, dict) and error.path[:1] == ("claim",) else {}
        if len(error.path) > 1:
            return next((key for key in keys if key == error.path[1]), None)
        named = (key for key in keys if str(error).startswith((repr(key), f"{key}=", f"{key} is ")))
        return next(named, None)

    def _mend(self, error: PlacedError) -> bool:
        """Remove or replace the setting in which an error lies. Return whether any setting was
        changed."""
        path, given = error.path, self.settings
        if not path:
            return self._complete()
        key, *rest = map(str, path)
        if key == "claim":
            return self._mend_claim(self._named(error))
        if key not in given:
            return False
        self.mended.add(key)
        if key in ("d1", "d2", "pairs") and "search" in given:
            del given[key]
        elif key == "search":
            self._set_aside_adjacency()
            del given[key]
            given |= {"d1": _INPUT, "d2": _INPUT}
        elif key in ("d1", "d2"):
            self._set_aside_adjacency()
            given[key] = _INPUT
        elif key == "pairs":
            self._set_aside_adjacency()
            self._replace_entry(path, {"d1": _INPUT, "d2": _INPUT})
        elif key == "compose" and rest:
            self._replace_entry(path, _MECHANISM)
        elif key in ("mechanism", "command", "compose"):
            del given[key]
            given["mechanism"] = _MECHANISM
            for other in _TARGET - {"mechanism"}:
                given.pop(other, None)
        else:
            del given[key]
        return True

    def _complete(self) -> bool:
        """Add the required settings that are missing, with valid values. Return whether any were
        missing."""
        given, added = self.settings, list[str]()
        if not {"pairs", "search"} & given.keys():
            added += [key for key in ("d1", "d2") if key not in given]
        if not {"mechanism", "command", "compose"} & given.keys():
            added.append("mechanism")
        added += [] if "claim" in given else ["claim"]
        if "d1" in added or "d2" in added:
            self._set_aside_adjacency()
        for key in added:
            given[key] = {"mechanism": _MECHANISM, "claim": _CLAIM}.get(key, _INPUT)
        self.mended |= {*added}
        return bool(added)

    def _mend_claim(self, named: str | None) -> bool:
        self.mended.add("claim")
        if named is not None:
            del self.settings["claim"][named]
            return True
        if self.settings.get("claim") == _CLAIM:
            return False
        self.settings["claim"] = dict(_CLAIM)
        return True

    def _replace_entry(self, path: Path, by: Any) -> None:
        """Correct a wrong entry of the list `pairs` or `compose`: remove its wrong key, or replace
        the entry. If the whole list is wrong, replace the list.

        path: key of the list, then the index of the entry and its wrong key, if these are known.
        by: valid entry.
        """
        key, *places = path
        entries = self.settings[str(key)]
        place = int(places[0]) if places and isinstance(entries, list) else None
        if place is None:
            self.settings[str(key)] = [by] if key == "pairs" else [by, by]
            return
        entry, inside = entries[place], places[1] if len(places) > 1 else None
        if isinstance(entry, dict) and inside in entry and inside not in ("mechanism", "command"):
            del entry[inside]
            if key == "pairs" and inside in ("d1", "d2"):
                entry[inside] = _INPUT
        else:
            entries[place] = by

    def _set_aside_adjacency(self) -> None:
        """Remove the setting `adjacency` (the neighbouring relation). Wrong inputs are replaced by
        valid values that may not be neighbours, and this must not cause another error. If the
        adjacency itself has an error, add the error to `problems`."""
        relation = self.settings.pop("adjacency", None)
        try:
            with about("adjacency"):
                parse_adjacency(relation)
        except PlacedError as error:
            self.problems.append(error)


def check_config(path: pathlib.Path, project: Project = NO_PROJECT) -> Found:
    """Return all audits and all errors of a configuration file.

    If the file states no version, or a version that this dpaudit does not read, or has no list of
    audits, return only the errors of the file.

    project: defaults for settings that the file does not state.
    """
    try:
        document = Document(path)
    except DpauditError as error:
        return Found((), (error,))
    content = document.content
    problems: list[DpauditError] = [*document.misread_problems()]
    problems += [_located(error, document.locate) for error in file_problems(content)]
    if not has_shape(content):  # building an audit may import functions
        return Found((), tuple(problems))
    names: list[tuple[int, str]] = []
    specs: list[tuple[Locate, AuditSpec]] = []
    for index, entry in enumerate(content["audits"]):
        if not isinstance(entry, Mapping):
            continue
        locate = partial(document.locate_in, index)
        found: list[_Mending] = []
        for one in _mendings(document, index, problems):
            placed = project.locating(one.settings, locate)
            one.settings = project.beneath(one.settings)
            one.build(path.parent)
            found.append(one)
            problems += [_located(error, placed) for error in one.problems]
        names += [(index, default_name(one.settings)) for one in found]
        specs += [(locate, one.spec) for one in found if one.spec and one.can_be_loaded]
    problems += [_located(one, document.locate) for one in name_problems(names, document)]
    problems += document.strict_problems(spec for _, spec in specs)
    if content.get("familywise") is True:
        problems += _together([spec for _, spec in specs], document)
    # An error in the defaults occurs in every audit, and an error in an entry with the key `matrix`
    # in each of its audits. Report equal errors once.
    each = {str(error): error for error in problems}
    return Found(tuple(specs), tuple(each.values()), len(names))


def _mendings(document: Document, index: int, problems: list[DpauditError]) -> Iterator[_Mending]:
    """Yield one `_Mending` object, which corrects settings, for each audit that an entry of the
    list `audits` describes. If the entry cannot be expanded to audits, add the error to `problems`.

    index: index of the entry in the list `audits` of the file.
    """
    try:
        with reported(partial(document.locate_in, index)):
            for settings in expanded_settings(document.content, index):
                of_curve = [one for one in holes(settings) if one[:2] == ("claim", "curve")]
                if of_curve:
                    locate = partial(document.locate_in, index)
                    problems.append(_located(unfilled(of_curve), locate))
                    settings["claim"] = {**settings["claim"]}
                    del settings["claim"]["curve"]
                for one in with_curve(settings):
                    yield _Mending(copy.deepcopy(one))
    except DpauditError as error:
        problems.append(error)


def _together(specs: list[AuditSpec], document: Document) -> list[DpauditError]:
    try:
        with reported(document.locate), about("familywise"):
            together(specs, "")
    except DpauditError as error:
        return [error]
    return []


def _located(error: PlacedError, locate: Locate) -> DpauditError:

    try:
        with reported(locate):
            raise error
    except DpauditError as found:
        return found
