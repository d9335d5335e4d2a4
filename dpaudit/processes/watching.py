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
from contextlib import contextmanager
from dataclasses import dataclass

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

    @contextmanager
    def calls(self, name: str, outputs: Sized) -> Iterator[None]:
        """Watch calls of this thread, each of which adds one to the outputs."""
        with _watched(_Calls(self, name, outputs)):
            yield

    @contextmanager
    def batch(self, name: str, size: int) -> Iterator[None]:
        """Watch one call for many draws."""
        start = time.monotonic()
        with _watched(_Calls(self, name, (), self._seconds(size))):
            yield
        self._slowest = max(self._slowest, (time.monotonic() - start) / max(1, size))

    def waiting(self, name: str, counter: Sequence[int] = (0,), size: int = 1) -> Waiting:
        """Return what is asked while an output, or a batch, of another process is waited for.

        counter: its first entry changes with every output.
        """
        return Waiting(self, name, counter, self._seconds(size) if size > 1 else 0.0)

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


class Standstill:
    """For how long a count has stood still, by what is seen of it."""

    def __init__(self, now: float) -> None:
        self._count, self._since = 0, now

    def lasts(self, count: int, now: float) -> float:
        """Return the seconds since the count was seen to change."""
        if count != self._count:
            self._count, self._since = count, now
        return now - self._since


class Waiting:
    """A wait without an end, for whoever asks how many seconds are left."""

    def __init__(self, watch: Watch, name: str, counter: Sequence[int], more: float) -> None:
        self._watch, self._name, self._counter, self._more = watch, name, counter, more
        self._standstill = Standstill(time.monotonic())

    def left(self) -> float:
        """Return that there is no end."""
        seconds = self._standstill.lasts(self._counter[0], time.monotonic())
        self._watch.stands_still(self._name, seconds, self._more)
        return math.inf


class _Calls:
    def __init__(self, watch: Watch, name: str, outputs: Sized, more: float = 0.0) -> None:
        self._watch, self._name, self._outputs, self._more = watch, name, outputs, more
        self._standstill = Standstill(time.monotonic())

    def look(self, now: float) -> None:
        seconds = self._standstill.lasts(len(self._outputs), now)
        self._watch.stands_still(self._name, seconds, self._more)


@dataclass(slots=True)
class _Thread:
    """The one of this process; it sleeps while nothing is called."""

    thread: threading.Thread | None = None

    def start(self) -> None:
        # A fork has no other thread than the one that forked.
        if self.thread is None or not self.thread.is_alive():
            self.thread = threading.Thread(target=_look_on, name="dpaudit-watch", daemon=True)
            self.thread.start()


# What every thread is calling now.
_now: dict[int, _Calls] = {}
_called = threading.Event()
_looking = _Thread()


@contextmanager
def _watched(calls: _Calls) -> Iterator[None]:
    thread = threading.get_ident()
    outer = _now.get(thread)
    _now[thread] = calls
    _called.set()
    _looking.start()
    try:
        yield
    finally:
        if outer is None:
            del _now[thread]
        else:
            _now[thread] = outer


def _look_on() -> None:
    while _called.wait():
        time.sleep(LOOK)
        for calls in list(_now.values()):
            calls.look(time.monotonic())
        _called.clear()
        if _now:
            _called.set()
