"""Name the line of code at which GitHub or a similar site shows a finding, and the path of its file
in the repository."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import quote

from dpaudit.certificates.result import AuditResult
from dpaudit.certificates.traced import SourceLine
from dpaudit.reports.trace import traced
from dpaudit.wording import in_a_line, visible

# Environment variable with the folder into which GitHub Actions has checked out the repository.
_WORKSPACE = "GITHUB_WORKSPACE"


def place(result: AuditResult) -> str | None:
    """Return the line of code at which GitHub or a similar site shows a finding, such as
    `mine.py:12`.

    It is the line of the likely cause. If that line is outside the repository, for example in a
    library, it is the line in the repository that called it, or else the line of the mechanism.
    """
    trace = traced(result)
    first = None if trace is None or not trace.causes else trace.causes[0]
    lines = [] if first is None else [first.line, *first.others]
    inside = (f"{one.file}:{one.line}" for one in lines if _is_inside(one))
    return next(inside, result.source)


def attributes(result: AuditResult) -> dict[str, str]:
    """Return the line of code of `place` as attributes for CI systems: `file`, its path in the
    repository, and `line`. Return {} if the line is unknown."""
    file, _, line = (place(result) or "").rpartition(":")
    return {"file": located(file).path, "line": line} if file and line.isdigit() else {}


def _is_inside(one: SourceLine) -> bool:
    is_plain = one.line > 0 and visible(in_a_line(one.file)) == one.file
    return is_plain and located(one.file).is_inside


class Location(NamedTuple):
    """The path of a file, with slashes. It is relative to the root of the repository if the file
    `is_inside` the repository, else absolute."""

    path: str
    is_inside: bool


def root() -> Path:
    """Return the root of the repository.

    It is the folder in GITHUB_WORKSPACE. Without this variable, it is the nearest folder with
    `.git` among the working directory and its parents, or else the working directory.
    """
    workspace = os.environ.get(_WORKSPACE, "")
    here = _absolute("")
    if workspace and Path(workspace).is_dir():
        return _absolute(workspace)
    # Test for existence, not for a folder: `.git` is a folder in a clone, but a file in a git
    # worktree.
    return next((one for one in (here, *here.parents) if (one / ".git").exists()), here)


def located(file: str) -> Location:
    """Return the path of a file as a `Location`: relative to the root of the repository if the file
    is inside the repository, else absolute.

    file: its path, absolute or relative to the working directory.
    """
    top, path = root(), _absolute(file)
    for one, other in ((path, top), (_real(path), _real(top))):
        if one.is_relative_to(other) and one != other:
            return Location(one.relative_to(other).as_posix(), is_inside=True)
    return Location(path.as_posix(), is_inside=False)


def uri(path: PurePath | str) -> str:
    """Return a path as a URI: `file://…` for an absolute path, else a relative reference."""
    pure = PurePath(path)
    text = quote(pure.as_posix(), errors="replace")
    return f"file://{'' if text.startswith('/') else '/'}{text}" if pure.is_absolute() else text


def _absolute(path: str) -> Path:
    here = os.sep
    with suppress(OSError):  # raised if the working directory was removed
        here = os.getcwd()
    return Path(os.path.normpath(Path(here) / path))


def _real(path: Path) -> Path:
    """Return a path with its symbolic links resolved, or unchanged if they cannot be resolved."""
    with suppress(OSError, ValueError):  # such as a name that no file can have
        return Path(os.path.realpath(path))
    return path
