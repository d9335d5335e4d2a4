"""Warnings that a call, or a step before the calls such as an import, has not returned for long.

Each is logged once per mechanism. Calls in this process are watched by a thread that looks every
second at the number of outputs, which costs a draw nothing. Code that waits for another process
calls `left` itself."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager

# Seconds without an output after which a warning is logged, and between two looks of the thread.
PATIENCE, LOOK = 10.0, 1.0
# A batch may take this many times as long per draw as the slowest batch so far.
_SLOWER = 10.0
_UNTIMED = (
    "if it never returns, press Ctrl-C and add {}: such a call then counts as the outcome timeout"
)
_IN_PROCESS = _UNTIMED.format("--isolate --timeout 10s (isolate: true and timeout: 10s)")
_IN_ANOTHER = _UNTIMED.format("--timeout 10s (timeout: 10s)")

_log = logging.getLogger(__name__)


class Watch:
    """The warnings about one mechanism. advice: what to do about a call that does not return."""

    # Returns whether this process logs the warning; set in workers, of which one logs it.
    may_warn: Callable[[], bool] = staticmethod(lambda: True)
    # Whether steps before the calls are warned about; false in workers, which repeat them.
    warns_of_steps: bool = True

    def __init__(self, advice: str = _IN_PROCESS) -> None:
        self._advice, self._slowest = advice, 0.0
        # A likely reason, which precedes the advice.
        self.hint = ""
        self._warned: set[str] = set()

    @classmethod
    def of_process(cls, timeout: float | None) -> Watch:
        """Return the watch of a mechanism in another process. timeout: seconds per call."""
        if timeout is None:
            return cls(_IN_ANOTHER)
        return cls(f"after {timeout:g} s it counts as the outcome timeout")

    @classmethod
    def without_timeout(cls) -> Watch:
        """Return the watch of calls in this process for which there is no time-out."""
        return cls("if it never returns, press Ctrl-C")

    def calls(self, name: str, outputs: Sized) -> AbstractContextManager[None]:
        """Watch calls of this thread. outputs: grows with each call that returns."""
        return _watched(Waiting(self, name, outputs.__len__))

    @contextmanager
    def batch(self, name: str, size: int) -> Iterator[None]:
        """Watch one call for many draws."""
        start = time.monotonic()
        with _watched(Waiting(self, name, lambda: 0, self._extra(size))):
            yield
        self._slowest = max(self._slowest, (time.monotonic() - start) / max(1, size))

    def runs(self, name: str, times: int, extra: float = 0.0) -> AbstractContextManager[None]:
        """Watch outputs of `times` calls each, which are watched inside. extra: seconds that an
        output may take in addition to `PATIENCE`."""
        return _watched(_Runs(self, name, times, extra))

    def waiting(self, name: str, counter: Sequence[int] = (0,), size: int = 1) -> Waiting:
        """Return a clock for code that waits for another process. counter: its first entry changes
        with each output. size: outputs per call."""
        return Waiting(self, name, lambda: counter[0], self._extra(size))

    def warn_if_idle(self, name: str, seconds: float, extra: float) -> bool:
        """Warn of a call that takes too long; return whether there was a warning, now or before.

        seconds: time since the last output. extra: seconds allowed in addition to `PATIENCE`.
        """
        if seconds >= PATIENCE + extra and self.should_warn("a call"):
            words = "a call of %s has not returned for %.0f s; %s"
            _log.warning(words, name, seconds, "; ".join(filter(None, [self.hint, self._advice])))
        return "a call" in self._warned

    def should_warn(self, topic: str) -> bool:
        """Return whether to warn of a topic: once, and in one process only."""
        if topic in self._warned:
            return False
        self._warned.add(topic)
        return Watch.may_warn()

    def _extra(self, size: int) -> float:
        return max(size, _SLOWER * self._slowest * size) if size > 1 else 0.0


class _Clock:
    """The time since a count changed last."""

    def __init__(self, watch: Watch, name: str, extra: float = 0.0) -> None:
        self._watch, self._name, self._extra = watch, name, extra
        self._count, self._since = 0, time.monotonic()

    def _idle(self, count: int) -> float:
        now = time.monotonic()
        if count != self._count:
            self._count, self._since = count, now
        return now - self._since


class Waiting(_Clock):
    """A wait for outputs without a time limit. count: returns the number of outputs so far."""

    def __init__(
        self, watch: Watch, name: str, count: Callable[[], int], extra: float = 0.0
    ) -> None:
        super().__init__(watch, name, extra)
        self._read = count
        # The output of several runs that calls of this thread are part of, if any.
        outer = _now.get(threading.get_ident())
        self._runs = outer if isinstance(outer, _Runs) else None
        if self._runs is not None:
            self._runs.begin()

    def left(self) -> float:
        """Warn if it is time; return the seconds left, inf."""
        count = self._read()
        has_warned = self._watch.warn_if_idle(self._name, self._idle(count), self._extra)
        if self._runs is not None and not has_warned:
            self._runs.see(count)
        return math.inf


class Step(_Clock):
    """A step between or before the calls, such as `Step("importing m.py")`."""

    def __init__(self, words: str, watch: Watch | None = None) -> None:
        super().__init__(watch or Watch(), words)

    def left(self) -> float:
        """Warn if it is time; return the seconds left, inf."""
        seconds = self._idle(0)
        if seconds >= PATIENCE and Watch.warns_of_steps and self._watch.should_warn(self._name):
            words = "%s has not ended for %.0f s; if it never ends, press Ctrl-C"
            _log.warning(words, self._name, seconds)
        return math.inf


def step(words: str, watch: Watch | None = None) -> AbstractContextManager[None]:
    """Watch a step of this thread, such as `step("importing m.py")`."""
    return _watched(Step(words, watch))


class _Runs(_Clock):
    """Outputs of several calls each, counted by their calls."""

    def __init__(self, watch: Watch, name: str, times: int, extra: float) -> None:
        super().__init__(watch, name, extra)
        self._times, self._before, self._calls = times, 0, 0

    def begin(self) -> None:
        """Count calls from 0 again; at least one more call has returned."""
        self._before, self._calls = self._before + self._calls + 1, 0

    def see(self, calls: int) -> None:
        """Set the number of calls since `begin`, and warn if it is time."""
        self._calls = calls
        self.left()

    def left(self) -> float:
        """Warn if it is time; return the seconds left, inf."""
        seconds = self._idle((self._before + self._calls) // self._times)
        if seconds >= PATIENCE + self._extra and self._watch.should_warn("an output"):
            words = "an output of %s, %s runs (repeat), takes more than %.0f s; fewer are faster"
            _log.warning(words, self._name, f"{self._times:,}", seconds)
        return math.inf


_Watched = Waiting | Step | _Runs

# What each thread waits for, and the thread that looks at it, which sleeps while nothing is there.
_now: dict[int, _Watched] = {}
_called = threading.Event()
_looking: threading.Thread | None = None


def _look() -> None:
    while _called.wait():
        time.sleep(LOOK)
        for watched in list(_now.values()):
            watched.left()
        _called.clear()
        if _now:
            _called.set()


@contextmanager
def _watched(watched: _Watched) -> Iterator[None]:
    global _looking
    thread = threading.get_ident()
    outer = _now.get(thread)
    _now[thread] = watched
    _called.set()
    # A fork of the process has no other thread than the one that forked.
    if _looking is None or not _looking.is_alive():
        _looking = threading.Thread(target=_look, name="dpaudit-watch", daemon=True)
        _looking.start()
    try:
        yield
    finally:
        if outer is None:
            del _now[thread]
        else:
            _now[thread] = outer
