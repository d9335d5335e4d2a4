"""The request of an audit: a text and a digest of each setting that decides its draws.

journal.py writes it into the first line of a journal. When a run continues the journal, its request
must be equal; otherwise `differences` describes what has changed.
"""

from __future__ import annotations

import hashlib
import inspect
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from dpaudit.auditing.options import DefaultSamples, Journaling, Requirements, Sampling, Statistics
from dpaudit.auditing.spec import AuditSpec, Origin
from dpaudit.errors import DpauditError
from dpaudit.hash_seed import VARIABLE
from dpaudit.import_path import is_file, resolve
from dpaudit.inputs.records import fingerprint
from dpaudit.inputs.values import Rows, references
from dpaudit.outcomes.set_order import hash_seed
from dpaudit.targets.target import (
    CommandTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    RepeatedTarget,
    TwoTargets,
)
from dpaudit.wording import shown

# Maps the name of an option to its value, shortened for messages, and a digest of the whole value.
Request = dict[str, tuple[str, str]]

# Fields of an `AuditSpec` and of its parts that may differ when a journal is continued, since they
# change neither draws nor bounds.
_FREE = {
    *("workers", "executor", "journal", "resume", "files", "flags"),
    *("name", "expect", "strict", "group", "grouped", "request", "command", "family"),
    *("claimed_by", "pace"),
}
_CODE = "the code of "
_FIXED = (
    "the number of draws is fixed before the exact test and never changed after it, "
    "docs/method.md §4"
)


def request(spec: AuditSpec) -> Request:
    """Return the request of an audit: each option, input and source file that decides draws and
    bounds."""
    settings = {
        name: (_words(spec, name, value), digest(value))
        for name, value in _settings(spec).items()
        if name not in _FREE
    }
    # The audits of a family share one false-alarm probability. The confidence of the family decides
    # which p-values lead to a comparison with draws of new processes. So it decides the result, and
    # is part of the request.
    confidence = False if spec.statistics.family is None else spec.statistics.family.confidence
    settings["familywise"] = (
        "off" if confidence is False else f"at {confidence!r}",
        digest(confidence),
    )
    seed = hash_seed()
    if seed is not None:
        settings[VARIABLE] = (seed, digest(seed))
    for name, file in _files(spec):
        with file.open("rb") as opened:
            content = hashlib.file_digest(opened, hashlib.blake2b).hexdigest()
        settings[f"{_CODE}{name}"] = ("", content[:24])
    return settings


def differences(then: Request, now: Request) -> str:
    """Describe what has changed from one request to another of the same release, such as `samples
    was 1,000, is 2,000`. Return "" if nothing has changed."""
    # Only files, and a hash seed that the user has fixed, may be in one of the requests alone.
    names = [name for name in then if name in now and then[name][1] != now[name][1]]
    words = "; ".join(_difference(name, then[name][0], now[name][0]) for name in names)
    return f"{words} ({_FIXED})" if {"samples", "time"} & set(names) else words


def _difference(name: str, old: str, new: str) -> str:
    if old == new:
        return f"{name} has changed" if name.startswith(_CODE) else f"the content of {name} differs"
    return f"{name} was {old}, is {new}"


def digest(value: Any) -> str:
    """Return a digest of a value: 24 hexadecimal digits, the same in every process."""
    return hashlib.blake2b(_canonical(value).encode(errors="surrogatepass")).hexdigest()[:24]


def _canonical(value: Any) -> str:
    """Return a text that is equal for equal values, such as `sequence [int 1]` for [1]."""
    match value:
        case DefaultSamples():  # the audit chooses the number, so that it is none yet
            return f"chosen by speed {int(value)} {value.seconds}"
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
    """Return the module and name of a function, and the source of the function if available."""
    named = function if hasattr(function, "__qualname__") else type(function)
    source = ""
    with suppress(OSError, TypeError):
        source = inspect.getsource(named)
    return f"{named.__module__}.{named.__qualname__} {source!r}"


def _settings(spec: AuditSpec) -> dict[str, Any]:
    """Return the fields of an audit by name; those of its records of options take their place."""
    settings: dict[str, Any] = {}
    for field in fields(spec):
        value = getattr(spec, field.name)
        records = (Sampling, Statistics, Requirements, Journaling, Origin)
        if isinstance(value, records):
            settings |= {part.name: getattr(value, part.name) for part in fields(value)}
        else:
            settings[field.name] = value
    return settings


def _words(spec: AuditSpec, name: str, value: Any) -> str:
    if name == "target":
        return spec.target.describe()
    if name == "pairs":
        return ", ".join(pair.label for pair in value)
    if name == "claim" or (name == "search" and value is not None):
        return str(value.describe())
    if isinstance(value, DefaultSamples):
        return "chosen by speed"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}"
    return shown(value)


def _files(spec: AuditSpec) -> Iterator[tuple[str, Path]]:
    """Yield (name, file) for each module and program that the audit runs."""
    attacks = [*spec.statistics.attacks, spec.claim.adversary]
    for name in dict.fromkeys([*_named(spec.target), *attacks]):
        file = _file(name) if isinstance(name, str) else None
        if file is not None and file.is_file():
            yield name.rpartition(":")[0] or name, file


def _named(target: Any) -> Iterator[str]:
    """Yield the import paths in a target; for a program, the first words of its command line."""
    match target:
        case ImportedTarget(path=path, post_process=function, params=params, init=init):
            imported = [reference.path for reference in (*references(params), *references(init))]
            yield from filter(None, [path, function, *imported])
        case IsolatedTarget(target=ImportedTarget() as inner):
            # For a target that runs in another process, only file paths are yielded: its modules
            # cannot be found here without importing them.
            yield from (path for path in _named(inner) if is_file(path.rpartition(":")[0]))
        case CommandTarget(words=words, post_process=function):
            yield from filter(None, [*words[:2], function])
        case ComposedTarget(parts=parts, post_process=function):
            for part in parts:
                yield from _named(part)
            yield from filter(None, [function])
        case RepeatedTarget(target=inner):
            yield from _named(inner)
        case TwoTargets(a=a, b=b):
            yield from (*_named(a), *_named(b))


def _file(name: str) -> Path | None:
    """Return the file of an import path or a program; None for a module without a file."""
    module, colon, _ = name.rpartition(":")
    if not colon:
        return Path(shutil.which(name) or name)
    if is_file(module):
        return Path(module)
    with suppress(DpauditError):  # the audit itself reports a target that cannot be imported
        resolve(name)
    file = getattr(sys.modules.get(module), "__file__", None)
    return None if file is None else Path(file)
