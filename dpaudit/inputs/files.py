"""Files that are missing, or not what their name says; what has no end is not read to it."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import DatasetError, DpauditError
from dpaudit.import_path import describe_mode, describe_non_file
from dpaudit.wording import did_you_mean_file

# Of a text that Python's own reader of JSON, or what comes after it, gives up on.
TOO_DEEP = "nested too deeply, with hundreds of levels of lists; make it flatter"
# Bytes that come out of a pipe at most, since it need not end.
MOST_PIPED = 1 << 28


def opened(file: Path) -> BinaryIO:
    """Return a regular file, or all that comes out of a pipe, as `<(…)` of a shell is one.

    Raises DatasetError for what is neither, and for a pipe without a writer or an end; OSError.
    """
    mode = file.stat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISFIFO(mode):
        raise DatasetError(
            f"it is {describe_mode(mode)}, not a file; name a file", code="file-unreadable"
        )
    # A pipe that nobody writes to would be waited for.
    number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.set_blocking(number, True)
    stream = os.fdopen(number, "rb")
    if stat.S_ISREG(mode):
        return stream
    with stream:
        return io.BytesIO(piped(stream))


def piped(stream: BinaryIO) -> bytes:
    """Return all that comes out of a pipe. Raises DatasetError for nothing, or too much."""
    content = stream.read(MOST_PIPED + 1)
    if not content:
        raise DatasetError(
            "this pipe is empty; name a file, or write to the pipe first", code="file-empty"
        )
    if len(content) > MOST_PIPED:
        raise DatasetError(
            f"this pipe holds more than {MOST_PIPED:,} bytes; write them to a file, and name the "
            "file",
            code="file-unreadable",
        )
    return content


def read_text(file: Path) -> str:
    """Return the text of a file, as `opened` finds it. Raises UnicodeDecodeError, too."""
    with opened(file) as stream, io.TextIOWrapper(stream, "utf-8-sig") as text:
        return text.read()


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Return why a file cannot be read, without its name."""
    if isinstance(error, UnicodeDecodeError):
        return "it is not text in UTF-8; save it as UTF-8"
    return error.strerror or str(error)


def near_file(missing: Path) -> str:
    """Return `" Did you mean 'x'?"` for the name beside a missing file that is nearest, or `""`.

    Where its folder is missing, too, for the folder. What is there and is no file is called what it
    is.
    """
    there = describe_non_file(missing)
    if there:
        return f" That is {there}; name a file."
    is_kind = os.DirEntry.is_file
    while not missing.parent.is_dir() and missing != missing.parent:
        missing, is_kind = missing.parent, os.DirEntry.is_dir
    names: list[str] = []
    with suppress(OSError):  # a folder that may not be listed
        names = sorted(one.name for one in os.scandir(missing.parent) if is_kind(one))
    return did_you_mean_file(missing.name, names)


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Say which file an error is about, and what is near one that is missing."""
    try:
        yield
    except FileNotFoundError:
        raise DatasetError(
            f"there is no file {str(file)!r}.{near_file(file)}", code="file-not-found"
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(
            f"{file} cannot be read: {why_unreadable(error)}", code="file-unreadable"
        ) from error
    except DpauditError as error:
        raise type(error)(f"{file}: {error}", code=error.code) from error


def read_npy(file: Path) -> NDArray[Any]:
    """Return the array of a `.npy` file. Raises DatasetError, and FileNotFoundError.

    Pickled objects are never loaded.
    """
    try:
        with opened(file) as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError):
        raise DatasetError(
            "not a complete array of numbers or text as numpy.save writes it (pickled objects are "
            "refused); save it again with numpy.save, as plain numbers",
            code="file-malformed",
        ) from None
