"""How a mechanism that is called in this process may end it too early, or keep it from its end."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn

from dpaudit.errors import DpauditError, MechanismError

# Seconds that threads of the mechanism have to end by themselves once all is said.
_GRACE = 1.0


def leave(code: int) -> NoReturn:
    """End the process with this exit code, also when threads that a mechanism has started and that
    Python would wait for never end."""
    mine = threading.current_thread()
    if any(not one.daemon and one is not mine for one in threading.enumerate()):
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, DpauditError):  # who cared has seen to it before
                stream.flush()
        timer = threading.Timer(_GRACE, os._exit, (code,))
        timer.daemon = True
        timer.start()
    sys.exit(code)


class _Left(BaseException):
    """Takes the place of the end of the process; no outcome, and nothing to be caught."""


@contextmanager
def kept_from_leaving() -> Iterator[None]:
    """Raise MechanismError where the process would have ended. In processes that the mechanism
    forks, and in other threads, os._exit is what it was; the end of a thread would not be that of
    the draw."""
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
    if asked:  # also where a bare `except:` has kept it
        raise MechanismError(
            f"the mechanism called os._exit({asked[0]}), which would end the auditing process; "
            "with isolate: true (--isolate), the mechanism runs in a separate process, and its "
            "end counts as an outcome",
            code="mechanism-ends-process",
        )
