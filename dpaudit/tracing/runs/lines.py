"""Which lines of the user's own code a run takes."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import CodeType

    from .places import Followed

    Line = tuple[str, int]

# So many lines of a run are kept: enough to tell two paths apart.
MOST = 100_000


class Lines(list):  # type: ignore[type-arg]  # of lines
    """Lines in order. end: the last one of the function that the first one is in."""

    _outer: Any = None
    end: Line | None = None

    def ran(self, code: CodeType, line: int) -> None:
        """Note a line."""
        if len(self) == MOST:
            return
        self.append((code.co_filename, line))
        if self._outer is None:
            self._outer = code
        if code is self._outer:
            self.end = code.co_filename, line


def unwatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of ours that no tracer is told of: there are many calls in it for each call
    of the user's, and each would ask whose code it is."""

    def call(*args: Any, **named: Any) -> Any:
        tracer = sys.gettrace()
        if tracer is None:
            return function(*args, **named)
        sys.settrace(None)
        try:
            return function(*args, **named)
        finally:
            sys.settrace(tracer)

    return call


@contextmanager
def watched(followed: Followed) -> Iterator[Lines]:
    """Yield the lines that are run, in order, in this thread, as they come; at most `MOST`."""
    lines = Lines()
    monitoring: Any = getattr(sys, "monitoring", None)
    tool = None if monitoring is None else _free(monitoring)
    if tool is None:
        before = sys.gettrace()
        sys.settrace(_tracer(followed, lines))
        try:
            yield lines
        finally:
            sys.settrace(before)
        return
    import threading

    owner = threading.get_ident()

    def seen(code: Any, line: int) -> Any:
        if not followed.owns(code.co_filename) or len(lines) >= MOST:
            return monitoring.DISABLE
        if threading.get_ident() == owner:
            lines.ran(code, line)
        return None

    monitoring.use_tool_id(tool, "dpaudit")
    try:
        monitoring.register_callback(tool, monitoring.events.LINE, seen)
        monitoring.restart_events()
        monitoring.set_events(tool, monitoring.events.LINE)
        yield lines
    finally:
        monitoring.set_events(tool, 0)
        monitoring.register_callback(tool, monitoring.events.LINE, None)
        monitoring.free_tool_id(tool)


def _free(monitoring: Any) -> int | None:
    """Return the number of a tool that nobody uses; None where all are in use."""
    return next((one for one in (4, 3, 5) if monitoring.get_tool(one) is None), None)


def _tracer(followed: Followed, lines: Lines) -> Any:
    def local(frame: Any, event: str, arg: Any) -> Any:
        if event == "line":
            lines.ran(frame.f_code, frame.f_lineno)
        return local

    def entered(frame: Any, event: str, arg: Any) -> Any:
        return local if followed.owns(frame.f_code.co_filename) else None

    return entered
