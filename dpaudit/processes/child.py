"""Programs that dpaudit starts: exchange with a running program, its end, and its successors.

Nothing that a program started survives dpaudit: every program has a session of its own, which is
killed with it, and a guardian kills the sessions that are left when dpaudit itself has ended.
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
from typing import Generic, Protocol, TypeVar

from dpaudit.errors import DpauditError, MechanismError, TargetError
from dpaudit.outcomes import Raised
from dpaudit.watching import Watch

Result = TypeVar("Result")
# Returns the number of seconds that are left.
Clock = Callable[[], float]

CRASH, TIMEOUT = "crash", "timeout"
# Seconds between two looks at a program for an end that its output does not show: another process
# may keep that open.
GLANCE = 0.25
# Seconds that a program has to end by itself after its input has ended.
_GRACE = 1.0
# Bytes of the error output that are kept; of a read, and of the pipe of the output.
_LAST_WORDS, _PIECE, _PIPE = 4096, 1 << 20, 1 << 20
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
# Processes in a row that end during a draw, before an audit ends.
HOPELESS = 50
# Processes in a row that end in the same way before a draw begins, which says nothing about inputs.
_ALIKE = 3
# Draws of each input that all end in the same way, before an audit ends, if no draw has ended
# otherwise. A crash for one input alone is a leak.
_ALWAYS = 20
# Seconds that such draws take before a warning, and after which `_ALIKE` draws suffice.
PATIENCE = 10.0
# The guardian. Each line of its input is a sign and a session: + for a new one, - for one that has
# ended. When the input ends, dpaudit has ended.
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
    """A process that kills the sessions of programs when this process has ended, however it did. It
    lives as long as a program does."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._sessions: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None
        # Programs may end in any thread, and during a call that starts another one.
        self._lock = threading.RLock()

    def guard(self, session: int) -> None:
        """Kill what is left of a session when this process has ended."""
        if self._owner != os.getpid():  # a fork has a guardian of its own
            self._owner, self._sessions, self._process = os.getpid(), set(), None
            self._lock = threading.RLock()
        with self._lock:
            if self._process is None:
                with suppress(OSError):  # programs end without it, too
                    self._process = subprocess.Popen(  # noqa: S603  # a fixed command
                        ["/bin/sh", "-c", _SCRIPT],
                        bufsize=0,
                        stdin=subprocess.PIPE,
                        stdout=subprocess.DEVNULL,
                        stderr=subprocess.DEVNULL,
                        cwd="/",
                        start_new_session=True,  # signals to this process's group are not for it
                    )
            self._sessions.add(session)
            self._tell("+", session)

    def forget(self, session: int) -> None:
        """Note that a session has ended: its number may soon be that of another one."""
        if self._owner != os.getpid():
            return
        with self._lock:
            self._sessions.discard(session)
            self._tell("-", session)
            if not self._sessions and self._process is not None:
                self._process.communicate()  # closes its input, which ends it
                self._process = None

    def _tell(self, sign: str, session: int) -> None:
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError, ValueError):  # it was killed
                self._process.stdin.write(f"{sign} {session}\n".encode())


_guardian = _Guardian()


class Ended(Exception):
    """The program has ended; the message says how."""


class TimedOut(Exception):
    """The program took longer than it may, and was killed."""


class Child:
    """A running program with pipes, in a session of its own.

    Ctrl-C does not reach it, and processes that it starts end with it. It is killed when this
    object is deleted, and when this process ends.

    memory: address space, at most, in bytes.  environment: further variables.  keep: descriptors
    that it inherits.  Raises TargetError for a program that cannot be started.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        memory: int | None = None,
        environment: Mapping[str, str] | None = None,
        keep: Sequence[int] = (),
    ) -> None:
        self.received = bytearray()  # output that has not been taken
        self.has_ended = False
        # Whether it has read any input; True while that is not known.
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
            with suppress(OSError):  # beyond the limit of this user
                fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, _PIPE)

    @property
    def is_alive(self) -> bool:
        return not self.has_ended and self._process.poll() is None

    def send(self, data: bytes) -> None:
        """Write data to the program: now, and the rest during later waits."""
        self._unsent = memoryview(bytes(self._unsent) + data if self._unsent else data)
        self._write()

    def wait(
        self, ready: Callable[[], Result | None], *left: Clock, glance: float = GLANCE
    ) -> Result:
        """Return the first result of `ready` that is not None. Raises Ended, or TimedOut after
        killing the program when a clock in `left` has run out; clocks are read at least every
        `glance` seconds."""
        seconds = glance
        while (result := ready()) is None:
            if seconds <= 0:  # after a last look
                self.kill()
                raise TimedOut
            if self.has_ended:
                raise Ended(self._how())
            seconds = min([glance, *(clock() for clock in left)])
            self._exchange(max(0.0, seconds))
        return result

    def line(self, longest: int) -> bytes | None:
        """Take a line of output without its end, or return None while there is no whole line.
        Raises ValueError for a line of more than `longest` bytes."""
        end = self.received.find(b"\n")
        if (len(self.received) if end < 0 else end) > longest:
            raise _too_long(longest)
        return None if end < 0 else self._take(end + 1)[:-1]

    def lines(self, longest: int) -> list[bytes] | None:
        """Take all whole lines of output, or return None if there is none. Raises ValueError as
        `line` does."""
        end = self.received.rfind(b"\n")
        if end < 0:
            self.line(longest)
            return None
        lines = self._take(end + 1)[:-1].split(b"\n")
        if end > longest and max(map(len, lines)) > longest:
            raise _too_long(longest)
        return lines

    def hears_more(self) -> bool:
        """Return whether there is output that has not been taken."""
        if not self.received and not self.has_ended:
            self._exchange(0)
        return bool(self.received)

    def has_read_all(self) -> bool:
        """Return whether the program has read its input, perhaps except the end of the last line.
        True where the system does not say."""
        if self._unsent:
            return False
        return sys.platform != "linux" or self.has_ended or self._unread() <= 1

    def _unread(self) -> int:
        """Return the number of bytes in the pipe of its input."""
        unread = bytearray(ctypes.sizeof(ctypes.c_int))
        fcntl.ioctl(self._in, termios.FIONREAD, unread)
        return int.from_bytes(unread, sys.byteorder)

    def taken(self, size: int) -> bytes | None:
        """Take a number of bytes of output, or return None while there are fewer."""
        return None if len(self.received) < size else self._take(size)

    def _take(self, size: int) -> bytes:
        data = bytes(memoryview(self.received)[:size])
        del self.received[:size]
        return data

    def close(self) -> None:
        """End the input, and kill the program if it does not end by itself soon."""
        if self.is_alive and self._process.stdin is not None:
            self._unsent = memoryview(b"")
            self._forget(self._in)
            self._process.stdin.close()
            left = countdown(_GRACE)
            while not self.has_ended and left() > 0:
                self._exchange(max(0.0, min(left(), GLANCE)))
            # The output may end before the program does.
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, left()))
        self.kill()

    def kill(self) -> None:
        """Kill the program and the processes of its session."""
        pipe = self._process.stdin
        if sys.platform == "linux" and pipe is not None and not pipe.closed:
            self.has_read = self._unread() < self._sent
        self.has_ended = True
        self._finalizer()

    def _exchange(self, seconds: float) -> None:
        """Write and read what the pipes allow now. If they allow nothing, wait up to some
        seconds."""
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
        except BrokenPipeError:  # its last output is still to be read
            self._unsent = memoryview(b"")
        if self._unsent:
            self._poll.register(self._in, select.POLLOUT)
        else:
            self._forget(self._in)

    def _read(self, pipe: int) -> bool:
        """Read from a pipe. Return False at its end. Raises BlockingIOError if there are no
        data."""
        data = os.read(pipe, _PIECE)
        if pipe == self._out:
            self.received += data
        else:
            self._last_words = (self._last_words + data)[-_LAST_WORDS:]
        if not data:
            self._forget(pipe)
        return bool(data)

    def _forget(self, pipe: int) -> None:
        with suppress(KeyError):
            self._poll.unregister(pipe)

    def _how(self) -> str:
        """Return how the program ended, with the last line of its error output."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GLANCE)
        # It may have closed only its output, and go on writing errors.
        left = countdown(GLANCE)
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
    """Return a clock that counts down from a number of seconds, from now on."""
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


def _too_long(longest: int) -> ValueError:
    return ValueError(f"a line of more than {longest:,} bytes")


def ending(code: int) -> str:
    """Return the exit code, or the signal, of a process in words. code: as `subprocess` gives
    it."""
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
    """Set limits in the new process, before it becomes the program."""
    if _LIBC is not None:
        _LIBC.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # no core dumps of many crashes
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:  # in a fork of the process that started it
        return
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    _guardian.forget(process.pid)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


class HasChild(Protocol):
    @property
    def child(self) -> Child: ...


Process = TypeVar("Process", bound=HasChild)


class Succession(Generic[Process]):
    """Processes that draw, one after the other: `first`, then the results of `start`.

    When one ends, the draw under way is an outcome.  timeout: seconds of a draw, for messages.
    """

    def __init__(
        self, name: str, first: Process, start: Callable[[], Process], timeout: float | None
    ) -> None:
        self._name, self._start, self._timeout = name, start, timeout
        self._process: Process | None = first
        # Processes that ended in a row, and the messages of those that ended before a draw.
        self._deaths = 0
        self._unbegun: list[str] = []
        self._watch = Watch()
        # Until draws vary: the first end, and the number of such ends by dataset.
        self._varies = False
        self._first: Raised | None = None
        self._alike: Counter[Hashable] = Counter()
        self._asked, self._seconds = time.monotonic(), 0.0

    def running(self) -> Process:
        """Return the process, or a new one if it has ended; no draw is under way then. Raises
        MechanismError when a new one cannot be started."""
        self._asked = time.monotonic()
        if self._process is None or not self._process.child.is_alive:
            self.close()
            try:
                self._process = self._start()
            except DpauditError as error:
                raise MechanismError(
                    f"a process that ended cannot be replaced: {error}", code="process-failed"
                ) from None
        return self._process

    def close(self) -> None:
        """End the process; the next draw starts another one."""
        if self._process is not None:
            self._process.child.close()
            self._process = None

    def draw_ended(self) -> None:
        """Note that a draw came to its end."""
        self._deaths, self._unbegun, self._varies = 0, [], True

    def died(self, end: Ended | TimedOut, dataset: Hashable, *, has_begun: bool = True) -> Raised:
        """Return the outcome of the draw that the end of the process cut short. Raises
        MechanismError if the mechanism ends its process in every draw, or too many times in a row.

        dataset: stands for the input of the draw.  has_begun: whether the draw had begun.
        """
        self.close()
        self._deaths += 1
        self._seconds += time.monotonic() - self._asked
        failure = Raised(TIMEOUT if isinstance(end, TimedOut) else CRASH, self.words(end))
        self._unbegun = [] if has_begun else [*self._unbegun, failure.message]
        ended = f"a {failure.kind} ({failure.message})"
        reason = ""
        if self._unbegun[-_ALIKE:] == [failure.message] * _ALIKE:
            reason = (
                f"the process of {self._name} ended {_ALIKE} times in a row before a draw began, "
                f"each time with: {failure.message}"
            )
        elif self._is_always(failure, dataset):
            took = f", which took {self._seconds:.0f} s" if self._seconds >= PATIENCE else ""
            reason = (
                f"{self._name} ended its process in each of its first {self._alike.total()} draws "
                f"of both inputs, with {ended}{took}; an audit needs outputs"
            )
        elif self._deaths >= HOPELESS:
            reason = (
                f"{self._name} ended its process {HOPELESS} times in a row without finishing a "
                f"draw, the last time with {ended}; an audit needs outputs"
            )
        if reason:
            raise MechanismError(reason, code="mechanism-ends-process")
        if not self._varies and self._seconds >= PATIENCE and self._watch.should_warn("no draw"):
            total = self._alike.total()
            draws = f"all {total} draws of" if total > 1 else "the only draw of"
            _log.warning("%s %s so far ended with %s", draws, self._name, ended)
        return failure

    def _is_always(self, failure: Raised, dataset: Hashable) -> bool:
        """Return whether all draws have ended in this way, with enough draws of each input."""
        self._first = self._first or failure
        if self._varies or failure != self._first:
            self._varies = True
            return False
        self._alike[dataset] += 1
        enough = _ALWAYS if self._seconds < PATIENCE else _ALIKE
        return len(self._alike) > 1 and min(self._alike.values()) >= enough

    def words(self, end: Ended | TimedOut) -> str:
        """Return how a process ended."""
        if isinstance(end, Ended):
            return str(end)
        return "no outcome in time" if self._timeout is None else f"over {self._timeout:g} s"
