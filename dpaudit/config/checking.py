"""All that is wrong with a configuration file, not only what comes first.

An error ends the building of an audit. So what it is about is left out, or something harmless put
in its place, and the audit is built again, until nothing more is wrong.
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
from dpaudit.config.building import default_name, placed_spec
from dpaudit.config.holes import check_filled_in, holes, unfilled
from dpaudit.config.loading import (
    Document,
    expanded_settings,
    file_problems,
    has_shape,
    name_problems,
    with_curve,
)
from dpaudit.config.problems import Locate, Path, PlacedError, about, problem, reported
from dpaudit.config.project import NO_PROJECT, Project
from dpaudit.errors import DpauditError
from dpaudit.inputs.adjacency import parse_adjacency

# What nothing is wrong with, in the place of what something is.
_CLAIM, _MECHANISM, _INPUT = {"epsilon": 1.0}, "builtins:abs", 0
_TARGET = {one.name for one in owned("mechanism")} | {"compose"}
# More than an audit can have keys, so that no mistake here goes on for ever.
_MOST = 60


@dataclass(frozen=True, slots=True)
class Found:
    """What is in a file. specs: of audits that can be loaded, each with what says where its keys
    stand, such as `audits.yaml:12: `. audits: how many there are in all."""

    specs: tuple[tuple[Locate, AuditSpec], ...]
    problems: tuple[DpauditError, ...]
    audits: int = 0


@dataclass(slots=True)
class _Mending:
    """The settings of an audit while they are built again and again."""

    settings: dict[str, Any]
    problems: list[PlacedError] = field(default_factory=list)
    spec: AuditSpec | None = None
    mended: set[str] = field(default_factory=set)

    def build(self, base: pathlib.Path) -> None:
        """Build the audit, and note every problem on the way."""
        self._fill_in()
        for _ in range(_MOST):
            try:
                self.spec = placed_spec(self.settings, base)
                return
            except PlacedError as error:
                is_new = not self._follows(error)
                self.problems += [error] if is_new else []
                if not self._mend(error):
                    return

    def _fill_in(self) -> None:
        """Put something in the places that are still to be filled in, and note them."""
        try:
            check_filled_in(self.settings)
        except PlacedError as error:
            self.problems.append(error)
            for path in list(holes(self.settings)):
                self._mend(problem(path, "", code="fill-in-left"))

    @property
    def can_be_loaded(self) -> bool:
        """Whether what draws is what the file says."""
        return self.spec is not None and not self.mended & _TARGET

    def _follows(self, error: PlacedError) -> bool:
        """Return whether an error may come from what was mended: a claim that lacks what was left
        out of it."""
        is_general = error.path in ((), ("claim",)) and self._named(error) is None
        return is_general and "claim" in self.mended

    def _named(self, error: PlacedError) -> str | None:
        """Return the key of the claim that an error is about."""
        claim = self.settings.get("claim")
        keys = claim if isinstance(claim, dict) and error.path[:1] == ("claim",) else {}
        if len(error.path) > 1:
            return next((key for key in keys if key == error.path[1]), None)
        named = (key for key in keys if str(error).startswith((repr(key), f"{key}=")))
        return next(named, None)

    def _mend(self, error: PlacedError) -> bool:
        """Leave out what an error is about, or put something in its place; return whether there was
        anything to do."""
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
        """Put in what an audit cannot do without."""
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
        """Mend an entry of a list: one of its keys, or all of it."""
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
        """Leave the relation out, which inputs that are none would break."""
        relation = self.settings.pop("adjacency", None)
        try:
            with about("adjacency"):
                parse_adjacency(relation)
        except PlacedError as error:
            self.problems.append(error)


def check_config(path: pathlib.Path, project: Project = NO_PROJECT) -> Found:
    """Return the audits of a configuration file, and all that is wrong with it. Of a file without
    the version or the shape of one, no audit is built. project: defaults, below the file."""
    try:
        document = Document(path)
    except DpauditError as error:
        return Found((), (error,))
    content = document.content
    problems: list[DpauditError] = [*document.misread_problems()]
    problems += [_located(error, document.locate) for error in file_problems(content)]
    if not has_shape(content):  # to build an audit may import a function that its claim names
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
    # One of the defaults is wrong for every audit, one of an entry for every one of a matrix.
    each = {str(error): error for error in problems}
    return Found(tuple(specs), tuple(each.values()), len(names))


def _mendings(document: Document, index: int, problems: list[DpauditError]) -> Iterator[_Mending]:
    """Yield the audits that an entry stands for, and note where it stands for none."""
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
    """Return an error with its place in front."""
    try:
        with reported(locate):
            raise error
    except DpauditError as found:
        return found
