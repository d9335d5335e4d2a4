"""Warnings that a call of the mechanism, or a step such as an import, has not returned for 10 s.

Each kind of warning is logged once per mechanism. Code that calls the mechanism does so in a
context of a `Watch`. A background thread then reads the number of outputs so far every second, so
that the watch does not slow down draws. Code that waits for another process has no such context,
and calls the method `left` from time to time.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Iterator, Sequence, Sized
from contextlib import AbstractContextManager, contextmanager

# In seconds: time without an output after which a warning is logged, and time between two looks of
# the background thread.
PATIENCE, LOOK = 10.0, 1.0
# A warning about a call for many draws is logged if the call takes, per draw, more than this many
# times as long as the slowest earlier call for many draws.
_SLOWER = 10.0
_UNTIMED = (
    "if it never returns, press Ctrl-C and add {}: such a call then counts as the outcome timeout"
)
_IN_PROCESS = _UNTIMED.format("--isolate --timeout 10s (isolate: true and timeout: 10s)")
_IN_ANOTHER = _UNTIMED.format("--timeout 10s (timeout: 10s)")

_log = logging.getLogger(__name__)


class Watch:
    """Logs warnings about a mechanism, each kind of warning once.

    advice: end of the messages: a remedy for a call that does not return.
    """

    # Function that is called before a warning, and returns whether this process may log the
    # warning. Workers replace the function, so that only one of several workers logs a warning.
    may_warn: Callable[[], bool] = staticmethod(lambda: True)
    # Whether to warn about steps before the calls. False in workers, since each worker repeats the
    # steps of the main process.
    warns_of_steps: bool = True

    def __init__(self, advice: str = _IN_PROCESS) -> None:
        self._advice, self._slowest = advice, 0.0
        # Likely reason why a call does not return. Messages show the reason before the advice.
        self.hint = ""
        self._warned: set[str] = set()

    @classmethod
    def of_process(cls, timeout: float | None) -> Watch:
        """Return the watch of a mechanism in another process. timeout: seconds per draw, if any."""
        if timeout is None:
            return cls(_IN_ANOTHER)
        return cls(f"after {timeout:g} s it counts as the outcome timeout")

    @classmethod
    def without_timeout(cls) -> Watch:
        """Return a watch for calls to which no time-out applies, such as post-processing."""
        return cls("if it never returns, press Ctrl-C")

    def calls(self, name: str, outputs: Sized) -> AbstractContextManager[None]:
        """Return a context in which this thread makes calls that are watched.

        A warning is logged if a call does not return for `PATIENCE` seconds.

        name: name of the mechanism in messages.
        outputs: a list to which each call that returns adds its output.
        """
        return _watched(Waiting(self, name, outputs.__len__))

    @contextmanager
    def batch(self, name: str, size: int) -> Iterator[None]:
        """Return a context in which this thread makes a single call for `size` draws.

        The call is watched: a warning is logged if it takes too long for `size` draws.
        """
        start = time.monotonic()
        with _watched(Waiting(self, name, lambda: 0, self._extra(size))):
            yield
        self._slowest = max(self._slowest, (time.monotonic() - start) / max(1, size))

    def runs(self, name: str, times: int, extra: float = 0.0) -> AbstractContextManager[None]:
        """Return a context in which this thread makes outputs that consist of several calls each.

        A warning is logged if an output takes more than `PATIENCE` + `extra` seconds.

        times: number of calls per output, which are watched within this context.
        """
        return _watched(_Runs(self, name, times, extra))

    def waiting(self, name: str, counter: Sequence[int] = (0,), size: int = 1) -> Waiting:
        """Return a clock for code that waits for another process.

        The code must call the method `left` of the clock repeatedly.

        name: name of the mechanism in messages.
        counter: a sequence whose first entry changes with each output.
        size: number of outputs per call.
        """
        return Waiting(self, name, lambda: counter[0], self._extra(size))

    def warn_if_idle(self, name: str, seconds: float, extra: float) -> bool:
        """Warn if a call takes too long; return whether this warning is due or was logged before.

        name: name of the mechanism. seconds: time since the last output. extra: seconds allowed in
        addition to `PATIENCE`.
        """
        if seconds >= PATIENCE + extra and self.should_warn("a call"):
            words = "a call of %s has not returned for %.0f s; %s"
            _log.warning(words, name, seconds, "; ".join(filter(None, [self.hint, self._advice])))
        return "a call" in self._warned

    def should_warn(self, topic: str) -> bool:
        """Return whether to log the warning about a topic: only once, and only in one process."""
        if topic in self._warned:
            return False
        self._warned.add(topic)
        return Watch.may_warn()

    def _extra(self, size: int) -> float:
        return max(size, _SLOWER * self._slowest * size) if size > 1 else 0.0


class _Clock:
    """Measures the time since the last change of a count.

    extra: seconds without a change that are allowed in addition to `PATIENCE`.
    """

    def __init__(self, watch: Watch, name: str, extra: float = 0.0) -> None:
        self._watch, self._name, self._extra = watch, name, extra
        self._count, self._since = 0, time.monotonic()

    def _idle(self, count: int) -> float:
        now = time.monotonic()
        if count != self._count:
            self._count, self._since = count, now
        return now - self._since


class Waiting(_Clock):
    """A clock for a wait for outputs, without a time limit. count: returns the number of outputs so
    far."""

    def __init__(
        self, watch: Watch, name: str, count: Callable[[], int], extra: float = 0.0
    ) -> None:
        super().__init__(watch, name, extra)
        self._read = count
        # The surrounding watch of this thread is a `_Runs` if an output consists of several calls.
        outer = _now.get(threading.get_ident())
        self._runs = outer if isinstance(outer, _Runs) else None
        if self._runs is not None:
            self._runs.begin()

    def left(self) -> float:
        """Warn if the call takes too long. Return inf, since there is no time limit."""
        count = self._read()
        has_warned = self._watch.warn_if_idle(self._name, self._idle(count), self._extra)
        if self._runs is not None and not has_warned:
            self._runs.see(count)
        return math.inf


class Step(_Clock):
    """A step of an audit before or between the calls of a mechanism, such as `Step("importing
    m.py")`."""

    def __init__(self, words: str, watch: Watch | None = None) -> None:
        super().__init__(watch or Watch(), words)

    def left(self) -> float:
        """Warn if the step takes too long. Return inf, since there is no time limit."""
        seconds = self._idle(0)
        if seconds >= PATIENCE and Watch.warns_of_steps and self._watch.should_warn(self._name):
            words = "%s has not ended for %.0f s; if it never ends, press Ctrl-C"
            _log.warning(words, self._name, seconds)
        return math.inf


def step(words: str, watch: Watch | None = None) -> AbstractContextManager[None]:
    """Return a context in which this thread takes a step, such as `step("importing m.py")`.

    words: the step in messages, as a verb in -ing. watch: the watch that logs a warning.
    """
    return _watched(Step(words, watch))


class _Runs(_Clock):
    """A wait for outputs that consist of several calls each.

    times: number of calls per output.
    extra: seconds per output that are allowed in addition to `PATIENCE`.
    """

    def __init__(self, watch: Watch, name: str, times: int, extra: float) -> None:
        super().__init__(watch, name, extra)
        self._times, self._before, self._calls = times, 0, 0

    def begin(self) -> None:
        """Add the calls counted so far, plus one, to the total, and restart the count at 0.

        A new `Waiting` calls this method when it starts. One more call has returned by then.
        """
        self._before, self._calls = self._before + self._calls + 1, 0

    def see(self, calls: int) -> None:
        """Set the number of calls since `begin`, and warn if an output takes too long."""
        self._calls = calls
        self.left()

    def left(self) -> float:
        """Warn if an output takes too long. Return inf, since there is no time limit."""
        seconds = self._idle((self._before + self._calls) // self._times)
        if seconds >= PATIENCE + self._extra and self._watch.should_warn("an output"):
            words = "an output of %s, %s runs (repeat), takes more than %.0f s; fewer are faster"
            _log.warning(words, self._name, f"{self._times:,}", seconds)
        return math.inf


_Watched = Waiting | Step | _Runs

# {identity of a thread: the calls or the step of this thread that are watched at present}.
_now: dict[int, _Watched] = {}
# Event that is set while a thread is watched; it wakes the background thread.
_called = threading.Event()
# The background thread, which starts with the first watched call.
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
    # After a fork, the new process has no background thread, since only the thread that forked
    # continues there.
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
