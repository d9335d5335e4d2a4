"""A process that kills what programs have started once dpaudit is gone, however it went.

The system ends a program with dpaudit, but not what that program has started. So a shell is told of
every session of a program; its standard input ends with dpaudit, and then it kills those that are
left.
"""

from __future__ import annotations

import contextlib
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
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, Protocol, TypeVar

from dpaudit.errors import DpauditError, MechanismError, TargetError
from dpaudit.outcomes import Raised
from dpaudit.watching import Watch

# Each line is a sign and a session: one more, or one that has ended.
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


@dataclass(slots=True)
class _Guardian:
    """The one of this process; it lives as long as a program does."""

    owner: int = 0
    sessions: set[int] = field(default_factory=set)
    process: subprocess.Popen[bytes] | None = None
    # Programs may end in any thread, and within one that starts another.
    lock: threading.RLock = field(default_factory=threading.RLock)

    def guard(self, session: int) -> None:
        """Have what is left of a session killed when this process is gone."""
        if self.owner != os.getpid():  # a fork has one of its own
            self.owner, self.sessions, self.process = os.getpid(), set(), None
            self.lock = threading.RLock()
        with self.lock:
            self.process = self.process or _start_guardian()
            self.sessions.add(session)
            self._tell("+", session)

    def forget(self, session: int) -> None:
        """Take notice that a session has been killed; its number may soon be another one's."""
        if self.owner != os.getpid():
            return
        with self.lock:
            self.sessions.discard(session)
            self._tell("-", session)
            if not self.sessions and self.process is not None:
                self.process.communicate()  # closes its input, which ends it
                self.process = None

    def _tell(self, sign: str, session: int) -> None:
        if self.process is not None and self.process.stdin is not None:
            with suppress(OSError, ValueError):  # somebody has ended it
                self.process.stdin.write(f"{sign} {session}\n".encode())


guardian = _Guardian()


def _start_guardian() -> subprocess.Popen[bytes] | None:
    try:
        return subprocess.Popen(  # noqa: S603  # nothing of the user's is in it
            ["/bin/sh", "-c", _SCRIPT],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C is not for it, nor what kills this process's group
        )
    except OSError:  # the programs end without it, too
        return None


Found = TypeVar("Found")
# Says how many seconds are left.
Clock = Callable[[], float]

# A program is looked at so often (seconds), for an end that its output does not tell: whatever it
# started may keep that open.
GLANCE = 0.25
# How long a program has to end by itself once its input has ended.
_GRACE = 1.0
_LAST_WORDS = 4096
_PIECE = _PIPE = 1 << 20
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


class Ended(Exception):
    """The program is no more; the message says how it ended."""


class TimedOut(Exception):
    """The program was waited for as long as it may take, and killed."""


class Child:
    """A program with pipes to it, in a session of its own: Ctrl-C is not for it, and what it starts
    ends with it. It is killed when this object goes, and when this process ends, however it ends.

    memory: bytes of address space at most.  environment: more variables.  keep: descriptors that it
    inherits.  Raises TargetError when it cannot be started.
    """

    def __init__(
        self,
        words: Sequence[str],
        *,
        memory: int | None = None,
        environment: Mapping[str, str] | None = None,
        keep: Sequence[int] = (),
    ) -> None:
        self.received = bytearray()  # what it has written and nobody has taken
        self.has_ended = False
        # Whether it has read anything, as far as can be told; known once it has ended.
        self.has_read = True
        self._sent = 0
        self._unsent = memoryview(b"")
        self._last_words = b""
        self._process = _started(words, memory, {**os.environ, **(environment or {})}, keep)
        guardian.guard(self._process.pid)
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
            with contextlib.suppress(OSError):  # more than this user may have
                fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, _PIPE)

    @property
    def is_alive(self) -> bool:
        return not self.has_ended and self._process.poll() is None

    def send(self, data: bytes) -> None:
        """Put data where they leave from, while something is waited for."""
        self._unsent = memoryview(bytes(self._unsent) + data if self._unsent else data)
        self._write()

    def wait(
        self, ready: Callable[[], Found | None], *left: Clock, glance: float = GLANCE
    ) -> Found:
        """Return what `ready` finds, once that is not None. Raises Ended, or TimedOut after killing
        the program, once no seconds are `left`, which is asked at least every `glance` seconds."""
        seconds = glance
        while (found := ready()) is None:
            if seconds <= 0:  # nothing has come at the last moment either
                self.kill()
                raise TimedOut
            if self.has_ended:
                raise Ended(self._how())
            seconds = min([glance, *(clock() for clock in left)])
            self._exchange(max(0.0, seconds))
        return found

    def line(self, longest: int) -> bytes | None:
        """Take a line without its end; None while there is no whole one. Raises ValueError when it
        is longer than so many bytes."""
        end = self.received.find(b"\n")
        if (len(self.received) if end < 0 else end) > longest:
            raise _too_long(longest)
        return None if end < 0 else self._taken(end + 1)[:-1]

    def lines(self, longest: int) -> list[bytes] | None:
        """Take all whole lines; None while there is none. Raises ValueError as `line` does."""
        end = self.received.rfind(b"\n")
        if end < 0:
            self.line(longest)
            return None
        lines = self._taken(end + 1)[:-1].split(b"\n")
        if end > longest and max(map(len, lines)) > longest:
            raise _too_long(longest)
        return lines

    def hears_more(self) -> bool:
        """Return whether it has written what nobody has taken."""
        if not self.received and not self.has_ended:
            self._exchange(0)
        return bool(self.received)

    def has_read_all(self) -> bool:
        """Return whether it has read what was sent to it, but perhaps for the end of the last line;
        where that cannot be told, True."""
        if self._unsent:
            return False
        return sys.platform != "linux" or self.has_ended or self._unread() <= 1

    def _unread(self) -> int:
        """Return how many of the bytes that were sent it has not read."""
        unread = bytearray(ctypes.sizeof(ctypes.c_int))
        fcntl.ioctl(self._in, termios.FIONREAD, unread)
        return int.from_bytes(unread, sys.byteorder)

    def taken(self, size: int) -> bytes | None:
        """Take so many bytes; None while there are fewer."""
        return None if len(self.received) < size else self._taken(size)

    def _taken(self, size: int) -> bytes:
        data = bytes(memoryview(self.received)[:size])
        del self.received[:size]
        return data

    def close(self) -> None:
        """End its input, and let it end by itself before it is killed."""
        if self.is_alive and self._process.stdin is not None:
            self._unsent = memoryview(b"")
            self._forget(self._in)
            self._process.stdin.close()
            left = countdown(_GRACE)
            while not self.has_ended and left() > 0:
                self._exchange(max(0.0, min(left(), GLANCE)))
            # Its output may have ended before it does.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(max(0.0, left()))
        self.kill()

    def kill(self) -> None:
        """End it, and all that it started, at once."""
        pipe = self._process.stdin
        if sys.platform == "linux" and pipe is not None and not pipe.closed:
            self.has_read = self._unread() < self._sent
        self.has_ended = True
        self._finalizer()

    def _exchange(self, seconds: float) -> None:
        """Write and read what can be, or wait so long for something."""
        events = self._poll.poll(math.ceil(seconds * 1000))
        for pipe, _ in events:
            if pipe == self._in:
                self._write()
            else:
                with contextlib.suppress(BlockingIOError):
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
        except BrokenPipeError:  # what it has written last is still to be read
            self._unsent = memoryview(b"")
        if self._unsent:
            self._poll.register(self._in, select.POLLOUT)
        else:
            self._forget(self._in)

    def _read(self, pipe: int) -> bool:
        """Read what has come; return whether more may come. Raises BlockingIOError for nothing."""
        data = os.read(pipe, _PIECE)
        if pipe == self._out:
            self.received += data
        else:
            self._last_words = (self._last_words + data)[-_LAST_WORDS:]
        if not data:
            self._forget(pipe)
        return bool(data)

    def _forget(self, pipe: int) -> None:
        with contextlib.suppress(KeyError):
            self._poll.unregister(pipe)

    def _how(self) -> str:
        """Return how it ended, and the last line of what it complained of."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GLANCE)
        # It may have closed its output alone, and go on, silently or not.
        left = countdown(GLANCE)
        with contextlib.suppress(OSError, ValueError):
            while self._read(self._err) and left() > 0:
                pass
        code = self._process.returncode
        self.kill()
        how = "closed its output" if code is None else ending(code)
        lines = self._last_words.decode(errors="replace").split("\n")
        last = next((" ".join(one.split())[:200] for one in reversed(lines) if one.strip()), "")
        return f"{how}: {last}" if last else how


def countdown(seconds: float) -> Clock:
    """Return what says how many of so many seconds from now are left."""
    end = time.monotonic() + seconds
    return lambda: end - time.monotonic()


def _too_long(longest: int) -> ValueError:
    return ValueError(f"a line of more than {longest:,} bytes")


def ending(code: int) -> str:
    """Return how a process ended, by its exit code as `subprocess` gives it."""
    if code >= 0:
        return f"exit code {code}"
    with contextlib.suppress(ValueError):
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
        raise TargetError(f"the program {words[0]!r} cannot be started: {reason}") from None


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def _prepare(parent: int, memory: int | None) -> None:
    """Run in the new process, before it becomes the program."""
    if _LIBC is not None:
        _LIBC.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # crashes may be many
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:  # a fork of the process that started it
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    guardian.forget(process.pid)
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.wait()


CRASH, TIMEOUT = "crash", "timeout"
# So many processes in a row that did not come to the end of one draw end an audit.
HOPELESS = 50
# And so many that ended alike before a draw began, which then says nothing about its input.
_ALIKE = 3
# As long as no draw at all came to its end: so many draws of every input that end alike, of which
# there are at least two. A crash on one input alone is what an audit looks for.
_ALWAYS = 20
# Seconds that such draws take before somebody is told, and before _ALIKE of every input are enough.
PATIENCE = 10.0

_log = logging.getLogger(__name__)


class HasChild(Protocol):
    @property
    def child(self) -> Child: ...


Process = TypeVar("Process", bound=HasChild)


class Succession(Generic[Process]):
    """Processes that draw, of which one runs at a time: first `first`, then what `start` returns.
    timeout: seconds of a draw, for words."""

    def __init__(
        self, name: str, first: Process, start: Callable[[], Process], timeout: float | None
    ) -> None:
        self._name, self._start, self._timeout = name, start, timeout
        self._process: Process | None = first
        self._deaths = 0
        self._unbegun: list[str] = []
        self._watch = Watch()
        # Of draws, for as long as none has come to its end, or ended in another way.
        self._varies = False
        self._first: Raised | None = None
        self._alike: Counter[Hashable] = Counter()
        self._asked, self._seconds = time.monotonic(), 0.0

    def living(self) -> Process:
        """Return the process, or a new one in its place; no draw is under way then. Raises
        MechanismError when a new one cannot be started as the first one was."""
        self._asked = time.monotonic()
        if self._process is None or not self._process.child.is_alive:
            self.close()
            try:
                self._process = self._start()
            except DpauditError as error:
                raise MechanismError(f"a process that ended cannot be replaced: {error}") from None
        return self._process

    def close(self) -> None:
        """End the process; the next draw starts another one."""
        if self._process is not None:
            self._process.child.close()
            self._process = None

    def lives(self) -> None:
        """Take notice that a draw came to its end."""
        self._deaths, self._unbegun, self._varies = 0, [], True

    def died(self, end: Ended | TimedOut, dataset: Hashable, *, has_begun: bool = True) -> Raised:
        """Return what the draw under way is. Raises MechanismError when that happens every time.

        dataset: stands for the one that is drawn from.  has_begun: whether it is under way indeed.
        """
        self.close()
        self._deaths += 1
        self._seconds += time.monotonic() - self._asked
        failure = Raised(TIMEOUT if isinstance(end, TimedOut) else CRASH, self.words(end))
        self._unbegun = [] if has_begun else [*self._unbegun, failure.message]
        if self._unbegun[-_ALIKE:] == [failure.message] * _ALIKE:
            raise MechanismError(
                f"the process of {self._name} ended {_ALIKE} times in a row before a draw began, "
                f"each time with: {failure.message}"
            )
        if self._is_always(failure, dataset):
            took = f", which took {self._seconds:.0f} s" if self._seconds >= PATIENCE else ""
            raise MechanismError(
                f"{self._name} ended its process in each of its first {self._alike.total()} draws "
                f"of both inputs, with a {failure.kind} ({failure.message}){took}; an audit needs "
                "outputs"
            )
        if self._deaths >= HOPELESS:
            raise MechanismError(
                f"{self._name} ended its process {HOPELESS} times in a row without finishing a "
                f"draw, the last time with a {failure.kind} ({failure.message}); an audit needs "
                "outputs"
            )
        self._tell(failure)
        return failure

    def _tell(self, failure: Raised) -> None:
        """Say, once, that all draws so far have ended in one way, where that has taken long."""
        if self._varies or self._seconds < PATIENCE or not self._watch.tells("no draw"):
            return
        total = self._alike.total()
        draws = f"all {total} draws of" if total > 1 else "the only draw of"
        words = "%s %s so far ended with a %s (%s)"
        _log.warning(words, draws, self._name, failure.kind, failure.message)

    def _is_always(self, failure: Raised, dataset: Hashable) -> bool:
        """Return whether no draw has ended in another way than this one, often enough."""
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
