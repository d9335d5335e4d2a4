"""When the collector of circular garbage stays away."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Import modules, or read a large file. What is made stays, so that the collector finds
    nothing; but it looks through all of it again and again, which would take a tenth of the start
    of a run, and a third of the reading."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Makes all of it old at once, or the next look, which is due, would go through it. What the
        # program around has frozen would be thawed, too, and stays as it is; counting that takes
        # milliseconds.
        is_due = gc.get_count()[0] > gc.get_threshold()[0]
        if is_due and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if collects:
            gc.enable()
