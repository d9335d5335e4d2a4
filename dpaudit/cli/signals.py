"""Turn signals and deadlines into exceptions, which end a command in order."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from dpaudit.cli import exit_codes
from dpaudit.errors import StopAudit

# Signals that ask the program to end.
REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# A second signal within this time does not end the program at once: a terminal and a parent process
# may both send the same Ctrl-C.
_IGNORED_SECONDS = 1.0
# A mechanism may catch the exception of a deadline, so it is raised again after this time.
_REPEATING_SECONDS = 0.5
_exit = os._exit  # leaving.py replaces os._exit


class EndRequested(StopAudit):
    """Raised when a signal asks the program to end. `code` is the exit code of the program."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = exit_codes.SIGNALLED + number


class Requests:
    """Handles the signals that ask the program to end. `number` is the first such signal, or
    None."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._since = 0.0

    def check(self) -> None:
        """Raise EndRequested if a signal has arrived. The handler has raised it before, but a bare
        `except:` of the mechanism may have caught it."""
        if self.number is not None:
            raise EndRequested(self.number)

    def explain(self, error: BaseException) -> bool:
        """Return whether a signal may have caused `error`. True for EndRequested and, if the
        mechanism has replaced the handler of Ctrl-C, for KeyboardInterrupt."""
        is_replaced = signal.getsignal(signal.SIGINT) not in (self.handle, signal.SIG_IGN)
        is_ctrl_c = isinstance(error, KeyboardInterrupt) and is_replaced
        return self.number is not None or isinstance(error, EndRequested) or is_ctrl_c

    def handle(self, number: int, _frame: FrameType | None) -> None:
        """Raise EndRequested at the first signal; end the process at a later one."""
        now = time.monotonic()
        if self.number is None:
            self.number, self._since = number, now
            raise EndRequested(number)
        if now - self._since > _IGNORED_SECONDS:
            with suppress(OSError):
                os.write(2, b"interrupted\n")
            _exit(exit_codes.SIGNALLED + number)


@contextmanager
def heeded() -> Iterator[Requests]:
    """Within the `with` block, handle Ctrl-C, SIGTERM and SIGHUP by the `Requests` that is yielded.
    A signal that was ignored when the process started, for example by nohup, stays ignored. Outside
    of the main thread, in which Python runs its handlers, no signal is handled."""
    requests = Requests()
    is_main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in REQUESTS if is_main}
    handlers = {n: handler for n, handler in handlers.items() if handler is not signal.SIG_IGN}
    for number in handlers:
        signal.signal(number, requests.handle)
    try:
        yield requests
    finally:
        if requests.number is None:  # else a further signal ends the process while it saves results
            for number, handler in handlers.items():
                signal.signal(number, handler)


@contextmanager
def over_after(seconds: float, end: Callable[[FrameType | None], None]) -> Iterator[None]:
    """Within the `with` block, call `end(frame)` after `seconds`, and again every half second.
    `frame` is that of the running code, which an exception of `end` interrupts. Without SIGALRM, as
    on Windows, and outside of the main thread, `end` is not called."""
    if not hasattr(signal, "setitimer") or threading.current_thread() != threading.main_thread():
        yield
        return
    handler = signal.signal(signal.SIGALRM, lambda _number, frame: end(frame))
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), _REPEATING_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
