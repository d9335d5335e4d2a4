"""Says, once for a mechanism, that a call of it has not returned for long: it may never.

Calls of this process are watched by a thread that looks every second how many outputs there are,
which costs a draw nothing; whoever waits for another process looks by itself.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager

# Seconds after which a call has not returned for long, and between two looks of the thread.
PATIENCE, LOOK = 10.0, 1.0
# A call for many draws may take so many times as long, draw by draw, as the slowest one so far.
_SLOWER = 10.0
_HERE = "--isolate --timeout 10s (isolate: true and timeout: 10s)"
ELSEWHERE = "--timeout 10s (timeout: 10s)"

_log = logging.getLogger(__name__)


class Watch:
    """Of one mechanism. remedy: what ends its calls."""

    # Returns whether this process is the one to say it; workers of one audit agree on that.
    may_tell: Callable[[], bool] = staticmethod(lambda: True)

    def __init__(self, remedy: str = _HERE) -> None:
        self._remedy, self._has_told, self._slowest = remedy, False, 0.0

    def calls(self, name: str, outputs: Sized) -> AbstractContextManager[None]:
        """Watch calls of this thread, each of which adds one to the outputs."""
        return _watched(Waiting(self, name, outputs.__len__))

    @contextmanager
    def batch(self, name: str, size: int) -> Iterator[None]:
        """Watch one call for many draws."""
        start = time.monotonic()
        with _watched(Waiting(self, name, lambda: 0, self._seconds(size))):
            yield
        self._slowest = max(self._slowest, (time.monotonic() - start) / max(1, size))

    def waiting(self, name: str, counter: Sequence[int] = (0,), size: int = 1) -> Waiting:
        """Return what is asked while an output, or a batch, of another process is waited for.

        counter: its first entry changes with every output.
        """
        return Waiting(self, name, lambda: counter[0], self._seconds(size))

    def stands_still(self, name: str, seconds: float, more: float) -> None:
        """Take notice that nothing has come for so long. more: seconds that it may take besides."""
        if seconds < PATIENCE + more or self._has_told:
            return
        self._has_told = True
        if Watch.may_tell():
            _log.warning(
                "a call of %s has not returned for %.0f s; if it never returns, press Ctrl-C and "
                "add %s: such a call then counts as the outcome timeout",
                name,
                seconds,
                self._remedy,
            )

    def _seconds(self, size: int) -> float:
        return max(size, _SLOWER * self._slowest * size) if size > 1 else 0.0


class Waiting:
    """A wait without an end, by a count that changes with every output."""

    def __init__(
        self, watch: Watch, name: str, count: Callable[[], int], more: float = 0.0
    ) -> None:
        self._watch, self._name, self._count, self._more = watch, name, count, more
        self._seen, self._since = 0, time.monotonic()

    def left(self) -> float:
        """Look at the count; return that there is no end, to who asks how many seconds are left."""
        now, count = time.monotonic(), self._count()
        if count != self._seen:
            self._seen, self._since = count, now
        self._watch.stands_still(self._name, now - self._since, self._more)
        return math.inf


# What every thread is calling now, and the thread that looks on; it sleeps while nothing is called.
_now: dict[int, Waiting] = {}
_called = threading.Event()
_looking: threading.Thread | None = None


def _look_on() -> None:
    while _called.wait():
        time.sleep(LOOK)
        for calls in list(_now.values()):
            calls.left()
        _called.clear()
        if _now:
            _called.set()


@contextmanager
def _watched(calls: Waiting) -> Iterator[None]:
    global _looking
    thread = threading.get_ident()
    outer = _now.get(thread)
    _now[thread] = calls
    _called.set()
    # A fork has no other thread than the one that forked.
    if _looking is None or not _looking.is_alive():
        _looking = threading.Thread(target=_look_on, name="dpaudit-watch", daemon=True)
        _looking.start()
    try:
        yield
    finally:
        if outer is None:
            del _now[thread]
        else:
            _now[thread] = outer
