"""Exceptions that a mechanism raises: message, and the file and line of the user's code.

dpaudit.adapters uses these functions for calls in this process, worker.py for calls in a separate
process. `end_if_forked` ends processes that a mechanism has forked and not ended. The file runs
under Python 3.8 and without dpaudit, since worker.py may run under another Python interpreter.
"""

from __future__ import annotations

import os
from functools import lru_cache

TYPE_CHECKING = False  # avoids the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Folder of dpaudit.
_OURS = __file__.rpartition(os.sep)[0].rpartition(os.sep)[0] + os.sep
# Folder of the standard library.
_PYTHONS = os.__file__.rpartition(os.sep)[0] + os.sep
# Parts of the paths of installed packages: /site-packages/ and /dist-packages/.
_INSTALLED = tuple(f"{os.sep}{kind}-packages{os.sep}" for kind in ("site", "dist"))
# Ranks of a file in a traceback; the innermost line in a file of the lowest rank is shown.
# _OWN: a file of the user.  _FOREIGN: a file of a library.
# _NOT_SHOWN: a file of dpaudit, or code without a file.
_OWN, _FOREIGN, _NOT_SHOWN = range(3)

# Exceptions of a call that count as outcomes. KeyboardInterrupt (Ctrl-C) does not.
FAILURES = (Exception, SystemExit)


def end_if_forked(owner: int, error: BaseException | None = None) -> None:
    """End this process if it is a fork that the mechanism made.

    A fork that went on after the call would continue the audit, fork again, and so on without end.
    The exit code is the code that Python would give for the exception.

    owner: id of the process that dpaudit runs in; no other process may go on.
    error: exception that ended the call, if any.
    """
    if os.getpid() != owner:
        code = error.code if isinstance(error, SystemExit) else error is not None
        os._exit(code if isinstance(code, int) else code is not None)


def raised(error: BaseException) -> dict[str, list[str]]:
    """Return a mapping for JSON that stands for an exception; exchange.py reads it.

    The key is "$raised". The value lists the kind (name of the type), the message, and the file and
    line.
    """
    kind = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return {"$raised": [kind, message_of(error), origin(error)]}


def message_of(error: BaseException) -> str:
    """Return the message of an exception, cut after 200 characters."""
    try:
        return str(error)[:200]
    except Exception:  # noqa: BLE001  # an exception whose __str__ raises counts as an outcome, too
        return ""


def words(error: BaseException) -> str:
    """Return the type and message of an exception in one line, at most 300 characters of message.

    The advice that NumPy puts before the message of a failed import is left out.
    """
    message = " ".join(str(error).rpartition("Original error was: ")[2].split())[:300]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def post_processed(function: Callable[[Any], Any], output: Any) -> Any:
    """Return `function(output)`, the post-processed output.

    All post-processing is called here, so that `origin` finds this function in a traceback if
    post-processing raised the exception.
    """
    return function(output)


def origin(error: BaseException) -> str:
    """Return the file and line that raised an error, such as "mine.py:12", or an empty text.

    This is the innermost line of the traceback in a file of the user: the user's call of a library
    helps more than the line of the library that raised. If there is no file of the user, it is the
    innermost line outside of dpaudit. If post-processing raised the error, its name comes first.
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
    # The file name of code that was compiled from a text begins with "<"; dpaudit.adapters compiles
    # such code for its calls.
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
    inside = file[len(here) :] if file.startswith(here) else file  # noqa: FURB188  # removeprefix needs Python 3.9
    return f"{inside}:{line}"
