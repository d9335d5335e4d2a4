"""Says, once for a mechanism, that a call of it has not returned for long: it may never. And that
what comes before the calls, such as an import, has not ended.

What this process does is watched by a thread that looks every second, for calls how many outputs
there are, which costs a draw nothing; whoever waits for another process looks by itself.
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
_UNTIMED = (
    "if it never returns, press Ctrl-C and add {}: such a call then counts as the outcome timeout"
)
_HERE = _UNTIMED.format("--isolate --timeout 10s (isolate: true and timeout: 10s)")
_ELSEWHERE = _UNTIMED.format("--timeout 10s (timeout: 10s)")

_log = logging.getLogger(__name__)


class Watch:
    """Of one mechanism. advice: what to do about its calls."""

    # Returns whether this process is the one to say it; workers of one audit agree on that.
    may_tell: Callable[[], bool] = staticmethod(lambda: True)
    # Whether it says what it waits for before the calls: workers repeat what was said already.
    is_first: bool = True

    def __init__(self, advice: str = _HERE) -> None:
        self._advice, self._slowest = advice, 0.0
        # A likely reason, which stands before the advice.
        self.hint = ""
        self._told: set[str] = set()

    @classmethod
    def elsewhere(cls, timeout: float | None) -> Watch:
        """Return that of a mechanism in another process, which ends calls after so many seconds."""
        if timeout is None:
            return cls(_ELSEWHERE)
        return cls(f"after {timeout:g} s it counts as the outcome timeout")

    @classmethod
    def untimed(cls) -> Watch:
        """Return that of calls in this process to which no time-out applies."""
        return cls("if it never returns, press Ctrl-C")

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

    def runs(self, name: str, times: int, more: float = 0.0) -> AbstractContextManager[None]:
        """Watch outputs that are each so many calls, which are watched inside. more: seconds that
        an output may take besides."""
        return _watched(_Runs(self, name, times, more))

    def waiting(self, name: str, counter: Sequence[int] = (0,), size: int = 1) -> Waiting:
        """Return what is asked while an output, or a batch, of another process is waited for.
        counter: its first entry changes with every output."""
        return Waiting(self, name, lambda: counter[0], self._seconds(size))

    def stands_still(self, name: str, seconds: float, more: float) -> bool:
        """Take notice that nothing has come for so long; return whether that has been said. more:
        seconds that it may take besides."""
        if seconds >= PATIENCE + more and self.tells("a call"):
            words = "a call of %s has not returned for %.0f s; %s"
            _log.warning(words, name, seconds, "; ".join(filter(None, [self.hint, self._advice])))
        return "a call" in self._told

    def tells(self, what: str) -> bool:
        """Return whether to say something that is said once."""
        if what in self._told:
            return False
        self._told.add(what)
        return Watch.may_tell()

    def _seconds(self, size: int) -> float:
        return max(size, _SLOWER * self._slowest * size) if size > 1 else 0.0


class Waiting:
    """A wait without an end, by a count that changes with every output."""

    def __init__(
        self, watch: Watch, name: str, count: Callable[[], int], more: float = 0.0
    ) -> None:
        self._watch, self._name, self._count, self._more = watch, name, count, more
        self._seen, self._since = 0, time.monotonic()
        # The output that calls of this thread are part of, if it has several.
        outer = _now.get(threading.get_ident())
        self._runs = outer if isinstance(outer, _Runs) else None
        if self._runs is not None:
            self._runs.begin()

    def left(self) -> float:
        """Look at the count; return that there is no end, to who asks how many seconds are left."""
        now, count = time.monotonic(), self._count()
        if count != self._seen:
            self._seen, self._since = count, now
        has_told = self._watch.stands_still(self._name, now - self._since, self._more)
        if self._runs is not None and not has_told:
            self._runs.see(count)
        return math.inf


class Step:
    """One thing that is waited for, and said to take long. words: such as `importing m.py`."""

    def __init__(self, words: str, watch: Watch | None = None) -> None:
        self._words, self._watch, self._since = words, watch or Watch(), time.monotonic()

    def left(self) -> float:
        """Say it if it is time; return that there is no end."""
        seconds = time.monotonic() - self._since
        if seconds >= PATIENCE and Watch.is_first and self._watch.tells(self._words):
            words = "%s has not ended for %.0f s; if it never ends, press Ctrl-C"
            _log.warning(words, self._words, seconds)
        return math.inf


def step(words: str, watch: Watch | None = None) -> AbstractContextManager[None]:
    """Watch something that this thread does between calls, or before, such as `importing m.py`."""
    return _watched(Step(words, watch))


class _Runs:
    """Outputs of many calls each, by what is seen of the calls."""

    def __init__(self, watch: Watch, name: str, times: int, more: float) -> None:
        self._watch, self._name, self._times, self._more = watch, name, times, more
        self._before, self._calls, self._seen, self._since = 0, 0, 0, time.monotonic()

    def begin(self) -> None:
        """Take notice that calls are counted from 0 again: at least one more has returned."""
        self._before, self._calls = self._before + self._calls + 1, 0

    def see(self, calls: int) -> None:
        """Take notice of so many calls since `begin`."""
        self._calls = calls
        self.left()

    def left(self) -> float:
        """Say it if it is time; return that there is no end."""
        now, outputs = time.monotonic(), (self._before + self._calls) // self._times
        if outputs != self._seen:
            self._seen, self._since = outputs, now
        seconds = now - self._since
        if seconds >= PATIENCE + self._more and self._watch.tells("an output"):
            words = "an output of %s, %s runs (repeat), takes more than %.0f s; fewer are faster"
            _log.warning(words, self._name, f"{self._times:,}", seconds)
        return math.inf


_Watched = Waiting | Step | _Runs

# What every thread is doing now, and the thread that looks on; it sleeps while that is nothing.
_now: dict[int, _Watched] = {}
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
def _watched(calls: _Watched) -> Iterator[None]:
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
