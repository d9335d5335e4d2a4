"""Manage the standard streams: results go to standard output, messages and the output of mechanisms
to standard error.

If standard output cannot be written, the program ends with an error message, or, for a broken
pipe, with an exit code alone. A message that standard error cannot take is dropped."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any, TextIO

from dpaudit.cli.messages import in_ascii
from dpaudit.cli.process import parent as watching
from dpaudit.errors import DpauditError, UsageError

_SPELT_OUT, _ASCII = "dpaudit.spelt_out", "dpaudit_ascii"


class OutputError(DpauditError):
    """Raised if standard output cannot be written, so that the user has not seen the results."""

    code = "cannot-write"


class _Output(io.FileIO):
    """Standard output. An error of writing becomes OutputError; a broken pipe stays
    BrokenPipeError."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(f"cannot write to standard output: {_reason(error)}") from error


class _Messages(io.FileIO):
    """Standard error. Text that cannot be written is dropped, since a lost message must not change
    the verdict."""

    def write(self, data: Any) -> int:
        with suppress(OSError):
            # `write` returns None if the stream cannot take data now. The text is then lost, and
            # counts as written.
            return super().write(data) or len(data)
        return len(data)


# File descriptor to which this program writes its messages. First it is standard error itself;
# `prepare` replaces it by a copy, since a mechanism may close standard error.
_messages = 2


def _reason(error: OSError) -> str:
    return "it is closed" if error.errno == errno.EBADF else str(error.strerror)


def prepare() -> None:
    """Replace sys.stdout by a stream that raises OutputError for an error of writing, and
    sys.stderr by a stream that drops text that cannot be written."""
    sys.stdout = _text(_Output(1, "w", closefd=False), sys.stdout, line_buffering=False)
    global _messages
    # Use a copy of file descriptor 2: if a mechanism closes 2, the next file that it opens gets the
    # number 2, and messages would go into that file.
    _messages = os.dup(2)
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
    """Drop output that could not be written. Python would otherwise try again when it exits, and
    report the same error."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def kept() -> Iterator[None]:
    """At the end of the `with` block, restore the standard streams, which a mechanism may have
    replaced or closed."""
    stdout, stderr = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, _to_messages(stderr) if stderr.closed else stderr


@contextmanager
def set_apart() -> Iterator[TextIO]:
    """Yield a stream that writes results to standard output.

    Within the `with` block, everything else that this process or its children print to standard
    output goes to standard error.
    """
    own = sys.stdout
    try:
        number = own.fileno()
    except (OSError, ValueError):  # standard output is no file, as in a test
        with kept(), redirect_stdout(sys.stderr):
            yield own
        return
    own.flush()
    saved = os.dup(number)
    results = _text(_Output(saved, "w"), own, line_buffering=False)
    os.dup2(watching.chatter(), number)
    show, warnings.showwarning = warnings.showwarning, show_warning
    with kept():
        try:
            yield results
        finally:
            warnings.showwarning = show
            for stream in (results, own):  # errors were reported before
                with suppress(OSError, ValueError, OutputError):
                    stream.flush()
            with suppress(OSError):
                os.dup2(saved, number)
            with suppress(OSError, ValueError, OutputError):
                results.close()


def show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Write a Python warning to the stream that collects the output of the mechanism: dpaudit shows
    equal lines of this stream only once. This function replaces `warnings.showwarning` in this
    process and in its workers."""
    text = warnings.formatwarning(message, category, filename, lineno, line)
    with suppress(OSError):
        if file is None:
            os.write(1, text.encode(errors="replace"))
        else:
            file.write(text)


def _to_messages(like: TextIO | None) -> TextIO:
    return _text(_Messages(_messages, "w", closefd=False), like, line_buffering=True)


def _text(raw: io.FileIO, like: TextIO | None, *, line_buffering: bool) -> TextIO:
    # If the terminal's encoding lacks a character such as ε, write `eps`. An encoding error would
    # hide the verdict.
    codecs.register_error(_SPELT_OUT, _spelt_out)
    codecs.register(_named_ascii)
    encoding = getattr(like, "encoding", None) or "utf-8"
    if codecs.lookup(encoding).name == "ascii":
        encoding = _ASCII
    at_once = line_buffering or raw.isatty()
    buffered = io.BufferedWriter(raw)
    return io.TextIOWrapper(buffered, encoding, errors=_SPELT_OUT, line_buffering=at_once)


def _named_ascii(name: str) -> codecs.CodecInfo | None:
    """For the encoding name `_ASCII`, return the ASCII codec under this name; for any other name,
    return None. The name is not `ascii`, since click would replace a stream with this encoding by a
    UTF-8 stream."""
    if name != _ASCII:
        return None
    ascii_ = codecs.lookup("ascii")
    incremental = ascii_.incrementalencoder, ascii_.incrementaldecoder
    return codecs.CodecInfo(*ascii_, *incremental, name=name)


def _spelt_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return in_ascii(error.object[error.start : error.end]), error.end
