"""A deadline for a mechanism that runs in this process, and may never come to its end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

# After the first time, it is looked so often whether a mechanism is still at work.
_AGAIN = 0.5


@contextmanager
def over_after(seconds: float, end: Callable[[FrameType | None], None]) -> Iterator[None]:
    """Call a function with the frame that is at work when the time is over, and again from then on;
    what it raises ends that. Where there are no such signals, or in another thread, nothing is."""
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
