"""Primitives: where noise comes from. One file for each library, with a line here."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ..primitives import (
    diffprivlib,
    numpy_random,
    opendp,
    own,
    pydp,
    python_random,
    scipy_stats,
    torch,
)
from ..primitives.replacement import grouped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..primitives.replacement import Replacement, Replacements
    from ..recording import Recorder

    Own = Callable[[Recorder], Iterator[Replacement]]


LIBRARIES = (numpy_random, python_random, scipy_stats, torch, diffprivlib, opendp, pydp)


class Primitives:
    """What stands in for primitives during a run; for those of libraries made once for all runs.

    own: of the user's own, made for each run.
    """

    def __init__(self, own: Sequence[Own] = ()) -> None:
        self._own = own
        self._now: Any = _Now()
        # As many modules were loaded when these were made.
        self._loaded = 0
        self._made: list[Replacements] = []

    def replacements(self, recorder: Recorder) -> list[Replacements]:
        """Return what stands in for the primitives of all libraries that are loaded."""
        self._now.itself = recorder
        if len(sys.modules) != self._loaded:
            made = (one for library in LIBRARIES for one in library.replacements(self._now))
            self._made = grouped([*made, *own.announced(self._now)])
            self._loaded = len(sys.modules)
        if not self._own:
            return self._made
        return [*self._made, *grouped(one for source in self._own for one in source(recorder))]


class _Now:
    """The recorder of the run that is under way, for what outlives a run."""

    __slots__ = ("itself",)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.itself, name)
