"""Where a file stands in its repository, as code hosts name it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path, PurePath
from typing import NamedTuple
from urllib.parse import quote

# Where GitHub Actions has checked the repository out.
_WORKSPACE = "GITHUB_WORKSPACE"


class Location(NamedTuple):
    """The path of a file, with slashes: from the root of its repository where it `is_inside`, else
    absolute."""

    path: str
    is_inside: bool


def root() -> Path:
    """Return the root of the repository: GITHUB_WORKSPACE, else the nearest folder from the working
    directory upwards that git knows, else the working directory."""
    workspace = os.environ.get(_WORKSPACE, "")
    here = _absolute("")
    if workspace and Path(workspace).is_dir():
        return _absolute(workspace)
    # A file in the place of the folder in a worktree.
    return next((one for one in (here, *here.parents) if (one / ".git").exists()), here)


def located(file: str) -> Location:
    """Return where a file stands. file: as seen from the working directory."""
    top, path = root(), _absolute(file)
    for one, other in ((path, top), (_real(path), _real(top))):
        if one.is_relative_to(other) and one != other:
            return Location(one.relative_to(other).as_posix(), is_inside=True)
    return Location(path.as_posix(), is_inside=False)


def uri(path: PurePath | str) -> str:
    """Return a path as a URI: of a file where it is absolute, else relative."""
    pure = PurePath(path)
    text = quote(pure.as_posix(), errors="replace")
    return f"file://{'' if text.startswith('/') else '/'}{text}" if pure.is_absolute() else text


def _absolute(path: str) -> Path:
    here = os.sep
    with suppress(OSError):  # of a working directory that is gone
        here = os.getcwd()
    return Path(os.path.normpath(Path(here) / path))


def _real(path: Path) -> Path:
    """Return a path without links, where the system can follow it."""
    with suppress(OSError, ValueError):  # such as a name that no file can have
        return Path(os.path.realpath(path))
    return path
