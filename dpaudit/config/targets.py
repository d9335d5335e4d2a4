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


def target_of(given: Settings, base: Folder) -> SingleTarget | ComposedTarget:
    """Return the target of an audit: a mechanism, or a composition of several. Raises PlacedError.

    given: settings of the audit.
    base: folder in which files are looked for, after the working directory. None for the working
    directory alone.
    """
    if "compose" not in given:
        return _single(given, base, ())
    for key in SINGLE_TARGET:
        if key in given:
            remedy = "give one of them" if key == "mechanism" else "give it in the entries"
            why = f" of its own; {remedy}"
            raise conflict((key,), "an audit with compose has no ", Name(key), why)
    parts = [
        _single(_entry(one, given), base, ("compose", place))
        for place, one in enumerate(given["compose"])
    ]
    return ComposedTarget(parts=tuple(parts), post_process=_function(given, base))


def _entry(entry: Settings | str, audit: Settings) -> Settings:
    """Return the settings of one mechanism in the list `compose`. If an entry lacks keys that
    concern its process, such as `timeout`, the values of the audit are used.

    entry: mapping with the settings, or the import path of the mechanism.
    audit: settings of the audit.
    """
    settings = {"mechanism": entry} if isinstance(entry, str) else entry
    inherited = _LIMITS if "command" in settings else (*PROCESS, *_LIMITS)
    return {**{key: audit[key] for key in inherited if key in audit}, **settings}


def _single(given: Settings, base: Folder, path: Path) -> SingleTarget:
    limits = _limits(given, path)
    for key in ("command", "python", *_LIMITS):
        if key in given and given.get("isolate") is False:
            why = " runs the mechanism in a separate process; leave out "
            raise conflict((*path, "isolate"), Name(key), why, Name("isolate"))
    if "command" in given:
        return _command(given, limits, base, path)
    target = _imported(given, base, path)
    python = _python(given["python"], base, path) if "python" in given else None
    if given.get("isolate") or {"python", *_LIMITS} & given.keys():
        return IsolatedTarget(target=target, python=python, limits=limits)
    return target


def _limits(given: Settings, path: Path) -> Limits:
    timeout, memory = (_limit(given, key, path) for key in _LIMITS)
    return Limits(timeout=timeout, memory=memory)


def _limit(given: Settings, key: str, path: Path) -> Any:
    with about(*path, key):
        return None if key not in given else OPTIONS[key].read(given[key])


def _command(given: Settings, limits: Limits, base: Folder, path: Path) -> CommandTarget:
    for key in (*PYTHONIC, "python"):
        if key in given:
            both = Name("command"), " excludes ", Name(key)
            raise conflict((*path, key), *both, "; leave out one of them")
    batch = given.get("batch_arg")
    if batch not in (None, "none", "size"):
        why = f"={batch!r} must be size or none for a command, because its requests have a size"
        raise refusal((*path, "batch_arg"), why)
    return CommandTarget(
        words=_words(given["command"], base, path),
        is_batch=None if batch is None else batch == "size",
        post_process=_function(given, base),
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
        found = str(pathlib.Path(name).expanduser()) if name.startswith("~") else name
        return _program(found, base, "python")


def _program(name: str, base: Folder, key: str) -> str:
    """Return the path of a program, or `name` itself if it is found on PATH. Raises
    ConfigurationError if there is no such program.

    name: path of the program if it contains `/`, else its name on PATH.
    key: key of the setting, for messages.
    """
    if os.sep not in name:
        if shutil.which(name) is None:
            raise ConfigurationError(
                Name(key),
                f": there is no program {name!r} on PATH; write ./{name} for one that is here",
                code="program-not-found",
            )
        return name
    places = [name] if base is None else [name, f"{base}{os.sep}{name}"]
    found = next((one for one in places if pathlib.Path(one).is_file()), None)
    if found is None:
        near = next(filter(None, map(near_file, map(pathlib.Path, places))), "")
        raise ConfigurationError(
            Name(key), f": there is no program {name!r}.{near}", code="program-not-found"
        )
    if not os.access(found, os.X_OK):
        raise ConfigurationError(
            Name(key),
            f": {found!r} is not executable; make it so with chmod +x",
            code="program-not-found",
        )
    return found


def _imported(given: Settings, base: Folder, path: Path) -> ImportedTarget:
    if "mechanism" not in given:
        what = "an entry of compose" if path else "the audit"
        raise missing(path, f"{what} has no mechanism; give its import path, package.module:attr")
    return ImportedTarget(
        path=located(given["mechanism"], base),
        init=_arguments("init", given.get("init"), base, path),
        call=given.get("call"),
        factory=bool(given.get("factory")),
        params=_arguments("params", given.get("params", {}), base, path),
        batch_arg=given.get("batch_arg"),
        data_arg=given.get("data_arg"),
        rng_arg=given.get("rng_arg"),
        post_process=_function(given, base),
    )


def _arguments(key: str, given: Any, base: Folder, path: Path) -> Any:
    """Return the arguments of a mechanism, in which notations such as `{tuple: [0, 1]}` and
    `import:module:name` are replaced by the values that they stand for.

    The mapping from names to arguments is itself no notation: in `{tuple: ...}`, `tuple` is the
    name of an argument.

    key: key of the arguments, `params` or `init`.
    path: keys and list indices that lead to the mapping with this key.
    """
    with about(*path, key):
        if isinstance(given, dict):
            return {name: written(value, base) for name, value in given.items()}
        return written(given, base)


def _function(given: Settings, base: Folder) -> str | None:
    return located(given["post_process"], base) if "post_process" in given else None
