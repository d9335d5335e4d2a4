"""What draws: the keys of a mechanism, of a program, and of the process that either runs in."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import shutil
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dpaudit.config.durations import parse_duration
from dpaudit.config.problems import Path, about, problem
from dpaudit.config.schema import AuditSettings, TargetSettings
from dpaudit.errors import ConfigurationError
from dpaudit.import_path import located
from dpaudit.inputs.files import near_file
from dpaudit.inputs.values import written
from dpaudit.targets.target import (
    CommandTarget,
    ComposedTarget,
    ImportedTarget,
    IsolatedTarget,
    Limits,
    SingleTarget,
)

Folder = pathlib.Path | None

# What a process of its own may take; and which one it is.
_LIMITS = ("timeout", "memory_limit")
PROCESS = ("python", "isolate")
# Keys of a mechanism under Python, which a program has no use for.
PYTHONIC = ("mechanism", "params", "init", "call", "factory", "data_arg", "rng_arg")
# Keys of a single mechanism, which an audit of several has in the entries of compose.
SINGLE_TARGET = (*PYTHONIC, "batch_arg", "command")

_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_SIZES |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}


def target_of(given: AuditSettings, base: Folder) -> SingleTarget | ComposedTarget:
    """Return what an audit's keys name. base: where files are looked for, after the working
    directory. Raises a PlacedError."""
    if isinstance(given.compose, UnsetType):
        return _single(given, base, ())
    for key in SINGLE_TARGET:
        if getattr(given, key) is not UNSET:
            remedy = "give one of them" if key == "mechanism" else "give it in the entries"
            raise problem((key,), f"an audit with compose has no {key} of its own; {remedy}")
    parts = [
        _single(_entry(one, given), base, ("compose", place))
        for place, one in enumerate(given.compose)
    ]
    return ComposedTarget(parts=tuple(parts), post_process=_function(given.post_process, base))


def parse_size(value: int | str) -> int:
    """Return bytes from `512MB`, `1.5GiB` or a number of them. Raises ConfigurationError."""
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]*)\s*", value)
    unit = None if match is None else _SIZES.get(match[2].upper())
    if match is None or unit is None:
        raise ConfigurationError(f"memory_limit={value!r} must be a size such as 512MB or 2GiB")
    return int(float(match[1]) * unit)


def _entry(entry: TargetSettings | str, audit: AuditSettings) -> TargetSettings:
    """Return an entry of compose; what it does not say of its process, the audit says."""
    settings = TargetSettings(mechanism=entry) if isinstance(entry, str) else entry
    inherited = _LIMITS if settings.command is not UNSET else (*PROCESS, *_LIMITS)
    said = {key: getattr(audit, key) for key in inherited if getattr(settings, key) is UNSET}
    return msgspec.structs.replace(settings, **said)


def _single(given: TargetSettings, base: Folder, path: Path) -> SingleTarget:
    limits = _limits(given, path)
    if not isinstance(given.command, UnsetType):
        return _command(given, given.command, limits, base, path)
    target = _imported(given, base, path)
    python = None if isinstance(given.python, UnsetType) else _python(given.python, base, path)
    if python is not None and given.isolate is False:
        raise problem((*path, "isolate"), "python runs in a process of its own; leave out isolate")
    if python is not None or given.isolate is True:
        return IsolatedTarget(target=target, python=python, limits=limits)
    for key in _LIMITS:
        if getattr(given, key) is not UNSET:
            raise problem(
                (*path, key),
                f"{key} is for a process of its own; give isolate: true (--isolate) as well",
            )
    return target


def _limits(given: TargetSettings, path: Path) -> Limits:
    timeout, memory = _or_none(given.timeout), _or_none(given.memory_limit)
    if timeout is not None:
        with about(*path, "timeout"):
            timeout = parse_duration(timeout, "timeout")
            Limits(timeout=timeout)
    if memory is not None:
        with about(*path, "memory_limit"):
            memory = parse_size(memory)
            Limits(memory=memory)
    return Limits(timeout=timeout, memory=memory)


def _command(
    given: TargetSettings, command: list[str] | str, limits: Limits, base: Folder, path: Path
) -> CommandTarget:
    for key in (*PYTHONIC, "python"):
        if getattr(given, key) is not UNSET:
            raise problem((*path, key), f"a command has no {key}; leave out one of them")
    if given.isolate is False:
        raise problem((*path, "isolate"), "a command is a process of its own; leave out isolate")
    batch = _or_none(given.batch_arg)
    if batch not in (None, "none", "size"):
        raise problem(
            (*path, "batch_arg"),
            f"batch_arg={batch!r} must be size or none for a command, whose requests have a size",
        )
    return CommandTarget(
        words=_words(command, base, path),
        is_batch=None if batch is None else batch == "size",
        post_process=_function(given.post_process, base),
        limits=limits,
    )


def _words(command: list[str] | str, base: Folder, path: Path) -> tuple[str, ...]:
    with about(*path, "command"):
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError as error:
            raise ConfigurationError(f"command={command!r} cannot be read: {error}") from None
        if not words or not words[0]:
            raise ConfigurationError(f"command={command!r} names no program")
        return (_program(words[0], base, "command"), *words[1:])


def _python(name: str, base: Folder, path: Path) -> str:
    with about(*path, "python"):
        # A path loses its leading `./`, which says that it is not to be looked for on PATH.
        found = str(pathlib.Path(name).expanduser()) if name.startswith("~") else name
        return _program(found, base, "python")


def _program(name: str, base: Folder, key: str) -> str:
    """Return the path of a program: a file if the name has a folder, else one on PATH."""
    if os.sep not in name:
        if shutil.which(name) is None:
            raise ConfigurationError(
                f"{key}: there is no program {name!r} on PATH; write ./{name} for one that is here"
            )
        return name
    places = [name] if base is None else [name, f"{base}{os.sep}{name}"]
    found = next((one for one in places if pathlib.Path(one).is_file()), None)
    if found is None:
        near = next(filter(None, map(near_file, map(pathlib.Path, places))), "")
        raise ConfigurationError(f"{key}: there is no program {name!r}.{near}")
    if not os.access(found, os.X_OK):
        raise ConfigurationError(f"{key}: {found!r} is not executable; chmod +x makes it so")
    return found


def _imported(given: TargetSettings, base: Folder, path: Path) -> ImportedTarget:
    if isinstance(given.mechanism, UnsetType):
        what = "an entry of compose" if path else "the audit"
        raise problem(path, f"{what} has no mechanism; give its import path, package.module:attr")
    return ImportedTarget(
        path=located(given.mechanism, base),
        init=_arguments("init", _or_none(given.init), base, path),
        call=_or_none(given.call),
        factory=bool(_or_none(given.factory)),
        params=_arguments("params", _or_none(given.params) or {}, base, path),
        batch_arg=_or_none(given.batch_arg),
        data_arg=_or_none(given.data_arg),
        rng_arg=_or_none(given.rng_arg),
        post_process=_function(given.post_process, base),
    )


def _arguments(key: str, given: Any, base: Folder, path: Path) -> Any:
    """Return arguments as they are written; the mapping of their names says no more than it is."""
    with about(*path, key):
        if isinstance(given, dict):
            return {name: written(value, base) for name, value in given.items()}
        return written(given, base)


def _function(path: str | UnsetType, base: Folder) -> str | None:
    return None if isinstance(path, UnsetType) else located(path, base)


def _or_none(value: Any) -> Any:
    return None if isinstance(value, UnsetType) else value
