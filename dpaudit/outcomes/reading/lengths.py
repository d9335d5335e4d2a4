"""How long an output is, before many of its like are held at once."""

from __future__ import annotations

import dataclasses
import math
from collections import abc
from contextlib import suppress
from typing import Any

import numpy as np

from dpaudit.errors import MechanismError
from dpaudit.outcomes.frames import is_frame, is_series

# Entries of an output at most; so many characters, or bytes, count as one.
MOST, _CHARACTERS = 100_000, 8
# Levels beyond those that are read.
_DEEP = 100


def checked_length(output: Any) -> int:
    """Return how many entries an output has, at all depths. Raises MechanismError for too many."""
    total, stack = 0, [(output, 0)]
    while stack:
        value, depth = stack.pop()
        own, parts = _own(value)
        total += own + len(parts)
        if total > MOST:
            raise _too_long(output)
        if depth > _DEEP:  # perhaps it contains itself: whoever reads it says so
            break
        stack.extend((part, depth + 1) for part in parts)
    return max(1, total)


def _own(value: Any) -> tuple[int, abc.Collection[Any]]:
    """Return the entries that a value is by itself, and those in it that are still to be seen."""
    if isinstance(value, str | bytes | bytearray):
        return len(value) // _CHARACTERS, ()
    if isinstance(value, np.ndarray):
        return (0, value.ravel()) if value.dtype.hasobject else (value.size, ())
    if isinstance(value, abc.Mapping):
        return _too_many(value) or (0, [*value.keys(), *value.values()])
    if isinstance(value, abc.Sequence | abc.Set):
        return _too_many(value) or (0, value)
    if dataclasses.is_dataclass(value):
        return 0, [getattr(value, one.name, None) for one in dataclasses.fields(value)]
    return _size(value), ()


def _size(value: Any) -> int:
    """Return how many entries a frame, a series or an Arrow array has; 0 for another value."""
    if is_frame(type(value)):
        return math.prod(value.shape)
    return len(value) if is_series(type(value)) else 0


def _too_many(value: abc.Collection[Any]) -> tuple[int, abc.Collection[Any]] | None:
    try:
        return (len(value), ()) if len(value) > MOST else None
    except OverflowError:  # longer than any index
        return MOST + 1, ()


def _too_long(output: Any) -> MechanismError:
    kind = type(output).__name__
    what = f" (a {kind})"
    with suppress(TypeError, OverflowError):  # it has no length, or one beyond any index
        what = f" (a {kind} of {len(output):,})"
    return MechanismError(
        f"the mechanism returns an output that is too long{what}: up to {MOST:,} entries, or "
        f"{MOST * _CHARACTERS:,} characters, can be audited; give post_process a function that "
        "makes it shorter, e.g. its sum, or the places where d1 and d2 differ",
        code="output-too-large",
    )
