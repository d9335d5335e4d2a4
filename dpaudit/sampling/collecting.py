"""How often circular garbage is looked for while a block is drawn."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# As many new objects as a block of lists or dicts may have.
_OBJECTS = 200_000


@contextmanager
def rarely_collecting() -> Iterator[None]:
    """Draw a block by few calls. Its outputs, if they are lists or dicts, are many objects, which
    Python looks through for circular garbage again and again, though they are let go without it:
    for a fourth of the time. What garbage a call leaves is found after the block."""
    before = gc.get_threshold()
    if before[0]:
        gc.set_threshold(max(before[0], _OBJECTS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
