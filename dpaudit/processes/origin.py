"""Describe exceptions that a mechanism raises: the message, and the line of the user's code.
`end_if_forked` ends processes that a mechanism has forked and left running. The file must run with
Python 3.8 and without dpaudit, since child_script.py may use another Python interpreter."""

from __future__ import annotations

import os
from functools import lru_cache

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Folder of the package dpaudit, with a separator at the end.
_OURS = __file__.rpartition(os.sep)[0].rpartition(os.sep)[0] + os.sep
# Folder of Python's standard library, with a separator at the end.
_PYTHONS = os.__file__.rpartition(os.sep)[0] + os.sep
# A path with one of these parts is in an installed package: /site-packages/ or /dist-packages/.
_INSTALLED = tuple(f"{os.sep}{kind}-packages{os.sep}" for kind in ("site", "dist"))
# Ranks of the files in a traceback. _OWN: of the user. _FOREIGN: of a library. _NOT_SHOWN: of
# dpaudit, or without a file. Messages show the innermost line among the lines of the lowest rank.
_OWN, _FOREIGN, _NOT_SHOWN = range(3)

# Exceptions of a call that count as outcomes of the mechanism. KeyboardInterrupt (Ctrl-C) does not.
FAILURES = (Exception, SystemExit)


def end_if_forked(owner: int, error: BaseException | None = None) -> None:
    """End this process if it is a fork that the mechanism has made. `owner` is the id of the
    process in which dpaudit runs. The exit code is the one that Python would give for `error`, if
    any.

    If a fork continued after the call, it would repeat the rest of the audit, fork again, and so on
    without end.
    """
    if os.getpid() != owner:
        code = error.code if isinstance(error, SystemExit) else error is not None
        os._exit(code if isinstance(code, int) else code is not None)


def raised(error: BaseException) -> dict[str, list[str]]:
    """Return {"$raised": [type, message, file and line]}, which stands for an exception in JSON."""
    kind = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return {"$raised": [kind, message_of(error), origin(error)]}


def message_of(error: BaseException) -> str:
    """Return the message of an exception, cut to 200 characters."""
    try:
        return str(error)[:200]
    except Exception:  # noqa: BLE001  # an exception whose __str__ raises counts as an outcome, too
        return ""


def words(error: BaseException) -> str:
    """Return the type and the message of an exception as one line. The message is cut to 300
    characters; the advice that NumPy adds for a failed import is left out."""
    message = " ".join(str(error).rpartition("Original error was: ")[2].split())[:300]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def post_processed(function: Callable[[Any], Any], output: Any) -> Any:
    """Return `function(output)`, the post-processed output. If a traceback contains the name of
    this function, `origin` knows that post-processing raised the exception."""
    return function(output)


def origin(error: BaseException) -> str:
    """Return the file and line that raised an error, such as "mine.py:12", or "" if unknown. This
    is the innermost line of the user's code or, if there is none, the innermost line outside of
    dpaudit. If post-processing raised the error, the text begins by saying so."""
    step, innermost, best, parts = error.__traceback__, None, _FOREIGN, []
    while step is not None:
        if step.tb_frame.f_code is post_processed.__code__:
            function = step.tb_frame.f_locals["function"]
            parts = ["post_process " + getattr(function, "__qualname__", type(function).__name__)]
        rank = _rank(step.tb_frame.f_code.co_filename)
        if rank <= best:
            innermost, best = step, rank
        step = step.tb_next
    if innermost is not None:
        parts.append(location(innermost.tb_frame.f_code.co_filename, innermost.tb_lineno))
    return ", ".join(parts)


@lru_cache(maxsize=1024)
def _rank(file: str) -> int:
    # A message that shows where an error arose leaves out lines of dpaudit, and lines of code that
    # was compiled from a string: dpaudit.adapters calls mechanisms through such code. The file name
    # of code that was compiled from a string begins with "<".
    if file.startswith((_OURS, "<")):
        return _NOT_SHOWN
    is_foreign = file.startswith(_PYTHONS) or any(map(file.__contains__, _INSTALLED))
    return _FOREIGN if is_foreign else _OWN


@lru_cache(maxsize=1024)
def location(file: str, line: int) -> str:
    """Return `file:line`, with a path relative to the working directory if the file is inside."""
    try:
        here = os.getcwd() + os.sep
    except OSError:  # the folder was removed
        return f"{file}:{line}"
    inside = file[len(here) :] if file.startswith(here) else file  # noqa: FURB188  # removeprefix needs Python 3.9
    return f"{inside}:{line}"
