"""Ctrl-C, SIGTERM and SIGHUP while audits run: what is finished is saved, and the program ends."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from dpaudit.cli import exit_codes
from dpaudit.cli.process.parent import REQUESTS, end_at_once

# A request may come twice within a moment, from a terminal and from whoever passes it on. One that
# comes later is from somebody who does not want to wait.
_MOMENT = 1.0


class EndRequested(KeyboardInterrupt):
    """Somebody wants the program to end. `code` is the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = exit_codes.SIGNALLED + number


class Requests:
    """Requests to end, as exceptions wherever the program is."""

    def __init__(self) -> None:
        # Of the first signal that came.
        self.number: int | None = None
        self._since = 0.0

    def check(self) -> None:
        """Raise again what has been raised before: a bare `except:` of the mechanism, or an import
        under way, may have kept it to itself."""
        if self.number is not None:
            raise EndRequested(self.number)

    def explain(self, error: BaseException) -> bool:
        """Return whether an exception may come from somebody who wants the program to end, and not
        from the mechanism: of Ctrl-C this process hears as an EndRequested and in no other way,
        unless somebody has taken the signal from it."""
        is_heeded = signal.getsignal(signal.SIGINT) in (self.heed, signal.SIG_IGN)
        is_ours = isinstance(error, KeyboardInterrupt) and not is_heeded
        return self.number is not None or isinstance(error, EndRequested) or is_ours

    def heed(self, number: int, frame: FrameType | None) -> None:
        """Take notice of a signal."""
        now = time.monotonic()
        if self.number is None:
            self.number, self._since = number, now
            raise EndRequested(number)
        if now - self._since > _MOMENT:
            end_at_once(number, frame)


@contextmanager
def heeded() -> Iterator[Requests]:
    """Heed requests to end, but those that this process was started to ignore (as by nohup)."""
    requests = Requests()
    if threading.current_thread() is not threading.main_thread():  # which alone hears of signals
        yield requests
        return
    before = {number: signal.getsignal(number) for number in REQUESTS}
    before = {number: how for number, how in before.items() if how is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, requests.heed)
    try:
        yield requests
    finally:
        if requests.number is None:  # else it may come once more, while the program ends
            for number, how in before.items():
                signal.signal(number, how)
