"""Start, feed, end and replace the programs that make draws in processes of their own.

dpaudit.adapters uses this module for isolated mechanisms and for programs of the user. `Child` is a
running program with pipes. If a program ends during a draw, `Succession` records this as the
outcome of the draw, and starts the program again. No process outlives dpaudit. Each program runs in
its own session (group of processes), which is killed as a whole, and a helper process, the
guardian, kills all sessions after dpaudit has ended.
"""

from __future__ import annotations

import ctypes
import fcntl
import logging
import math
import os
import resource
import select
import signal
import subprocess
import sys
import termios
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from dpaudit.errors import DpauditError, MechanismError, TargetError
from dpaudit.outcomes import Raised
from dpaudit.watching import Watch

Result = TypeVar("Result")
# A function that returns the seconds left until a time limit.
Clock = Callable[[], float]

# Values of `Raised.kind` for a draw whose process ended, by itself (CRASH) or at a time limit
# (TIMEOUT).
CRASH, TIMEOUT = "crash", "timeout"
# While dpaudit waits for output, it checks every 0.25 seconds whether the program has ended. A
# closed pipe is not a reliable sign: another process may keep the pipe open.
LOOK_SECONDS = 0.25
# After its input is closed, a program has this number of seconds to end by itself before it is
# killed.
_GRACE_SECONDS = 1.0
# Number of bytes at the end of the program's error output that are kept for messages.
_KEPT_ERROR_BYTES = 4096
# Largest number of bytes that are read from a pipe in one call.
_READ_BYTES = 1 << 20
# Size in bytes of the pipe for the program's output (Linux only).
_PIPE_BYTES = 1 << 20
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG, prctl(2)
# If this number of processes in a row end before they complete a draw, the audit ends with an
# error.
MAX_ENDED = 50
# If this number of processes in a row end before a draw begins, each with the same message, the
# audit ends with an error. An input cannot be the cause, since none of these processes had begun to
# use one.
_MAX_ENDED_ALIKE = 3
# If no draw was completed, and this number of draws of each input have ended the process with the
# same failure, the audit ends with an error. (If only one input ends the process, that is a leak,
# and not an error.)
_MAX_FAILED_DRAWS = 20
# Time in seconds. If every draw so far has ended its process with the same failure, and these draws
# together took longer than this time, dpaudit logs a warning. The audit then ends with an error
# after 3 such draws of each input (`_MAX_ENDED_ALIKE`) instead of 20 (`_MAX_FAILED_DRAWS`).
WARNING_SECONDS = 10.0
# Shell script of the guardian, which kills sessions when its input closes, as it does when dpaudit
# ends. Each line of the input has a sign and the number of a session: "+" adds a session to kill,
# "-" removes a session that has ended.
_SCRIPT = """
sessions=
while read -r sign session; do
    rest=
    for one in $sessions; do
        [ "$one" = "$session" ] || rest="$rest $one"
    done
    sessions=$rest
    [ "$sign" = - ] || sessions="$sessions $session"
done
for one in $sessions; do
    kill -s KILL -- "-$one"
done
"""

_log = logging.getLogger(__name__)


class _Guardian:
    """A helper process that kills the sessions of all programs after dpaudit's process has ended.

    The helper is a shell that runs `_SCRIPT`. It exists while at least one program runs.
    """

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._sessions: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        # Reentrant, since a program may end at any time in any thread, even in a thread that holds
        # the lock to start another program.
        self._lock = threading.RLock()

    def guard(self, session: int) -> None:
        """Arrange that all processes of a session are killed after dpaudit's process has ended."""
        if self._owner != os.getpid():  # a fork has a guardian of its own
            self._owner, self._sessions, self._process = os.getpid(), set(), None
            self._lock = threading.RLock()
        with self._lock:
            if self._process is None:
                with suppress(OSError):  # without a guardian, `_end` still ends programs
                    self._process = subprocess.Popen(  # noqa: S603  # a fixed command
                        ["/bin/sh", "-c", _SCRIPT],
                        bufsize=0,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        cwd="/",
                        start_new_session=True,  # signals to this process's group do not reach it
                    )
            self._sessions.add(session)
            self._tell("+", session)

    def forget(self, session: int) -> None:
        """Stop guarding a session that has ended, since the system may give its number to another
        session."""
        if self._owner != os.getpid():
            return
        with self._lock:
            self._sessions.discard(session)
            self._tell("-", session)
            if not self._sessions and self._process is not None:
                self._process.communicate()  # closes the input of the guardian, which then ends
                self._process = None

    def _tell(self, sign: str, session: int) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError, ValueError):  # the guardian was killed
                self._process.stdin.write(f"{sign} {session}\n".encode())


_guardian = _Guardian()


class Ended(Exception):
    """Raised if the program that makes draws has ended. The message has the program's exit code or
    signal, and the last line of its error output."""


class TimedOut(Exception):
    """Raised if the program exceeded a time limit and was killed."""


class Child:
    """A running program with pipes, in a session (group of processes) of its own.

    Ctrl-C does not reach the program. The program, and all processes that it starts, are killed
    when this object is deleted and when dpaudit ends.

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
        self.received = bytearray()  # received output that no method has returned yet
        self.has_ended = False
        # False if the program was killed before it had read any byte of its input, so that it never
        # began a draw. True in all other cases, also while the program runs.
        self.has_read = True
        self._sent = 0
        self._unsent = memoryview(b"")
        self._last_words = b""
        self._process = _started(words, memory, {**os.environ, **(environment or {})}, keep)
        _guardian.guard(self._process.pid)
        self._finalizer = weakref.finalize(self, _end, self._process, os.getpid())
        self._in, self._out, self._err = (
            pipe.fileno()
            for pipe in (self._process.stdin, self._process.stdout, self._process.stderr)
            if pipe is not None
        )
        self._poll = select.poll()
        os.set_blocking(self._in, False)
        for pipe in (self._out, self._err):
            os.set_blocking(pipe, False)
            self._poll.register(pipe, select.POLLIN)
        if sys.platform == "linux":
            with suppress(OSError):  # the size exceeds the user's limit
                fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)

    @property
    def is_alive(self) -> bool:
        return not self.has_ended and self._process.poll() is None

    def send(self, data: bytes) -> None:
        """Write data to the program. If the pipe is full, `wait` writes the rest later."""
        self._unsent = memoryview(bytes(self._unsent) + data if self._unsent else data)
        self._write()

    def wait(
        self, ready: Callable[[], Result | None], *left: Clock, glance: float = LOOK_SECONDS
    ) -> Result:
        """Exchange data with the program until `ready` returns a result other than None. Return
        this result.

        ready: function without arguments, called after each exchange of data.
        left: functions that return the seconds left until a time limit.
        glance: longest time in seconds between two calls of the functions in `left`.

        Raises Ended if the program has ended. If a time limit is reached, the program is killed and
        TimedOut is raised.
        """
        seconds = glance
        while (result := ready()) is None:
            if seconds <= 0:  # time is up, and a last exchange gave no result
                self.kill()
                raise TimedOut
            if self.has_ended:
                raise Ended(self._how())
            seconds = min([glance, *(clock() for clock in left)])
            self._exchange(max(0.0, seconds))
        return result

    def line(self, longest: int) -> bytes | None:
        """Remove the first line from the received output and return it without its line end. Return
        None if no complete line has been received.

        longest: largest length in bytes; a longer line raises ValueError.
        """
        end = self.received.find(b"\n")
        if (len(self.received) if end < 0 else end) > longest:
            raise _too_long(longest)
        return None if end < 0 else self._take(end + 1)[:-1]

    def lines(self, longest: int) -> list[bytes] | None:
        """Remove all complete lines from the received output and return them without their line
        ends. Return None if there are none.

        longest: largest length in bytes; a longer line raises ValueError.
        """
        end = self.received.rfind(b"\n")
        if end < 0:
            self.line(longest)
            return None
        lines = self._take(end + 1)[:-1].split(b"\n")
        if end > longest and max(map(len, lines)) > longest:
            raise _too_long(longest)
        return lines

    def hears_more(self) -> bool:
        """Return whether output has been received that no method has returned yet."""
        if not self.received and not self.has_ended:
            self._exchange(0)
        return bool(self.received)

    def has_read_all(self) -> bool:
        """Return whether the program has read all its input, except perhaps a final line end.
        Always True except on Linux, since other systems do not report the amount of unread input.
        """
        if self._unsent:
            return False
        return sys.platform != "linux" or self.has_ended or self._unread() <= 1

    def _unread(self) -> int:
        """Return the number of bytes in the input pipe that the program has not read."""
        unread = bytearray(ctypes.sizeof(ctypes.c_int))
        fcntl.ioctl(self._in, termios.FIONREAD, unread)
        return int.from_bytes(unread, sys.byteorder)

    def taken(self, size: int) -> bytes | None:
        """Remove `size` bytes from the received output and return them. Return None if fewer were
        received."""
        return None if len(self.received) < size else self._take(size)

    def _take(self, size: int) -> bytes:
        data = bytes(memoryview(self.received)[:size])
        del self.received[:size]
        return data

    def close(self) -> None:
        """Close the program's input. Kill the program if it does not end within `_GRACE_SECONDS`
        seconds."""
        if self.is_alive and self._process.stdin is not None:
            self._unsent = memoryview(b"")
            self._forget(self._in)
            self._process.stdin.close()
            left = countdown(_GRACE_SECONDS)
            while not self.has_ended and left() > 0:
                self._exchange(max(0.0, min(left(), LOOK_SECONDS)))
            # Wait for the exit code: a program may close its output some time before it ends.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, left()))
        self.kill()

    def kill(self) -> None:
        """Kill the program and all processes of its session."""
        pipe = self._process.stdin
        if sys.platform == "linux" and pipe is not None and not pipe.closed:
            self.has_read = self._unread() < self._sent
        self.has_ended = True
        self._finalizer()

    def _exchange(self, seconds: float) -> None:
        """Write to the pipes and read from them, as far as this is possible without waiting.

        seconds: longest time to wait if no pipe is ready.
        """
        events = self._poll.poll(math.ceil(seconds * 1000))
        for pipe, _ in events:
            if pipe == self._in:
                self._write()
            else:
                with suppress(BlockingIOError):
                    self.has_ended |= not self._read(pipe) and pipe == self._out
        if not events and self._process.poll() is not None:
            self.has_ended = True

    def _write(self) -> None:
        try:
            while self._unsent:
                written = os.write(self._in, self._unsent)
                self._sent, self._unsent = self._sent + written, self._unsent[written:]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # the program has ended; its last output can still be read
            self._unsent = memoryview(b"")
        if self._unsent:
            self._poll.register(self._in, select.POLLOUT)
        else:
            self._forget(self._in)

    def _read(self, pipe: int) -> bool:
        """Read from a pipe. Return False if the program has closed the pipe, else True.

        Raises BlockingIOError if no data are available now.
        """
        data = os.read(pipe, _READ_BYTES)
        if pipe == self._out:
            self.received += data
        else:
            self._last_words = (self._last_words + data)[-_KEPT_ERROR_BYTES:]
        if not data:
            self._forget(pipe)
        return bool(data)

    def _forget(self, pipe: int) -> None:
        with suppress(KeyError):
            self._poll.unregister(pipe)

    def _how(self) -> str:
        """Return text that says how the program ended: exit code or signal, and the last line of
        its error output.
        """
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(LOOK_SECONDS)
        # The error output is read for at most `LOOK_SECONDS` seconds: a program may have closed
        # only its standard output, and go on writing errors.
        left = countdown(LOOK_SECONDS)
        with suppress(OSError, ValueError):
            while self._read(self._err) and left() > 0:
                pass
        code = self._process.returncode
        self.kill()
        how = "closed its output" if code is None else ending(code)
        lines = self._last_words.decode(errors="replace").split("\n")
        last = next((" ".join(one.split())[:200] for one in reversed(lines) if one.strip()), "")
        return f"{how}: {last}" if last else how


def countdown(seconds: float) -> Clock:
    """Return a function that returns how many of the `seconds`, counted from now, are left."""
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


def _too_long(longest: int) -> ValueError:
    return ValueError(f"a line of more than {longest:,} bytes")


def ending(code: int) -> str:
    """Return the end of a process as text, such as `exit code 1` or `signal 9 (SIGKILL)`.

    code: return code from `subprocess`. A negative code -N means signal N.
    """
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
            preexec_fn=partial(_prepare, os.getpid(), memory),
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TargetError(
            f"the program {words[0]!r} cannot be started: {reason}", code="program-not-started"
        ) from None


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _prepare(parent: int, memory: int | None) -> None:
    """Set limits in the new process, before the program replaces it.

    On Linux, also ask the system to kill the process when the thread that started it ends.

    parent: id of the process that starts the program.
    memory: limit of the address space in bytes; None for no limit.
    """
    if _LIBC is not None:
        _LIBC.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # many crashes would leave many core dumps
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:  # in a fork, which must not kill the program
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    _guardian.forget(process.pid)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


class Replaceable(Protocol):
    """A running program. When its process ends, `Succession` replaces it by a new one.

    child: the process.
    known: how to call the mechanism, as the program describes it (`Hello` or `Calling`). A process
        that replaces the program must give the same description.
    """

    @property
    def child(self) -> Child: ...
    @property
    def known(self) -> Any: ...


Process = TypeVar("Process", bound=Replaceable)


class Succession(Generic[Process]):
    """A process that makes draws. Each time that it ends, a new process replaces it.

    If the process ends during a draw, this end is the outcome of the draw. If processes end too
    often, the audit ends with an error.

    name: name of the mechanism in messages.
    timeout: time limit of a draw in seconds; None for no limit.
    start: function (watch, known) that starts and returns a process. The watch warns of slow calls.
        `known` is the first process's description of how to call the mechanism; None for the first
        process.
    """

    def __init__(
        self, name: str, timeout: float | None, start: Callable[[Watch, Any], Process]
    ) -> None:
        self.name, self._timeout, self._new = name, timeout, start
        self._watch = Watch.of_process(timeout)
        self._process: Process | None = start(self._watch, None)
        self.known = self._process.known
        # Number of processes in a row that ended before they completed a draw.
        self._deaths = 0
        # Messages about processes that ended before a draw began. The list is emptied when a draw
        # is complete, and when a process ends during a draw.
        self._unbegun: list[str] = []
        # Whether draws end differently: some draw was completed, or two draws ended their processes
        # with different failures. If this is still False after some draws, the mechanism seems to
        # fail always, and the audit stops.
        self._varies = False
        # The failure of the first draw that ended its process; None if no draw has.
        self._first: Raised | None = None
        # For each input, the number of its draws that ended their process with the same failure as
        # the first such draw (`_first`).
        self._alike: Counter[Hashable] = Counter()
        self._asked, self._seconds = time.monotonic(), 0.0

    def running(self) -> Process:
        """Return the process that makes draws. If the last one has ended, start a new one.

        Call this between draws. Raises MechanismError if a new process cannot be started.
        """
        self._asked = time.monotonic()
        if self._process is None or not self._process.child.is_alive:
            self.close()
            try:
                self._process = self._new(self._watch, self.known)
            except DpauditError as error:
                raise MechanismError(
                    f"a process that ended cannot be replaced: {error}", code="process-failed"
                ) from None
        return self._process

    def close(self) -> None:
        """End the process. The next call of `running` starts a new one."""
        if self._process is not None:
            self._process.child.close()
            self._process = None

    def draw_ended(self) -> None:
        """Record that a draw is complete."""
        self._deaths, self._unbegun, self._varies = 0, [], True

    def died(self, end: Ended | TimedOut, dataset: Hashable, *, has_begun: bool = True) -> Raised:
        """Record that the process has ended during a draw. Return the outcome of this draw.

        end: how the process ended.
        dataset: number of the draw's input, or another value that identifies the input.
        has_begun: whether the draw had begun.

        Raises MechanismError if the mechanism ends its process in every draw, or in too many draws
        in a row.
        """
        self.close()
        self._deaths += 1
        self._seconds += time.monotonic() - self._asked
        failure = Raised(TIMEOUT if isinstance(end, TimedOut) else CRASH, self.words(end))
        self._unbegun = [] if has_begun else [*self._unbegun, failure.message]
        ended = f"a {failure.kind} ({failure.message})"
        reason = ""
        if self._unbegun[-_MAX_ENDED_ALIKE:] == [failure.message] * _MAX_ENDED_ALIKE:
            reason = (
                f"the process of {self.name} ended {_MAX_ENDED_ALIKE} times in a row before a draw "
                f"began, each time with: {failure.message}"
            )
        elif self._is_always(failure, dataset):
            took = f", which took {self._seconds:.0f} s" if self._seconds >= WARNING_SECONDS else ""
            reason = (
                f"{self.name} ended its process in each of its first {self._alike.total()} draws "
                f"of both inputs, with {ended}{took}; an audit needs outputs"
            )
        elif self._deaths >= MAX_ENDED:
            reason = (
                f"{self.name} ended its process {MAX_ENDED} times in a row without finishing a "
                f"draw, the last time with {ended}; an audit needs outputs"
            )
        if reason and failure.kind == TIMEOUT and self._timeout is not None:
            reason += "; if a draw needs more time, raise timeout (--timeout)"
        if reason:
            raise MechanismError(reason, code="mechanism-ends-process")
        if (
            not self._varies
            and self._seconds >= WARNING_SECONDS
            and self._watch.should_warn("no draw")
        ):
            total = self._alike.total()
            draws = f"all {total} draws of" if total > 1 else "the only draw of"
            _log.warning("%s %s so far ended with %s", draws, self.name, ended)
        return failure

    def _is_always(self, failure: Raised, dataset: Hashable) -> bool:
        """Count a draw that ended its process. Return whether the audit should stop because all
        draws so far have ended their processes with the same failure.

        This needs `_MAX_FAILED_DRAWS` draws of each input or, after `WARNING_SECONDS` seconds,
        `_MAX_ENDED_ALIKE` draws of each input. If only one input was drawn, the result is False.

        failure: how the last draw ended its process.
        dataset: value that identifies the input of the last draw.
        """
        self._first = self._first or failure
        if self._varies or failure != self._first:
            self._varies = True
            return False
        self._alike[dataset] += 1
        enough = _MAX_FAILED_DRAWS if self._seconds < WARNING_SECONDS else _MAX_ENDED_ALIKE
        return len(self._alike) > 1 and min(self._alike.values()) >= enough

    def words(self, end: Ended | TimedOut) -> str:
        """Return how a process ended, in words, such as `exit code 1` or `over 5 s`."""
        if isinstance(end, Ended):
            return str(end)
        return "no outcome in time" if self._timeout is None else f"over {self._timeout:g} s"
