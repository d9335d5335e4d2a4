"""What messages say of places, in the same words everywhere."""

from __future__ import annotations

import stat
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def what_is_there(path: Path) -> str:
    """Return what a path leads to that is no regular file, such as `"a folder"`; else `""`."""
    try:
        return kind_of(path.stat().st_mode)
    except (OSError, ValueError):  # not there, or a link to what is not; or no path at all
        is_link = path.is_symlink()
    return f"a symbolic link to {str(path.readlink())!r}, which is not there" if is_link else ""


def kind_of(mode: int) -> str:
    """Return what is no regular file, by the mode that the system says; else `""`."""
    return next((name for is_one, name in _KINDS if is_one(mode)), "")
