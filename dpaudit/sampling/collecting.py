"""How often circular garbage is looked for while the outputs of a block are read."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# So many new objects are made before garbage is looked for. With more, reading is hardly faster.
_OBJECTS = 10_000

_lock = threading.Lock()
# The thresholds before the first of the blocks that threads read at the same time.
_before: list[tuple[int, int, int]] = []


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Read the outputs of a block. If they are lists or dicts, they are many objects, which Python
    looks through for circular garbage again and again, though they are let go without it. While the
    mechanism runs it looks as usual, since what a call leaves may be large."""
    with _lock:
        _before.append(_before[0] if _before else gc.get_threshold())
        first = _before[0]
        if 0 < first[0] < _OBJECTS:
            gc.set_threshold(_OBJECTS, *first[1:])
    try:
        yield
    finally:
        with _lock:
            first = _before.pop()
            # What somebody else has set stays.
            if not _before and gc.get_threshold() == (_OBJECTS, *first[1:]):
                gc.set_threshold(*first)
