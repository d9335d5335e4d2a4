"""Start, feed and end the programs that make draws in processes of their own. `Child` is a running
program with pipes, in its own session and process group. No child outlives dpaudit: each has a
guardian, a shell that waits on a pipe and kills the child's group when dpaudit has ended."""

from __future__ import annotations

import fcntl
import math
import os
import resource
import select
import signal
import subprocess
import sys
import termios
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

from dpaudit.errors import TargetError

Result = TypeVar("Result")
# A function that returns the seconds left until a time limit.
Clock = Callable[[], float]

# While dpaudit waits for output, it checks at this interval, in seconds, whether the program has
# ended. A closed pipe is no reliable sign: another process may keep the pipe open.
LOOK_SECONDS = 0.25
# After its input is closed, a program has this number of seconds to end before it is killed.
_GRACE_SECONDS = 1.0
# Number of bytes at the end of the program's error output that are kept for messages.
_KEPT_ERROR_BYTES = 4096
# Largest number of bytes of one read, and on Linux the size of the pipe for the output.
_PIPE_BYTES = 1 << 20
# `read` returns when dpaudit ends, which closes the other end of the pipe, however it ends.
_GUARDIAN = 'read -r line; kill -s KILL -- "-$1"'


class Ended(Exception):
    """Raised if the program has ended. The message has the exit code or signal, and the last line
    of the error output. `kind` is the `Raised.kind` of a draw in which this happens."""

    kind = "crash"


class TimedOut(Ended):
    """Raised if the program exceeded a time limit and was killed."""

    kind = "timeout"


class Child:
    """A running program with pipes. It is killed, with all processes of its group, when this object
    is deleted and when dpaudit ends. Ctrl-C does not reach it.

    words: the command, as program and arguments.
    memory: limit of the program's address space in bytes; None for no limit.
    environment: environment variables to add.
    keep: file descriptors that the program inherits.

    Raises TargetError for a program that cannot be started.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        memory: int | None = None,
        environment: Mapping[str, str] | None = None,
        keep: Sequence[int] = (),
    ) -> None:
        self.received = bytearray()  # output that no method has returned yet
        self._unsent, self._errors = bytearray(), bytearray()
        self._process = _started(words, memory, {**os.environ, **(environment or {})}, keep)
        guardian = _guardian_of(self._process.pid)
        self._finalizer = weakref.finalize(self, _end, self._process, guardian, os.getpid())
        pipes = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._in, self._out, self._err = (pipe.fileno() for pipe in pipes if pipe is not None)
        self._has_ended = False
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._poll.register(self._err, select.POLLIN)
        os.set_blocking(self._in, False)
        if sys.platform == "linux":
            with suppress(OSError):  # the size exceeds the user's limit
                fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    @property
    def is_alive(self) -> bool:
        return not self._has_ended and self._process.poll() is None

    def send(self, data: bytes) -> None:
        """Write data to the program. If the pipe is full, `wait` writes the rest."""
        self._unsent += data
        self._write()

    def wait(self, ready: Callable[[], Result | None], *clocks: Clock) -> Result:
        """Exchange data with the program until `ready()` returns a result other than None, and
        return this result. `ready` is called after each exchange. Raises Ended if the program has
        ended. When a clock reaches 0, kills the program and raises TimedOut."""
        is_late = False
        while (result := ready()) is None:
            if self._has_ended:
                raise Ended(self._last_words())
            if is_late:  # a last exchange gave no result
                self.kill()
                raise TimedOut
            left = min([math.inf, *(clock() for clock in clocks)])
            is_late = left <= 0
            self._exchange(0.0 if is_late else max(0.001, min(LOOK_SECONDS, left / 4)))
        return result

    def line(self, longest: int) -> bytes | None:
        """Remove the first line from the received output and return it without its line end. Return
        None if no line is complete. Raises ValueError for a line of more than `longest` bytes."""
        end = self.received.find(b"\n")
        if (len(self.received) if end < 0 else end) > longest:
            raise ValueError(f"a line of more than {longest:,} bytes")
        if end < 0:
            return None
        line = bytes(self.received[:end])
        del self.received[: end + 1]
        return line

    def taken(self, size: int) -> bytes | None:
        """Remove `size` bytes from the received output and return them. Return None if there are
        fewer."""
        if len(self.received) < size:
            return None
        data = bytes(memoryview(self.received)[:size])
        del self.received[:size]
        return data

    def is_idle(self) -> bool:
        """Return whether the program has read all its input, except perhaps a last line end, and
        whether methods have returned all output that it wrote. Outside of Linux, the input counts
        as read."""
        if not self.received and not self._has_ended:
            self._exchange(0.0)
        unread = bytearray(4)
        if sys.platform == "linux" and not self._has_ended:
            fcntl.ioctl(self._in, termios.FIONREAD, unread)
        return not self.received and int.from_bytes(unread, sys.byteorder) <= 1

    def close(self) -> None:
        """Close the program's input. Kill the program if it does not end within 1 s."""
        if self.is_alive and self._process.stdin is not None:
            self._unsent.clear()
            self._write()
            self._process.stdin.close()
            end = time.monotonic() + _GRACE_SECONDS
            while self._process.poll() is None and time.monotonic() < end:
                self._exchange(0.01)
        self.kill()

    def kill(self) -> None:
        """Kill the program and all processes of its group."""
        self._has_ended = True
        self._poll = select.poll()
        self._finalizer()

    def _exchange(self, seconds: float) -> bool:
        """Write and read as much as possible for `seconds`. Return whether any pipe was ready."""
        events = self._poll.poll(math.ceil(seconds * 1000))
        if not events and self._process.poll() is not None:
            events = self._poll.poll(0)  # what it wrote just before its end
            self._has_ended |= not events
        for pipe, _ in events:
            if pipe == self._in:
                self._write()
            else:
                self._read(pipe)
        return bool(events)

    def _write(self) -> None:
        """Write to the program. If the pipe is full, `_exchange` waits until it has room."""
        try:
            while self._unsent:
                del self._unsent[: os.write(self._in, self._unsent)]
        except BlockingIOError:
            self._poll.register(self._in, select.POLLOUT)
            return
        except BrokenPipeError:  # the program has ended; its last output can still be read
            self._unsent.clear()
        with suppress(KeyError):
            self._poll.unregister(self._in)

    def _read(self, pipe: int) -> None:
        data = os.read(pipe, _PIPE_BYTES)
        if not data:
            self._poll.unregister(pipe)
            self._has_ended |= pipe == self._out
        elif pipe == self._out:
            self.received += data
        else:
            self._errors = (self._errors + data)[-_KEPT_ERROR_BYTES:]

    def _last_words(self) -> str:
        """Kill the program. Return its exit code or signal, and its last line of error output."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LOOK_SECONDS)
        left = countdown(LOOK_SECONDS)  # a program that closed its output may go on writing errors
        while self._exchange(0.0) and left() > 0:
            pass
        code = self._process.returncode
        self.kill()
        end = "closed its output" if code is None else ending(code)
        lines = [
            " ".join(line.split()) for line in self._errors.decode(errors="replace").split("\n")
        ]
        return ": ".join([end, *[line[:200] for line in lines if line][-1:]])


def countdown(seconds: float) -> Clock:
    """Return a function that returns how many of the `seconds`, counted from now, are left."""
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


def ending(code: int) -> str:
    """Return the return code of a `subprocess` in words: `exit code 1` or `signal 9 (SIGKILL)`."""
    if code >= 0:
        return f"exit code {code}"
    with suppress(ValueError):
        return f"signal {-code} ({signal.Signals(-code).name})"
    return f"signal {-code}"


def _started(
    words: Sequence[str], memory: int | None, environment: Mapping[str, str], keep: Sequence[int]
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603  # the user's own program, and no shell
            words,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            pass_fds=keep,
            start_new_session=True,
            preexec_fn=partial(_limit, memory),
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TargetError(
            f"the program {words[0]!r} cannot be started: {reason}", code="program-not-started"
        ) from None


def _limit(memory: int | None) -> None:
    """Set limits in the new process, before the program replaces it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # many crashes would leave many core dumps
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _guardian_of(group: int) -> subprocess.Popen[bytes]:
    """Start the shell that kills a process group after dpaudit has ended."""
    return subprocess.Popen(  # noqa: S603  # a fixed command
        ["/bin/sh", "-c", _GUARDIAN, "dpaudit-guardian", str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,  # signals to dpaudit's group do not reach it
    )


def _end(process: subprocess.Popen[bytes], guardian: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:  # in a fork, which must not kill the program
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    # The guardian ends before the system may give the number of the group to another one. It is
    # killed, since a fork of dpaudit may keep the pipe open.
    guardian.kill()
    guardian.communicate()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()
