"""Exceptions of a mechanism: their message, and the line of its author's code that raised them; and
processes that it forks.

It runs in Python 3.8 and without dpaudit, since worker.py uses it in a process of its own.
"""

from __future__ import annotations

import os
from functools import lru_cache

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_OURS = __file__.rpartition(os.sep)[0].rpartition(os.sep)[0] + os.sep
_PYTHONS = os.__file__.rpartition(os.sep)[0] + os.sep
_INSTALLED = tuple(f"{os.sep}{kind}-packages{os.sep}" for kind in ("site", "dist"))
_OWN, _FOREIGN, _NOT_SHOWN = range(3)

# Exceptions of a draw that are outcomes; Ctrl-C is not.
FAILURES = (Exception, SystemExit)


def end_if_forked(owner: int, error: BaseException | None = None) -> None:
    """End this process, with the exit code that Python would give, unless it is `owner`. A fork
    that raises, or returns, would continue the audit, fork again, and so on without end."""
    if os.getpid() != owner:
        code = error.code if isinstance(error, SystemExit) else error is not None
        os._exit(code if isinstance(code, int) else code is not None)


def raised(error: BaseException) -> dict[str, list[str]]:
    """Return an exception in the form that exchange.py reads."""
    kind = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return {"$raised": [kind, message_of(error), origin(error)]}


def message_of(error: BaseException) -> str:
    """Return the message of an exception, at most 200 characters."""
    try:
        return str(error)[:200]
    except Exception:  # noqa: BLE001  # an exception whose __str__ fails is an outcome, too
        return ""


def words(error: BaseException) -> str:
    """Return an exception in one line, without the advice that NumPy puts before it."""
    message = " ".join(str(error).rpartition("Original error was: ")[2].split())[:300]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def post_processed(function: Callable[[Any], Any], output: Any) -> Any:
    """Return the post-processed output. In a traceback, this function shows `origin` that
    post-processing raised the exception."""
    return function(output)


def origin(error: BaseException) -> str:
    """Return the file and line that raised an error, such as `mine.py:12`, or the empty text.

    It is the innermost line in a file of the user, else in any file outside dpaudit: the call that
    made a library raise says more than the line of the library. Post-processing is named.
    """
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
        parts.append(_place(innermost.tb_frame.f_code.co_filename, innermost.tb_lineno))
    return ", ".join(parts)


@lru_cache(maxsize=1024)
def _rank(file: str) -> int:
    # Code that was compiled from a text, such as the calls that the adapter writes, has no file.
    if file.startswith((_OURS, "<")):
        return _NOT_SHOWN
    is_foreign = file.startswith(_PYTHONS) or any(map(file.__contains__, _INSTALLED))
    return _FOREIGN if is_foreign else _OWN


@lru_cache(maxsize=1024)
def _place(file: str, line: int) -> str:
    try:
        here = os.getcwd() + os.sep
    except OSError:  # the folder was removed
        return f"{file}:{line}"
    inside = file[len(here) :] if file.startswith(here) else file  # noqa: FURB188  # since 3.9
    return f"{inside}:{line}"
