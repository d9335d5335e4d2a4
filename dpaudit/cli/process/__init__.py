"""The process of a command: its signals, its standard streams, and its end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Switch the garbage collector off while modules are imported or a large file is read.

    All objects made meanwhile are kept, so the collector would find nothing. Its repeated passes
    would take a tenth of the start of a run, and a third of reading a file.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Move all objects to the oldest generation, or the next collection, which is due, would
        # visit them. Objects that the surrounding program has frozen would be unfrozen, too, so
        # nothing is done then. Counting frozen objects takes milliseconds.
        is_due = gc.get_count()[0] > gc.get_threshold()[0]
        if is_due and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()
