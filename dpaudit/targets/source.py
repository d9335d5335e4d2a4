"""Where the code of a mechanism stands: file and line."""

from __future__ import annotations

import functools
import inspect
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from dpaudit.import_path import loaded
from dpaudit.targets.target import AnyTarget, CallableTarget, ImportedTarget, single_targets


def source_of(target: AnyTarget) -> str | None:
    """Return file and line, e.g. `mine.py:12`, as seen from the working directory.

    Nothing is imported for it: None for what this process has not loaded, has no Python code, or is
    several mechanisms.
    """
    (one, *others) = single_targets(target)
    if others or not isinstance(one, ImportedTarget | CallableTarget):
        return None
    if isinstance(one, CallableTarget):
        return _place(one.function)
    found = loaded(one.path)
    return _place(getattr(found, one.call, found) if one.call else found)


def _place(found: Any) -> str | None:
    while isinstance(found, functools.partial):
        found = found.func
    if not (inspect.isroutine(found) or inspect.isclass(found)):
        found = type(found)
    with suppress(Exception):  # whatever a user's object answers, an audit does not end of it
        found = inspect.unwrap(found)
        code = getattr(found, "__code__", None)
        file = Path(code.co_filename if code else inspect.getfile(found))
        line = code.co_firstlineno if code else inspect.getsourcelines(found)[1]
        if file.is_file():
            return f"{_seen_from_here(file)}:{line}"
    return None


def _seen_from_here(file: Path) -> Path:
    here = Path(os.getcwd())
    return file.relative_to(here) if file.is_relative_to(here) else file
