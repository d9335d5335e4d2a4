"""End the process with the exit code of the command, even if the mechanism tries to end it.

While a mechanism runs, `os._exit` raises an exception. C's `exit` (and `os._exit` at other times)
ends the process with exit code 3 or, if the command has finished, with its exit code. Processes
that a mechanism forks may end with any code. These ends cannot be prevented: the system call
`_exit` of native code, a program that replaces this one (`os.execv`), and a crash of native code.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from dpaudit.cli import exit_codes
from dpaudit.errors import DpauditError, MechanismError

# Seconds for which threads of the mechanism may continue after the program's last output.
_GRACE_SECONDS = 1.0
_ISOLATE = (
    "with isolate: true (--isolate), the mechanism runs in a separate process, and its end counts "
    "as an outcome"
)
_exit = os._exit
# Number of the process of the command, and its exit code once it has finished.
_process = 0
_code: int | None = None
# Name of the running audit, for messages.
_audit = "the mechanism"
# The handler of C's `exit`; None before the first mechanism.
_handler: Any = None


class _Left(BaseException):
    """Raised when the mechanism calls os._exit. It is no Exception, which would count as an
    output."""


def begin() -> None:
    """Make `leave` the only way in which this process, which runs a command, ends."""
    global _process
    _process, os._exit = os.getpid(), _end_early
    # The handler that is registered first is called last.
    atexit.register(_end)


def leave(code: int) -> NoReturn:
    """End the process with this exit code, without waiting for threads of the mechanism. Nothing
    that the mechanism does can change the exit code."""
    global _code
    _code = code
    current = threading.current_thread()
    if any(not thread.daemon and thread is not current for thread in threading.enumerate()):
        _flush()
        timer = threading.Timer(_GRACE_SECONDS, _exit, (code,))
        timer.daemon = True
        timer.start()
    sys.exit(code)


def _end() -> None:
    """End the process before Python shuts down: C would call `_handler` afterwards."""
    # Its handler removes semaphores, and comes later where the module was imported before `begin`.
    end_processes = getattr(sys.modules.get("multiprocessing.util"), "_exit_function", None)
    if end_processes is not None:
        end_processes()
    _flush()
    _exit(exit_codes.FAILURE if _code is None else _code)


def _end_early(status: int) -> NoReturn:
    """Take the place of os._exit in the process of a command."""
    if os.getpid() != _process:  # a fork of the mechanism
        _exit(status)
    _fail(f"os._exit({status})")


def _fail(call: str) -> NoReturn:
    if _code is None:
        text = f"error: {_audit}: a call of {call} ended the process without a result; {_ISOLATE}\n"
        with suppress(OSError):
            os.write(2, text.encode(errors="replace"))
    _exit(exit_codes.FAILURE if _code is None else _code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, DpauditError):  # errors were reported before
            stream.flush()


@contextmanager
def kept_from_leaving(audit: str = "the mechanism") -> Iterator[None]:
    """Within the `with` block, raise MechanismError if the mechanism calls os._exit. If native code
    calls `exit`, the process ends, with a message that names the audit."""
    global _audit
    process, statuses, previous_exit = os.getpid(), list[int](), os._exit

    def refuse(status: int) -> NoReturn:
        if os.getpid() != process or _code is not None:
            previous_exit(status)
        statuses.append(status)
        # A thread ends by SystemExit without a traceback.
        is_main = threading.current_thread() is threading.main_thread()
        raise _Left if is_main else SystemExit

    if _process and _handler is None:
        _handle_exit_of_c()
    os._exit, _audit = refuse, audit
    try:
        yield
    except _Left:
        pass
    finally:
        os._exit = previous_exit
    if statuses:  # a bare `except:` of the mechanism may have caught _Left
        raise MechanismError(
            f"the mechanism called os._exit({statuses[0]}), which would end the auditing process; "
            f"{_ISOLATE}",
            code="mechanism-ends-process",
        )


def _handle_exit_of_c() -> None:
    """Make C's `exit` end this process with exit code 3, unless the command has finished."""
    import ctypes  # with NumPy, which imports it, this takes no time

    global _handler

    def handle(_: object) -> None:
        if os.getpid() == _process:  # and not a fork of the mechanism
            _fail("exit in native code")

    _handler = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(handle)
    # atexit(3) is no symbol of the shared library of glibc.
    ctypes.CDLL(None).__cxa_atexit(_handler, None, None)
