"""Where and when something happens in one run: the spot, and how often it happened there before."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from .places import callers, own_frame

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from .events import Moment
    from .places import Followed, Spot


class Moments:
    """The moments of a run.

    followed: whose code is the user's own.  check: is called at each, and may raise.
    """

    def __init__(self, followed: Followed, check: Callable[[], None] | None) -> None:
        self._followed, self._check = followed, check
        self._counts: dict[tuple[str, Spot], int] = {}
        self._frame: FrameType | None = None
        self._known_callers: dict[Spot, tuple[Spot, ...]] = {}

    def spot(self) -> Spot | None:
        """Return where in the user's own code this happens; to be called by what primitives, or
        numbers, call."""
        if self._check is not None:
            self._check()
        frame = own_frame(sys._getframe(2), self._followed)
        self._frame = frame
        return self._followed.home if frame is None else self._followed.spot(frame)

    def callers(self, spot: Spot) -> tuple[Spot, ...]:
        """Return where the frame of the latest spot was called from, once for each spot: it is the
        same for all turns of a loop, nearly always."""
        known = self._known_callers.get(spot)
        if known is None:
            known = self._known_callers[spot] = callers(self._frame, self._followed)
        return known

    def next(self, kind: str, spot: Spot) -> Moment:
        """Return the moment at which something of a kind happens at a spot once more."""
        place = kind, spot
        number = self._counts.get(place, 0)
        self._counts[place] = number + 1
        return kind, spot, number
