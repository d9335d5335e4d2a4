"""An exception that a mechanism raises becomes the outcome of its draw.

What a crash of a whole process becomes is in `dpaudit.processes.child`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dpaudit.float_errors import theirs
from dpaudit.outcomes import Raised
from dpaudit.processes.origin import FAILURES, end_if_forked, message_of, origin

# So many exceptions of a batch of draws that differ are looked up in the code.
_MOST_PLACES = 64


def collected(
    draws: Iterator[Any],
    size: int,
    watched: Callable[[list[Any]], AbstractContextManager[Any]] = nullcontext,
) -> list[Any]:
    """Return `size` outputs, exceptions as `Raised`; the loop that every draw goes through.

    watched: the context in which it runs, given the outputs, which grow draw by draw.
    """
    outputs: list[Any] = []
    seen: dict[tuple[str, str], Raised] = {}
    owner = os.getpid()
    with watched(outputs), theirs():
        while len(outputs) < size:
            try:
                outputs.extend(draws)  # keeps what came before an exception, and can go on after it
                # A mechanism that raises StopIteration only seems to have come to the end.
                if len(outputs) < size:
                    outputs.append(raised(StopIteration()))
            except FAILURES as error:
                end_if_forked(owner, error)
                outputs.append(_seen(error, seen))
    end_if_forked(owner)
    return outputs


def raised(error: BaseException) -> Raised:
    """Return an exception as an outcome."""
    return Raised(type(error).__name__, message_of(error), origin(error))


def _seen(error: BaseException, seen: dict[tuple[str, str], Raised]) -> Raised:
    """Return `raised`, looking for the line only of the first exceptions that differ: it takes a
    microsecond, and is shown for the first of a kind."""
    named = type(error).__name__, message_of(error)
    if named not in seen:
        if len(seen) == _MOST_PLACES:
            return Raised(*named)
        seen[named] = Raised(*named, origin(error))
    return seen[named]
