"""Control how a command ends: by a signal, at a deadline, or because the mechanism ends the
process."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from dpaudit.cli import exit_codes
from dpaudit.cli.process.parent import REQUESTS, end_at_once
from dpaudit.errors import DpauditError, MechanismError, StopAudit

# After a first signal, a second one is ignored for this number of seconds, since a terminal and a
# parent process may both send the same Ctrl-C. A later signal ends the program without saving.
_IGNORED_SECONDS = 1.0


class EndRequested(StopAudit):
    """Raised when a signal asks the program to end. `code` is the exit code of the program."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = exit_codes.SIGNALLED + number


class Requests:
    """Handles signals that ask the program to end, by raising EndRequested."""

    def __init__(self) -> None:
        # Number of the first signal that asked the program to end; None if no signal has arrived.
        self.number: int | None = None
        self._since = 0.0

    def check(self) -> None:
        """Raise EndRequested if a signal has arrived. The exception that the signal itself raised
        may be lost, since a bare `except:` in the mechanism or in an imported module can catch
        it."""
        if self.number is not None:
            raise EndRequested(self.number)

    def explain(self, error: BaseException) -> bool:
        """Return whether a signal to the program may have caused the exception `error`; False if
        the mechanism raised it on its own. Ctrl-C raises EndRequested, or KeyboardInterrupt if the
        mechanism has replaced the signal's handler."""
        is_heeded = signal.getsignal(signal.SIGINT) in (self.heed, signal.SIG_IGN)
        is_ours = isinstance(error, KeyboardInterrupt) and not is_heeded
        return self.number is not None or isinstance(error, EndRequested) or is_ours

    def heed(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: raise EndRequested at the first one, and end the process at a later
        one."""
        now = time.monotonic()
        if self.number is None:
            self.number, self._since = number, now
            raise EndRequested(number)
        if now - self._since > _IGNORED_SECONDS:
            end_at_once(number, frame)


@contextmanager
def heeded() -> Iterator[Requests]:
    """Within the `with` block, handle signals that ask the program to end, such as Ctrl-C. Yield
    the `Requests` that handles them: it raises EndRequested at the first signal, and ends the
    process at a later one. Outside of the main thread, no signal is handled.

    A signal that the process was started to ignore, for example by nohup, stays ignored.
    """
    requests = Requests()
    # Python allows signal handlers only in the main thread.
    if threading.current_thread() is not threading.main_thread():
        yield requests
        return
    before = {number: signal.getsignal(number) for number in REQUESTS}
    before = {number: how for number, how in before.items() if how is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, requests.heed)
    try:
        yield requests
    finally:
        if requests.number is None:  # after a signal, handle further ones until the end
            for number, how in before.items():
                signal.signal(number, how)


# Seconds for which the mechanism's threads may continue after the program's last output.
_GRACE_SECONDS = 1.0


def leave(code: int) -> NoReturn:
    """End the process with this exit code. Do not wait for threads that the mechanism left
    running."""
    mine = threading.current_thread()
    if any(not one.daemon and one is not mine for one in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, DpauditError):  # errors were reported before
                stream.flush()
        timer = threading.Timer(_GRACE_SECONDS, os._exit, (code,))
        timer.daemon = True
        timer.start()
    sys.exit(code)


class _Left(BaseException):
    """Raised when the mechanism calls os._exit. It derives from BaseException, so that it does not
    count as an output of the mechanism."""


@contextmanager
def kept_from_leaving() -> Iterator[None]:
    """Within the `with` block, raise MechanismError if the mechanism calls os._exit.

    In forked processes and in threads other than the main thread, os._exit still ends the process.
    """
    here = (os.getpid(), threading.get_ident())
    leave, asked = os._exit, list[int]()

    def refuse(status: int) -> NoReturn:
        if (os.getpid(), threading.get_ident()) != here:
            leave(status)
        asked.append(status)
        raise _Left

    os._exit = refuse
    try:
        yield
    except _Left:
        pass
    finally:
        os._exit = leave
    if asked:  # the mechanism may have caught _Left by a bare `except:`
        raise MechanismError(
            f"the mechanism called os._exit({asked[0]}), which would end the auditing process; "
            "with isolate: true (--isolate), the mechanism runs in a separate process, and its "
            "end counts as an outcome",
            code="mechanism-ends-process",
        )


# Seconds between two calls of `end`. It is called repeatedly because the running code may catch the
# exception that `end` raises.
_REPEATING_SECONDS = 0.5


@contextmanager
def over_after(seconds: float, end: Callable[[FrameType | None], None]) -> Iterator[None]:
    """Within the `with` block, call `end(frame)` after `seconds`, and again every half second.
    frame: the Python frame that is running. If `end` raises an exception, it interrupts that frame.
    Do nothing without SIGALRM (Windows) or outside the main thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() != threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda _number, frame: end(frame))
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), _REPEATING_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
