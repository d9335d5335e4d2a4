"""Watch the auditing process from a parent process, so that an exit code means a verdict only if
dpaudit reached that verdict.

The first process forks after about a millisecond, before it imports much. Its child runs the
program. The parent passes signals on to the child, shows the output of mechanisms, and exits with
the code that the child has written to shared memory.
"""

from __future__ import annotations

import mmap
import os
import select
import signal
import sys
from contextlib import suppress
from types import FrameType

from dpaudit.cli.messages import Chatter

FAILURE = 3
# Signals that ask the program to end. The child (the process that runs the program) then saves its
# results before it ends.
REQUESTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_READ_BYTES = 1 << 16
# Size of a text in shared memory, in bytes.
_TEXT_BYTES = 2048
# Positions of the texts in shared memory, after the exit code at byte 0. AUDIT: name of the running
# audit, for the message if the process dies. FILE: path of the temporary file of results, which the
# parent prints and removes in that case.
AUDIT, FILE = slice(1, 1 + _TEXT_BYTES), slice(1 + _TEXT_BYTES, 1 + 2 * _TEXT_BYTES)
_SHOW_CURSOR = b"\x1b[?25h"


class _Shared:
    """Memory shared by two processes: the child, which runs the program, and the parent, which
    watches the child. It holds the exit code, the name of the running audit, and the path of a
    temporary file.

    The temporary file holds the results so far. At the end, the child prints the results to
    standard output; if the child dies, the parent prints them.

    owner: process number of the child.
    parent: process number of the parent.
    chatter: file descriptor to which the child sends the output of mechanisms.
    """

    def __init__(self, chatter: int) -> None:
        self._memory = mmap.mmap(-1, FILE.stop)
        self.owner, self.chatter = 0, chatter
        self.parent = os.getpid()

    @property
    def code(self) -> int | None:
        """Return the exit code that the child recorded, or None if it has recorded none."""
        return self._memory[0] - 1 if self._memory[0] else None

    @code.setter
    def code(self, code: int) -> None:
        self._memory[0] = code + 1

    def text(self, place: slice) -> str:
        kept: bytes = self._memory[place]
        return kept.rstrip(b"\0").decode(errors="replace")

    def put(self, place: slice, text: str) -> None:
        self._memory[place] = text.encode(errors="replace")[:_TEXT_BYTES].ljust(_TEXT_BYTES, b"\0")


_shared: _Shared | None = None


def begin() -> None:
    """Fork. The call returns in the child, which runs the program; the parent watches the child and
    never returns.

    If the fork fails, the call returns in the only process.
    """
    global _shared
    reading, writing = os.pipe()
    shared = _Shared(writing)
    # Block signals until parent and child have installed their handlers; otherwise a signal between
    # the fork and this moment would be lost.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*REQUESTS, signal.SIGCHLD})
    try:
        child = os.fork()
    except OSError:  # too many processes
        child = -1
    if child > 0:
        os.close(writing)
        os._exit(_Watch(child, reading, shared).until_the_end(before))
    os.close(reading)
    if child == 0:
        _shared, shared.owner = shared, os.getpid()
    else:
        os.close(writing)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent() -> None:
    """Ask the operating system (Linux only) to kill this process when its parent is killed."""
    shared = _own()
    if shared is None or sys.platform != "linux":
        return
    # Imported here, since this file is imported before the fork, which should not wait for ctypes.
    # When this function runs, NumPy has already imported ctypes, so the import costs no time.
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != shared.parent:
        os._exit(FAILURE)


def leave(code: int) -> None:
    """Record the program's exit code for the parent. The code then holds even if this process
    crashes."""
    shared = _own()
    if shared is not None:
        shared.code = code


def say(place: slice, text: str) -> None:
    """Write a text into the memory that this process shares with its parent. The parent uses the
    text if this process dies. Without a parent, do nothing.

    place: `AUDIT` for the name of the running audit, or `FILE` for the path of the temporary file
        of results.
    """
    shared = _own()
    if shared is not None:
        shared.put(place, text)


def is_watched() -> bool:
    """Return whether a parent process of dpaudit watches this process."""
    return _own() is not None


def chatter() -> int:
    """Return the file descriptor for the output of mechanisms: the pipe to the parent, or standard
    error (2) without a parent."""
    shared = _own()
    return 2 if shared is None else shared.chatter


def end_at_once(number: int, _: FrameType | None) -> None:
    """End this process without saving anything.

    number: number of the signal that asked for it.
    """
    _show(b"interrupted\n")
    leave(128 + number)
    os._exit(128 + number)


def _own() -> _Shared | None:
    """Return the shared memory, or None if this process is not the watched child, for example if a
    mechanism forked it."""
    return _shared if _shared is not None and _shared.owner == os.getpid() else None


class _Watch:
    """The work of the parent process: wait for the child, pass signals on, and show the output of
    mechanisms."""

    def __init__(self, child: int, reading: int, shared: _Shared) -> None:
        self._child, self._reading, self._shared = child, reading, shared
        self._asked: int | None = None
        self._chatter = Chatter()

    def until_the_end(self, mask: set[signal.Signals] | set[int]) -> int:
        """Wait until the child process, which runs the command, has ended. Return the exit code of
        the command, with which this parent process must exit.

        mask: signals that were blocked before the fork; the method restores this set.
        """
        awake, waking = os.pipe()
        os.set_blocking(waking, False)
        signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
        for number in REQUESTS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._pass_on)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        status = self._ended(awake)
        os.set_blocking(self._reading, False)
        while self._relay():
            pass
        _show(self._chatter.summary())
        return self._code(os.waitstatus_to_exitcode(status))

    def _pass_on(self, number: int, _: FrameType | None) -> None:
        # A terminal sends Ctrl-C to both processes, and the parent passes it on, so the child may
        # receive it twice. The child ignores the repetition.
        self._asked = number
        with suppress(ProcessLookupError):
            os.kill(self._child, number)

    def _ended(self, awake: int) -> int:
        poll = select.poll()
        poll.register(awake, select.POLLIN)
        poll.register(self._reading, select.POLLIN)
        while True:
            ended, status = os.waitpid(self._child, os.WNOHANG)
            if ended:
                return status
            for ready, _ in poll.poll():
                if ready == awake:
                    os.read(awake, _READ_BYTES)
                elif not self._relay():
                    poll.unregister(self._reading)

    def _relay(self) -> bool:
        """Show the mechanism's output that has arrived. Return False if none is left to read."""
        try:
            data = os.read(self._reading, _READ_BYTES)
        except BlockingIOError:
            return False
        _show(self._chatter.heard(data))
        return bool(data)

    def _code(self, status: int) -> int:
        code = self._shared.code
        if code is not None:
            return code
        asked = self._asked if -status not in REQUESTS else -status
        if asked is not None:
            return 128 + asked
        self._show_what_was_kept()
        if os.isatty(2):
            _show(_SHOW_CURSOR)  # the progress display hides the cursor
        # Imported only when needed, to keep the memory of the parent process small.
        from dpaudit.cli.messages import folded

        _show(f"{folded(f'error: {self._words(status)}')}\n".encode())
        return FAILURE

    def _show_what_was_kept(self) -> None:
        path = self._shared.text(FILE)
        if not path:
            return
        try:
            with open(path, "rb") as file:  # noqa: PTH123  # pathlib is more than all this process has
                data = file.read()
            os.unlink(path)  # noqa: PTH108
            while data:
                data = data[os.write(1, data) :]
        except OSError as error:
            _show(f"error: cannot show the finished results: {error.strerror}\n".encode())

    def _words(self, status: int) -> str:
        audit = self._shared.text(AUDIT)
        how = _how(status)
        if not audit:
            return f"the process of dpaudit ended too early ({how})"
        return (
            f"{audit}: the auditing process ended without a verdict ({how}); the mechanism, a "
            "library that it uses, or another program ended it; with isolate: true (--isolate), "
            "an end that the mechanism causes counts as an outcome"
        )


def _how(status: int) -> str:
    if status >= 0:
        return f"exit code {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"
    wants_memory = ", which the system also sends when memory runs out"
    return name + (wants_memory if -status == signal.SIGKILL else "")


def _show(data: bytes) -> None:
    with suppress(OSError):  # there is no other stream for the message
        while data:
            data = data[os.write(2, data) :]
