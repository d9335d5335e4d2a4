"""Calls of a user's code that may raise, or never end."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

from dpaudit.errors import DatasetError, DpauditError

# What takes longer than so many seconds for one input may never end.
SECONDS = 10.0


def within(call: Callable[[], Any], words: str, progress: Callable[[], int] | None = None) -> Any:
    """Return what a call gives. Raises DatasetError when it raises, or does not end in time.

    words: whose call it is, in messages.  progress: how much it has done so far; the time runs from
    the last progress on.
    """
    given: list[Any] = []
    raised: list[BaseException] = []

    def called() -> None:
        try:
            given.append(call())
        except BaseException as error:  # noqa: BLE001  # whoever waits raises it
            raised.append(error)

    # A thread of its own, since nothing else leaves a call that does not end by itself.
    thread = Thread(target=called, daemon=True)
    thread.start()
    _wait(thread, progress or (lambda: 0))
    if raised:
        error = raised[0]
        if isinstance(error, DpauditError):
            raise error
        raise DatasetError(
            f"{words} failed: {type(error).__name__}: {error}", code="generator-failed"
        ) from error
    if not given:
        raise DatasetError(
            f"{words} did not end in {SECONDS:g} s; let it give smaller inputs",
            code="generator-failed",
        )
    return given[0]


def _wait(thread: Thread, progress: Callable[[], int]) -> None:
    before = -1
    while thread.is_alive() and progress() > before:
        before = progress()
        thread.join(SECONDS)
