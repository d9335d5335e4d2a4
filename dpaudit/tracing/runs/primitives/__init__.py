"""Primitives: the functions that draw noise. Each library has one file, and one entry here."""

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
    """The replacements of primitives: of libraries, made once for all runs, and of the user
    (`own`), made for each run."""

    def __init__(self, own: Sequence[Own] = ()) -> None:
        self._own = own
        self._now: Any = _Now()
        # Number of loaded modules when `_made` was computed.
        self._loaded = 0
        self._made: list[Replacements] = []

    def replacements(self, recorder: Recorder) -> list[Replacements]:
        """Return the replacements for the loaded libraries and for the user's functions."""
        self._now.itself = recorder
        if len(sys.modules) != self._loaded:
            made = (one for library in LIBRARIES for one in library.replacements(self._now))
            self._made = grouped([*made, *own.announced(self._now)])
            self._loaded = len(sys.modules)
        if not self._own:
            return self._made
        return [*self._made, *grouped(one for source in self._own for one in source(recorder))]


class _Now:
    """A proxy for the recorder of the present run, for replacements that serve many runs."""

    __slots__ = ("itself",)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.itself, name)
