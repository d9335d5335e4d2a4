"""Time limits: for a call of a user's code, which may never return, and for a whole search."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Thread
from typing import Any

from dpaudit.errors import DatasetError, DpauditError

# Time limit of a call of a user's code, in seconds; a longer call counts as failed. For a call that
# reports its progress, the time starts again at each progress.
CALL_SECONDS = 10.0


class SearchEnded(Exception):
    """Raised when a search has reached its time limit or its number of trials."""


class Limit:
    """A limit of a search: seconds since the creation of this object, and a number of trials."""

    def __init__(self, seconds: float = math.inf, trials: float = math.inf) -> None:
        self._began, self._trials = time.monotonic(), trials
        self._end = self._began + seconds

    def elapsed(self) -> float:
        """Return the seconds since this object was created."""
        return time.monotonic() - self._began

    def is_over(self) -> bool:
        """Return whether the seconds of the limit have passed."""
        return time.monotonic() > self._end

    def spend(self) -> None:
        """Count a trial. Raises SearchEnded if no trials are left, or if the time is up."""
        self._trials -= 1
        if self._trials < 0 or self.is_over():
            raise SearchEnded


def within(call: Callable[[], Any], words: str, progress: Callable[[], int] | None = None) -> Any:
    """Return the value of `call()`. Raises DatasetError, with the description `words`, if the call
    raises an exception, or takes longer than 10 s. The time starts again when the number that
    `progress` returns has grown."""
    values: list[Any] = []
    raised: list[BaseException] = []

    def called() -> None:
        try:
            values.append(call())
        except BaseException as error:  # noqa: BLE001  # raised again below
            raised.append(error)

    # The call runs in a thread of its own, so that this function can go on if the call never
    # returns. Python cannot stop a thread, so it is a daemon thread, which does not keep the
    # program from ending.
    thread = Thread(target=called, daemon=True)
    thread.start()
    previous, done = -1, progress or (lambda: 0)
    while thread.is_alive() and done() > previous:
        previous = done()
        thread.join(CALL_SECONDS)
    if raised:
        error = raised[0]
        if isinstance(error, DpauditError):
            raise error
        raise DatasetError(
            f"{words} failed: {type(error).__name__}: {error}", code="generator-failed"
        ) from error
    if not values:
        raise DatasetError(
            f"{words} did not end in {CALL_SECONDS:g} s; let it give smaller inputs",
            code="generator-failed",
        )
    return values[0]
