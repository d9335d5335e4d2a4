"""Imports that the collector of circular garbage does not interrupt."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def undisturbed() -> Iterator[None]:
    """Import modules. What they make stays, so that the collector finds nothing; but it looks
    through all of it again and again, which would take a tenth of the start of a run."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        # Makes all of it old at once, or the next look, at what is new, would go through it.
        gc.freeze()
        gc.unfreeze()
        if collects:
            gc.enable()
