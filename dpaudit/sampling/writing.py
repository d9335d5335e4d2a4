"""What files a mechanism writes: two processes that write the same one get in each other's way."""

from __future__ import annotations

import os
import sys
from types import TracebackType
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR
# Devices, which anybody may write to.
_DEVICES = "/dev/"


class Written:
    """files: paths that Python code has opened to write to while in this context, by any thread;
    not those that had to be new, and none that other programs open."""

    _listening: Written | None = None
    _is_hooked = False

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __enter__(self) -> Written:
        if not Written._is_hooked:  # for good: Python has no way to take a hook away
            sys.addaudithook(_heard)
            Written._is_hooked = True
        Written._listening = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        Written._listening = None


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    """Take notice of a file. It must not raise: whoever opens the file would get the exception."""
    listening = Written._listening
    if listening is None or event != "open" or len(arguments) != 3:
        return
    path, _, flags = arguments
    is_named = isinstance(path, (str, bytes)) and isinstance(flags, int)
    if not is_named or not flags & _WRITES or flags & os.O_EXCL:
        return
    named = os.fsdecode(path)
    # A temporary file is opened by the name of its folder.
    is_folder = os.path.isdir(named)  # noqa: PTH112  # unlike that of a Path, it never raises
    if not is_folder and not named.startswith(_DEVICES):
        listening.files.add(named)
