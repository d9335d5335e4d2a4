"""Warn the user if a call of the mechanism, or a step such as an import, has not returned for 10 s.

For each mechanism, each kind of warning is logged once. Calls in this process are made in a `with`
block of a `Watch`, while a background thread checks every second whether there are new outputs; so
watching does not slow down draws. Code that waits for another process calls `Waiting.left` from
time to time.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager

# Seconds without an output after which a warning is logged.
WARNING_SECONDS = 10.0
# A background thread checks at this interval, in seconds, whether a call takes too long.
LOOK_SECONDS = 1.0
# A call for n > 1 draws may take this factor times n times the longest time per draw of earlier
# calls, but at least n seconds, in addition to `WARNING_SECONDS`. After that, a warning is logged.
_SLOWER_FACTOR = 10.0
_UNTIMED = (
    "if it never returns, press Ctrl-C and add {}: such a call then counts as the outcome timeout"
)
_IN_PROCESS = _UNTIMED.format("--isolate --timeout 10s (isolate: true and timeout: 10s)")
_IN_ANOTHER = _UNTIMED.format("--timeout 10s (timeout: 10s)")

_log = logging.getLogger(__name__)


class Watch:
    """Logs warnings about a mechanism. Each kind of warning is logged once, and ends with
    `advice`."""

    # Function that returns whether this process may log a warning. It is called before each
    # warning. Workers replace it, so that only one of them logs a warning.
    may_warn: Callable[[], bool] = staticmethod(lambda: True)
    # Whether to warn of slow steps, such as imports, before the calls. False in workers, since the
    # main process has warned of the same steps.
    warns_of_steps: bool = True

    def __init__(self, advice: str = _IN_PROCESS) -> None:
        self._advice, self._slowest = advice, 0.0
        # Likely reason why a call does not return; "" if unknown. In a warning, it comes before the
        # advice what the user can do.
        self.hint = ""
        self._warned: set[str] = set()

    @classmethod
    def of_process(cls, timeout: float | None) -> Watch:
        """Return a `Watch` for a mechanism in another process. Its warnings end with advice on a
        draw that does not return. `timeout` is the time limit of a draw in seconds, or None."""
        if timeout is None:
            return cls(_IN_ANOTHER)
        return cls(f"after {timeout:g} s it counts as the outcome timeout")

    @classmethod
    def without_timeout(cls) -> Watch:
        """Return a watch for calls that have no time limit, such as post-processing."""
        return cls("if it never returns, press Ctrl-C")

    def calls(self, name: str, outputs: Sized) -> AbstractContextManager[None]:
        """Return a context in which this thread calls the mechanism `name` again and again. A call
        of more than `WARNING_SECONDS` gives a warning. The caller must append to `outputs` after
        each call."""
        return _watched(Waiting(self, name, outputs.__len__))

    @contextmanager
    def batch(self, name: str, size: int) -> Iterator[None]:
        """Return a context in which this thread makes one call for `size` draws. A slow call gives
        a warning; the time allowed grows with `size` and with the time of earlier calls."""
        start = time.monotonic()
        with _watched(Waiting(self, name, lambda: 0, self._extra(size))):
            yield
        self._slowest = max(self._slowest, (time.monotonic() - start) / max(1, size))

    def runs(self, name: str, times: int, extra: float = 0.0) -> AbstractContextManager[None]:
        """Return a context in which each output takes `times` calls of the mechanism. A call of
        more than `WARNING_SECONDS` gives a warning, and so does an output of more than
        `WARNING_SECONDS` + `extra` seconds."""
        return _watched(_CallClock(self, name, times, extra))

    def waiting(self, name: str, counter: Sequence[int] = (0,), size: int = 1) -> Waiting:
        """Return an object for code that waits for outputs of another process. The code must call
        its method `left` repeatedly, which logs the warnings.

        counter: sequence whose first entry changes with each output.
        size: number of outputs of a call.
        """
        return Waiting(self, name, lambda: counter[0], self._extra(size))

    def warn_if_idle(self, name: str, seconds: float, extra: float) -> bool:
        """Return whether the last output is more than `WARNING_SECONDS` + `extra` seconds ago, now
        or at an earlier call. Log a warning the first time."""
        if seconds >= WARNING_SECONDS + extra and self.should_warn("a call"):
            words = "a call of %s has not returned for %.0f s; %s"
            _log.warning(words, name, seconds, "; ".join(filter(None, [self.hint, self._advice])))
        return "a call" in self._warned

    def should_warn(self, topic: str) -> bool:
        """Return whether to log a warning about `topic`. True only at the first call with this
        topic, and only in the one process that may log warnings."""
        if topic in self._warned:
            return False
        self._warned.add(topic)
        return Watch.may_warn()

    def _extra(self, size: int) -> float:
        return max(size, _SLOWER_FACTOR * self._slowest * size) if size > 1 else 0.0


class _Clock:
    """Measures the time since a count last changed."""

    def __init__(self, watch: Watch, name: str, extra: float = 0.0) -> None:
        self._watch, self._name, self._extra = watch, name, extra
        self._count, self._since = 0, time.monotonic()

    def _idle(self, count: int) -> float:
        now = time.monotonic()
        if count != self._count:
            self._count, self._since = count, now
        return now - self._since


class Waiting(_Clock):
    """Measures the time since the last output of a call without a time limit, and warns if it is
    too long. `count` is the number of outputs so far."""

    def __init__(
        self, watch: Watch, name: str, count: Callable[[], int], extra: float = 0.0
    ) -> None:
        super().__init__(watch, name, extra)
        self._read = count
        # If an output takes several calls, this thread is already watched by a `_CallClock`, which
        # counts them.
        outer = _now.get(threading.get_ident())
        self._runs = outer if isinstance(outer, _CallClock) else None
        if self._runs is not None:
            self._runs.begin()

    def left(self) -> float:
        """Log a warning if the call takes too long. Return inf, since there is no time limit."""
        count = self._read()
        has_warned = self._watch.warn_if_idle(self._name, self._idle(count), self._extra)
        if self._runs is not None and not has_warned:
            self._runs.see(count)
        return math.inf


class WatchedStep(_Clock):
    """A step of an audit between calls of the mechanism, such as "importing m.py"."""

    def __init__(self, words: str, watch: Watch | None = None) -> None:
        super().__init__(watch or Watch(), words)

    def left(self) -> float:
        """Log a warning if the step takes too long. Return inf, since there is no time limit."""
        seconds = self._idle(0)
        if (
            seconds >= WARNING_SECONDS
            and Watch.warns_of_steps
            and self._watch.should_warn(self._name)
        ):
            words = "%s has not ended for %.0f s; if it never ends, press Ctrl-C"
            _log.warning(words, self._name, seconds)
        return math.inf


def step(words: str, watch: Watch | None = None) -> AbstractContextManager[None]:
    """Return a context in which this thread takes a step, such as "importing m.py". A step of more
    than 10 s gives a warning."""
    return _watched(WatchedStep(words, watch))


class _CallClock(_Clock):
    """Measures the time since the last output of a mechanism that needs several calls for an
    output."""

    def __init__(self, watch: Watch, name: str, times: int, extra: float) -> None:
        super().__init__(watch, name, extra)
        self._times, self._total, self._calls = times, 0, 0

    def begin(self) -> None:
        """Start to count calls from 0, and add the previous count to the total."""
        # Each new `Waiting` calls this first. 1 is added for the last call of the previous
        # `Waiting`: it has returned, but was not counted.
        self._total, self._calls = self._total + self._calls + 1, 0

    def see(self, calls: int) -> None:
        """Set the number of calls since the last `begin`. Warn if the output takes too long."""
        self._calls = calls
        self.left()

    def left(self) -> float:
        """Log a warning if an output takes too long. Return inf, since there is no time limit."""
        seconds = self._idle((self._total + self._calls) // self._times)
        if seconds >= WARNING_SECONDS + self._extra and self._watch.should_warn("an output"):
            words = "an output of %s, %s runs (repeat), takes more than %.0f s; fewer are faster"
            _log.warning(words, self._name, f"{self._times:,}", seconds)
        return math.inf


_Watched = Waiting | WatchedStep | _CallClock

# Maps the identity of each watched thread to the object that measures the time of its present calls
# or step.
_now: dict[int, _Watched] = {}
# Set while a thread is watched. It wakes the background thread.
_called = threading.Event()
# The background thread. It starts with the first watched call; None before.
_looking: threading.Thread | None = None


def _look() -> None:
    while _called.wait():
        time.sleep(LOOK_SECONDS)
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
    # A process made by a fork has no background thread, since only the thread that called fork
    # continues in it. So the thread is started here, at the first watched call of each process.
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
