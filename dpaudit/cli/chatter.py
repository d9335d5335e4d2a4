"""Show what a mechanism prints on standard error, each line once.

The output of the mechanism, its native code and worker processes goes to a file, which a thread
reads. With a pipe, there could be a deadlock: when the pipe is full, native code that holds the
interpreter lock waits for the thread, which waits for the lock.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import tempfile
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from dpaudit.wording import inert

# Largest number of different lines that are shown.
_MAX_LINES = 20
# Largest length of a shown line, in bytes.
_MAX_LINE_BYTES = 500
# Seconds between two looks at what was printed.
_PAUSE_SECONDS = 0.1
# The file is emptied when it has this size. Lines that are written at this moment are not counted.
_MAX_BYTES = 1 << 24


class Chatter:
    """Reads the output of a mechanism piece by piece, and returns each line only once."""

    def __init__(self) -> None:
        self._begun = b""
        self._counts: dict[bytes, int] = {}
        self._hidden = 0

    def heard(self, data: bytes) -> bytes:
        """Take the next piece of the output, and return the complete lines to show. Left out are
        lines that occurred before, and all lines after the first 20 different ones."""
        *lines, begun = (self._begun + data).split(b"\n")
        self._begun = begun[: _MAX_LINE_BYTES + 1]
        return b"".join(filter(None, map(self._counted, lines)))

    def summary(self) -> bytes:
        """Return the text to print at the end: the last line if it has no line end, and how many
        lines were repetitions."""
        last = self._counted(self._begun) if self._begun else b""
        self._begun = b""
        if self._hidden:
            total = self._hidden + sum(self._counts.values())
            left_out = f"of which {len(self._counts)} different lines are shown"
            return last + f"the mechanism printed {total:,} lines, {left_out}\n".encode()
        repeated = [
            b"the mechanism printed %s times: %s\n" % (f"{count:,}".encode(), line)
            for line, count in self._counts.items()
            if count > 1
        ]
        return last + b"".join(repeated)

    def _counted(self, line: bytes) -> bytes:
        """Count a line. Return it with a line break if it is to be shown, else b""."""
        line = inert(line.decode(errors="surrogateescape")).encode(errors="surrogateescape")
        line = line if len(line) <= _MAX_LINE_BYTES else line[:_MAX_LINE_BYTES] + "…".encode()
        if line in self._counts:
            self._counts[line] += 1
        elif len(self._counts) < _MAX_LINES:
            self._counts[line] = 1
            return line + b"\n"
        else:
            self._hidden += 1
        return b""


@contextmanager
def shown_once(number: int, messages: int) -> Iterator[None]:
    """Within the `with` block, show each line that is written to the file descriptor `number` once,
    on the file descriptor `messages`. At the end, print how often lines were repeated."""
    saved, file = os.dup(number), _file()
    os.dup2(file, number)
    chatter, has_ended = Chatter(), threading.Event()
    arguments = (chatter, file, messages, has_ended)
    thread = threading.Thread(target=_show, args=arguments, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ctypes.CDLL(None).fflush(None)  # what native code has printed so far
        os.dup2(saved, number)
        os.close(saved)
        has_ended.set()
        thread.join()
        os.close(file)
        _write(messages, chatter.summary())


def _file() -> int:
    """Return the descriptor of a file without a name, in memory if the system has such files."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("chatter")
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_APPEND)
    return file


def _show(chatter: Chatter, file: int, messages: int, has_ended: threading.Event) -> None:
    position, is_last = 0, False
    while not is_last:
        is_last = has_ended.wait(_PAUSE_SECONDS)
        size = os.fstat(file).st_size
        position = min(position, size)  # a program may have opened and truncated the file
        data = os.pread(file, size - position, position)
        position += len(data)
        if position > _MAX_BYTES:
            os.ftruncate(file, 0)
            position = 0
        _write(messages, chatter.heard(data))


def _write(number: int, data: bytes) -> None:
    with suppress(OSError):  # there is no other stream for the message
        while data:
            data = data[os.write(number, data) :]


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a Python warning where the mechanism's output goes, so that equal warnings are shown
    once. This function takes the place of `warnings.showwarning` in this process and in its
    workers."""
    text = warnings.formatwarning(message, category, filename, lineno, line)
    with suppress(OSError):
        if file is None:
            os.write(1, text.encode(errors="replace"))
        else:
            file.write(text)
