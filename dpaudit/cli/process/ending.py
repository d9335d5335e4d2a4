"""How a command ends: by a signal, at a deadline, or by a mechanism that ends the process."""

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
from dpaudit.errors import DpauditError, MechanismError

# Seconds after a first signal in which a second one is ignored: a terminal and a parent process may
# both send it. A later signal ends the program without saving.
_MOMENT = 1.0


class EndRequested(KeyboardInterrupt):
    """A signal asked the program to end. `code` is the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = exit_codes.SIGNALLED + number


class Requests:
    """Turns signals that ask the program to end into exceptions."""

    def __init__(self) -> None:
        # Number of the first signal that asked the program to end; None before.
        self.number: int | None = None
        self._since = 0.0

    def check(self) -> None:
        """Raise EndRequested again if a signal came: a bare `except:` of the mechanism, or an
        import, may have caught it."""
        if self.number is not None:
            raise EndRequested(self.number)

    def explain(self, error: BaseException) -> bool:
        """Return whether a signal may have caused an exception, rather than the mechanism. Ctrl-C
        raises EndRequested, unless the mechanism has replaced the handler of the signal."""
        is_heeded = signal.getsignal(signal.SIGINT) in (self.heed, signal.SIG_IGN)
        is_ours = isinstance(error, KeyboardInterrupt) and not is_heeded
        return self.number is not None or isinstance(error, EndRequested) or is_ours

    def heed(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: raise EndRequested, or end the program at a second signal."""
        now = time.monotonic()
        if self.number is None:
            self.number, self._since = number, now
            raise EndRequested(number)
        if now - self._since > _MOMENT:
            end_at_once(number, frame)


@contextmanager
def heeded() -> Iterator[Requests]:
    """Handle signals to end, except those that the process was started to ignore (as by nohup)."""
    requests = Requests()
    # Python handles signals in the main thread only.
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


# Seconds that threads of the mechanism have to end after the last output.
_GRACE = 1.0


def leave(code: int) -> NoReturn:
    """End the process with this exit code, even if threads of a mechanism, which Python waits for,
    never end."""
    mine = threading.current_thread()
    if any(not one.daemon and one is not mine for one in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, DpauditError):  # errors were reported before
                stream.flush()
        timer = threading.Timer(_GRACE, os._exit, (code,))
        timer.daemon = True
        timer.start()
    sys.exit(code)


class _Left(BaseException):
    """Raised in place of os._exit. A BaseException, so that it does not count as an outcome."""


@contextmanager
def kept_from_leaving() -> Iterator[None]:
    """Raise MechanismError if the mechanism calls os._exit. In forked processes and other threads,
    os._exit keeps its effect."""
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


# Seconds between two calls of `end` after the deadline, since a frame may catch its exception.
_AGAIN = 0.5


@contextmanager
def over_after(seconds: float, end: Callable[[FrameType | None], None]) -> Iterator[None]:
    """Call `end` with the running frame after `seconds`, and every half second from then on; an
    exception that it raises ends the frame. Does nothing without SIGALRM or outside the main
    thread."""
    if not hasattr(signal, "setitimer") or threading.current_thread() != threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda _number, frame: end(frame))
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
