"""What comes out of a mechanism: what an exception says, and where it was raised, the line that its
author can change; and processes that it forked.

For Python 3.8 and without dpaudit, since worker.py uses it in a process of its own.
"""

from __future__ import annotations

import os
from functools import lru_cache

TYPE_CHECKING = False  # spares the import of typing
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_OURS = __file__.rpartition(os.sep)[0].rpartition(os.sep)[0] + os.sep
_PYTHONS = os.__file__.rpartition(os.sep)[0] + os.sep
_INSTALLED = tuple(f"{os.sep}{kind}-packages{os.sep}" for kind in ("site", "dist"))
_OWN, _FOREIGN, _NOT_SHOWN = range(3)

# What a draw may raise and still be an outcome; Ctrl-C is not one.
FAILURES = (Exception, SystemExit)


def end_if_forked(owner: int, error: BaseException | None = None) -> None:
    """End this process, as Python would have, unless it is `owner`: a fork that ends by an error,
    or comes back, would go on with the audit, fork again, and so on without an end."""
    if os.getpid() != owner:
        code = error.code if isinstance(error, SystemExit) else error is not None
        os._exit(code if isinstance(code, int) else code is not None)


def raised(error: BaseException) -> dict[str, list[str]]:
    """Return an exception as JSON has it."""
    kind = "out of memory" if isinstance(error, MemoryError) else type(error).__name__
    return {"$raised": [kind, message_of(error), origin(error)]}


def message_of(error: BaseException) -> str:
    """Return the message of an exception, of a long one the start."""
    try:
        return str(error)[:200]
    except Exception:  # noqa: BLE001  # an exception whose own __str__ fails is still an outcome
        return ""


def words(error: BaseException) -> str:
    """Return an exception in one line, without the advice that NumPy puts in front."""
    message = " ".join(str(error).rpartition("Original error was: ")[2].split())[:300]
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def post_processed(function: Callable[[Any], Any], output: Any) -> Any:
    """Return what post-processing makes of an output. It has a function of its own, so that
    `origin` knows what it raises from what the mechanism does."""
    return function(output)


def origin(error: BaseException) -> str:
    """Return the file and line that raised an error, `mine.py:12`; nothing where none is known.

    The innermost line in a file of the user's own, else the innermost of all but ours: which call
    made a library raise helps more than where it did. Post-processing that raised it is named.
    """
    step, found, best, parts = error.__traceback__, None, _FOREIGN, []
    while step is not None:
        if step.tb_frame.f_code is post_processed.__code__:
            function = step.tb_frame.f_locals["function"]
            parts = ["post_process " + getattr(function, "__qualname__", type(function).__name__)]
        rank = _rank(step.tb_frame.f_code.co_filename)
        if rank <= best:
            found, best = step, rank
        step = step.tb_next
    if found is not None:
        parts.append(_place(found.tb_frame.f_code.co_filename, found.tb_lineno))
    return ", ".join(parts)


@lru_cache(maxsize=1024)
def _rank(file: str) -> int:
    # What is made of a text, such as the calls that the adapter writes, has no file to look into.
    if file.startswith((_OURS, "<")):
        return _NOT_SHOWN
    is_foreign = file.startswith(_PYTHONS) or any(map(file.__contains__, _INSTALLED))
    return _FOREIGN if is_foreign else _OWN


@lru_cache(maxsize=1024)
def _place(file: str, line: int) -> str:
    try:
        here = os.getcwd() + os.sep
    except OSError:  # the folder is gone
        return f"{file}:{line}"
    inside = file[len(here) :] if file.startswith(here) else file  # noqa: FURB188  # since 3.9
    return f"{inside}:{line}"
