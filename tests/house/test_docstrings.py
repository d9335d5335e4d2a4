"""Docstrings: examples are run, and what is public is described in numpydoc form."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

import dpaudit
import dpaudit.claims
from dpaudit import training
from dpaudit.api import MoreOptions
from dpaudit.auditing.options import OPTIONS
from dpaudit.errors import DpauditError
from tests.comparing import no_new_processes as no_new_processes

ROOT = Path(__file__).parents[2]
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "dpaudit").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
# Public beside `dpaudit.__all__`: what results hold.
RESULTS = ["result", "certificate", "evidence", "canary_certificate"]
# Modules whose functions raise errors that other modules make.
RAISING = ("dpaudit.api", "dpaudit.bounds")
MODULES = tuple(f"dpaudit.certificates.{name}" for name in RESULTS)
# Those of numpydoc that are in use, in its order.
SECTIONS = (
    "Parameters",
    "Attributes",
    "Returns",
    "Other Parameters",
    "Raises",
    "Notes",
    "Examples",
)


def _public() -> dict[str, Any]:
    """Return functions and classes, and the methods that these do not inherit, by full name."""
    found = [getattr(dpaudit, name) for name in dpaudit.__all__ if name != "__version__"]
    found += [getattr(training, name) for name in training.__all__]
    found += [dpaudit.claims.make_claim, dpaudit.claims.ProfilePoint]
    found += [
        one
        for name in MODULES
        for key, one in vars(import_module(name)).items()
        if callable(one) and getattr(one, "__module__", "") == name and not key.startswith("_")
    ]
    named = {f"{one.__module__}.{one.__qualname__}": one for one in found}
    classes = [one for one in named.values() if inspect.isclass(one)]
    methods = {f"{m.__module__}.{m.__qualname__}": m for one in classes for m in _methods(one)}
    return {**named, **methods}


def _methods(one: type) -> Iterator[Callable[..., Any]]:
    for name, method in vars(one).items():
        is_new = not any(hasattr(base, name) for base in one.__mro__[1:])
        if inspect.isfunction(method) and not name.startswith("_") and is_new:
            yield method


PUBLIC = _public()


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_are_true(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_public_is_described(name: str) -> None:
    assert _problems(PUBLIC[name]) == []


def test_every_other_keyword_of_audit_is_listed_under_its_section_of_the_table() -> None:
    text = _sections(dpaudit.audit)["Other Parameters"]
    lists = re.findall(r'^(\S.*)\n    "([^"]+)" in docs/options.md', text, re.MULTILINE)
    listed = {(title, name) for names, title in lists for name in names.split(", ")}
    names = [name for name in MoreOptions.__annotations__ if name in OPTIONS]
    assert listed == {(OPTIONS[name].help.section, name) for name in names}


def test_what_is_not_described_is_noticed() -> None:
    def forgetful(one: int, other: int) -> int:
        """Return the
        sum.

        Parameters
        ----------
        one
            A number.

        Example
        -------
        None.
        """
        if one < 0:
            raise ValueError
        return one + other

    assert _problems(forgetful) == [
        "the summary is not one line",
        "sections ['Parameters', 'Example']",
        "no Returns",
        "no Raises",
        "Parameters: ['one'], not ['one', 'other']",
        "Parameters: no type of one",
    ]


def _problems(public: Any) -> list[str]:
    """Return what is missing in the docstring of a function or a class."""
    said, wanted = _sections(public), _wanted(public)
    summary, _, rest = (inspect.getdoc(public) or "").partition("\n")
    one_line = summary.endswith(".") and not rest.partition("\n")[0]
    in_order = [name for name in SECTIONS if name in said]
    problems = [] if one_line else ["the summary is not one line"]
    problems += [] if list(said) == in_order else [f"sections {list(said)}"]
    problems += [f"no {name}" for name in wanted if name not in said]
    for section, names in wanted.items():
        entries = re.findall(r"^(\S[^:\n]*?)(?: : (.*))?$", said.get(section, ""), re.MULTILINE)
        listed = [name.lstrip("*") for entry, _ in entries for name in entry.split(", ")]
        if names and section in said and listed != names:
            problems.append(f"{section}: {listed}, not {names}")
        if names:
            problems += [f"{section}: no type of {entry}" for entry, kind in entries if not kind]
    return problems


def _sections(public: Any) -> dict[str, str]:
    """Return the texts of a docstring by their underlined titles."""
    _, *parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", inspect.getdoc(public) or "", flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _wanted(public: Any) -> dict[str, list[str]]:
    """Return the sections that must be there, each with the names that it lists, if any."""
    if inspect.isclass(public):
        return _wanted_of_class(public)
    names, module = _parameters(public), public.__module__
    if not names:
        return {}
    wanted: dict[str, list[str]] = {"Parameters": names, "Returns": []}
    if "raise " in inspect.getsource(public) or module in RAISING:
        wanted["Raises"] = []
    if public.__qualname__ == public.__name__:
        wanted |= {"Notes": [], "Examples": []}
    return wanted


def _wanted_of_class(public: type) -> dict[str, list[str]]:
    parameters = {"Parameters": _parameters(public)}
    if issubclass(public, Enum):
        return {"Attributes": list(public.__members__), "Notes": []}
    if issubclass(public, DpauditError):
        own = parameters if "__init__" in vars(public) else {}
        return {**own, "Attributes": ["exit_code", *own.get("Parameters", [])]}
    if public is dpaudit.PrivacyClaim:
        return {"Attributes": list(public.__annotations__), "Notes": []}
    if issubclass(public, dpaudit.PrivacyClaim):
        return {**parameters, "Notes": [], "Examples": []}
    if public.__module__.startswith("dpaudit.certificates") and is_dataclass(public):
        return {"Attributes": [one.name for one in fields(public)]}
    if issubclass(public, Struct):
        return {"Attributes": list(public.__struct_fields__)}
    return {**parameters, "Raises": []} if "raise " in inspect.getsource(public) else parameters


def _parameters(public: Any) -> list[str]:
    """Return the names of the parameters, but for `self` and options listed by section."""
    every = inspect.signature(public).parameters.values()
    left_out = {"self", *(MoreOptions.__annotations__ if public is dpaudit.audit else ())}
    return [one.name for one in every if {one.name} - left_out and one.kind is not one.VAR_KEYWORD]
