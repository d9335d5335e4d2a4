"""Convert the settings of a mechanism (import path, command, process) to a target."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
from collections.abc import Mapping
from typing import Any

from dpaudit.auditing.options import OPTIONS
from dpaudit.config.problems import Path, about, conflict, missing, refusal
from dpaudit.errors import ConfigurationError, Name
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
Settings = Mapping[str, Any]

# Keys that set limits of time and memory for the separate process in which a mechanism runs.
_LIMITS = ("timeout", "memory_limit")
# Keys that make a mechanism run in a separate process.
PROCESS = ("python", "isolate")
# Keys of a mechanism that is a Python object. A mechanism that is a command may not have them.
PYTHONIC = ("mechanism", "params", "init", "call", "factory", "data_arg", "rng_arg")
# Keys of one mechanism. In an audit that composes several mechanisms, they belong in the entries of
# the list `compose`, not in the audit.
SINGLE_TARGET = (*PYTHONIC, "batch_arg", "command")


def target_of(settings: Settings, base: Folder) -> SingleTarget | ComposedTarget:
    """Return the target of an audit: a mechanism, or a composition. Raises PlacedError."""
    if "compose" not in settings:
        return _single(settings, base, ())
    for key in SINGLE_TARGET:
        if key in settings:
            remedy = "give one of them" if key == "mechanism" else "give it in the entries"
            why = f" of its own; {remedy}"
            raise conflict((key,), "an audit with compose has no ", Name(key), why)
    parts = [
        _single(_entry(entry, settings), base, ("compose", index))
        for index, entry in enumerate(settings["compose"])
    ]
    return ComposedTarget(parts=tuple(parts), post_process=_function(settings, base))


def _entry(entry: Settings | str, audit: Settings) -> Settings:
    """Return the settings of an entry of `compose`. Settings of its process come from the audit."""
    settings = {"mechanism": entry} if isinstance(entry, str) else entry
    inherited = _LIMITS if "command" in settings else (*PROCESS, *_LIMITS)
    return {**{key: audit[key] for key in inherited if key in audit}, **settings}


def _single(settings: Settings, base: Folder, path: Path) -> SingleTarget:
    limits = _limits(settings, path)
    for key in ("command", "python", *_LIMITS):
        if key in settings and settings.get("isolate") is False:
            why = " runs the mechanism in a separate process; leave out "
            raise conflict((*path, "isolate"), Name(key), why, Name("isolate"))
    if "command" in settings:
        return _command(settings, limits, base, path)
    target = _imported(settings, base, path)
    python = _python(settings["python"], base, path) if "python" in settings else None
    if settings.get("isolate") or {"python", *_LIMITS} & settings.keys():
        return IsolatedTarget(target=target, python=python, limits=limits)
    return target


def _limits(settings: Settings, path: Path) -> Limits:
    timeout, memory = (_limit(settings, key, path) for key in _LIMITS)
    return Limits(timeout=timeout, memory=memory)


def _limit(settings: Settings, key: str, path: Path) -> Any:
    with about(*path, key):
        return None if key not in settings else OPTIONS[key].read(settings[key])


def _command(settings: Settings, limits: Limits, base: Folder, path: Path) -> CommandTarget:
    for key in (*PYTHONIC, "python"):
        if key in settings:
            parts = Name("command"), " excludes ", Name(key)
            raise conflict((*path, key), *parts, "; leave out one of them")
    batch = settings.get("batch_arg")
    if batch not in (None, "none", "size"):
        why = f"={batch!r} must be size or none for a command, because its requests have a size"
        raise refusal((*path, "batch_arg"), why)
    return CommandTarget(
        words=_words(settings["command"], base, path),
        is_batch=None if batch is None else batch == "size",
        post_process=_function(settings, base),
        limits=limits,
    )


def _words(command: list[str] | str, base: Folder, path: Path) -> tuple[str, ...]:
    with about(*path, "command"):
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError as error:
            why = f"={command!r} cannot be read: {error}"
            raise ConfigurationError(Name("command"), why, code="option-invalid") from None
        if not words or not words[0]:
            raise ConfigurationError(
                Name("command"), f"={command!r} names no program", code="option-invalid"
            )
        return (_program(words[0], base, "command"), *words[1:])


def _python(name: str, base: Folder, path: Path) -> str:
    with about(*path, "python"):
        # Other names stay as they are: pathlib would remove a leading `./`, and the program would
        # then be looked for on PATH.
        program = str(pathlib.Path(name).expanduser()) if name.startswith("~") else name
        return _program(program, base, "python")


def _program(name: str, base: Folder, key: str) -> str:
    """Return the path of a program, or `name` itself if the program is found on PATH."""
    if os.sep not in name:
        if shutil.which(name) is None:
            raise ConfigurationError(
                Name(key),
                f": there is no program {name!r} on PATH; write ./{name} for one that is here",
                code="program-not-found",
            )
        return name
    paths = [name] if base is None else [name, f"{base}{os.sep}{name}"]
    program = next((path for path in paths if pathlib.Path(path).is_file()), None)
    if program is None:
        near = next(filter(None, map(near_file, map(pathlib.Path, paths))), "")
        raise ConfigurationError(
            Name(key), f": there is no program {name!r}.{near}", code="program-not-found"
        )
    if not os.access(program, os.X_OK):
        raise ConfigurationError(
            Name(key),
            f": {program!r} is not executable; make it so with chmod +x",
            code="program-not-found",
        )
    return program


def _imported(settings: Settings, base: Folder, path: Path) -> ImportedTarget:
    if "mechanism" not in settings:
        what = "an entry of compose" if path else "the audit"
        raise missing(path, f"{what} has no mechanism; give its import path, package.module:attr")
    return ImportedTarget(
        path=located(settings["mechanism"], base),
        init=_arguments("init", settings.get("init"), base, path),
        call=settings.get("call"),
        factory=bool(settings.get("factory")),
        params=_arguments("params", settings.get("params", {}), base, path),
        batch_arg=settings.get("batch_arg"),
        data_arg=settings.get("data_arg"),
        rng_arg=settings.get("rng_arg"),
        post_process=_function(settings, base),
    )


def _arguments(key: str, arguments: Any, base: Folder, path: Path) -> Any:
    """Return the arguments, in which values replace notations such as `{tuple: [0, 1]}`."""
    # The mapping itself is no notation: in `{tuple: ...}`, `tuple` is the name of an argument.
    with about(*path, key):
        if isinstance(arguments, dict):
            return {name: written(value, base) for name, value in arguments.items()}
        return written(arguments, base)


def _function(settings: Settings, base: Folder) -> str | None:
    return located(settings["post_process"], base) if "post_process" in settings else None
