"""What an audit was asked for, in words and digests: a journal is continued for the same only."""

from __future__ import annotations

import hashlib
import inspect
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.auditing.options import DEFAULTS
from dpaudit.auditing.spec import AuditSpec
from dpaudit.errors import DpauditError
from dpaudit.hash_seed import VARIABLE
from dpaudit.import_path import is_file, resolve
from dpaudit.inputs.equality import fingerprint
from dpaudit.inputs.frames import Rows
from dpaudit.inputs.values import references
from dpaudit.outcomes.set_order import hash_seed
from dpaudit.targets.target import (
    CommandTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    RepeatedTarget,
)
from dpaudit.wording import shown

# By name of what was asked for: in words, and as a digest of all of it.
Request = dict[str, list[str]]

# What neither the draws nor what is made of them depend on: how it is run, and what is said of it.
_FREE = {
    *("workers", "executor", "journal", "resume", "files"),
    *("name", "expect", "strict", "group", "grouped", "request", "command", "family"),
}
_CODE = "the code of "
_LONGEST = 80
_FIXED = (
    "the number of draws is fixed before the exact test and never changed after it, "
    "docs/method.md §4"
)


def request(spec: AuditSpec) -> Request:
    """Return all that decides what is drawn and what is made of it."""
    asked = {
        field.name: [_words(spec, field.name), digest(getattr(spec, field.name))]
        for field in fields(spec)
        if field.name not in _FREE
    }
    # Of the family, what all of it may err decides which refutations are looked at once more.
    whole = False if spec.family is None else spec.family.confidence
    asked["familywise"] = ["off" if whole is False else f"at {whole!r}", digest(whole)]
    seed = hash_seed()
    if seed is not None:
        asked[VARIABLE] = [seed, digest(seed)]
    for name, file in _files(spec):
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, hashlib.blake2b).hexdigest()
        asked[f"{_CODE}{name}"] = ["", found[:24]]
    return asked


def differences(then: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> str:
    """Return in words what differs; the empty text when nothing does."""
    names = [name for name in {**then, **now} if _differ(name, then, now)]
    found = "; ".join(_difference(name, then.get(name), now.get(name)) for name in names)
    return f"{found} ({_FIXED})" if {"samples", "time"} & set(names) else found


def _differ(name: str, then: Mapping[str, Sequence[str]], now: Mapping[str, Sequence[str]]) -> bool:
    if name.startswith(_CODE) or name == VARIABLE:
        # Files are found or not by where the command is run, which is no difference by itself.
        # Nor is a process without a fixed hash seed: no other one has its hashes in any case.
        return name in then and name in now and then[name][1] != now[name][1]
    # An option that one version of dpaudit does not have is as if it was not given there.
    absent = ("", digest(DEFAULTS.get(name)))
    return then.get(name, absent)[1] != now.get(name, absent)[1]


def _difference(name: str, then: Sequence[str] | None, now: Sequence[str] | None) -> str:
    before, after = (None if one is None else one[0] for one in (then, now))
    if before == after:
        return f"{name} has changed" if name.startswith(_CODE) else f"the content of {name} differs"
    return f"{name} was {before}, is {after}"


def digest(value: Any) -> str:
    """Return a digest of a value of a request: the same in another process, for equal values."""
    return hashlib.blake2b(_canonical(value).encode(errors="surrogatepass")).hexdigest()[:24]


def _canonical(value: Any) -> str:
    """Return a text for a value; objects of unknown types are told apart as far as they pickle."""
    match value:
        case Enum():
            return f"{type(value).__qualname__} {value.name}"
        case None | bool() | bytes():
            return repr(value)
        case int() | float() | str():
            plain = next(kind for kind in (int, float, str) if isinstance(value, kind))
            return f"{plain.__name__} {plain(value)!r}"
        case Mapping():
            return _joined("mapping", sorted(map(_canonical, value.items())))
        case Set():
            return _joined("set", sorted(map(_canonical, value)))
        case Rows():
            return _joined(value.package, map(_canonical, value))
        case list() | tuple():
            return _joined("sequence", map(_canonical, value))
        case np.ndarray() if value.dtype.hasobject:
            return _joined("array", [repr(value.shape), *map(_canonical, value.ravel().tolist())])
    if is_dataclass(value) and not isinstance(value, type):
        parts = [_canonical(getattr(value, field.name)) for field in fields(value)]
        return _joined(type(value).__qualname__, parts)
    if callable(value):
        return _function(value)
    return f"{type(value).__qualname__} {fingerprint(value)}"


def _joined(name: str, parts: Any) -> str:
    return f"{name} [{', '.join(parts)}]"


def _function(function: Callable[..., Any]) -> str:
    """Return where a function is, and its source where that is known."""
    named = function if hasattr(function, "__qualname__") else type(function)
    source = ""
    with suppress(OSError, TypeError):
        source = inspect.getsource(named)
    return f"{named.__module__}.{named.__qualname__} {source!r}"


def _words(spec: AuditSpec, name: str) -> str:
    value = getattr(spec, name)
    if name == "target":
        return spec.target.describe()
    if name == "pairs":
        return ", ".join(pair.label for pair in value)
    if name == "claim" or (name == "search" and value is not None):
        return str(value.describe())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}"
    return shown(value, _LONGEST)


def _files(spec: AuditSpec) -> Iterator[tuple[str, Path]]:
    """Yield the files that what is named in a request is found in, as they are named."""
    own = [*spec.attacks, spec.claim.adversary]
    for name in dict.fromkeys([*_named(spec.target), *own]):
        file = _file(name) if isinstance(name, str) else None
        if file is not None and file.is_file():
            yield name.rpartition(":")[0] or name, file


def _named(target: Any) -> Iterator[str]:
    """Yield import paths, and the words of commands."""
    match target:
        case ImportedTarget(path=path, post_process=function, params=params, init=init):
            imported = [one.path for one in (*references(params), *references(init))]
            yield from filter(None, [path, function, *imported])
        case IsolatedTarget(target=ImportedTarget() as inner):
            # What is to be imported elsewhere, is not imported here to look where it is.
            yield from (path for path in _named(inner) if is_file(path.rpartition(":")[0]))
        case CommandTarget(words=words, post_process=function):
            yield from filter(None, [*words[:2], function])
        case ComposedTarget(parts=parts, post_process=function):
            for part in parts:
                yield from _named(part)
            yield from filter(None, [function])
        case RepeatedTarget(target=inner):
            yield from _named(inner)


def _file(name: str) -> Path | None:
    """Return the file of a module that is named, or of a program; None where there is none."""
    module, colon, _ = name.rpartition(":")
    if not colon:
        found = shutil.which(name)
        return Path(found or name)
    if is_file(module):
        return Path(module)
    with suppress(DpauditError):  # the audit says what is wrong with it
        resolve(name)
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None else Path(file)
