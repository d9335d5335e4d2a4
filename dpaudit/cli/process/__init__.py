"""Manage the process of a command: its signals, its standard streams, and its end."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Within the `with` block, switch the garbage collector off. Meant for imports and for reading
    a large file.

    Imports and files create many objects that all stay in use, so the collector would find nothing
    to free. Its repeated passes would take a tenth of the time to start a run, and a third of the
    time to read a file.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # If a collection is due, let it skip all present objects: gc.freeze, then gc.unfreeze moves
        # them to the oldest generation, which this collection does not visit. Objects that the
        # caller has frozen would be unfrozen, too, so do nothing if there are any.
        # gc.get_freeze_count takes milliseconds, so it is called last.
        is_due = gc.get_count()[0] > gc.get_threshold()[0]
        if is_due and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()
