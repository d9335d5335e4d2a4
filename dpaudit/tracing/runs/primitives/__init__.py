"""Primitives: where noise comes from. One file for each library, with a line here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import diffprivlib, numpy_random, opendp, own, pydp, python_random, scipy_stats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..recorder import Recorder
    from .replacement import Replacement

LIBRARIES = (numpy_random, python_random, scipy_stats, diffprivlib, opendp, pydp)


def replacements(recorder: Recorder) -> Iterator[Replacement]:
    """Yield what stands in for the primitives of all libraries that are loaded, during a run."""
    for library in LIBRARIES:
        yield from library.replacements(recorder)
    yield from own.announced(recorder)
