"""Manage the standard streams. Results go to standard output; messages and the output of mechanisms
go to standard error. If standard output cannot be written, the program ends with an error message
or, for a broken pipe, with an exit code alone."""

from __future__ import annotations

import codecs
import errno
import io
import os
import stat
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

from dpaudit.cli.messages import given_away, in_ascii
from dpaudit.errors import DpauditError, UsageError

_SPELT_OUT = "dpaudit.spelt_out"


class OutputError(DpauditError):
    """Raised if standard output cannot be written, so that the user has not seen the results."""

    code = "cannot-write"


class _Output(io.FileIO):
    """Standard output. An error of writing is raised as OutputError, except for BrokenPipeError."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"cannot write to standard output: {_reason(error)}") from error


class _Messages(io.FileIO):
    """Standard error. A text that cannot be written is dropped, since it must not change the
    verdict."""

    def write(self, data: Any) -> int:
        with suppress(OSError):
            # `write` returns None if the stream cannot take data now.
            return super().write(data) or len(data)
        return len(data)


class _Ascii(io.TextIOWrapper):
    """A stream in ASCII. Its class has a name for which click does not replace it by UTF-8."""

    encoding = "dpaudit-ascii"


# File descriptor to which this program writes its messages. First it is standard error itself;
# `prepare` replaces it by a copy, since a mechanism may close standard error.
_messages = 2
# Whether standard output is a pipe, which may end on the same terminal as standard error.
is_piped = False


def prepare() -> None:
    """Replace sys.stdout by a stream that raises OutputError if writing fails, and sys.stderr by a
    stream that drops text that cannot be written."""
    sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout, line_buffering=False)
    global _messages, is_piped
    _messages, is_piped = os.dup(2), stat.S_ISFIFO(os.fstat(1).st_mode)
    sys.stderr = _to_messages(sys.stderr)


def check_open() -> None:
    """Raise UsageError if standard output is closed. Called before an audit begins."""
    try:
        os.write(sys.stdout.fileno(), b"")
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(
            f"cannot write to standard output: {_reason(error)}; for the exit code alone, give "
            "> /dev/null",
            code="cannot-write",
        ) from error


def abandon_output() -> None:
    """Drop output that could not be written. Otherwise Python would try to write it again at
    exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def kept() -> Iterator[None]:
    """Restore the standard streams at the end of the `with` block."""
    stdout, stderr = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, _to_messages(stderr) if stderr.closed else stderr


@contextmanager
def set_apart() -> Iterator[TextIO]:
    """Yield a stream that writes results to standard output. Within the `with` block, everything
    else that this process or its children print there, and what Python code writes to sys.stderr,
    goes to standard error, each line once."""
    stdout = sys.stdout
    try:
        number = stdout.fileno()
    except (OSError, ValueError):  # standard output is no file, as in a test
        with kept(), redirect_stdout(sys.stderr):
            yield stdout
        return
    # Most commands do not need it.
    from dpaudit.cli.chatter import show_warning, shown_once

    stdout.flush()
    results = _text(_Output(os.dup(number), "w"), stdout, line_buffering=False)
    shown = warnings.showwarning
    stderr = _text(_Messages(number, "w", closefd=False), sys.stderr, line_buffering=True)
    with shown_once(number, _messages), kept(), given_away(stderr):
        warnings.showwarning = show_warning
        try:
            yield results
        finally:
            warnings.showwarning = shown
            for stream in (results, stdout):  # errors were reported before
                with suppress(OSError, ValueError, OutputError):
                    stream.flush()
    with suppress(OSError, ValueError, OutputError):
        results.close()


def _to_messages(like: TextIO | None) -> TextIO:
    return _text(_Messages(_messages, "w", closefd=False), like, line_buffering=True)


def _text(raw: io.FileIO, like: TextIO | None, *, line_buffering: bool) -> TextIO:
    # If the terminal's encoding lacks a character such as ε, write `eps`. An encoding error would
    # hide the verdict.
    codecs.register_error(_SPELT_OUT, _spelt_out)
    encoding = getattr(like, "encoding", None) or "utf-8"
    encoding = "ascii" if encoding == _Ascii.encoding else encoding
    kind = _Ascii if codecs.lookup(encoding).name == "ascii" else io.TextIOWrapper
    is_buffered_by_line = line_buffering or raw.isatty()
    buffer = io.BufferedWriter(raw)
    return kind(buffer, encoding, errors=_SPELT_OUT, line_buffering=is_buffered_by_line)


def _spelt_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return in_ascii(error.object[error.start : error.end]), error.end


def _reason(error: OSError) -> str:
    return "it is closed" if error.errno == errno.EBADF else str(error.strerror)
